/* SPDX-License-Identifier: MIT */
/* What the files of a recording of user space share. */
#ifndef KY_RECORD_USER_INTERNAL_H
#define KY_RECORD_USER_INTERNAL_H

#include <pthread.h>
#include <signal.h>

#include "record/user-program.h"
#include "record/user-request.h"
#include "record/user-ring.h"
#include "record/user-runtime.h"
#include "record/user.h"

/* A ring file of a session's directory. */
struct ky_user_ring_file {
	struct ky_user_dir *dir;
	char *name;
	struct ky_user_ring *ring;
	uint64_t ended; /* flight recorder: as which program it ended; 0: it did not */
	uint64_t ended_bytes;
};

/* A snapshot that somebody waits for. */
struct ky_user_order {
	const char *output;
	struct ky_clock_record clock;
	struct ky_user_snapshot *made;
	int ret;
	struct kymo_error err;
};

/*
 * While the thread runs, rings and programs' traces are its own. @lock guards what both it and the
 * caller use: programs, dirs (the thread may look at those without it, nobody else changes them),
 * order. result and err are the thread's until it was joined.
 */
struct ky_user {
	struct ky_user_options options;
	struct ky_os_clock clock;	   /* as it was at the start */
	uint64_t since_ns;		   /* CLOCK_MONOTONIC: no ring is older */
	char place[KY_USER_PLACE_MAX + 1]; /* options.place, without links; "": there is none */
	struct ky_user_request request;
	uint32_t dump_excluded; /* of the state dump, a bit for each enum ky_user_dump_event */
	struct ky_programs programs;
	KY_VEC(struct ky_user_dir *) dirs;
	KY_VEC(struct ky_user_ring_file *) rings; /* finished ones too */
	int inotify_fd, stop_fd, failed_fd, order_fd;
	pthread_mutex_t lock;
	pthread_cond_t answered;     /* order is NULL again, or the thread has begun, or is over */
	int32_t tid;		     /* the thread's; 0: it has not begun */
	struct ky_user_order *order; /* what the thread is to do */
	bool is_over;
	bool is_ending;		      /* no directories any more */
	KY_VEC(uid_t) uids;	      /* root's: whom the thread has seen */
	uint64_t uids_ns;	      /* when it looked last */
	KY_VEC(uint64_t) old_cookies; /* of session files before the last change */
	pthread_mutex_t notes_lock;
	KY_VEC(uint64_t) left_out; /* who was told: pid and reason; with notes_lock */
	/* With a filter: what fields there were, so that names that mean nothing are told. */
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

/* user-run.c: the thread. @data: a struct ky_user. */
void *ky_user_run(void *data);

/*
 * user-run.c: a regular file of the directory's user that has no other name; @flags: O_RDONLY or O_RDWR. -1: errno
 * says why (EPERM: it is something else).
 */
int ky_user_open_file(const struct ky_user_dir *dir, const char *name, int flags);
/* If no event so far has what the filter is about, say so, once. */
void ky_user_tell_filter(struct ky_user *user);

/* Look through the directories for ring files that are not known yet. The thread is not running. */
int ky_user_find_rings(struct ky_user *user, struct kymo_error *err);

/* user-uids.c: whether users who come later are recorded too; look for them, so often at the most. */
#define KY_USER_UIDS_MS 250
bool ky_user_follows_uids(const struct ky_user *user);
int ky_user_look_for_uids(struct ky_user *user, struct kymo_error *err);

/* user-session.c: a directory for programs of @uid; one that cannot be had is a warning. */
int ky_user_add_other_dir(struct ky_user *user, uid_t uid, struct kymo_error *err);

/* user-session.c: ask the program to take part, if it is meant and has a wanted event. */
void ky_user_ask_program(struct ky_user *user, struct ky_program *program);

/*
 * user-note.c: a program (as it calls itself, @pid as it sees itself) could not take part, or not in all. A
 * warning, once for each, up to a bound.
 */
void ky_user_tell_left_out(struct ky_user *user, const char *procname, uint32_t pid,
			   uint32_t reason, int os_error);
/* Whether the file is a note of a program that says so; it is told, and removed. */
bool ky_user_take_note(struct ky_user *user, struct ky_user_dir *dir, const char *name);

/* user-flight.c: the program of @file ended. What it wrote is kept, while there is room for it. */
void ky_user_flight_keep(struct ky_user *user, struct ky_user_ring_file *file);
/* Let go of the one that ended first. False: there is none. */
bool ky_user_flight_make_room(struct ky_user *user);
/* Do what order_fd told the thread to do. */
void ky_user_flight_obey(struct ky_user *user);

/* Forget a ring, with its file. */
void ky_user_forget_ring(struct ky_user *user, struct ky_user_ring_file *file);

/* The libraries that the ring's program has loaded now. */
int ky_user_dump_ring(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err);

/* Finish all rings that are not finished, and remove their files. */
int ky_user_finish_rings(struct ky_user *user, struct kymo_error *err);

#endif
