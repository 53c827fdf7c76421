/* SPDX-License-Identifier: MIT */
/* The functions of OpenSSL that tls.c calls. They are loaded with the first key: few commands need TLS. */
#ifndef KY_NET_LINK_TLS_LIBRARY_H
#define KY_NET_LINK_TLS_LIBRARY_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <kymo/error.h>

#include "os/library.h"

#define KY_TLS_SSL_FUNCTIONS(X)             \
	X(SSL_CTX_ctrl)                     \
	X(SSL_CTX_free)                     \
	X(SSL_CTX_new)                      \
	X(SSL_CTX_load_verify_file)         \
	X(SSL_CTX_set_default_verify_paths) \
	X(SSL_CTX_set_num_tickets)          \
	X(SSL_CTX_set_verify)               \
	X(SSL_CTX_use_PrivateKey_file)      \
	X(SSL_CTX_use_certificate_file)     \
	X(SSL_ctrl)                         \
	X(SSL_do_handshake)                 \
	X(SSL_free)                         \
	X(SSL_get1_peer_certificate)        \
	X(SSL_get0_param)                   \
	X(SSL_get_error)                    \
	X(SSL_get_verify_result)            \
	X(SSL_new)                          \
	X(SSL_read)                         \
	X(SSL_set1_host)                    \
	X(SSL_set_accept_state)             \
	X(SSL_set_connect_state)            \
	X(SSL_set_fd)                       \
	X(SSL_write)                        \
	X(TLS_client_method)                \
	X(TLS_server_method)

#define KY_TLS_CRYPTO_FUNCTIONS(X)       \
	X(ASN1_INTEGER_set)              \
	X(ERR_clear_error)               \
	X(ERR_get_error)                 \
	X(ERR_peek_error)                \
	X(ERR_reason_error_string)       \
	X(EVP_PKEY_Q_keygen)             \
	X(EVP_PKEY_free)                 \
	X(EVP_sha256)                    \
	X(PEM_write_PrivateKey)          \
	X(PEM_write_X509)                \
	X(X509_NAME_add_entry_by_txt)    \
	X(X509_VERIFY_PARAM_set1_ip_asc) \
	X(X509_digest)                   \
	X(X509_free)                     \
	X(X509_get_serialNumber)         \
	X(X509_get_subject_name)         \
	X(X509_getm_notAfter)            \
	X(X509_getm_notBefore)           \
	X(X509_gmtime_adj)               \
	X(X509_new)                      \
	X(X509_set_issuer_name)          \
	X(X509_set_pubkey)               \
	X(X509_set_version)              \
	X(X509_sign)                     \
	X(X509_time_adj_ex)              \
	X(X509_verify_cert_error_string)

KY_TLS_SSL_FUNCTIONS(KY_LIBRARY_TYPE)
KY_TLS_CRYPTO_FUNCTIONS(KY_LIBRARY_TYPE)

struct ky_tls_library {
	KY_TLS_SSL_FUNCTIONS(KY_LIBRARY_MEMBER)
	KY_TLS_CRYPTO_FUNCTIONS(KY_LIBRARY_MEMBER)
};

/* The functions; NULL before ky_tls_library_load(). */
extern struct ky_tls_library ky_openssl;

/* Loads them, the first time. KYMO_E_UNSUPPORTED: OpenSSL is missing. Any thread. */
int ky_tls_library_load(struct kymo_error *err);

#endif
