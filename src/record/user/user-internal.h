/* SPDX-License-Identifier: MIT */
/* What the files of a recording of user space share. */
#ifndef KY_RECORD_USER_USER_INTERNAL_H
#define KY_RECORD_USER_USER_INTERNAL_H

#include <pthread.h>
#include <signal.h>

#include "base/hash.h"
#include "record/user/user-program.h"
#include "record/user/user-request.h"
#include "record/user/user-ring.h"
#include "record/user/user-runtime.h"
#include "record/user/user-work.h"
#include "record/user/user.h"

/*
 * A ring file of a session's directory. The thread that reads has it, but while a task is under way (is_away): then
 * the task has it and the ring.
 */
struct ky_user_ring_file {
	struct ky_user *user;
	struct ky_user_owner *owner;
	char *name;
	struct ky_user_ring *ring; /* NULL: it is not open yet */
	size_t place;		   /* in the owner's list of those that are read */
	struct ky_user_task task;
	bool is_away;
	bool is_counted;	/* among the owner's that are open */
	uint64_t device, inode; /* of what was opened under the name; 0: nothing was */
	uint64_t described;	/* what it has of the owner's */
	bool dumps; /* its program's libraries are looked at once more before it is finished */
	int ret;    /* what became of the task */
	struct kymo_error *err; /* of it, if it failed; may be NULL all the same */
	uint64_t ended;		/* flight recorder: as which program it ended; 0: it did not */
	uint64_t ended_bytes;
};

/* One user's programs: where their files are, and what is known of them. The thread's that reads. */
struct ky_user_owner {
	struct ky_user_dir dir;
	struct ky_map files; /* by their names: those that are not finished */
	uint32_t n_open;     /* of these */
	KY_VEC(struct ky_user_ring_file *) reading; /* those that are not away */
	size_t turn;				    /* whose turn it is to be read */
	uint64_t described; /* bytes of descriptions of their events; atomic */
	struct ky_user_queue queue;
	bool is_given_up;   /* it takes too long to come to an end */
	bool has_old_rules; /* the last change of the rules did not reach its directory */
};

/* So much memory of ours one user's programs may take for describing their events. */
#define KY_USER_DESCRIPTIONS_MAX (64u << 20)

/* Users who come later: looked for by a task. */
struct ky_user_newcomers {
	struct ky_user_task task;
	struct ky_user_queue queue;
	bool is_away;
	bool has_new;	    /* fresh are to be made known */
	KY_VEC(uid_t) uids; /* who was seen; the task's */
	KY_VEC(struct ky_user_owner *) fresh;
	size_t first; /* of the owners whose programs are to be asked */
	uint64_t looked_ns;
};

/* A snapshot that somebody waits for. */
struct ky_user_order {
	struct ky_packet_store *store; /* where it goes */
	struct ky_clock_record clock;
	struct ky_user_snapshot *made;
	int ret;
	struct kymo_error err;
};

/*
 * While the thread runs, rings and programs' traces are its own, or a task's. @lock guards what both it and the
 * caller, or a task, use: programs, owners (the thread may look at those without it, nobody else changes them),
 * order. result and err are the thread's until it was joined.
 */
struct ky_user {
	struct ky_user_options options;	   /* its store is the one that traces go to */
	struct ky_packet_store *own_store; /* the same, where the caller gave none; or NULL */
	struct ky_os_clock clock;	   /* as it was at the start */
	uint64_t since_ns;		   /* CLOCK_MONOTONIC: no ring is older */
	char place[KY_USER_PLACE_MAX + 1]; /* options.place, without links; "": there is none */
	struct ky_user_request request;
	uint32_t dump_excluded; /* of the state dump, a bit for each enum ky_user_dump_event */
	struct ky_programs programs;
	KY_VEC(struct ky_user_owner *) owners;
	KY_VEC(struct ky_user_ring_file *) rings; /* that were opened; finished ones too */
	struct ky_user_counts counts;
	struct ky_user_work work;
	struct ky_clock_record clock_record; /* as it was at the start */
	int inotify_fd, stop_fd, failed_fd, order_fd;
	pthread_mutex_t lock;
	pthread_cond_t answered;     /* order is NULL again, or the thread has begun, or is over */
	int32_t tid;		     /* the thread's; 0: it has not begun */
	struct ky_user_order *order; /* what the thread is to do */
	bool is_over;
	bool is_ending; /* no directories any more */
	struct ky_user_newcomers newcomers;
	bool has_missed; /* events of files, which were too many */
	uint64_t searched_ns;
	size_t n_opening;	  /* rings that tasks open */
	uint64_t live_due_ns;	  /* when live readers are told next; CLOCK_MONOTONIC */
	unsigned int live_waits;  /* how often that was put off for rings that are being opened */
	uint64_t n_control_files; /* that are open; atomic */
	bool is_full_told;	  /* that there are more users than there is room for */
	bool is_short_told; /* that processes could not be looked at for want of descriptors */
	KY_VEC(uint64_t) old_cookies; /* of session files before the last change */
	pthread_mutex_t notes_lock;
	KY_VEC(uint64_t) left_out; /* who was told: pid and reason; with notes_lock */
	/* With a filter: what fields there were, so that names that mean nothing are told; with notes_lock. */
	struct ky_user_names seen_names;
	bool is_filter_told;
	uint64_t n_ended,
		ended_bytes; /* flight recorder: programs that ended; what is kept of them */
	pthread_t thread;
	bool started, is_running, is_stopped;
	int result;
	struct kymo_error err;
	struct ky_user_stats stats;
	struct ky_user_program_stats *program_stats;
};

