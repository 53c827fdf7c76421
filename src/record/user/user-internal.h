/* SPDX-License-Identifier: MIT */
/* The shared part of a recording of user space. */
#ifndef KY_RECORD_USER_USER_INTERNAL_H
#define KY_RECORD_USER_USER_INTERNAL_H

#include <pthread.h>
#include <signal.h>

#include "base/hash.h"
#include "record/request/user-program.h"
#include "record/request/user-request.h"
#include "record/rings/user-ring.h"
#include "record/runtime/user-runtime.h"
#include "record/runtime/user-sentry.h"
#include "record/runtime/user-uid-events.h"
#include "record/runtime/user-work.h"
#include "record/user/user.h"

/* A copy of the rotation, for the task that rotates one ring. */
struct ky_user_rotate_job {
	char *archive;
	struct ky_clock_record ended, next;
	uint32_t number;
};

/*
 * A ring file of a session's directory. It belongs to the reading thread. While one of its tasks
 * runs (is_away), file and ring belong to the task.
 */
struct ky_user_ring_file {
	struct ky_user *user;
	struct ky_user_owner *owner;
	char *name;
	struct ky_user_ring *ring; /* NULL: not open yet */
	size_t place;		   /* index in the owner's list of files in reading */
	struct ky_user_task task;
	bool is_away;
	bool is_counted;	/* counts as open for the owner */
	uint64_t device, inode; /* of the file that was opened under the name; 0: none */
	unsigned int n_looks;	/* looks that are left: whether its program has ended */
	uint64_t described;	/* its part of the owner's count */
	KY_VEC(char *) notes;	/* shared: state notes that came while it was away */
	bool dumps; /* before the end of its trace, look at its program's libraries once more */
	int ret;    /* the task's result */
	struct kymo_error *err; /* the task's error; may be NULL after a failure */
	uint64_t ended; /* flight recorder: number of the ended program; 0: it has not ended */
	uint64_t ended_bytes;
	struct ky_clock_record clock; /* of its first trace */
	uint32_t rotation;	      /* number of the rotation that its trace came after */
	struct ky_user_rotate_job job;
};

/*
 * One user's programs: the directory of their files, and their state. It belongs to the reading
 * thread.
 */
struct ky_user_owner {
	struct ky_user_dir dir;
	struct ky_map files;			    /* by name: files that are not finished */
	uint32_t n_open;			    /* number of open files among them */
	KY_VEC(struct ky_user_ring_file *) reading; /* files that are not away */
	size_t turn;				    /* index of the next file to read */
	uint64_t described; /* bytes of descriptions of their events; atomic */
	struct ky_user_queue queue;
	uint64_t cookie;    /* of the rules that its directory has */
	bool is_given_up;   /* its programs take too long to finish */
	bool has_old_rules; /* the last change of the rules did not reach its directory */
};

/* The limit of memory for the descriptions of one user's events. */
#define KY_USER_DESCRIPTIONS_MAX (64u << 20)

/* Users that appear during the recording: a task looks for them. */
struct ky_user_newcomers {
	struct ky_user_task task;
	struct ky_user_queue queue;
	bool is_away;
	bool has_new;	   /* the other users must learn of fresh */
	bool is_listening; /* events_fd was opened, or cannot be */
	bool is_due;	   /* the next search, as soon as the last one is old enough */
	bool is_asked;	   /* the choice of programs has changed; atomic */
	int events_fd; /* tells that a process has changed its user; -1: the kernel does not tell */
	KY_VEC(uid_t) uids; /* the users that the task found; the task's while it is away */
	size_t n_ignored;   /* of these, the kernel tells no changes */
	KY_VEC(struct ky_user_owner *) fresh;
	size_t first; /* index of the first owner whose programs must get a request */
	uint64_t looked_ns;
};

/* A snapshot or a rotation, for which the caller waits. */
struct ky_user_order {
	struct ky_packet_store *store;	       /* store of the snapshot; NULL: a rotation */
	bool clears;			       /* instead: forget all events */
	struct ky_user_program_progress *list; /* instead: fill this list of max elements */
	size_t max, n, n_all;
	struct ky_clock_record clock; /* rotation: of the traces that end */
	struct ky_user_snapshot *made;
	const char *archive;	     /* rotation: where these traces go, in the store */
	struct ky_clock_record next; /* rotation: of the traces that begin */
	int ret;
	struct kymo_error err;
};

/* The session of a killed recorder, in which programs of the user may take part. */
struct ky_user_left {
	uint64_t cookie;
	uid_t uid;
};

