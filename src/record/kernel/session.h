/* SPDX-License-Identifier: MIT */
/*
 * A recording session of the kernel: a tracefs instance, the converter, and the trace directory.
 *
 *	ky_session_open()	checks and sets up everything; records nothing yet
 *	ky_session_start()	starts recording; the state dump runs in a thread of its own
 *	ky_session_step()	reads, converts, writes, whenever work is due
 *	ky_session_stop()	stops recording, reads the rest, finishes the trace
 *	ky_session_close()	removes the instance; after any of the above, failed or not
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
#include "kernel/samples/sample-source.h"
#include "kernel/tracefs/cpu-ring.h"
#include "os/clock.h"
#include "store/packets/packet-store.h"

/* The extent of the state dump. */
enum ky_session_state {
	KY_SESSION_STATE_NEEDED, /* the state that the selected events refer to, of the selected threads */
	KY_SESSION_STATE_ALL, /* of the whole machine; mappings only with `maps` */
	KY_SESSION_STATE_NONE,
};

/* A group of events with buffers of its own, whose streams are NAME_cpu of the same trace. */
struct ky_session_group {
	const char *name;
	const char *events;    /* a rule, as below */
	uint64_t buffer_bytes; /* per CPU */
	/* The newest buffer_bytes of each CPU stay in memory until a snapshot or the end. */
	bool overwrite;
};
#define KY_SESSION_GROUPS_MAX 16

/*
 * Selects threads; without any selection, all threads. Processes with all their threads and children; single threads; the
 * threads of a user (-1: none) and of control groups. The selections add up. Borrowed during the call of open.
 */
struct ky_session_threads {
	const int32_t *pids, *tids;
	size_t n_pids, n_tids;
	int64_t uid;
	const char *const *cgroups;
	size_t n_cgroups;
	/* Also the children of @tids; without any selection: the process of ky_session_choose_child(). */
	bool follow;
	/* Only threads of this name among the selected ones, and events about them; NULL: all names. */
	const char *comm;
};

struct ky_session_options {
	const char *output; /* the directory to create: the trace is its kernel/ */
	/*
	 * NULL: a directory. Else the trace goes to "kernel" in the store, and ->output is only the
	 * recording's name.
	 */
	struct ky_packet_store *store;
	/*
	 * Rules of ky_catalogue_select_rule(); none: the default set. Borrowed during the call of
	 * open.
	 */
	const char *const *events;
	size_t n_events;
	/* Not for a raw recording. In a flight recorder, all groups overwrite. Their strings must outlive the session. */
	const struct ky_session_group *groups;
	size_t n_groups;
	bool only_groups; /* no `events` means no other events, instead of the default set */
	const char *const *
		exclusions; /* patterns of events that neither the rules nor the state dump select */
	size_t n_exclusions;
	bool exclusions_may_miss; /* an exclusion that matches no event is not an error */
	uint64_t buffer_bytes;	  /* per CPU */
	struct ky_session_threads threads;
	unsigned int context; /* KY_CONTEXT_* of kernel/convert/convert.h */
	struct ky_counter_choice counters[KY_COUNTERS_MAX]; /* additional fields in the context */
	size_t n_counters;
	/* Patterns of events that have call stacks. */
	const char *const *kernel_stacks, *const *user_stacks;
	size_t n_kernel_stacks, n_user_stacks;
	/* Specifications of kernel/probe/probe.h, borrowed while opening. */
	const char *const *probes, *const *sdt, *const *kprobes;
	size_t n_probes, n_sdt, n_kprobes;
	/* What samples are taken at; borrowed while opening. Not for a raw recording. */
	const struct ky_sample_source *samples;
	size_t n_samples;
	uint32_t sample_stack_bytes; /* to unwind by DWARF; 0: frame pointers */
	bool only_samples;	/* no `events` means no other events, instead of the default set */
	bool only_probes;	/* no `events` means no other events, instead of the default set */
	bool syscall_content;	/* also records the content at system calls' arguments */
	uint32_t content_bytes; /* of buffers, maximum; 0: none */
	bool identity_kymo;	/* env tracer_name = "kymo", not "lttng-modules" */
	enum ky_os_clock_kind clock;
	enum ky_cpu_ring_way reader;
	enum ky_session_state state;
	bool maps; /* the state dump has the mappings of processes */
	bool raw;  /* write pages to disk unchanged: ky_raw_convert() makes a trace of them */
	/*
	 * For few events: the session reads each event as soon as the kernel wakes it, writes it
	 * to the store, and leaves out the recorder's own calls in the kernel.
	 */
	bool prompt;
	bool overwrite; /* flight recorder: the newest buffer_bytes of each CPU, for snapshots */
	const struct ky_log *log; /* may be NULL; must outlive the session */
};

