/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-network.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/relay-key-option.h"
#include "cli/terminal/command.h"
#include "net/sender/network-store.h"
#include "net/relay/relay-key.h"

#define SSH "ssh://"
/* How long a relay may be away at the end of the recording. */
#define PATIENCE_MS 15000

bool ky_record_is_network(const char *text)
{
	return ky_net_address_is(text) || strncmp(text, SSH, strlen(SSH)) == 0;
}

/* Ctrl-C at the start, a further one at the end: all threads have these signals blocked. */
static bool gives_up(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
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

static int take_key(struct ky_record_network *network, struct ky_relay_key *key,
		    struct ky_sender_options *options, struct kymo_error *err)
{
	const struct ky_relay_key_choice choice = {
		.path = network->key_path,
		.insecure = network->insecure,
		.missing = "give --relay-key FILE, which kymo relay --init makes there",
	};
	int ret = ky_cli_relay_key(options->address.host, &choice, key, &network->tls, err);

	options->tls = network->tls;
	options->token = network->tls ? key->token : NULL;
	return ret;
}

int ky_record_open_network(struct ky_record_network *network, const char *output, const char *name,
			   struct ky_packet_store **store, struct kymo_error *err)
{
	struct ky_sender_options options = {.spill_bytes = network->spill_bytes,
					    .spill_dir = network->spill_dir,
					    .wait_ms = network->wait_ms,
					    .waits_for_relay = network->wait_ms != 0,
					    .gives_up = gives_up,
					    .log = &ky_cli_log};
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

static void say_next_ssh(const struct ky_net_address *address, const char *dir)
{
	char machine[256] = "";

	(void)gethostname(machine, sizeof(machine) - 1);
	fputs("Next:  kymo info ", stderr);
	ky_cli_put_text(stderr, dir);
	fputc('/', stderr);
	ky_cli_put_text(stderr, machine);
	fputc('/', stderr);
	ky_cli_put_text(stderr, address->name);
	fputs(" (on ", stderr);
	ky_cli_put_text(stderr, address->host);
	fputs(")\n", stderr);
}

void ky_record_say_next_there(const struct ky_record_network *network, const char *output,
			      const char *name, bool has_kernel)
{
	const char *key = network->tls ? " --relay-key FILE" : "";
	struct ky_sender_options options = {0};

	if (!ky_net_address_is(output)) {
		if (parse_ssh(output, name, &options, NULL) == 0)
			say_next_ssh(&options.address, options.ssh_dir);
		return;
	}
	fprintf(stderr, "Next:  kymo info%s ", key);
	ky_cli_put_text(stderr, output);
	if (has_kernel) {
		fprintf(stderr, "\n       kymo report why%s ", key);
		ky_cli_put_text(stderr, output);
	}
	fprintf(stderr, "\n       kymo print%s ", key);
	ky_cli_put_text(stderr, output);
	fprintf(stderr, "\n%s",
		*key ? "FILE is a copy of .kymo/reader-key in the relay's directory.\n" : "");
}

bool ky_record_parse_spill(const char *text, struct ky_record_network *network)
{
	const char *colon = strchr(text, ':');
	char size[32];

	snprintf(size, sizeof(size), "%.*s", (int)(colon ? (size_t)(colon - text) : strlen(text)),
		 text);
	network->spill_dir = colon ? colon + 1 : NULL;
	return ky_parse_size(size, &network->spill_bytes) == 0 && network->spill_bytes &&
	       (!colon || colon[1] == '/');
}

static sigset_t end_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	return signals;
}

int ky_record_finish_network(struct ky_packet_store *store, struct kymo_error *err)
{
	const sigset_t signals = end_signals();
	struct ky_store_backlog backlog;
	char size[32];
	int ret;

	/* One that came with the end does not count. */
	while (sigtimedwait(&signals, NULL, &(struct timespec){0}) > 0)
		;
	ret = ky_network_store_finish(store, PATIENCE_MS, gives_up, err);

	if (ky_store_get_backlog(store, &backlog) && backlog.spilled_bytes)
		fprintf(stderr,
			"%s of the recording waited in the spill file while the relay was away or slow\n",
			ky_format_bytes(size, backlog.spilled_bytes));
	return ret;
}