/* The last rotation; the reading thread's. */
struct ky_user_rotation {
	char *archive; /* NULL: no rotation yet */
	struct ky_clock_record ended, next;
	uint32_t number;      /* of rotations until now */
	unsigned int n_tasks; /* rings that tasks are rotating */
	size_t n_left;	      /* rings that were not rotated yet at the last look */
	size_t n_opening;     /* rings that came before the rotation, and that tasks are opening */
	uint64_t began_ns;    /* CLOCK_MONOTONIC; 0: the order has its answer */
};

/* The thread that shows programs that the recorder lives, while they wait for room. */
struct ky_user_beat {
	/* Protects the owners' list, and the descriptors of their session files, for this thread. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	int32_t tid; /* 0: it has not begun */
	uint64_t count;
	bool is_running, is_ending;
	bool is_resting; /* no program waits, since the recorder is idle */
};

/* Whether the thread that reads is idle: the rings wake it; the reading thread's, but for is_idle. */
struct ky_user_idle {
	bool is_idle;		 /* atomic */
	uint64_t quiet_since_ns; /* CLOCK_MONOTONIC time of the last data */
	uint64_t next_try_ns;	 /* of becoming idle */
};

/*
 * While the thread runs, rings and programs' traces belong to it, or to a task. @lock protects the
 * members that the thread shares with the caller or a task: programs, owners (the thread may read
 * them without the lock, since no other thread changes them), order. result and err belong to the
 * thread until the join.
 */
struct ky_user {
	struct ky_user_options options;	   /* its store is the store of the traces */
	struct ky_packet_store *own_store; /* that store, when the caller gave none; or NULL */
	struct ky_os_clock clock;	   /* a copy from the start */
	uint64_t since_ns; /* CLOCK_MONOTONIC: older rings are not of this recording */
	char place[KY_USER_PLACE_MAX + 1]; /* options.place, without links; "": none */
	struct ky_user_request request;
	uint32_t
		dump_excluded; /* events that the state dump omits, a bit for each enum ky_user_dump_event */
	struct ky_programs programs;
	KY_VEC(struct ky_user_owner *) owners;
	KY_VEC(struct ky_user_ring_file *) rings; /* all opened files, including finished ones */
	struct ky_user_counts counts;
	struct ky_user_work work;
	struct ky_clock_record clock_record; /* of new traces */
	int inotify_fd, stop_fd, failed_fd, order_fd;
	pthread_mutex_t lock;
	pthread_cond_t
		answered; /* signals that order is NULL again, or that the thread has begun or ended */
	int32_t tid;	  /* of the thread; 0: it has not begun */
	struct ky_user_order *order; /* the work for the thread */
	int answered_fd;	     /* becomes readable when order is NULL again */
	struct ky_user_rotation rotation;
	struct ky_user_beat beat;
	bool is_over;
	bool is_ending;	   /* no more directories are added */
	bool follows_uids; /* users that appear get a directory; atomic */
	struct ky_user_newcomers newcomers;
	bool has_missed; /* inotify lost events because there were too many */
	uint64_t searched_ns;
	bool has_closing; /* a file has looks left */
	uint64_t closing_ns;
	size_t n_opening; /* number of rings that tasks are opening */
	struct ky_user_sentry sentry;
	struct ky_user_idle idle;
	/* The thread has it, except while it sleeps: then another one may read the rings for it. */
	pthread_mutex_t turn;
	int active_fd;	/* an eventfd: tells the kernel's recorder that programs write again */
	int readers_fd; /* readable when a live reader may have come; -1: another one asks */
	uint32_t live_delay_ms;	 /* that live readers want; 0: there are none */
	bool live_is_asked;	 /* atomic: a reader may have come or gone */
	uint64_t live_due_ns;	 /* CLOCK_MONOTONIC time of the next update for live readers */
	unsigned int live_waits; /* how often that update waited for rings that tasks are opening */
	uint64_t n_control_files; /* number of open control files; atomic */
	bool is_full_told;	  /* the log has the warning about too many users */
	bool is_short_told; /* the log has the warning about processes that could not be examined for lack of descriptors */
	KY_VEC(uint64_t) old_cookies;	  /* of the session files before the last change */
	KY_VEC(struct ky_user_left) left; /* sessions of killed recorders */
	pthread_mutex_t notes_lock;
	KY_VEC(uint64_t) left_out; /* programs with a warning: pid and reason; under notes_lock */
	/*
	 * With a filter: the fields of all events, for warnings about unknown names; under
	 * notes_lock.
	 */
	struct ky_user_names seen_names;
	bool is_filter_told;
	uint64_t n_ended,
		ended_bytes; /* flight recorder: number of ended programs; size of their kept traces */
	pthread_t thread;
	bool started, is_running, is_stopped;
	int result;
	struct kymo_error err;
	struct ky_user_stats stats;
	struct ky_user_program_stats *program_stats;
};

