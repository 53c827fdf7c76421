/* SPDX-License-Identifier: MIT */
/* Recordings at relays among the traces of a command: kymo://HOST/NAME, net://HOST/host/MACHINE/SESSION. */
#ifndef KY_CLI_READING_REMOTES_H
#define KY_CLI_READING_REMOTES_H

#include "base/vec.h"
#include "net/relay/relay-key.h"
#include "store/read/trace.h"

struct ky_cli_remotes {
	KY_VEC(struct ky_trace_at_feed) feeds;
	KY_VEC(const char *) local; /* the other paths */
	KY_VEC(struct ky_tls *) keys;
};

struct ky_cli_remote_options {
	const char *key_path; /* the relays' key; NULL: the user's own */
	uint32_t
		delay_ms; /* recordings are followed, with this time from an event to the reader; 0: as they are now */
	bool keeps; /* a reader that follows recordings comes back to all that they had: see struct ky_feed */
	uint64_t space_bytes; /* limit for what comes of one address; 0: the default */
};

/*
 * Connects to the relays of the addresses among @paths, which are borrowed. The caller frees *remotes in any case.
 * KYMO_E_INVALID: a bad address; KYMO_E_NOT_FOUND, KYMO_E_IO, KYMO_E_FORMAT, KYMO_E_LIMIT.
 */
int ky_cli_remotes_open(struct ky_cli_remotes *remotes, char **paths, int n_paths,
			const struct ky_cli_remote_options *options, struct kymo_error *err);
/* After the close of all sets with its traces. */
void ky_cli_remotes_fini(struct ky_cli_remotes *remotes);

/* Whether @path is the address of a relay without a recording, so that its recordings are to be listed. */
bool ky_cli_is_relay(const char *path);
/* Prints an address per recording of the relay at @path; @json: and what the relay knows of it, as JSON. */
int ky_cli_list_relay(const char *path, const char *key_path, bool json, struct kymo_error *err);

#endif
