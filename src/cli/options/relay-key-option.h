/* SPDX-License-Identifier: MIT */
/* The key of a relay that an address names, as --relay-key and the user's files say. */
#ifndef KY_CLI_OPTIONS_RELAY_KEY_OPTION_H
#define KY_CLI_OPTIONS_RELAY_KEY_OPTION_H

#include <stdbool.h>

#include "net/relay/relay-key.h"

struct ky_relay_key_choice {
	const char *path;    /* --relay-key; NULL: the user's own, for other machines */
	bool insecure;	     /* other machines need no key */
	const char *missing; /* a hint for a machine that needs a key */
};

/*
 * *tls: the context for connections to @host, which the caller frees, with *key; NULL: none is needed. KYMO_E_INVALID: a relay
 * on another machine needs a key; otherwise as ky_relay_key_read().
 */
int ky_cli_relay_key(const char *host, const struct ky_relay_key_choice *choice,
		     struct ky_relay_key *key, struct ky_tls **tls, struct kymo_error *err);

#endif
