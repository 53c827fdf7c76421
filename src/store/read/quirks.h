/* SPDX-License-Identifier: MIT */
/* Errors of tracers, which readers know by the tracer's name and version. */
#ifndef KY_STORE_QUIRKS_H
#define KY_STORE_QUIRKS_H

#include "ctf/model/model.h"

enum ky_quirk {
	/*
	 * Events after the packet's end: the packet ends at the next packet's begin, or at its last
	 * event.
	 */
	KY_QUIRK_LATE_EVENTS = 1,
	/*
	 * The end is 0 though the begin is not (after a crash): the same correction for such
	 * packets.
	 */
	KY_QUIRK_ZERO_END = 2,
	/*
	 * Events before the packet's begin: the packet begins, and the one before ends, at its
	 * first event.
	 */
	KY_QUIRK_EARLY_EVENTS = 4,
	/* Wake-up events have the kernel's priority; all other events have it minus 100. */
	KY_QUIRK_WAKE_PRIO = 8,
};

/* The errors (enum ky_quirk, or-ed) of the tracer that @trace's environment names. */
unsigned int ky_quirks_of(const struct ky_trace_class *trace);

#endif
