/* SPDX-License-Identifier: MIT */
/*
 * Numbers of x86-64's system calls, and which of them the kernel has no event for. tracefs names its events, but does not
 * say which numbers they are of; a call of any other number (9999, or one that this kernel was built without) is in none.
 *
 * Threads: any.
 */
#ifndef KY_KERNEL_EVENTS_NATIVE_CALLS_H
#define KY_KERNEL_EVENTS_NATIVE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/events/catalogue.h"
#include "kernel/events/content-calls.h"

/*
 * unknown[NUMBER] = none of @catalogue's events is of that call. Of a kernel that has calls which are not known here,
 * so many numbers behind the last known one are taken for them: numbers are given in order.
 */
void ky_native_calls_unknown(struct ky_catalogue *catalogue, bool unknown[KY_CONTENT_MAX_CALLS]);

/* The number of the call that tracefs names @name ("read", "newstat"), or "new" and @name; -1: it is not known here. */
int ky_native_call_number(const char *name);

#endif
