/* SPDX-License-Identifier: MIT */
#include "net/link/tls-library.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define STRING(x)  #x
#define VERSION(x) STRING(x)
/* The version whose headers were there when this was compiled. */
#define SSL_FILE    "libssl.so." VERSION(OPENSSL_SHLIB_VERSION)
#define CRYPTO_FILE "libcrypto.so." VERSION(OPENSSL_SHLIB_VERSION)
#define PACKAGE	    "libssl" VERSION(OPENSSL_SHLIB_VERSION)

#define SYMBOL(name) {#name, offsetof(struct ky_tls_library, name)},

static const struct ky_library_symbol ssl_symbols[] = {KY_TLS_SSL_FUNCTIONS(SYMBOL){0}};
static const struct ky_library_symbol crypto_symbols[] = {KY_TLS_CRYPTO_FUNCTIONS(SYMBOL){0}};

struct ky_tls_library ky_openssl;

static bool is_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int ky_tls_library_load(struct kymo_error *err)
{
	int ret = KYMO_OK;

	pthread_mutex_lock(&lock);
	if (!is_loaded)
		ret = ky_library_load(CRYPTO_FILE, PACKAGE, crypto_symbols, &ky_openssl, err);
	if (!is_loaded && !ret)
		ret = ky_library_load(SSL_FILE, PACKAGE, ssl_symbols, &ky_openssl, err);
	is_loaded |= !ret;
	pthread_mutex_unlock(&lock);
	return ret;
}
