/* SPDX-License-Identifier: MIT */
/*
 * Tells when a live reader of a recording's directory may have come or gone. All directories have one inotify
 * descriptor: the kernel gives a user 128 of these.
 *
 * Threads: one.
 */
#ifndef KY_NET_RELAY_RELAY_READERS_H
#define KY_NET_RELAY_RELAY_READERS_H

#include <kymo/error.h>

#include "base/hash.h"
#include "os/event-loop.h"

struct ky_relay_readers {
	int fd; /* -1: the kernel does not tell */
	struct ky_loop_source *source;
	void (*look)(void *who);
	struct ky_map watched; /* whom a watch is for */
};

/* @look is called for the recording whose directory a process has opened. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_relay_readers_open(struct ky_relay_readers *readers, struct ky_loop *loop,
			  void (*look)(void *who), struct kymo_error *err);
void ky_relay_readers_close(struct ky_relay_readers *readers);

/* Returns the number of the watch, or -1: nothing will be told. */
int ky_relay_readers_watch(struct ky_relay_readers *readers, const char *path, void *who);
/* -1 is allowed. */
void ky_relay_readers_forget(struct ky_relay_readers *readers, int watch);

#endif
