/* SPDX-License-Identifier: MIT */
/*
 * Switches from the idle task that the kernel's tracing does not record. On some machines (virtual ones whose CPUs were
 * started in an unusual way) no event that a CPU's idle task causes by itself gets into the ring, though its tracepoints are
 * reached. A self-test finds such CPUs; a BPF program then writes their switches, and the converter puts each in its place.
 *
 *	ky_switches_open()	the program is attached, and off on all CPUs
 *	ky_switches_test()	which CPUs lack switches; off again
 *	ky_switches_begin()	on, for those CPUs
 *	ky_switches_fd(), ky_switches_heed()	when to drain
 *	ky_switches_drain(), ky_switches_take(), ky_switches_in_ring()
 *	ky_switches_close()
 *
 * Threads: one at a time.
 */
#ifndef KY_KERNEL_SWITCHES_SWITCHES_H
#define KY_KERNEL_SWITCHES_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/bpf/switches-layout.h"
#include "kernel/tracefs/tracefs.h"
#include "os/clock.h"

struct ky_switches;

struct ky_switches_found {
	uint32_t n_lacking;	/* CPUs whose ring lacks switches from idle */
	uint32_t n_tested;	/* CPUs that were seen to switch from idle */
	uint32_t n_unknown;	/* CPUs that never were idle during the test */
	uint32_t first_lacking; /* a CPU */
};

/* 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no BPF), KYMO_E_MEMORY, KYMO_E_IO; *switches is NULL then. */
int ky_switches_open(struct ky_switches **switches, struct kymo_error *err);
/* NULL is fine. */
void ky_switches_close(struct ky_switches *switches);

/*
 * Have each CPU that this thread may run on switch from idle a few times, and compare what the program and @instance see: it
 * is otherwise empty and off, and is so again afterwards. Takes some ms. 0, or what tracefs fails with.
 */
int ky_switches_test(struct ky_switches *switches, const struct ky_instance *instance,
		     struct ky_switches_found *found, struct kymo_error *err);

/* From now on, write the switches of CPUs whose ring lacks them, or may lack them. @clock: that of the ring, borrowed. */
void ky_switches_begin(struct ky_switches *switches, const struct ky_os_clock *clock);
/* No more. */
void ky_switches_end(struct ky_switches *switches);

/* Readable when many switches of a CPU wait to be fetched. Owned by @switches. */
int ky_switches_fd(const struct ky_switches *switches);
/* The descriptor is not readable until further switches wait; the caller drains next. */
void ky_switches_heed(struct ky_switches *switches);
/* Fetch what the program has written, and say when that was by the ring's clock. */
void ky_switches_drain(struct ky_switches *switches);
/*
 * The ring has a switch from idle of @cpu. If the test left open whether the ring has them, it has: the program is off there
 * from now on, and the switches that were fetched of @cpu are dropped.
 */
void ky_switches_in_ring(struct ky_switches *switches, uint32_t cpu);
/* Whether the ring of some CPU lacks them, or may lack them. */
bool ky_switches_are_needed(const struct ky_switches *switches);
/* When the oldest that was fetched of @cpu happened, in cycles; UINT64_MAX: none exists. */
uint64_t ky_switches_next(const struct ky_switches *switches, uint32_t cpu);
/* That one, which is taken out; call only when there is one. */
struct ky_switches_slot ky_switches_take(struct ky_switches *switches, uint32_t cpu);
/* How many of @cpu were overwritten before they were fetched, or did not fit into memory. */
uint64_t ky_switches_lost(const struct ky_switches *switches, uint32_t cpu);

#endif
