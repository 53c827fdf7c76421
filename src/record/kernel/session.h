/* SPDX-License-Identifier: MIT */
/*
 * A recording session of the kernel: a tracefs instance, the converter, and the trace directory.
 *
 *	ky_session_open()	everything is checked and set up; nothing is recorded yet
 *	ky_session_start()	recording is on; the state dump runs in a thread of its own
 *	ky_session_step()	reads, converts, writes, whenever there is something to do
 *	ky_session_stop()	recording is off, the rest is read, the trace is finished
 *	ky_session_close()	the instance is gone; after any of the above, failed or not
 *
 * Threads: one at a time per session.
 */
#ifndef KY_RECORD_KERNEL_SESSION_H
#define KY_RECORD_KERNEL_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "kernel/counters/counters.h"
#include "kernel/tracefs/ring.h"
#include "os/clock.h"
#include "store/packet-store.h"

/* What the state dump tells. */
enum ky_session_state {
	KY_SESSION_STATE_NEEDED, /* what the events speak of, of whom is recorded */
	KY_SESSION_STATE_ALL,	 /* of the whole machine; what is mapped only with `maps` */
	KY_SESSION_STATE_NONE,
};

struct ky_session_options {
	const char *output; /* the directory to create: the trace is its kernel/ */
	/* NULL: the directory; else the trace goes to "kernel" in it, and ->output only gives the recording its name. */
	struct ky_packet_store *store;
	/* Rules of ky_catalogue_select_rule(); none: the default set. Borrowed, while opening. */
	const char *const *events;
	size_t n_events;
	const char *const *
		exclusions; /* patterns of events that are left out of them, and of the state dump */
	size_t n_exclusions;
	bool exclusions_may_miss; /* one that matches no event is no mistake */
	uint64_t buffer_bytes;	  /* per CPU */
	/*
	 * Whose events; nothing of these: everybody's. Processes with all their threads, and what they
	 * start; single threads; those of a user (-1: any) and of control groups; what any of them chooses. Borrowed, while opening.
	 */
	const int32_t *pids, *tids;
	size_t n_pids, n_tids;
	int64_t uid;
	const char *const *cgroups;
	size_t n_cgroups;
	bool follow; /* what @tids start, too; without any choice: what ky_session_choose_child() tells */
	const char *comm;     /* of these, only in threads of this name, or about them; NULL: all */
	unsigned int context; /* KY_CONTEXT_* of kernel/convert/convert.h */
	struct ky_counter_choice counters[KY_COUNTERS_MAX]; /* in the context, too */
	size_t n_counters;
	/* Patterns of events that have call stacks. */
	const char *const *kernel_stacks, *const *user_stacks;
	size_t n_kernel_stacks, n_user_stacks;
	/* Specifications of kernel/probe/probe.h, borrowed while opening. */
	const char *const *probes, *const *sdt, *const *kprobes;
	size_t n_probes, n_sdt, n_kprobes;
	bool only_probes;	/* no `events` means no others, not the default set */
	bool syscall_content;	/* what system calls' arguments point at, too */
	uint32_t content_bytes; /* of buffers, at most; 0: none */
	bool identity_kymo;	/* env tracer_name = "kymo", not "lttng-modules" */
	enum ky_os_clock_kind clock;
	enum ky_ring_way reader;
	enum ky_session_state state;
	bool maps;	/* the state dump tells what processes have mapped */
	bool raw;	/* pages go to disk as they are: ky_raw_convert() makes a trace of them */
	bool overwrite; /* flight recorder: the newest buffer_bytes of each CPU, for snapshots */
	const struct ky_log *log; /* may be NULL; must outlive the session */
};

struct ky_session_cpu_stats {
	uint32_t cpu;
	uint64_t events, lost, bad; /* `events` without those that newer ones replaced */
};

struct ky_session_stats {
	/*
	 * Of the kernel, without the state dump. Raw: its records as they were read, nobody has looked which
	 * of them the trace will have.
	 */
	uint64_t events;
	bool is_raw;
	uint64_t dump_events;
	uint64_t
		dump_missing; /* files that the state dump could not look at for want of descriptors */
	uint64_t overwritten; /* flight recorder: events that newer ones replaced */
	uint64_t bytes;	      /* of data streams */
	uint64_t lost, bad;
	uint64_t duration_ns;
	uint64_t event_classes;
	uint64_t content_missing;	   /* calls without the content that they should have */
	uint64_t counters_missing;	   /* events with the counters of the one before */
	struct ky_session_cpu_stats *cpus; /* those that have a stream */
	uint32_t n_cpus;
	struct ky_os_clock clock;
	struct ky_os_clock_drift drift;
};

