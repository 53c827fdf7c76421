/* SPDX-License-Identifier: MIT */
/*
 * What a relay takes in, into a store, while it arrives. The relay's files are the queue: a server that is slow or dead holds up nothing, and what
 * it missed is loaded later. Threads: one.
 */
#ifndef KY_FLEET_FLEET_FOLLOW_H
#define KY_FLEET_FLEET_FOLLOW_H

#include "base/log.h"
#include "fleet/fleet.h"

struct ky_fleet_follow_options {
	const char *place;    /* the store */
	const char *dir;      /* the relay's directory */
	uint64_t every_ns;    /* the least time between two slices of a recording */
	bool ends_when_whole; /* returns when all recordings are loaded, instead of waiting for more */
	struct ky_fleet_options how;
	const struct ky_log *log;
};

/* Until how.stop says so. The log tells errors, which are tried again; KYMO_E_MEMORY, or KYMO_E_NOT_FOUND: no directory. */
int ky_fleet_follow(const struct ky_fleet_follow_options *options, struct kymo_error *err);

#endif
