/* SPDX-License-Identifier: MIT */
/*
 * The process that loads a relay's recordings into a store: kymo fleet follow. The relay never waits for it, and begins it again when it ends.
 * Threads: one.
 */
#ifndef KY_CLI_RECORDING_RELAY_LOADER_H
#define KY_CLI_RECORDING_RELAY_LOADER_H

#include <signal.h>
#include <sys/types.h>

#include "os/event-loop.h"

struct ky_relay_loader {
	const char *store, *dir;
	struct ky_loop *loop;
	struct ky_loop_source *timer, *child;
	sigset_t mask; /* of the process before the relay blocked signals */
	pid_t pid;     /* 0: none */
	unsigned int n_ends;
};

/* ->store, ->dir, ->loop and ->mask are filled in. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_relay_loader_begin(struct ky_relay_loader *loader, struct kymo_error *err);
void ky_relay_loader_end(struct ky_relay_loader *loader);

#endif
