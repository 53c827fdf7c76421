/* SPDX-License-Identifier: MIT */
/*
 * TLS 1.3 between recorder and relay. The relay has a key and a certificate of its own making; a
 * recorder knows the certificate by its fingerprint (SHA-256), so that no authority is needed.
 * And the client's side of other servers, which authorities vouch for.
 *
 * Threads: a context may be used by any number of threads, a session by one at a time.
 */
#ifndef KY_NET_LINK_TLS_H
#define KY_NET_LINK_TLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kymo/error.h>

#define KY_TLS_FINGERPRINT_BYTES 32

struct ky_tls; /* a context */
struct ky_tls_session;

/*
 * Makes a key and a certificate for a relay, in two new files below @dir_fd (0600). KYMO_E_INVALID: a
 * file exists; KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_tls_make_key(int dir_fd, const char *key_name, const char *certificate_name,
		    uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES], struct kymo_error *err);

/* The relay's side, with these files (PEM). KYMO_E_IO: they cannot be used; KYMO_E_UNSUPPORTED. */
int ky_tls_relay(const char *key_path, const char *certificate_path, struct ky_tls **tls,
		 struct kymo_error *err);
/* The recorder's side. */
int ky_tls_recorder(const uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES], struct ky_tls **tls,
		    struct kymo_error *err);
/*
 * The client's side of a server whose certificate an authority has signed: those in the file @authorities (PEM), or, if it is NULL,
 * the system's. TLS 1.2 or later. KYMO_E_IO: the file cannot be used; KYMO_E_UNSUPPORTED.
 */
int ky_tls_client(const char *authorities, struct ky_tls **tls, struct kymo_error *err);
/* The caller must have freed the sessions. NULL is allowed. */
void ky_tls_free(struct ky_tls *tls);

/* A session on the socket @fd, which the caller owns. NULL: no memory. */
struct ky_tls_session *ky_tls_begin(struct ky_tls *tls, int fd);
/* For a context of ky_tls_client(): the certificate must be that of @host, a name or an IP address. */
struct ky_tls_session *ky_tls_begin_with(struct ky_tls *tls, int fd, const char *host);
void ky_tls_end(struct ky_tls_session *session);
/*
 * Does the next part of the handshake. Returns 0: done; 1: wait until the socket is readable; 2: until
 * it is writable; -EPERM: the relay has another certificate; -EPROTO: the peer does not speak TLS.
 */
int ky_tls_handshake(struct ky_tls_session *session);
/* After -EPERM of ky_tls_client()'s sessions: what is wrong with the certificate. */
const char *ky_tls_refusal(const struct ky_tls_session *session);
/* As ky_link_receive() and ky_link_send(); they do the handshake first, if need be. */
ssize_t ky_tls_receive(struct ky_tls_session *session, void *data, size_t bytes);
ssize_t ky_tls_send(struct ky_tls_session *session, const void *data, size_t bytes);

#endif