struct ky_session_cpu_stats {
	const char *group; /* NULL: the main buffers */
	uint32_t cpu;
	uint64_t events, lost, bad; /* `events` does not include overwritten ones */
};

struct ky_session_stats {
	/*
	 * Number of the kernel's events, without the state dump. Raw: number of records; the
	 * conversion may drop some of them.
	 */
	uint64_t events;
	bool is_raw;
	uint64_t dump_events;
	uint64_t samples;      /* a part of `events` */
	uint64_t samples_lost; /* records of the rings of samples; a part of `lost` */
	bool samples_are_chosen; /* the rings have those of all threads; lost ones may be of others than the chosen ones */
	uint64_t
		dump_missing; /* files that the state dump could not open because no descriptor was left */
	uint64_t overwritten; /* flight recorder: events that newer ones replaced */
	uint64_t bytes;	      /* of data streams */
	uint64_t lost, bad;
	uint64_t duration_ns;
	uint64_t event_classes;
	uint64_t content_missing;  /* calls without content although they should have it */
	uint64_t counters_missing; /* events with outdated counters, those of the event before */
	struct ky_session_cpu_stats *cpus; /* CPUs with a stream */
	uint32_t n_cpus;
	struct ky_os_clock clock;
	struct ky_os_clock_drift drift;
};

struct ky_session;

/*
 * Errors: KYMO_E_PERMISSION (not root), KYMO_E_UNSUPPORTED (no tracefs), KYMO_E_NOT_FOUND (unknown
 * event, no such process), KYMO_E_INVALID (output directory), KYMO_E_MEMORY, KYMO_E_IO; @err has a
 * hint. On failure no files are left behind, and *session is NULL.
 */
int ky_session_open(const struct ky_session_options *options, struct ky_session **session,
		    struct kymo_error *err);
/*
 * Between open and stop: these threads of this process (KY_OWN_PROGRAMS_MAX at most) also belong to
 * the recorder, so the trace has no system calls of them.
 */
void ky_session_own_threads(struct ky_session *session, const int32_t *tids, size_t n);
/* As ky_session_own_threads(): the present threads of @other, a session of this process. */
void ky_session_own_of(struct ky_session *session, const struct ky_session *other);
/* Before start: with `follow` and no other selection, record this process and its children. */
int ky_session_choose_child(struct ky_session *session, int32_t pid, struct kymo_error *err);
int ky_session_start(struct ky_session *session, struct kymo_error *err);

/* The session's clock; stop refines it. Valid until close. */
const struct ky_os_clock *ky_session_clock(const struct ky_session *session);

/* A file that becomes readable at the end of the state dump, or when none exists. */
int ky_session_dump_fd(const struct ky_session *session);

/* Becomes readable when a step is due. The session owns it. */
int ky_session_fd(const struct ky_session *session);
/*
 * The time in ns after which a step is due although the descriptor is not readable; -1: none is.
 * *rests: until then no step is needed even if the descriptor is readable.
 */
int64_t ky_session_due_ns(const struct ky_session *session, bool *rests);
/*
 * Reads, converts and writes the available data; never waits. Returns 0 or an error; the caller
 * must then still call stop and close.
 */
int ky_session_step(struct ky_session *session, struct kymo_error *err);

/*
 * Live readers, for a recording with programs. Whether programs write now: if so, the session does not sleep
 * longer while the kernel is idle, as readers need its beacons. And: how many beacons there were. And: the delay that
 * readers want, in ms; 0: no reader.
 */
void ky_session_live_programs(struct ky_session *session, bool write);
uint64_t ky_session_live_beacons(const struct ky_session *session);
uint32_t ky_session_live_delay_ms(const struct ky_session *session);

/*
 * During a recording: switch on the events of @rule (format: as in the options), with its filter or
 * none; or switch off the events that match the pattern @rule. The trace describes new events from
 * then on; a raw recording does not take new events. KYMO_E_NOT_FOUND, KYMO_E_INVALID (the filter),
 * KYMO_E_STATE, KYMO_E_IO.
 */