/* user-live.c: tell those who follow the recording, if that is due. The thread's that reads. */
int ky_user_live_step(struct ky_user *user, struct kymo_error *err);

/* user-run.c: the thread. @data: a struct ky_user. */
void *ky_user_run(void *data);

/*
 * user-files.c: a regular file of the directory's user that has no other name; @flags: O_RDONLY or O_RDWR. -1: errno
 * says why (EPERM: it is something else; ENOENT: it is gone, or was while it was opened).
 */
int ky_user_open_file(const struct ky_user_dir *dir, const char *name, int flags);
/* A file of this name has come: if it is a ring's, it is opened by a task. KYMO_E_MEMORY. */
int ky_user_file_comes(struct ky_user *user, struct ky_user_owner *owner, const char *name,
		       struct kymo_error *err);
/* Somebody who had it open has closed the file of this name. KYMO_E_MEMORY. */
int ky_user_file_closed(struct ky_user *user, struct ky_user_owner *owner, const char *name,
			struct kymo_error *err);
/* What has become of tasks. An error that is no program's own ends the recording. */
int ky_user_take_tasks(struct ky_user *user, struct kymo_error *err);
/* The program has described more events: its ring is given to a task. */
void ky_user_file_follow(struct ky_user_ring_file *file);
/* It is read to its end, and its trace is finished. */
void ky_user_file_finish(struct ky_user_ring_file *file);
/* A task of a file's that was taken back: of its program, there is no more than there is already. */
void ky_user_file_drop(struct ky_user_task *task);
/* Look through the directories for files that are not known yet. */
int ky_user_find_rings(struct ky_user *user, struct kymo_error *err);
/*
 * user-settle.c: the thread that reads is no more: everything is read to its end, and all traces are finished. Of
 * other users' programs, what takes too long stays away.
 */
int ky_user_settle(struct ky_user *user, struct kymo_error *err);
/* Instead: what is under way ends, and nothing else begins. */
void ky_user_calm(struct ky_user *user);
/* Forget a ring that is not away, with its file. */
void ky_user_forget_ring(struct ky_user *user, struct ky_user_ring_file *file);
void ky_user_file_free(struct ky_user_ring_file *file);

/* user-owner.c: add a directory for programs of @uid to the recording; *owner may be NULL. */
int ky_user_owner_new(struct ky_user *user, uid_t uid, struct ky_user_owner **owner,
		      struct kymo_error *err);
/* Its directory goes, too. NULL is fine. */
void ky_user_owner_free(struct ky_user_owner *owner);
/* Watch its directory, and have it among the others. On failure it is freed. */
int ky_user_owner_add(struct ky_user *user, struct ky_user_owner *owner, struct kymo_error *err);
/* NULL: there is none. */
struct ky_user_owner *ky_user_owner_of(const struct ky_user *user, uid_t uid);

/* If no event so far has what the filter is about, say so, once. */
void ky_user_tell_filter(struct ky_user *user);

/* user-uids.c: whether users who come later are recorded too; look for them, so often at the most. */
#define KY_USER_UIDS_MS 250
bool ky_user_follows_uids(const struct ky_user *user);
void ky_user_look_for_uids(struct ky_user *user);
/* What has become of its task. */
void ky_user_newcomers_done(struct ky_user *user);

/* user-session.c: look through all processes. Whoever calls holds the lock, or is alone. */
int ky_user_scan(struct ky_user *user, struct kymo_error *err);

/* user-session.c: ask the program to take part, if it is meant and has a wanted event. */
void ky_user_ask_program(struct ky_user *user, struct ky_program *program);

/*
 * user-declined.c: a program (as it calls itself, @pid as it sees itself) could not take part, or not in all. A
 * warning, once for each, up to a bound.
 */
void ky_user_tell_left_out(struct ky_user *user, const char *procname, uint32_t pid,
			   uint32_t reason, int os_error);
/* Whether the file is a note of a program that says so; it is told, and removed. */
bool ky_user_take_note(struct ky_user *user, struct ky_user_dir *dir, const char *name);

/* user-flight.c: the program of @file ended. What it wrote is kept, while there is room for it. */
void ky_user_flight_keep(struct ky_user *user, struct ky_user_ring_file *file);
/*
 * Let go of a program that ended, so that @owner can have one more ring open: of the user who keeps the most, or of
 * @owner, who may not push out those of users with fewer. False: there is none.
 */
bool ky_user_flight_make_room(struct ky_user *user, struct ky_user_owner *owner);
/* user-files.c: a task looks at the program's libraries; the file is away meanwhile. */
void ky_user_file_dump(struct ky_user_ring_file *file);
/* Do what order_fd told the thread to do. Errors are those of the recording; the order's are its own. */
int ky_user_flight_obey(struct ky_user *user, struct kymo_error *err);

/* user-state.c: executable and libraries of the ring's program. First what it had when it joined. */
int ky_user_dump_opened(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);
/* Then what it has now. */
int ky_user_dump_ring(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);
/* Only what its program has noted itself. */
int ky_user_dump_noted(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);

#endif
