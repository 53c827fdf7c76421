/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-network.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "net/network-store.h"
#include "net/relay-key.h"

#define SSH "ssh://"
/* How long a relay may be away at the end of the recording. */
#define PATIENCE_MS 15000

bool ky_record_is_network(const char *text)
{
	return ky_net_address_is(text) || strncmp(text, SSH, strlen(SSH)) == 0;
}

/* ssh://HOST/DIR: the directory is absolute, as in other URLs. */
static int parse_ssh(const char *output, const char *name, struct ky_sender_options *options,
		     struct kymo_error *err)
{
	const char *host = output + strlen(SSH), *slash = strchr(host, '/');
	struct ky_net_address *address = &options->address;

	if (!slash || slash == host || *host == '-' ||
	    (size_t)(slash - host) >= sizeof(address->host))
		return ky_error_set(err, KYMO_E_INVALID, "'%s' is not " SSH "HOST/DIR", output);
	snprintf(address->host, sizeof(address->host), "%.*s", (int)(slash - host), host);
	snprintf(address->port, sizeof(address->port), "ssh");
	snprintf(address->name, sizeof(address->name), "%s", name);
	options->ssh_dir = slash;
	return KYMO_OK;
}

/* ~/.config/kymo/relay-key, or "" */
static void default_key(char path[PATH_MAX])
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
static int take_key(struct ky_record_network *network, struct ky_relay_key *key,
		    struct ky_sender_options *options, struct kymo_error *err)
{
	const char *host = options->address.host;
	char path[PATH_MAX];
	int ret;

	default_key(path);
	if (network->key_path || (path[0] && !is_this_machine(host) && !network->insecure)) {
		ret = ky_relay_key_read(network->key_path ? network->key_path : path, key, err);
		if (!ret)
			ret = ky_tls_recorder(key->fingerprint, &network->tls, err);
		options->tls = network->tls;
		options->token = key->token;
		return ret;
	}
	if (is_this_machine(host) || network->insecure)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "a relay on another machine needs a key");
	ky_error_hint(err, "give --relay-key FILE, which kymo relay --init makes there");
	return KYMO_E_INVALID;
}

int ky_record_open_network(struct ky_record_network *network, const char *output, const char *name,
			   struct ky_packet_store **store, struct kymo_error *err)
{
	struct ky_sender_options options = {.log = &ky_cli_log};
	struct ky_relay_key key;
	char host[256] = "";
	int ret;

	if (ky_net_address_is(output)) {
		ret = ky_net_address_parse(output, &options.address, err);
		if (!ret)
			ret = take_key(network, &key, &options, err);
	} else {
		ret = parse_ssh(output, name, &options, err);
	}
	if (ret < 0)
		return ret;
	(void)gethostname(host, sizeof(host) - 1);
	options.host = ky_net_is_name(host, strlen(host)) ? host : "localhost";
	return ky_network_store_open(output, &options, store, err);
}

int ky_record_finish_network(struct ky_packet_store *store, struct kymo_error *err)
{
	return ky_network_store_finish(store, PATIENCE_MS, err);
}
