/* SPDX-License-Identifier: MIT */
/*
 * Probes: events at places in the kernel and in programs, added while these run.
 *
 * tracefs has one set of definitions for all users (uprobe_events, kprobe_events), and each instance enables them for
 * itself. A recorder's definitions are in a group with the name of its instance, which distinguishes definitions of a
 * killed recorder from those in use.
 *
 *	ky_probes_init()
 *	ky_probes_add_*()	looks everything up; nothing in the kernel changes
 *	ky_probes_define()	before the catalogue of events is read
 *	ky_probes_tell()	what is not recorded that one might think is
 *	ky_probes_remove()	when no instance records them
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_KERNEL_PROBE_PROBE_H
#define KY_KERNEL_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/vec.h"
#include "kernel/tracefs/tracefs.h"

struct ky_probe_event {
	const char *name; /* in the trace: "bash:readline" */
	char event[16];	  /* in tracefs */
	bool is_kernel;
	/* Definitions, one per place; without the group's name: "p" or "r", and what follows the event. */
	KY_VEC(const char *) places;
	const char *filter;    /* NULL: none */
	const char *signature; /* names and types of the arguments, the same at all places */
	char type;
	bool defined;
};

/* What the compiler has made of a function that is probed, beside it: probe-clones.c. */
struct ky_probe_clone {
	const char *file; /* as it was given; NULL: the kernel */
	const char *function, *name;
	const char *place; /* as definitions begin */
	bool told;
};

struct ky_probes {
	char group[64];
	struct ky_arena arena;
	KY_VEC(struct ky_probe_event) events;
	KY_VEC(struct ky_probe_clone) clones;
	const struct ky_log *log;
};

/* @log: what is left out. May be NULL. */
void ky_probes_init(struct ky_probes *probes, const struct ky_log *log);
void ky_probes_fini(struct ky_probes *probes);

/*
 * All of these may end in " if EXPR", which becomes the filter; of a function with arguments and a result
 * that is about the arguments.
 *
 * FILE:FUNCTION(ARGUMENTS), see probe-spec.h. A result ($retval) makes an event of its own, NAME_return.
 * 0, KYMO_E_INVALID, KYMO_E_NOT_FOUND, KYMO_E_UNSUPPORTED, KYMO_E_FORMAT, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_probes_add_function(struct ky_probes *probes, const char *text, struct kymo_error *err);
/* [FILE:][PROVIDER:]NAME, both globs. */
int ky_probes_add_sdt(struct ky_probes *probes, const char *text, struct kymo_error *err);
/* FUNCTION(ARGUMENTS) of the kernel. */
int ky_probes_add_kernel(struct ky_probes *probes, const char *text, struct kymo_error *err);

/* Tell the kernel. KYMO_E_UNSUPPORTED: it has no such probes; KYMO_E_IO with what it says. */
int ky_probes_define(struct ky_probes *probes, const struct ky_tracefs *fs, struct kymo_error *err);
/* Tell the log which functions have clones that no probe is for. */
void ky_probes_tell(struct ky_probes *probes);
void ky_probes_remove(struct ky_probes *probes, const struct ky_tracefs *fs);

/* The trace's name of tracefs event @system/@event; NULL: not one of these probes. */
const char *ky_probes_name(const struct ky_probes *probes, const char *system, const char *event);

/* Is @system a group of probes that a Kymo recorder has made? */
bool ky_probes_is_group(const char *system);

/* Remove the definitions of recorders that are dead. Returns how many. */
unsigned int ky_probes_clean(const struct ky_tracefs *fs, const struct ky_log *log);

#endif
