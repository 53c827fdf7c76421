/* SPDX-License-Identifier: MIT */
/*
 * Durations of this machine's kernel while it runs, by layers: system calls, wake-ups, waits, block requests,
 * interrupts. BPF programs measure them and keep histograms (latency-layout.h); this library reads those, and knows what
 * was added in the last period, and in the last 1, 5 and 15 minutes.
 *
 *	ky_latency_open(&options, &latency, err);
 *	loop: wait; ky_latency_read(latency, err); ky_latency_series(latency, &n) ... ky_series_past()
 *
 * Threads: one at a time per object.
 */
#ifndef KY_LATENCY_LATENCY_H
#define KY_LATENCY_LATENCY_H

#include <stddef.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "latency/chain/chain.h"
#include "latency/series/histogram.h"
#include "latency/series/series.h"
#include "latency/tracker/tracker.h"

struct ky_latency;

#define KY_LATENCY_ALL_LAYERS ((1u << KY_LATENCY_TRACK) - 1) /* but trackers and the chain */
#define KY_LATENCY_BLOCK_LAYERS \
	(1u << KY_LATENCY_BLOCK_QUEUE | 1u << KY_LATENCY_BLOCK_DEVICE | 1u << KY_LATENCY_FLUSH)

struct ky_latency_options {
	uint32_t layers; /* bits of enum ky_latency_layer; 0: only trackers and the chain */
	enum ky_latency_by by;
	int32_t pid; /* only of this process; 0: of all */
	const char *const
		*syscalls; /* those that get histograms of their own, borrowed for the call */
	size_t n_syscalls;
	uint32_t max_cells;  /* 0: a default */
	uint64_t members_ns; /* tell of single durations that are longer; 0: of none */
	bool stacks;	     /* with call stacks */
};

/*
 * Load and start the programs. 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no BPF, or no BTF), KYMO_E_INVALID (a system
 * call that does not exist, or too many), KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_latency_open(const struct ky_latency_options *options, struct ky_latency **latency,
		    struct kymo_error *err);
void ky_latency_close(struct ky_latency *latency); /* NULL is allowed */

/*
 * One more tracker, whose histogram is a series of its own. KYMO_E_LIMIT: KY_TRACKERS_MAX are there; and as
 * ky_tracker_open(). The latency owns it.
 */
int ky_latency_add_tracker(struct ky_latency *latency, const struct ky_tracker_options *options,
			   struct kymo_error *err);
/* The @i-th; NULL: there are not so many. */
struct ky_tracker *ky_latency_tracker(const struct ky_latency *latency, size_t i);

/* Measure the chain, too, whose parts are series of their own. As ky_chain_open(). The latency owns it. */
int ky_latency_add_chain(struct ky_latency *latency, const struct ky_chain_options *options,
			 struct kymo_error *err);
/* NULL: it was not added. */
struct ky_chain *ky_latency_chain(const struct ky_latency *latency);

/* Are trackers of programs' own wanted? */
bool ky_latency_has_programs(const struct ky_latency *latency);
/*
 * Look for programs with trackers of their own, which may end before the period does: ten times a second. 0, KYMO_E_MEMORY,
 * KYMO_E_IO.
 */
int ky_latency_look(struct ky_latency *latency, struct kymo_error *err);
/* A period ends: take in what came in it. 0, KYMO_E_MEMORY, KYMO_E_IO. */
int ky_latency_read(struct ky_latency *latency, struct kymo_error *err);

typedef void (*ky_latency_take_member)(void *data, const struct ky_latency_member *member);
/* The members that have come since the last call, for a moment. 1: there are more; 0; KYMO_E_IO. */
int ky_latency_members(struct ky_latency *latency, ky_latency_take_member take, void *data,
		       struct kymo_error *err);

/* All that have had a duration in the last 15 minutes, sorted by layer, name and owner. Valid until the next call. */
struct ky_series *const *ky_latency_series(struct ky_latency *latency, size_t *n);
/* The present slot, for ky_series_past(). */
uint64_t ky_latency_slot(const struct ky_latency *latency);
/* How long is @window in truth (enum ky_past): less in the beginning. */
uint64_t ky_latency_window_ns(const struct ky_latency *latency, enum ky_past window);

/* What could not be counted. */
struct ky_latency_losses {
	uint64_t cells, requests; /* durations, or requests, for which a table had no room */
	uint64_t members;	  /* for which the ring had no room */
	uint64_t programs;	  /* pairs and trackers of programs for which a table had no room */
	uint64_t misses; /* runs that the kernel skipped, as the same program ran on the CPU */
	uint32_t absent_layers; /* asked for, but this kernel has not the tracepoints */
};

void ky_latency_losses(struct ky_latency *latency, struct ky_latency_losses *losses);

/* "syscall", "wakeup", "block-queue"; static. */
const char *ky_latency_layer_name(enum ky_latency_layer layer);
/* The same for people, and what a duration of it is. */
const char *ky_latency_layer_title(enum ky_latency_layer layer);
const char *ky_latency_layer_help(enum ky_latency_layer layer);

/* Append what people call @key: "read", "vda write". Foreign text. */
void ky_latency_put_name(struct ky_strbuf *out, const struct ky_latency *latency,
			 const struct ky_latency_key *key);
/* Append "24 virtio0-input.0": the interrupt's number, and who handles it; foreign text. */
void ky_latency_put_irq(struct ky_strbuf *out, uint64_t irq);
/* "net_rx"; static; NULL: it is not known. */
const char *ky_softirq_name(uint32_t vector);

#endif
