/* SPDX-License-Identifier: MIT */
/*
 * How much space the recordings of each host take at a relay.
 *
 * Threads: one.
 */
#ifndef KY_NET_FILES_RELAY_HOSTS_H
#define KY_NET_FILES_RELAY_HOSTS_H

#include <stdint.h>

#include <kymo/error.h>

#include "base/vec.h"

struct ky_relay_host {
	char *name;
	uint64_t bytes; /* of its files; the caller adds to it */
	size_t users;	/* clients and sessions; without one, the list may forget it */
};

/* A zeroed struct is empty. */
struct ky_relay_hosts {
	KY_VEC(struct ky_relay_host *) list;
};

/* A relay knows that many hosts, and those that have clients: they choose their names. */
#define KY_RELAY_HOSTS_MAX 10000

/*
 * The host @name, with one user more; at the first call for it, its files in @dir/@name are counted. KYMO_E_MEMORY. The
 * list owns *host.
 */
int ky_relay_hosts_find(struct ky_relay_hosts *hosts, const char *dir, const char *name,
			struct ky_relay_host **host, struct kymo_error *err);
void ky_relay_host_keep(struct ky_relay_host *host);
/* NULL is allowed. */
void ky_relay_host_leave(struct ky_relay_host *host);
/* So many bytes of its files are gone. */
void ky_relay_host_subtract(struct ky_relay_host *host, uint64_t bytes);
/* KYMO_E_LIMIT: the host has used up its quota (0: none). */
int ky_relay_host_check(const struct ky_relay_host *host, uint64_t quota_bytes,
			struct kymo_error *err);
void ky_relay_hosts_fini(struct ky_relay_hosts *hosts);

#endif
