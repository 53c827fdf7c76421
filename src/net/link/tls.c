/* SPDX-License-Identifier: MIT */
#include "net/link/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/link/tls-library.h"
#include "os/file.h"

#define YEARS 100

struct ky_tls {
	SSL_CTX *context;
	bool is_recorder, is_client;
	uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES];
};

struct ky_tls_session {
	struct ky_tls *tls;
	SSL *ssl;
	bool is_begun; /* the handshake is done, and the peer is the right one */
};

static int tls_error(const char *what, struct kymo_error *err)
{
	unsigned long code = ky_openssl.ERR_get_error();
	const char *reason = code ? ky_openssl.ERR_reason_error_string(code) : NULL;

	ky_openssl.ERR_clear_error();
	return ky_error_set(err, KYMO_E_IO, "%s: %s", what, reason ? reason : "unknown reason");
}

/* ---- keys ----------------------------------------------------------------------------- */

static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *certificate = ky_openssl.X509_new();
	X509_NAME *name;

	if (!certificate)
		return NULL;
	name = ky_openssl.X509_get_subject_name(certificate);
	if (ky_openssl.X509_set_version(certificate, 2) != 1 ||
	    ky_openssl.ASN1_INTEGER_set(ky_openssl.X509_get_serialNumber(certificate), 1) != 1 ||
	    !ky_openssl.X509_gmtime_adj(ky_openssl.X509_getm_notBefore(certificate), -86400) ||
	    !ky_openssl.X509_time_adj_ex(ky_openssl.X509_getm_notAfter(certificate), YEARS * 365, 0,
					 NULL) ||
	    ky_openssl.X509_set_pubkey(certificate, key) != 1 ||
	    ky_openssl.X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
						  (const unsigned char *)"kymo relay", -1, -1,
						  0) != 1 ||
	    ky_openssl.X509_set_issuer_name(certificate, name) != 1 ||
	    !ky_openssl.X509_sign(certificate, key, ky_openssl.EVP_sha256())) {
		ky_openssl.X509_free(certificate);
		return NULL;
	}
	return certificate;
}

static FILE *tls_create(int dir_fd, const char *name, struct kymo_error *err)
{
	int fd = ky_file_open(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (file)
		return file;
	if (errno == EEXIST) {
		ky_error_set(err, KYMO_E_INVALID, "the relay has a key already");
		ky_error_hint(err, "copy recorder-key and reader-key of its directory to other "
				   "machines, or remove this file to make another key");
	} else {
		ky_error_errno(err, errno, "cannot write the relay's key");
	}
	ky_error_path(err, name);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int write_files(int dir_fd, const char *key_name, const char *certificate_name,
		       EVP_PKEY *key, X509 *certificate, struct kymo_error *err)
{
	FILE *file = tls_create(dir_fd, key_name, err);
	bool is_written;

	if (!file)
		return err ? err->code : KYMO_E_IO;
	is_written = ky_openssl.PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1;
	is_written &= fclose(file) == 0;
	file = is_written ? tls_create(dir_fd, certificate_name, err) : NULL;
	if (!file)
		return is_written && err ? err->code
					 : tls_error("cannot write the relay's key", err);
	is_written = ky_openssl.PEM_write_X509(file, certificate) == 1;
	is_written &= fclose(file) == 0;
	return is_written ? KYMO_OK : tls_error("cannot write the relay's certificate", err);
}

static bool fingerprint_of(const X509 *certificate, uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int bytes = 0;

	if (ky_openssl.X509_digest(certificate, ky_openssl.EVP_sha256(), digest, &bytes) != 1 ||
	    bytes != KY_TLS_FINGERPRINT_BYTES)
		return false;
	memcpy(fingerprint, digest, bytes);
	return true;
}

int ky_tls_make_key(int dir_fd, const char *key_name, const char *certificate_name,
		    uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES], struct kymo_error *err)
{
	int ret = ky_tls_library_load(err);
	X509 *certificate;
	EVP_PKEY *key;

	if (ret)
		return ret;
	key = ky_openssl.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	certificate = key ? make_certificate(key) : NULL;
	if (!certificate || !fingerprint_of(certificate, fingerprint))
		ret = tls_error("cannot make a key", err);
	else
		ret = write_files(dir_fd, key_name, certificate_name, key, certificate, err);
	ky_openssl.X509_free(certificate);
	ky_openssl.EVP_PKEY_free(key);
	return ret;
}

/* ---- contexts ------------------------------------------------------------------------- */

/* What OpenSSL has macros for. */
static long set_option(struct ky_tls *tls, int option, long value)
{
	return ky_openssl.SSL_CTX_ctrl(tls->context, option, value, NULL);
}

static struct ky_tls *tls_new(const SSL_METHOD *method)
{
	struct ky_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	tls->context = ky_openssl.SSL_CTX_new(method);
	if (tls->context && set_option(tls, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION) == 1) {
		(void)set_option(tls, SSL_CTRL_MODE,
				 SSL_MODE_ENABLE_PARTIAL_WRITE |
					 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					 SSL_MODE_RELEASE_BUFFERS);
		/* Sessions are long; to resume one costs memory. */
		(void)set_option(tls, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF);
		(void)ky_openssl.SSL_CTX_set_num_tickets(tls->context, 0);
		return tls;
	}
	ky_tls_free(tls);
	return NULL;
}

int ky_tls_relay(const char *key_path, const char *certificate_path, struct ky_tls **out,
		 struct kymo_error *err)
{
	int ret = ky_tls_library_load(err);
	struct ky_tls *tls;

	*out = NULL;
	if (ret)
		return ret;
	*out = tls = tls_new(ky_openssl.TLS_server_method());
	if (!tls)
		return ky_error_nomem(err);
	if (ky_openssl.SSL_CTX_use_certificate_file(tls->context, certificate_path,
						    SSL_FILETYPE_PEM) == 1 &&
	    ky_openssl.SSL_CTX_use_PrivateKey_file(tls->context, key_path, SSL_FILETYPE_PEM) == 1)
		return KYMO_OK;
	ky_tls_free(tls);
	*out = NULL;
	tls_error("cannot use the relay's key", err);
	ky_error_path(err, key_path);
	return KYMO_E_IO;
}

int ky_tls_recorder(const uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES], struct ky_tls **out,
		    struct kymo_error *err)
{
	int ret = ky_tls_library_load(err);
	struct ky_tls *tls;

