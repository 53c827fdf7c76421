/* SPDX-License-Identifier: MIT */
#ifndef KY_RECORD_RECORDING_RECORDING_INTERNAL_H
#define KY_RECORD_RECORDING_RECORDING_INTERNAL_H

#include "base/vec.h"
#include "ctf/encode/packet-writer.h"
#include "record/control/control-socket.h"
#include "record/recording/recording.h"

/* A container that the user selected by name, with its control group at that time. */
struct ky_recording_container {
	char *name, *cgroup;
};

/* A complete chunk that is still there. */
struct ky_recording_kept {
	char *path;
	uint64_t bytes;
	int64_t end_ns; /* CLOCK_REALTIME */
};

/* The progress of the rotation. */
struct ky_recording_chunks {
	int timer_fd;	   /* expires when the chunk's size or age is to be checked; -1: never */
	int64_t begin_ns;  /* CLOCK_REALTIME: of the present chunk */
	int64_t due_ns;	   /* CLOCK_MONOTONIC: of the next rotation by age */
	int64_t looked_ns; /* CLOCK_MONOTONIC: of the last look at the size */
	uint64_t number;   /* of complete chunks */
	uint64_t n_removed;
	uint64_t events, bytes; /* of the recording when the present chunk began */
	uint64_t looked_bytes;	/* of the recording at the last look */
	KY_VEC(struct ky_recording_kept) kept;
	KY_VEC(struct ky_recording_chunk) fresh; /* not taken by the caller yet */
};

KY_VEC_TYPE(ky_recording_tasks, struct ky_recording_task *);

/* The marks since the last chunk; a flight recorder's newest ones. */
struct ky_recording_marks {
	struct ky_store_trace *trace; /* in memory; NULL: there are none */
	int stream;
	struct ky_packet_writer writer;
	uint8_t uuid[16];
	uint64_t last_cycles; /* of the last mark */
};

#define KY_RECORDING_WATCHERS_MAX 16

/* Processes that watch the recording. */
struct ky_recording_watch {
	int timer_fd; /* expires when amounts are to be compared; -1: none yet */
	struct ky_recording_watcher {
		int fd;
		uint64_t
			n_missed; /* lines that did not fit into its queue since the last one that did */
	} watchers[KY_RECORDING_WATCHERS_MAX];
	unsigned int n;
	uint64_t n_lost; /* events that were lost at the last look */
	bool is_ticking; /* the timer is set */
};

struct ky_recording_pauses {
	bool is_on;
	int64_t since_ns; /* CLOCK_MONOTONIC: begin of the present pause */
	unsigned int n;
	uint64_t total_ns; /* of the pauses that have ended */
};

/* How far a recording is: the kernel's part and the programs' together. */
struct ky_recording_progress {
	uint64_t events, lost, bytes;
	uint64_t archived_dump_events; /* of the state dumps before the last rotation */
};

/* recording-programs.c: the recordings of programs. */
#define KY_RECORDING_USERS_MAX	      (1 + KY_RECORDING_USER_GROUPS_MAX)
#define KY_RECORDING_USER_THREADS_MAX (KY_RECORDING_USERS_MAX * KY_USER_THREADS_MAX)
struct ky_recording_programs {
	struct ky_user *users[KY_RECORDING_USERS_MAX]; /* the first has the main buffers */
	size_t n;				       /* 0: programs are not recorded */
	KY_VEC(const char *) patterns;		       /* of all groups */
	struct ky_user_stats stats;		       /* of all, valid after finish */
	KY_VEC(struct ky_user_program_stats) list;
};

struct ky_recording {
	struct ky_recording_options options;
	KY_VEC(const char *) cgroups; /* memory of options.kernel.threads.cgroups */
	bool made_output;
	struct ky_session *session; /* NULL: the kernel is not recorded */
	struct ky_recording_programs programs;
	struct ky_os_clock user_clock; /* the clock when the kernel is not recorded */
	uint64_t start_cycles, duration_ns;
	bool is_started;
	KY_VEC(struct ky_recording_container) containers;
	/* The descriptors that the recording waits for. */
	int epoll_fd;
	int timer_fd;		 /* expires when the session's next step is due */
	bool session_is_awaited; /* the session's descriptor is in the epoll set */
	struct ky_control_socket_server control;
	struct ky_recording_chunks chunks;
	struct ky_recording_pauses pauses;
	unsigned int n_cleared;
	struct ky_recording_progress cleared; /* at the last clearing */
	struct ky_recording_waiters waiters;
	int name_fd; /* locked: no other recording of this user has the name; -1: none */
	char name_path[PATH_MAX];
	struct ky_triggers *triggers; /* NULL: there was never one */
	struct ky_recording_tasks tasks;
	struct ky_recording_watch watch;
	struct ky_recording_marks marks;
	struct {
		uint32_t delay_ms;  /* of the live readers that the programs' recorder knows */
		uint64_t n_beacons; /* of the kernel's, that it knows */
	} live;
	KY_VEC(char *) changes; /* of the kernel's events and threads, as the status shows them */
};

