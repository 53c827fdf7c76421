/* SPDX-License-Identifier: MIT */
/*
 * The runtime directories in which programs look for sessions, and a session's directory in one of
 * them (abi/control.h): made, locked, published, removed. And what dead recorders left there.
 *
 * The directory belongs to the user whose programs create files in it; a root recorder trusts
 * neither its contents nor, under /dev/shm, who owns the path to it.
 */
#ifndef KY_RECORD_USER_USER_RUNTIME_H
#define KY_RECORD_USER_USER_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/log.h"

/* Of a directory in which sessions' directories are: then all paths fit into what programs get. */
#define KY_USER_PLACE_MAX (KY_SESSION_PATH_MAX - KY_SESSION_NAME_MAX - 1)

/* A session's directory for the programs of one user. */
struct ky_user_dir {
	uid_t uid;
	int base_fd;	/* the runtime directory */
	int place_fd;	/* where the session's directory is; -1: in the runtime directory */
	int fd;		/* the session's */
	int session_fd; /* its session file, locked while it is open */
	int watch;	/* inotify's word for it; -1: none */
	bool is_published;
	char base[64]; /* the runtime directory's path */
	char name[KY_SESSION_NAME_MAX + 1];
	char path[KY_SESSION_PATH_MAX + 1];
};

/*
 * The directory of this user's recorders' sockets, where no program looks for sessions: made if it is not there.
 * 0; KYMO_E_PERMISSION: others could get in; KYMO_E_IO.
 */
int ky_user_recordings_make(char path[KY_SESSION_PATH_MAX + 1], struct kymo_error *err);
/* A directory of recorders' sockets. */
struct ky_user_recordings {
	char path[KY_SESSION_PATH_MAX + 1];
	uid_t uid;   /* whose it is */
	bool is_own; /* nobody but this user and root can change what is in it */
};
/*
 * Call @found for each such directory there is: this user's, then, for root, those of other users, where
 * anything may be found. Ends with the first result other than 0, which is returned.
 */
int ky_user_recordings_each(int (*found)(void *data, const struct ky_user_recordings *recordings),
			    void *data);

/*
 * Check that sessions' directories can be in the directory @path, which is made if it is not there: that
 * nobody but root and ourselves can put something else in its place. Its real path goes to @real.
 * 0; KYMO_E_NOT_FOUND, KYMO_E_PERMISSION, KYMO_E_INVALID (too long), KYMO_E_IO.
 */
int ky_user_place_check(const char *path, char real[KY_USER_PLACE_MAX + 1], struct kymo_error *err);
/* Whether its file system writes elsewhere what is changed: a full disk then hits pages that were written before. */
bool ky_user_place_copies(const char *real);
/*
 * Whether it is on persistent memory, and the platform says that it writes CPUs' caches there when the power
 * fails.
 */
bool ky_user_place_keeps_caches(const char *real);
/* Whether programs of @uid can get there. */
bool ky_user_place_is_open(const char *real, uid_t uid);

/*
 * Make a session's directory with @session, of @bytes, as its session file. No program sees it yet.
 * @place: a directory that was checked, in which it is to be; NULL: the runtime directory.
 * 0; KYMO_E_PERMISSION: the place is somebody else's; KYMO_E_IO.
 */
int ky_user_dir_make(uid_t uid, const char *place, const void *session, size_t bytes,
		     struct ky_user_dir *dir, struct kymo_error *err);

/* Put @session, with a new cookie, in the place of its session file: who looks from now on reads it. */
int ky_user_dir_change(struct ky_user_dir *dir, const void *session, size_t bytes,
		       struct kymo_error *err);

/*
 * Whether it is on persistent memory (a file system mounted with DAX), on which rings are mapped so that
 * what reaches the memory is found after a power failure.
 */
bool ky_user_dir_is_synced(const struct ky_user_dir *dir);

/* Now programs see it. */
int ky_user_dir_publish(struct ky_user_dir *dir, struct kymo_error *err);

/* New programs do not find it any more. */
void ky_user_dir_unpublish(struct ky_user_dir *dir);

/* Remove it with all that is in it, and close it. */
void ky_user_dir_remove(struct ky_user_dir *dir);

/* A directory of a dead recorder. */
struct ky_user_stale {
	char path[KY_SESSION_PATH_MAX + 1];
	uid_t uid;	 /* whose programs it is for */
	uint64_t cookie; /* of its session, as its file says, which is that user's; 0: not known */
	unsigned int n_rings; /* with events that nobody has read */
	uint64_t bytes;	      /* that these take */
	/* The directory, what it is called, and where. Open during the call only. */
	int parent_fd, fd;
	const char *name;
};

/*
 * Look for what dead recorders left in the runtime directories of this user, or, as root, of all users, behind
 * our own links there, and in @place (a directory that was checked, where other files may be too; or NULL),
 * calling @found for each; @clean: remove what holds no unread events. What users have put there instead costs
 * them their own files.
 */
void ky_user_stale_scan(const char *place, bool clean,
			void (*found)(void *data, const struct ky_user_stale *stale), void *data);
/* What is known of a session's directory by looking at it. */
enum ky_user_dir_state {
	KY_USER_DIR_NONE, /* it has no session's file */
	KY_USER_DIR_LIVE, /* its recorder runs */
	KY_USER_DIR_DEAD,
};
enum ky_user_dir_state ky_user_dir_state(int fd);
/*
 * Remove the session's directory @fd of a dead recorder, which is called @name in @parent_fd, if there is no ring
 * file in it any more.
 */
void ky_user_dir_clean(int parent_fd, const char *name, int fd);

/* Whether @name is that of a finished ring file. */
bool ky_user_is_ring_name(const char *name);

#endif