struct ky_session;

/*
 * Errors: KYMO_E_PERMISSION (not root), KYMO_E_UNSUPPORTED (no tracefs), KYMO_E_NOT_FOUND (unknown event,
 * no such process), KYMO_E_INVALID (output directory), KYMO_E_MEMORY, KYMO_E_IO; @err has a hint. On failure
 * nothing is left behind, and *session is NULL.
 */
int ky_session_open(const struct ky_session_options *options, struct ky_session **session,
		    struct kymo_error *err);
/*
 * Between open and stop: these threads of this process (KY_OWN_PROGRAMS_MAX at most) are the recorder's own, too:
 * their system calls are left out.
 */
void ky_session_own_threads(struct ky_session *session, const int32_t *tids, size_t n);
/* Before start: with `follow` and no other choice, record this process and what it starts. */
int ky_session_choose_child(struct ky_session *session, int32_t pid, struct kymo_error *err);
int ky_session_start(struct ky_session *session, struct kymo_error *err);

/* Its clock: refined by stop. Valid until close. */
const struct ky_os_clock *ky_session_clock(const struct ky_session *session);

/* A file that is readable when the state dump is done, or there is none. */
int ky_session_dump_fd(const struct ky_session *session);

/* Becomes readable when a step has something to do. The session's. */
int ky_session_fd(const struct ky_session *session);
/*
 * In so many ns a step is due though that is not readable; -1: none is. *rests: until then nothing is to be done though it
 * is readable.
 */
int64_t ky_session_due_ns(const struct ky_session *session, bool *rests);
/* Read, convert and write what there is; waits for nothing. 0, or what went wrong: then stop and close are still due. */
int ky_session_step(struct ky_session *session, struct kymo_error *err);

/*
 * While recording: switch the events of @rule (as of the options) on, under its filter or none; or those
 * that match the pattern @rule off. Events that are new are described in the trace from then on; not in a
 * raw recording. KYMO_E_NOT_FOUND, KYMO_E_INVALID (the filter), KYMO_E_STATE, KYMO_E_IO.
 */
int ky_session_change(struct ky_session *session, const char *rule, bool enables,
		      struct kymo_error *err);

/* Whose events. */
enum ky_session_choice {
	KY_SESSION_PIDS,
	KY_SESSION_TIDS,
	KY_SESSION_UIDS,
};

/*
 * While recording: the threads of @ids (processes, threads, users) are chosen, too, or are no more. The first
 * choice ends that everybody's events are recorded. KYMO_E_NOT_FOUND: there are none; KYMO_E_STATE: then
 * nobody would be chosen.
 */
int ky_session_choose(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		      size_t n, bool adds, struct kymo_error *err);
/* The same for control groups: @name as in the options. */
int ky_session_choose_group(struct ky_session *session, const char *name, bool adds,
			    struct kymo_error *err);
/* Only in threads of this name, or about them, from now on; NULL: of all names. */
int ky_session_choose_comm(struct ky_session *session, const char *comm, struct kymo_error *err);

/*
 * Flight recorder: make a trace of what is kept now, in @output/kernel; any number of times. Between
 * start and stop. The first takes the events, and refines the clock; when it has succeeded, the second dumps the state
 * as of that moment, which takes longer, and finishes the trace. *events, *bytes: of that trace.
 */
int ky_session_snapshot(struct ky_session *session, const char *output, struct kymo_error *err);
int ky_session_snapshot_finish(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			       struct kymo_error *err);
/* 0: all is in the trace's files; or why it is not. The instance is there until close. */
int ky_session_stop(struct ky_session *session, struct kymo_error *err);

/* How far a recording is. */
struct ky_session_progress {
	uint64_t events,
		lost;	/* raw: records; of a flight recorder those too that newer ones replaced */
	uint64_t bytes; /* that were written; a flight recorder writes at its snapshots only */
	double fill;	/* of the fullest buffer: 0 to 1 */
};
/* Between start and stop. */
void ky_session_progress(const struct ky_session *session, struct ky_session_progress *progress);

/* Valid after stop, until close. */
const struct ky_session_stats *ky_session_stats(const struct ky_session *session);

/* NULL is fine. 0, or the error of removing the instance. */
int ky_session_close(struct ky_session *session, struct kymo_error *err);

#endif
