/* SPDX-License-Identifier: MIT */
/*
 * A recording of the kernel, of programs, or of both with one clock, and the requests of other
 * processes through its control socket.
 *
 *	ky_recording_open()	checks and sets up everything; records nothing yet
 *	ky_recording_start()	starts recording
 *	ky_recording_step()	whenever ky_recording_fd() is readable
 *	ky_recording_stop()	stops recording, finishes the traces
 *	ky_recording_close()	after any of the above, failed or not
 *
 * A recording never waits for the next event. The caller waits, and may wait for other recordings
 * and descriptors, too. Requests, snapshots and the stop take as long as their work.
 *
 * Threads: one at a time per recording. Several recordings may run in one thread.
 */
#ifndef KY_RECORD_RECORDING_RECORDING_H
#define KY_RECORD_RECORDING_RECORDING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "record/kernel/session.h"
#include "record/triggers/triggers.h"
#include "record/user/user.h"

/*
 * Chunks: the recording's traces, cut into pieces that are traces of their own. A complete chunk
 * moves to OUTPUT/archives/BEGIN-END-NUMBER, and the recording continues in OUTPUT.
 */
struct ky_recording_rotation {
	/* When the recording begins a new chunk by itself; 0: not. */
	uint64_t size_bytes; /* when the chunk has this size, checked up to 20 times a second */
	uint64_t every_ns;
	/* The oldest complete chunks are removed, when there are more; 0: no limit. */
	uint64_t keep;	     /* their number */
	uint64_t keep_bytes; /* their total size */
	uint64_t keep_ns;    /* the time since their end; checked at each rotation */
};

/* A group of programs' events, with buffers of its own. */
struct ky_recording_user_group {
	const char *name;
	const char *events; /* "user:shop:*,bank:* if EXPR": for other processes that ask */
	const char *const *patterns;
	size_t n_patterns;
	const char *filter;    /* NULL: none */
	uint64_t buffer_bytes; /* per CPU and program */
	bool overwrite;	       /* only the newest events stay, until a snapshot or the end */
};

/* A program takes part in few recordings at a time. */
#define KY_RECORDING_USER_GROUPS_MAX 4

struct ky_recording_options {
	bool has_kernel, has_user;
	/* The recording replaces their output, log and clock by those below. */
	struct ky_session_options kernel;
	struct ky_user_options user; /* of the main buffers, which leave the groups' events out */
	const struct ky_recording_user_group *user_groups;
	size_t n_user_groups;
	enum ky_os_clock_kind clock;
	const char *output; /* the directory to create; with a store, only a name for messages */
	struct ky_packet_store *store; /* the traces go here; NULL: to the output's directory */
	const char *name; /* the recording's name for other processes; NULL: only its directory */
	const char *
		log_path; /* the file with the owner's log; NULL: other processes need not know it */
	/* Names of containers that the kernel's session records; see ky_container_cgroup(). */
	const char *const *containers;
	size_t n_containers;
	/* The triggers; open takes the rules over, on failure too. */
	struct ky_trigger_rule *triggers;
	size_t n_triggers;
	struct ky_recording_rotation rotation; /* not for a flight recorder or a raw recording */
	const struct ky_log *log;	       /* may be NULL; called in any thread */
};

/* The results of a step. */
enum {
	/*
	 * Once, after start: recording is on, and the state dump is finished. A traced command may
	 * begin.
	 */
	KY_RECORDING_HAS_BEGUN = 1 << 0,
	/*
	 * The caller must stop the recording: another process requested it, or the recording failed
	 * and stop returns the error.
	 */
	KY_RECORDING_ENDS = 1 << 1,
	/* A chunk is complete: ky_recording_take_chunk(). */
	KY_RECORDING_HAS_CHUNK = 1 << 2,
	/* A trigger needs a process: ky_recording_take_task(). */
	KY_RECORDING_HAS_TASK = 1 << 3,
};

/* What a trigger's action needs of the caller: a process. */
struct ky_recording_task {
	enum ky_trigger_action_kind kind; /* START, STOP, RUN, REPORT */
	char *argument;			  /* of the action; NULL: none */
	char *trace;		    /* REPORT: the directory of the complete trace to report on */
	char *firing;		    /* one line of JSON */
	KY_VEC(char *) environment; /* "KYMO_TRIGGER_EVENT=sched_switch" and so on */
};

/* A complete chunk. */
struct ky_recording_chunk {
	char path[PATH_MAX];
	uint64_t number; /* the first one is 1 */
	uint64_t events, bytes;
};

struct ky_recording_snapshot {
	char path[PATH_MAX];
	uint64_t events, bytes;
	bool is_raw; /* `events` counts the kernel's records before conversion */
};

/* Buffers of the recording: the main ones, or those of a group. */
struct ky_recording_buffers {
	const char *group; /* NULL: the main buffers */
	uint64_t bytes;	   /* per CPU, of programs for each of them */
	uint64_t lost;	   /* events for which they had no room */
	bool overwrite;	   /* the newest events replace the oldest ones */
};