	*out = NULL;
	if (ret)
		return ret;
	*out = tls = tls_new(ky_openssl.TLS_client_method());
	if (!tls)
		return ky_error_nomem(err);
	tls->is_recorder = true;
	memcpy(tls->fingerprint, fingerprint, sizeof(tls->fingerprint));
	/* The fingerprint says whose certificate it is: see is_right_peer(). */
	ky_openssl.SSL_CTX_set_verify(tls->context, SSL_VERIFY_NONE, NULL);
	return KYMO_OK;
}

int ky_tls_client(const char *authorities, struct ky_tls **out, struct kymo_error *err)
{
	int ret = ky_tls_library_load(err);
	struct ky_tls *tls;

	*out = NULL;
	if (ret)
		return ret;
	*out = tls = tls_new(ky_openssl.TLS_client_method());
	if (!tls)
		return ky_error_nomem(err);
	tls->is_client = true;
	(void)set_option(tls, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION);
	ky_openssl.SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	if ((authorities ? ky_openssl.SSL_CTX_load_verify_file(tls->context, authorities)
			 : ky_openssl.SSL_CTX_set_default_verify_paths(tls->context)) == 1)
		return KYMO_OK;
	ky_tls_free(tls);
	*out = NULL;
	tls_error("cannot use the certificates of authorities", err);
	ky_error_path(err, authorities);
	return KYMO_E_IO;
}

void ky_tls_free(struct ky_tls *tls)
{
	if (!tls)
		return;
	ky_openssl.SSL_CTX_free(tls->context);
	free(tls);
}

/* ---- sessions ------------------------------------------------------------------------- */

struct ky_tls_session *ky_tls_begin(struct ky_tls *tls, int fd)
{
	struct ky_tls_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->tls = tls;
	session->ssl = ky_openssl.SSL_new(tls->context);
	if (!session->ssl || ky_openssl.SSL_set_fd(session->ssl, fd) != 1) {
		ky_tls_end(session);
		return NULL;
	}
	if (tls->is_recorder || tls->is_client)
		ky_openssl.SSL_set_connect_state(session->ssl);
	else
		ky_openssl.SSL_set_accept_state(session->ssl);
	return session;
}

