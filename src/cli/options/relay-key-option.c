/* SPDX-License-Identifier: MIT */
#include "cli/options/relay-key-option.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* ~/.config/kymo/relay-key, or "" */
static void relay_key_option_default_key(char path[PATH_MAX])
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");

	path[0] = '\0';
	if (config && *config == '/')
		snprintf(path, PATH_MAX, "%s/kymo/relay-key", config);
	else if (home && *home == '/')
		snprintf(path, PATH_MAX, "%s/.config/kymo/relay-key", home);
	if (path[0] && access(path, F_OK) < 0)
		path[0] = '\0';
}

static bool is_this_machine(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "::1") == 0;
}

/* A key that is named counts everywhere; the user's own, for other machines. */
int ky_cli_relay_key(const char *host, const struct ky_relay_key_choice *choice,
		     struct ky_relay_key *key, struct ky_tls **tls, struct kymo_error *err)
{
	char path[PATH_MAX];
	int ret;

	*tls = NULL;
	relay_key_option_default_key(path);
	if (choice->path || (path[0] && !is_this_machine(host) && !choice->insecure)) {
		ret = ky_relay_key_read(choice->path ? choice->path : path, key, err);
		return ret < 0 ? ret : ky_tls_recorder(key->fingerprint, tls, err);
	}
	if (is_this_machine(host) || choice->insecure)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "a relay on another machine needs a key");
	ky_error_hint(err, "%s", choice->missing);
	return KYMO_E_INVALID;
}
