/* SPDX-License-Identifier: MIT */
/*
 * Which arguments of system calls point at something worth recording: a table.
 *
 * An item is one such argument. Items of input are read when the call is entered, those of output when it
 * is left. Their places matter: a BPF program has code for every kind of item at every place where
 * the kind may stand, so buffers stand in places of their own.
 * Threads: any.
 */
#ifndef KY_KERNEL_EVENTS_CONTENT_CALLS_H
#define KY_KERNEL_EVENTS_CONTENT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/bpf/content-layout.h"

struct ky_content_item {
	uint8_t kind; /* enum ky_content_kind; its index is its place, KY_CONTENT_IN_A and so on */
	uint8_t arg, len_arg;
	const char *name; /* of the argument, as the kernel calls it */
};

struct ky_content_call {
	const char *name; /* as in tracefs: sys_enter_NAME */
	uint16_t number;
	bool replaces_memory; /* when it succeeds, what it was given is gone: execve */
	struct ky_content_item items[KY_CONTENT_PLACES];
};

/* The call of tracefs event @event ("sys_enter_openat", "sys_exit_openat"); NULL: nothing to read. */
const struct ky_content_call *ky_content_call_find(const char *event, bool *is_exit);

/* The @i-th call that may change a thread's ids (or whose child has others), as in tracefs; NULL: no more. */
const char *ky_content_call_of_ids(size_t i);

#endif
