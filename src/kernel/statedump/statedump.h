/* SPDX-License-Identifier: MIT */
/*
 * The state dump: what was there before the first event. One pass over /proc and /sys, written
 * as CTF events with LTTng's names and fields (lttng_statedump_*), so that a reader knows the
 * processes, open files, disks, interfaces, interrupts and CPUs from the start.
 *
 * It is a data stream of its own (file "statedump_0"), of the kernel stream class: same event
 * header, same event context. The pass runs while events are being recorded already, so that
 * nothing falls between the two; stamps come from the recording's clock, rising within the stream.
 *
 * What /proc cannot tell and how it is filled:
 * - file_table_address: no address but a number that is equal where file tables are: derived from
 *   the thread that owns the table (kcmp() tells), the same for all kernel threads.
 * - fmode: only the read (1) and write (2) bits, from the flags.
 */
#ifndef KY_KERNEL_STATEDUMP_STATEDUMP_H
#define KY_KERNEL_STATEDUMP_STATEDUMP_H

#include "ctf/model/model.h"
#include "ctf/encode/packet-writer.h"
#include "kernel/tracefs/format.h"
#include "os/clock.h"

/* Event ids: first_id + one of these. */
enum ky_statedump_event {
	KY_STATEDUMP_START,
	KY_STATEDUMP_END,
	KY_STATEDUMP_PROCESS_STATE,
	KY_STATEDUMP_PROCESS_PID_NS,
	KY_STATEDUMP_PROCESS_USER_NS,
	KY_STATEDUMP_PROCESS_CGROUP_NS,
	KY_STATEDUMP_PROCESS_IPC_NS,
	KY_STATEDUMP_PROCESS_NET_NS,
	KY_STATEDUMP_PROCESS_UTS_NS,
	KY_STATEDUMP_PROCESS_TIME_NS,
	KY_STATEDUMP_FILE_DESCRIPTOR,
	KY_STATEDUMP_BLOCK_DEVICE,
	KY_STATEDUMP_NETWORK_INTERFACE,
	KY_STATEDUMP_INTERRUPT,
	KY_STATEDUMP_CPU_TOPOLOGY,
	/* LTTng has none of these: */
	KY_STATEDUMP_MEMORY,
	KY_STATEDUMP_MODULE,
	KY_STATEDUMP_PROCESS_MEMORY,
	KY_STATEDUMP_PROCESS_MAP,
	KY_STATEDUMP_PROCESS_CGROUP,
	KY_STATEDUMP_KVM_VCPU,
	KY_STATEDUMP_EVENTS,
};

/* Sets of them. */
#define KY_STATEDUMP_BIT(event) (UINT32_C(1) << (event))
/* What processes have mapped takes long, and is there only where it was asked for. */
#define KY_STATEDUMP_ALL \
	(KY_STATEDUMP_BIT(KY_STATEDUMP_EVENTS) - 1 - KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_MAP))
#define KY_STATEDUMP_FRAME \
	(KY_STATEDUMP_BIT(KY_STATEDUMP_START) | KY_STATEDUMP_BIT(KY_STATEDUMP_END))
/* Of use whatever the events are: who the threads are, what others call them, which control group they are in, and which are guests' CPUs. */
#define KY_STATEDUMP_ALWAYS                                                  \
	(KY_STATEDUMP_FRAME | KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_STATE) | \
	 KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_PID_NS) |                     \
	 KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_CGROUP) | KY_STATEDUMP_BIT(KY_STATEDUMP_KVM_VCPU))

/* The set of those that say what kernel event @format of tracefs's @system means. Threads: any. */
uint32_t ky_statedump_needs(const char *system, const struct ky_format *format);
/* The set of those that glob @pattern matches; 0: none. Threads: any. */
uint32_t ky_statedump_match(const char *pattern);

/*
 * Add the event classes to @stream, with ids @first_id .. @first_id + KY_STATEDUMP_EVENTS - 1.
 * The caller finishes the model. 0, or KYMO_E_MEMORY with @err.
 */
int ky_statedump_define(struct ky_stream_class *stream, uint32_t first_id, struct kymo_error *err);
/* Only one of them, with id @id. */
int ky_statedump_define_one(struct ky_stream_class *stream, uint32_t id,
			    enum ky_statedump_event which, struct kymo_error *err);

/*
 * A run of the dump.
 *
 * @writer: initialised, with no packet open; at least 16 KiB. Its packets belong to the dump.
 * @first_id: as given to ky_statedump_define().
 * @clock: stamps the events.
 * @context, @context_bytes: the event context (stream.event.context) of the recorder's own thread,
 *	as bytes in the trace's layout; copied before each event's fields. May be NULL, 0.
 * @flush: called when the packet of @writer is full, and once at the end: closes it with
 *	ky_packet_writer_close(writer, end_cycles, 0, ...) and sends it. A negative result ends the
 *	dump and becomes the result of ky_statedump_run() (so a recorder that must stop returns
 *	KYMO_E_INTERRUPTED here).
 */
struct ky_statedump {
	struct ky_packet_writer *writer;
	uint32_t first_id;
	const struct ky_os_clock *clock;
	const void *context;
	uint32_t context_bytes;
	int (*flush)(void *data, uint64_t end_cycles, struct kymo_error *err);
	void *data;
	struct ky_pid_view
		*view;	 /* of /proc: events have the kernel's ids. NULL: they are the same */
	uint32_t wanted; /* the set of events; of mappings, each takes some 30 us */
	/* PROCESS_PID_NS: only of threads that have ids which the kernel's events do not tell. */
	bool only_nested;
	/* Only of the processes that these threads are of, by the kernel's ids. NULL: of all. */
	const int32_t *tids;
	size_t n_tids;
	uint64_t at_cycles; /* not 0: the time of all events, not before those of the last run */
	/* Filled by the run: */
	uint64_t events, processes, threads, files;
	uint64_t
		missing; /* files and directories that could not be looked at: no descriptor was left */
	uint64_t last_cycles; /* 0 before the first run; times rise over all of them */
};

/*
 * Dump what is wanted; takes some 80 us per thread and 10 us per open file.
 *
 * Processes that vanish meanwhile are left out; what may not be read (other users' files, when
 * not root) too. Returns 0, KYMO_E_NOT_FOUND when there is no /proc, KYMO_E_MEMORY, or what
 * @flush returned. Threads: one at a time per @dump.
 */
int ky_statedump_run(struct ky_statedump *dump, struct kymo_error *err);

#endif
