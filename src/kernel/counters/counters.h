/* SPDX-License-Identifier: MIT */
/*
 * Perf counters of kernel events: what a counter said when the event happened.
 *
 * The kernel's ring has none. A BPF program at each event's tracepoint reads the counters, just before the
 * kernel writes the event, and leaves them, with thread and time, in memory of ours (kernel/bpf/counters-layout.h); the
 * converter asks for them when it writes the event.
 *
 * **What belongs to what.** A reading is older than its event, of the same thread and kind, and between the two
 * there are only events that have interrupted this one, which are over by then: so it is the newest that is no
 * newer than the event. An event that no interrupt has brought ends the waiting of all that came before it: filters
 * have left them out. System calls alone may be interrupted by their thread's own other events, since on Linux
 * 6.13 and later a thread may lose its CPU in their tracepoint. Their CPUs distinguish the idle threads.
 * Of what filters have left, nothing is given to an event whose own reading was lost: other events are of the CPU that
 * they were read on, and over when that goes on to another thread.
 *
 * An event without a reading (a program does not run within itself; no room) has the counters that its CPU's last
 * event had: they are never less, and it is counted.
 *
 *	ky_counters_new()	nothing yet
 *	ky_counters_load()	counting begins; may fail where there is no BPF, or no such counter
 *	ky_counters_attach()	for each event, before it is switched on
 *	ky_counters_drain()	before events are converted
 *	ky_counters_take()	for each event, in the order of time
 *
 * Threads: one at a time.
 */
#ifndef KY_KERNEL_COUNTERS_COUNTERS_H
#define KY_KERNEL_COUNTERS_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/bpf/counters-layout.h"
#include "os/counter.h"

#define KY_COUNTERS_NAME_BYTES	 64
#define KY_COUNTERS_OF_SYS_ENTER 0x10000u
#define KY_COUNTERS_OF_SYS_EXIT	 0x10001u

struct ky_counter_choice {
	const struct ky_os_counter *counter;
	bool of_thread; /* as the kernel keeps it for each thread; else of the CPU */
};

/* Whether the kernel keeps it for each thread: page faults, context switches, migrations. */
bool ky_counter_has_threads(const struct ky_os_counter *counter);

struct ky_counters;

/* Up to KY_COUNTERS_MAX. @ring_bytes: of each CPU, where events wait. NULL: out of memory. */
struct ky_counters *ky_counters_new(const struct ky_counter_choice *choices, size_t n,
				    uint64_t ring_bytes);
/* NULL is fine. */
void ky_counters_free(struct ky_counters *counters);
size_t ky_counters_count(const struct ky_counters *counters);
/* The context field of the @i-th: "perf_cpu_page_faults". */
void ky_counters_name(const struct ky_counters *counters, size_t i,
		      char name[KY_COUNTERS_NAME_BYTES]);

/* 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no BPF; no such counter), KYMO_E_MEMORY, KYMO_E_IO. */
int ky_counters_load(struct ky_counters *counters, struct kymo_error *err);

/* How readings know an event of tracefs, @id being its number; the calls of one direction are one kind. */
uint32_t ky_counters_key(const char *system, const char *event, uint16_t id);

/*
 * Read them at event @system/@event from now on, if they are not yet. 0; KYMO_E_NOT_FOUND: it has no
 * tracepoint; else as load.
 */
int ky_counters_attach(struct ky_counters *counters, const char *system, const char *event,
		       uint16_t id, struct kymo_error *err);
void ky_counters_detach(struct ky_counters *counters);

/* CPUs come and go: count on those that are here now. To be called now and then; cheap. */
void ky_counters_follow_cpus(struct ky_counters *counters);

/* Fetch what the programs have left until now. */
void ky_counters_drain(struct ky_counters *counters);
/* All events up to @time_ns were converted: what is much older belongs to none that is recorded. */
void ky_counters_expire(struct ky_counters *counters, uint64_t time_ns);

/*
 * The counters at the event of kind @key, of @tid on @cpu at @time_ns. Events must come in the order of time.
 * @is_interrupt: it came in an interrupt. Never NULL; valid until the next call.
 */
const uint64_t *ky_counters_take(struct ky_counters *counters, uint32_t key, uint32_t tid,
				 uint32_t cpu, uint64_t time_ns, bool is_interrupt);

/* Those of @cpu's last event, for one that has no reading. As take. */
const uint64_t *ky_counters_last(const struct ky_counters *counters, uint32_t cpu);

/* How many events should have had a reading of their own, and had none. */
uint64_t ky_counters_missing(const struct ky_counters *counters);

#endif