const struct ky_os_clock *ky_recording_clock(const struct ky_recording *recording);
/* Sets the timer to the time of the session's next step. */
void ky_recording_set_timer(struct ky_recording *recording);
/* Refines the clock when no session of the kernel does. */
void ky_recording_refine_clock(struct ky_recording *recording);
/* Returns the first error of two results, with its text in @err; @next_err is the text of @next. */
int ky_recording_keep_error(int ret, int next, struct kymo_error *err,
			    const struct kymo_error *next_err);

/*
 * recording-name.c: takes the recording's name for this user, or KYMO_E_STATE: another recording that
 * runs has it. Without a name, or a place for names, no effect.
 */
int ky_recording_claim_name(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_free_name(struct ky_recording *recording);

/*
 * recording-control.c. The time of all pauses until now. And: removes the traces that a clearing has left, of programs
 * that took too long.
 */
uint64_t ky_recording_paused_ns(const struct ky_recording *recording);
void ky_recording_remove_cleared(const struct ky_recording *recording);

/* recording-programs.c: as the functions of user.h, for the main buffers and all groups. */
int ky_recording_open_programs(struct ky_recording *recording, struct kymo_error *err);
int ky_recording_start_programs(struct ky_recording *recording, struct kymo_error *err);
/* Returns their number. */
size_t ky_recording_program_threads(const struct ky_recording *recording,
				    int32_t tids[KY_RECORDING_USER_THREADS_MAX]);
/* A pause, or the selection of processes. */
int ky_recording_change_programs(struct ky_recording *recording,
				 const struct ky_user_change *change, struct kymo_error *err);
/* Other events: those that are a group's stay in it. */
int ky_recording_change_rules(struct ky_recording *recording, const struct ky_user_change *change,
			      struct kymo_error *err);
void ky_recording_program_progress(const struct ky_recording *recording,
				   struct ky_user_progress *progress);
int ky_recording_list_programs(struct ky_recording *recording,
			       struct ky_user_program_progress *list, size_t max, size_t *n,
			       size_t *n_all, struct kymo_error *err);
/* Of the buffers that overwrite. */
int ky_recording_snapshot_programs(struct ky_recording *recording, const char *output,
				   struct ky_user_snapshot *made, struct kymo_error *err);
int ky_recording_clear_programs(struct ky_recording *recording, struct kymo_error *err);
int ky_recording_rotate_programs(struct ky_recording *recording, const char *archive,
				 const struct ky_os_clock *ended, const struct ky_user_pause *pause,
				 struct kymo_error *err);
int ky_recording_stop_programs(struct ky_recording *recording, struct kymo_error *err);
int ky_recording_finish_programs(struct ky_recording *recording, const struct ky_os_clock *clock,
				 struct kymo_error *err);
void ky_recording_close_programs(struct ky_recording *recording);

/* recording-rotate.c: since the start. */
void ky_recording_progress(const struct ky_recording *recording,
			   struct ky_recording_progress *progress);
/* The traces so far move to @archive, which is not a chunk. Errors: those of ky_recording_rotate(). */
int ky_recording_rotate_to(struct ky_recording *recording, const char *archive,
			   struct kymo_error *err);
/* The present chunk begins now. */
void ky_recording_restart_chunk(struct ky_recording *recording);

/* recording-rotate.c. Opens the timer. */
int ky_recording_open_chunks(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_close_chunks(struct ky_recording *recording);
/* Called when recording is on: the first chunk begins. */
void ky_recording_begin_chunks(struct ky_recording *recording);
/* The timer has expired: rotates when it is time. */
int ky_recording_check_chunk(struct ky_recording *recording, struct kymo_error *err);

/* recording-containers.c */

/*
 * Finds the control groups of the options' containers and adds them to the kernel's options.
 * Returns 0, the errors of ky_container_cgroup(), or KYMO_E_MEMORY; the caller must call
 * ky_recording_forget_containers() in any case.
 */
int ky_recording_find_containers(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_forget_containers(struct ky_recording *recording);
/*
 * During a recording: add this container to the selection, or remove it. The caller has looked up
 * its control group ("": not running), since that may take long. A container that has ended is
 * known by the name with which it was added.
 */
int ky_recording_choose_container(struct ky_recording *recording, const char *name,
				  const char *cgroup, bool adds, struct kymo_error *err);

/* Whether the traces of the recording are cut into chunks, or could be. */
static inline bool ky_recording_has_chunks(const struct ky_recording *recording)
{
	return !recording->options.user.overwrite &&
	       !(recording->options.has_kernel && recording->options.kernel.raw);
}

/* recording-triggers.c. Takes over the rules of the options. */
int ky_recording_open_triggers(struct ky_recording *recording, struct kymo_error *err);
int ky_recording_start_triggers(struct ky_recording *recording, struct kymo_error *err);
/* Before the sessions are stopped: the triggers end, and what their last events have fired is carried out. */
int ky_recording_end_triggers(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_close_triggers(struct ky_recording *recording);
/* Handles a readable descriptor of triggers: carries out what fired. */
int ky_recording_step_triggers(struct ky_recording *recording, struct kymo_error *err);
int ky_recording_triggers_fd(const struct ky_recording *recording);
/*
 * Requests. A trigger's condition and its actions; its number or "all"; the words of the answer:
 * number, condition, fired, held, lost, actions with a comma and a blank between them.
 */
/*
 * recording-triggers.c: one action of a trigger that fired, or of someone else's condition. @result: the trace that an earlier action
 * of the firing has made, or "".
 */
int ky_recording_act(struct ky_recording *recording, const struct ky_trigger_action *action,
		     const struct ky_trigger_firing *firing, char result[PATH_MAX],
		     struct kymo_error *err);
/* Whether the recording can do this at all. */
int ky_recording_check_action(const struct ky_recording *recording,
			      const struct ky_trigger_action *action, struct kymo_error *err);
/*
 * recording-act.c: a request for one action, from a process that watches a condition of its own (kymo latency): the words are
 * the action, the condition, the event's name, how often it happened, its time and duration in ns, and fields of it: each
 * a name, "text" or "number", and a value. The answer has the trace that the action has made, or "".
 */
int ky_recording_obey_act(struct ky_recording *recording,
			  const struct ky_control_socket_message *request, size_t at,
			  struct ky_control_socket_message *answer, struct kymo_error *err);
int ky_recording_add_trigger(struct ky_recording *recording,
			     const struct ky_control_socket_message *request, size_t at,
			     struct ky_control_socket_message *answer, struct kymo_error *err);
int ky_recording_remove_trigger(struct ky_recording *recording, const char *number,
				struct kymo_error *err);
void ky_recording_list_triggers(const struct ky_recording *recording,
				struct ky_control_socket_message *answer);

/* recording.c: the descriptor of the first triggers belongs to the event loop from now on. */
int ky_recording_watch_triggers(struct ky_recording *recording, struct kymo_error *err);

/* recording-marks.c: an event kymo:mark with the name @text (NULL: the trigger's number). */
int ky_recording_mark(struct ky_recording *recording, const struct ky_trigger_firing *firing,
		      const char *text, struct kymo_error *err);
/*
 * Write the marks as a trace @path/marks in @store (NULL: a store in @directory). Without marks, no effect.
 */
int ky_recording_write_marks(struct ky_recording *recording, struct ky_packet_store *store,
			     const char *directory, const char *path,
			     const struct ky_os_clock *clock, struct kymo_error *err);
void ky_recording_drop_marks(struct ky_recording *recording);

/*
 * recording-live.c: a step of the kernel's recorder, with what it and the programs' recorder have to tell each other
 * about live readers. And: the programs' recorder has said that programs write again.
 */
int ky_recording_step_session(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_programs_write(struct ky_recording *recording);

/* recording-watch.c */
int ky_recording_open_watch(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_close_watch(struct ky_recording *recording);
/* The process at the other end of @fd, which the call takes over, watches from now on. */
void ky_recording_add_watcher(struct ky_recording *recording, int fd);
/*
 * A line for watchers. @kind: "trigger", "snapshot", "rotation", "loss", "end"; @json: the members of a
 * JSON object without its braces, or NULL: only the text.
 */
void ky_recording_tell(struct ky_recording *recording, const char *kind, const char *text,
		       const char *json);
/* A line for watchers: the recording has written the trace at @path, a snapshot or a chunk. */
void ky_recording_tell_trace(struct ky_recording *recording, const char *kind, const char *path,
			     uint64_t events, uint64_t bytes);
/* The timer has expired: looks for losses, and compares the amounts of conditions. */
void ky_recording_tick(struct ky_recording *recording);
/* Sets the timer while a part of the recording needs it. */
void ky_recording_set_tick(struct ky_recording *recording);
/* How far the recording is. */
void ky_recording_amounts(const struct ky_recording *recording,
			  struct ky_triggers_amounts *amounts);

/* recording-buffers.c: fills in the buffers of @stats, whose ->kernel and ->user are set. */
void ky_recording_count_buffers(const struct ky_recording *recording,
				struct ky_recording_stats *stats);

/* Whether there are groups that overwrite: snapshots have them. */
static inline bool ky_recording_has_flight_groups(const struct ky_recording *recording)
{
	for (size_t i = 0; i < recording->options.kernel.n_groups; i++)
		if (recording->options.kernel.groups[i].overwrite)
			return true;
	for (size_t i = 0; i < recording->options.n_user_groups; i++)
		if (recording->options.user_groups[i].overwrite)
			return true;
	return false;
}

/* recording-status.c: the groups, as options have them. */
void ky_recording_add_groups(const struct ky_recording *recording,
			     struct ky_control_socket_message *answer);
/* Counts per CPU and program, and the disk: pairs of words. */
int ky_recording_add_details(struct ky_recording *recording,
			     struct ky_control_socket_message *answer, struct kymo_error *err);

/*
 * recording-requests.c: handles a readable control socket. Returns whether the request is to stop.
 */
bool ky_recording_take_request(struct ky_recording *recording);

#endif