int ky_session_change(struct ky_session *session, const char *rule, bool enables,
		      struct kymo_error *err);

/* The kinds of ids in ky_session_choose(). */
enum ky_session_choice {
	KY_SESSION_PIDS,
	KY_SESSION_TIDS,
	KY_SESSION_UIDS,
};

/*
 * During a recording: add the threads of @ids (processes, threads, users) to the selection, or
 * remove them. The first addition limits a recording of all threads to the selection.
 * KYMO_E_NOT_FOUND: no such threads; KYMO_E_STATE: no thread would be selected.
 */
int ky_session_choose(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		      size_t n, bool adds, struct kymo_error *err);
/* The same for control groups; @name: as in the options. */
int ky_session_choose_group(struct ky_session *session, const char *name, bool adds,
			    struct kymo_error *err);
/* From now on, record only threads of this name, and events about them; NULL: all names. */
int ky_session_choose_comm(struct ky_session *session, const char *comm, struct kymo_error *err);

/*
 * Between start and stop: record nothing until resume, at no cost for the machine; the same trace
 * then continues. Its state stream gets the events kymo_recording_paused and kymo_recording_resumed;
 * after the second one comes a state dump. Both calls have no effect when there is nothing to do.
 * KYMO_E_STATE: a raw recording. After another error, the caller must stop the recording.
 */
int ky_session_pause(struct ky_session *session, struct kymo_error *err);
int ky_session_resume(struct ky_session *session, struct kymo_error *err);
/*
 * Flight recorder, between start and stop: forget all events so far. The state is dumped anew. KYMO_E_STATE: a raw
 * recording.
 */
int ky_session_clear(struct ky_session *session, struct kymo_error *err);

/*
 * Flight recorder: make a trace of the present events, in @output/kernel; any number of times,
 * between start and stop. The first function takes the events, and refines the clock. After its
 * success, the second dumps the state as of that moment, which takes longer, and finishes the
 * trace. *events, *bytes: of that trace.
 */
int ky_session_snapshot(struct ky_session *session, const char *output, struct kymo_error *err);
/* Whether there are buffers that overwrite: all, or those of groups. Without them, a snapshot is KYMO_E_STATE. */
bool ky_session_has_snapshots(const struct ky_session *session);
int ky_session_snapshot_finish(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			       struct kymo_error *err);
/*
 * Between start and stop, not for a flight recorder or a raw recording: the trace so far becomes
 * complete and moves to OUTPUT/@archive/kernel, with the clock *ended, and a new trace begins in
 * OUTPUT/kernel. No event is lost or in both. Waits for the end of a state dump. KYMO_E_STATE;
 * errors of writing.
 */
int ky_session_rotate(struct ky_session *session, const char *archive, struct ky_os_clock *ended,
		      struct kymo_error *err);
/* A step, when work is due or @fd is readable. Between start and stop. */
int ky_session_wait_for(struct ky_session *session, int fd, struct kymo_error *err);
/* Returns 0 when the trace's files are complete, or an error. The instance stays until close. */
int ky_session_stop(struct ky_session *session, struct kymo_error *err);

/* The progress of a recording. */
struct ky_session_progress {
	uint64_t events, lost; /* raw: records; flight recorder: including overwritten ones */
	uint64_t bytes;	       /* written bytes; a flight recorder writes only snapshots */
	uint64_t archived_dump_events; /* of the state dumps before the last rotation */
	double fill;		       /* of the fullest buffer: 0 to 1 */
};
/* Between start and stop. */
void ky_session_progress(const struct ky_session *session, struct ky_session_progress *progress);

/* The progress of a CPU, which has buffers of its own. Between start and stop. */
struct ky_session_cpu_progress {
	const char *group; /* NULL: the main buffers */
	uint32_t cpu;
	uint64_t events, lost; /* as above */
	double fill;
};
/* The @i-th CPU; false: there are not so many. */
bool ky_session_cpu_progress(const struct ky_session *session, size_t i,
			     struct ky_session_cpu_progress *progress);

/* Valid after stop, until close. */
const struct ky_session_stats *ky_session_stats(const struct ky_session *session);

/* NULL is allowed. Returns 0, or the error of removing the instance. */
int ky_session_close(struct ky_session *session, struct kymo_error *err);

#endif