struct ky_tls_session *ky_tls_begin_with(struct ky_tls *tls, int fd, const char *host)
{
	struct ky_tls_session *session = ky_tls_begin(tls, fd);
	X509_VERIFY_PARAM *param;

	if (!session)
		return NULL;
	param = ky_openssl.SSL_get0_param(session->ssl);
	if (ky_openssl.X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
		return session;
	ky_openssl.ERR_clear_error();
	/* The server may have certificates of several names. */
	if (ky_openssl.SSL_set1_host(session->ssl, host) == 1 &&
	    ky_openssl.SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
				TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host) == 1)
		return session;
	ky_tls_end(session);
	return NULL;
}

const char *ky_tls_refusal(const struct ky_tls_session *session)
{
	return ky_openssl.X509_verify_cert_error_string(
		ky_openssl.SSL_get_verify_result(session->ssl));
}

void ky_tls_end(struct ky_tls_session *session)
{
	if (!session)
		return;
	ky_openssl.SSL_free(session->ssl);
	free(session);
}

static bool is_right_peer(const struct ky_tls_session *session)
{
	uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES];
	X509 *certificate;
	bool is_right;

	if (!session->tls->is_recorder)
		return true;
	certificate = ky_openssl.SSL_get1_peer_certificate(session->ssl);
	is_right = certificate && fingerprint_of(certificate, fingerprint) &&
		   memcmp(fingerprint, session->tls->fingerprint, sizeof(fingerprint)) == 0;
	ky_openssl.X509_free(certificate);
	return is_right;
}

int ky_tls_handshake(struct ky_tls_session *session)
{
	int ret;

	if (session->is_begun)
		return 0;
	ky_openssl.ERR_clear_error();
	ret = ky_openssl.SSL_do_handshake(session->ssl);
	if (ret == 1) {
		session->is_begun = is_right_peer(session);
		return session->is_begun ? 0 : -EPERM;
	}
	switch (ky_openssl.SSL_get_error(session->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		return 1;
	case SSL_ERROR_WANT_WRITE:
		return 2;
	case SSL_ERROR_SYSCALL:
		return errno ? -errno : -ECONNRESET;
	default:
		ky_openssl.ERR_clear_error();
		return session->tls->is_client &&
				       ky_openssl.SSL_get_verify_result(session->ssl) != X509_V_OK
			       ? -EPERM
			       : -EPROTO;
	}
}

/* What a call that did not succeed means; @ret: its result. */
static ssize_t tls_failure(const struct ky_tls_session *session, int ret)
{
	switch (ky_openssl.SSL_get_error(session->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return errno ? -errno : 0;
	default:
		/* A peer that was killed does not end TLS. */
		ret = ERR_GET_REASON(ky_openssl.ERR_peek_error());
		ky_openssl.ERR_clear_error();
		return ret == SSL_R_UNEXPECTED_EOF_WHILE_READING ? -ECONNRESET : -EPROTO;
	}
}

static ssize_t tls_prepare(struct ky_tls_session *session)
{
	int ret = ky_tls_handshake(session);

	ky_openssl.ERR_clear_error();
	return ret > 0 ? -EAGAIN : ret;
}

ssize_t ky_tls_receive(struct ky_tls_session *session, void *data, size_t bytes)
{
	ssize_t ready = tls_prepare(session);
	size_t got = 0;
	int ret = 1;

	if (ready < 0)
		return ready;
	/* One call gives one record at most. An error comes again with the next call. */
	while (got < bytes && ret > 0) {
		size_t left = bytes - got;

		ret = ky_openssl.SSL_read(session->ssl, (uint8_t *)data + got,
					  left < INT_MAX ? (int)left : INT_MAX);
		got += ret > 0 ? (size_t)ret : 0;
	}
	return got ? (ssize_t)got : tls_failure(session, ret);
}

ssize_t ky_tls_send(struct ky_tls_session *session, const void *data, size_t bytes)
{
	ssize_t ready = tls_prepare(session);
	int ret;

	if (ready < 0)
		return ready;
	if (!bytes)
		return 0;
	ret = ky_openssl.SSL_write(session->ssl, data, bytes < INT_MAX ? (int)bytes : INT_MAX);
	ready = ret > 0 ? ret : tls_failure(session, ret);
	return ready ? ready : -ECONNRESET;
}
