/* SPDX-License-Identifier: MIT */
/* Mistakes of tracers, known by their name and version. */
#ifndef KY_STORE_QUIRKS_H
#define KY_STORE_QUIRKS_H

#include "ctf/model/model.h"

enum ky_quirk {
	/* Events after the packet's end: it ends with the next packet's begin, or the last event. */
	KY_QUIRK_LATE_EVENTS = 1,
	/* The end is 0 though the begin is not (a crash): the same cure for such packets. */
	KY_QUIRK_ZERO_END = 2,
	/* Events before the packet's begin: it begins, and the one before ends, with the first event. */
	KY_QUIRK_EARLY_EVENTS = 4,
	/* Priorities of wake-ups are the kernel's, those of all else are it minus 100. */
	KY_QUIRK_WAKE_PRIO = 8,
};

/* The mistakes (enum ky_quirk, or-ed) of the tracer that @trace's environment names. */
unsigned int ky_quirks_of(const struct ky_trace_class *trace);

#endif