struct ky_recording_stats {
	const struct ky_session_stats *kernel; /* NULL: the kernel is not recorded */
	const struct ky_user_stats *user; /* with all groups; NULL: programs are not recorded */
	uint64_t duration_ns;
	unsigned int n_pauses, n_cleared;
	uint64_t paused_ns; /* of the duration */
	/* Events and bytes that were cleared; of a flight recorder 0. They count in kernel and user. */
	uint64_t cleared_events, cleared_bytes;
	uint64_t n_chunks, n_removed; /* complete chunks; those of them that were removed */
	struct ky_recording_buffers kernel_buffers[1 + KY_SESSION_GROUPS_MAX];
	struct ky_recording_buffers user_buffers[1 + KY_RECORDING_USER_GROUPS_MAX];
	size_t n_kernel_buffers, n_user_buffers; /* the main ones come first */
};

struct ky_recording;

/*
 * The objects that @options points to must outlive the recording. Errors are those of
 * ky_session_open(), ky_user_open() and ky_container_cgroup(). On failure no files are left behind,
 * and *recording is NULL.
 */
int ky_recording_open(const struct ky_recording_options *options, struct ky_recording **recording,
		      struct kymo_error *err);
/* Before start: as ky_session_choose_child(). Without the kernel, the call has no effect. */
int ky_recording_choose_child(struct ky_recording *recording, int32_t pid, struct kymo_error *err);
/*
 * Start recording, and listen for requests. When other processes cannot find the recording, the log
 * gets a warning. On failure the caller must still call stop and close.
 */
int ky_recording_start(struct ky_recording *recording, struct kymo_error *err);

/* Becomes readable when a step is due. The recording owns it; valid until close. */
int ky_recording_fd(const struct ky_recording *recording);
/*
 * Handle all pending work. *found: KY_RECORDING_*. Returns 0 or an error; the caller must then
 * still call stop and close.
 */
int ky_recording_step(struct ky_recording *recording, unsigned int *found, struct kymo_error *err);

/*
 * Flight recorder, between start and stop: write the present events to a new directory: @path, or,
 * when @path is NULL or "", the first of OUTPUT-snapshot-1, -2 and so on that does not exist.
 * KYMO_E_STATE: the recording is not a flight recorder, or has no events yet; other errors are
 * those of opening and writing a trace.
 */
int ky_recording_snapshot(struct ky_recording *recording, const char *path,
			  struct ky_recording_snapshot *snapshot, struct kymo_error *err);

/*
 * Between start and stop: record nothing until resume, and then continue in the same traces. A paused
 * recording costs programs and the kernel nothing. KYMO_E_STATE: it is paused already, or not paused; a
 * raw recording. After another error, the caller must stop the recording.
 */
int ky_recording_pause(struct ky_recording *recording, struct kymo_error *err);
int ky_recording_resume(struct ky_recording *recording, struct kymo_error *err);
/*
 * Between start and stop: drop everything that was recorded so far; complete chunks and snapshots stay.
 * KYMO_E_UNSUPPORTED: the recording goes to a relay; other errors are those of ky_recording_rotate().
 */
int ky_recording_clear(struct ky_recording *recording, struct kymo_error *err);

/*
 * Between start and stop: the traces so far become a complete chunk, and the recording continues in
 * new ones. No event is lost or in both. When there were no traces, chunk->number is 0. KYMO_E_STATE: a flight recorder or a raw recording; other
 * errors are those of writing. After an error other than KYMO_E_STATE, the caller must stop the
 * recording.
 */
int ky_recording_rotate(struct ky_recording *recording, struct ky_recording_chunk *chunk,
			struct kymo_error *err);
/* The oldest chunk that the caller has not taken yet; false: none. */
bool ky_recording_take_chunk(struct ky_recording *recording, struct ky_recording_chunk *chunk);

/* The oldest task that the caller has not taken yet; NULL: none. The caller frees it. */
struct ky_recording_task *ky_recording_take_task(struct ky_recording *recording);
void ky_recording_task_free(struct ky_recording_task *task); /* NULL is allowed */
/* The result of a task: for the log and for watchers. @text: "command", "report"; @result: a path. */
void ky_recording_tell_task(struct ky_recording *recording, const struct ky_recording_task *task,
			    const char *result);

/*
 * Whether @name is a valid name of a recording: letters, digits, '.', '_' and '-', 64 at most, and
 * not a number alone.
 */
bool ky_recording_is_name(const char *name);

/* Other processes that wait for the end of the recording. */
#define KY_RECORDING_WAITERS_MAX 16
struct ky_recording_waiters {
	int fds[KY_RECORDING_WAITERS_MAX];
	unsigned int n;
};
/*
 * Before close: the caller takes the waiters over, and answers them when everything is complete, with
 * the result @ret of the recording (@err: its error). Closed without an answer, they know that the
 * recorder has failed.
 */
void ky_recording_take_waiters(struct ky_recording *recording,
			       struct ky_recording_waiters *waiters);
void ky_recording_answer_waiters(struct ky_recording_waiters *waiters, int ret,
				 const struct kymo_error *err);

/*
 * Returns 0 when the traces' files are complete, or the first error. Also after a failed start;
 * once per recording.
 */
int ky_recording_stop(struct ky_recording *recording, struct kymo_error *err);
/* After stop. The members that are pointers are valid until close. */
void ky_recording_stats(const struct ky_recording *recording, struct ky_recording_stats *stats);
/* NULL is allowed. Returns 0, or the error of removing what open set up. */
int ky_recording_close(struct ky_recording *recording, struct kymo_error *err);

#endif