/* user-live.c: update the traces for live readers, when due. The reading thread's. */
int ky_user_live_step(struct ky_user *user, struct kymo_error *err);
/* A reader may have come, or gone. */
void ky_user_live_look(struct ky_user *user);
/* The thread has become idle: the next update is due later. */
void ky_user_live_rest(struct ky_user *user);
/* The time until the next update, in ms; -1: none is due, or another thread does it. */
int ky_user_live_wait_ms(const struct ky_user *user);

/*
 * user-idle.c; the reading thread's. Whether it is idle; any thread. Data was found. And: become idle, if it is time, and nothing is left to do.
 * And: end that, if it is so; @is_woken: by a program.
 */
bool ky_user_sleeps(const struct ky_user *user);
void ky_user_idle_found(struct ky_user *user);
void ky_user_idle_try(struct ky_user *user);
void ky_user_idle_end(struct ky_user *user, bool is_woken);
/* Whether the thread must look again soon for other reasons than data. */
bool ky_user_has_deferred(const struct ky_user *user);

/*
 * user-beat.c: the thread runs from begin to end, when programs wait for room (options.wait_ns). The
 * caller must call end after a failed begin, too. KYMO_E_IO: there is no thread.
 */
int ky_user_beat_init(struct ky_user *user, struct kymo_error *err);
int ky_user_beat_begin(struct ky_user *user, struct kymo_error *err);
void ky_user_beat_end(struct ky_user *user);
/* While no ring can be full. */
void ky_user_beat_rest(struct ky_user *user, bool rests);

/* user-consumer.c: the thread that reads the rings. @data: a struct ky_user. */
void *ky_user_consume(void *data);
/* Takes all files that have come or gone until now. The reading thread's. KYMO_E_MEMORY. */
int ky_user_take_files(struct ky_user *user, struct kymo_error *err);

/* A file of this name has appeared. If it is a ring file, a task opens it. KYMO_E_MEMORY. */
int ky_user_file_comes(struct ky_user *user, struct ky_user_owner *owner, const char *name,
		       struct kymo_error *err);
/* A process has closed the file of this name. KYMO_E_MEMORY. */
int ky_user_file_closed(struct ky_user *user, struct ky_user_owner *owner, const char *name,
			struct kymo_error *err);
/* Looks once more at files that were closed, and that somebody had open a moment later. KYMO_E_MEMORY. */
int ky_user_look_at_closing(struct ky_user *user, struct kymo_error *err);
/* Collects the results of tasks. An error that is not caused by a program ends the recording. */
int ky_user_take_tasks(struct ky_user *user, struct kymo_error *err);
/* The program has described more events: passes its ring to a task. */
void ky_user_file_follow(struct ky_user_ring_file *file);
/* Reads the file to its end and finishes its trace. */
void ky_user_file_finish(struct ky_user_ring_file *file);
/* Handles a task that was taken back: the file's program gets no further data. */
void ky_user_file_drop(struct ky_user_task *task);
/* Searches the directories for new files. */
int ky_user_find_rings(struct ky_user *user, struct kymo_error *err);
/*
 * user-settle.c: after the end of the reading thread, read everything to its end and finish all
 * traces. Programs of other users that take too long lose the rest.
 */
int ky_user_settle(struct ky_user *user, struct kymo_error *err);
/* The alternative: finish the running tasks and begin no others. */
void ky_user_calm(struct ky_user *user);
/* Removes a ring that is not away, with its file. */
void ky_user_forget_ring(struct ky_user *user, struct ky_user_ring_file *file);
void ky_user_file_free(struct ky_user_ring_file *file);

/* user-owner.c: adds a directory for programs of @uid to the recording; *owner may be NULL. */
int ky_user_owner_new(struct ky_user *user, uid_t uid, struct ky_user_owner **owner,
		      struct kymo_error *err);
/*
 * Whether the recorder can read one more file. With several users, one user gets at most half of the descriptors
 * that the others leave, so that later users always get some.
 */
bool ky_user_owner_has_room(const struct ky_user *user, const struct ky_user_owner *owner);
/* Writes the present rules to its directory. The caller holds the lock. */
int ky_user_owner_update(struct ky_user *user, struct ky_user_owner *owner, struct kymo_error *err);
/* Also removes its directory. NULL is allowed. */
void ky_user_owner_free(struct ky_user_owner *owner);
/* Watches its directory and adds it to the owners. On failure the function frees it. */
int ky_user_owner_add(struct ky_user *user, struct ky_user_owner *owner, struct kymo_error *err);
/* Returns NULL for a user without programs. */
struct ky_user_owner *ky_user_owner_of(const struct ky_user *user, uid_t uid);

/* When no event so far has the fields of the filter, logs that once. */
void ky_user_tell_filter(struct ky_user *user);

