/* SPDX-License-Identifier: MIT */
/*
 * What recorders need to know of a relay beyond this machine: the fingerprint of its certificate,
 * and the token. `kymo relay --init` writes it to a file, which the user copies to the recorders:
 *
 *	kymo-relay 1
 *	fingerprint 3f1c...	64 digits
 *	token 9a0b...
 *
 * Threads: any.
 */
#ifndef KY_NET_RELAY_RELAY_KEY_H
#define KY_NET_RELAY_RELAY_KEY_H

#include <kymo/error.h>

#include "net/link/tls.h"

#define KY_RELAY_TOKEN_BYTES 65 /* of the text, with its end */

struct ky_relay_key {
	uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES];
	char token[KY_RELAY_TOKEN_BYTES];
	char reader_token
		[KY_RELAY_TOKEN_BYTES]; /* the relay's side only; "": readers have none of their own */
};

/* From text. KYMO_E_FORMAT. */
int ky_relay_key_parse(const char *text, struct ky_relay_key *key, struct kymo_error *err);
/* From a file. KYMO_E_FORMAT, KYMO_E_NOT_FOUND, KYMO_E_IO. */
int ky_relay_key_read(const char *path, struct ky_relay_key *key, struct kymo_error *err);

/*
 * Makes the key of the relay whose directory is @dir: DIR/.kymo/relay-key.pem, relay.pem,
 * recorder-key, the file for the recorders, and reader-key, with which a machine can only read.
 * KYMO_E_INVALID: it has one; KYMO_E_IO.
 */
int ky_relay_key_make(const char *dir, struct kymo_error *err);
/*
 * The relay's side: its context and tokens. *tls is NULL when the relay has no key. The caller frees
 * it.
 */
int ky_relay_key_load(const char *dir, struct ky_tls **tls, struct ky_relay_key *key,
		      struct kymo_error *err);

#endif