/*
 * user-uids.c: whether the recording takes new users. And: search for them, if it is time; the time until then in
 * ms, or -1. And: the descriptor newcomers.events_fd is readable.
 */
bool ky_user_follows_uids(const struct ky_user *user);
void ky_user_look_for_uids(struct ky_user *user);
int ky_user_uids_wait_ms(const struct ky_user *user);
void ky_user_uids_told(struct ky_user *user);
/* Handles the end of the search task. */
void ky_user_newcomers_done(struct ky_user *user);

/*
 * user-scan.c: searches for programs: @all, or at least those that the recording chooses. The caller holds the lock, or
 * no other thread runs.
 */
int ky_user_scan(struct ky_user *user, bool all, struct kymo_error *err);
/* Only processes are chosen, by the options: no other program can have a part in the recording. */
bool ky_user_has_pids_only(const struct ky_user *user);
/* What has to be known of programs before the recording begins: the users of them; for a filter, their events. */
int ky_user_scan_first(struct ky_user *user, struct kymo_error *err);
/* Whether programs that no search has found take part in the recording. No thread reads the rings. */
bool ky_user_has_strangers(const struct ky_user *user);
/* Warns about what killed recorders left. And: programs that were found leave the sessions of those recorders. */
void ky_user_look_for_leftovers(struct ky_user *user);
void ky_user_free_left(struct ky_user *user);

/* user-session.c: asks the program to join, if it is selected and has a selected event. */
void ky_user_ask_program(struct ky_user *user, struct ky_program *program);

/*
 * user-declined.c: a program could not join, or could not record all events (@procname: its name,
 * @pid: its pid in its own namespace). Logs a warning, once for each program, up to a limit.
 */
void ky_user_tell_left_out(struct ky_user *user, const char *procname, uint32_t pid,
			   uint32_t reason, int os_error);
/*
 * Whether the file is a program's note about that. If so, the function logs a warning and removes
 * the file.
 */
bool ky_user_take_note(struct ky_user *user, struct ky_user_dir *dir, const char *name);

/* user-flight.c: the program of @file has ended. Keeps its events while there is room. */
void ky_user_flight_keep(struct ky_user *user, struct ky_user_ring_file *file);
/*
 * Drop the events of an ended program, so that @owner can open one more ring. The program is one of
 * the user who keeps the most, or of @owner, who must not displace programs of users with fewer.
 * Returns false when none exists.
 */
bool ky_user_flight_make_room(struct ky_user *user, struct ky_user_owner *owner);
/*
 * user-rotate.c: begins the rotation that an order requests, and continues it: passes rings to
 * tasks, a few at a time, and answers the order.
 */
void ky_user_rotate_begin(struct ky_user *user, const struct ky_user_order *order);
int ky_user_rotate_step(struct ky_user *user, struct kymo_error *err);
/* user-stats.c: adds the counts of a ring that is about to go. */
void ky_user_count_archived(struct ky_user *user, const struct ky_user_ring *ring);
/* At the end: the counts of all other rings. KYMO_E_MEMORY. */
int ky_user_count_rings(struct ky_user *user, struct kymo_error *err);
/* user-files.c: a task rotates the trace of the file, which is away meanwhile. KYMO_E_MEMORY. */
int ky_user_file_rotate(struct ky_user_ring_file *file, const struct ky_user_rotation *rotation,
			struct kymo_error *err);
/* Fills the list of an order. */
void ky_user_fill_list(const struct ky_user *user, struct ky_user_order *order);
/* The thread has done what the order requests. */
void ky_user_answer(struct ky_user *user, int ret);
/* user-files.c: a task examines the program's libraries; the file is away meanwhile. */
void ky_user_file_dump(struct ky_user_ring_file *file);
/* Makes the snapshot of the order. Returns errors of the recording only; the order has its own. */
int ky_user_flight_obey(struct ky_user *user, struct ky_user_order *order, struct kymo_error *err);
/*
 * user-consumer-orders.c: carries out, or begins, the order that order_fd signals. Returns errors of the
 * recording only.
 */
int ky_user_obey(struct ky_user *user, struct kymo_error *err);
/*
 * Gives the order to the thread and waits for the answer. While @pause is not NULL, it is called to
 * wait until a descriptor is readable. Returns the order's result.
 */
int ky_user_give_order(struct ky_user *user, struct ky_user_order *order,
		       const struct ky_user_pause *pause, struct kymo_error *err);

/*
 * user-state.c: executable and libraries of the ring's program. First the state at the time of
 * joining.
 */
int ky_user_dump_opened(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);
/* Then the present state. */
int ky_user_dump_ring(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);
/* Only the program's own notes. */
int ky_user_dump_noted(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);
/* The same of many programs, until there is nothing left. Returns 0 or more, negative. */
int ky_user_dump_all_noted(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);

#endif
