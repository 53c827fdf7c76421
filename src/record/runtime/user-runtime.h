/* SPDX-License-Identifier: MIT */
/*
 * The runtime directories in which programs search for sessions, and a session's directory in one
 * of them (abi/control.h): creation, lock, publication, removal; and the leftovers of dead
 * recorders.
 *
 * A session's directory belongs to the user whose programs create files in it. A root recorder
 * trusts neither its contents nor, under /dev/shm, the owner of the path to it.
 */
#ifndef KY_RECORD_RUNTIME_USER_RUNTIME_H
#define KY_RECORD_RUNTIME_USER_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/log.h"

/*
 * The limit for a directory with sessions' directories, so that all paths fit into a program's
 * slot.
 */
#define KY_USER_PLACE_MAX (KY_SESSION_PATH_MAX - KY_SESSION_NAME_MAX - 1)

/* A session's directory for the programs of one user. */
struct ky_user_dir {
	uid_t uid;
	int base_fd;	/* the runtime directory */
	int place_fd;	/* the directory with the session's directory; -1: the runtime directory */
	int fd;		/* the session's */
	int session_fd; /* its session file, locked while open */
	int watch;	/* inotify watch; -1: none */
	bool is_published;
	char base[64]; /* the runtime directory's path */
	char name[KY_SESSION_NAME_MAX + 1];
	char path[KY_SESSION_PATH_MAX + 1];
};

/*
 * The directory of this user's recorders' sockets, where programs do not search for sessions. The
 * function makes it when it does not exist. Returns 0; KYMO_E_PERMISSION: other users could access
 * it; KYMO_E_IO.
 */
int ky_user_recordings_make(char path[KY_SESSION_PATH_MAX + 1], struct kymo_error *err);
/* A directory of recorders' sockets. */
struct ky_user_recordings {
	char path[KY_SESSION_PATH_MAX + 1];
	uid_t uid;   /* its owner */
	bool is_own; /* only this user and root can change its contents */
};
/*
 * Call @found for each such directory: this user's, then, for root, those of other users, whose
 * contents are untrusted. The first result other than 0 ends the search and is returned.
 */
int ky_user_recordings_each(int (*found)(void *data, const struct ky_user_recordings *recordings),
			    void *data);

/*
 * Check that directory @path, which the function makes when it does not exist, can hold sessions'
 * directories: only root and this user can replace it. @real gets its real path. Returns 0;
 * KYMO_E_NOT_FOUND, KYMO_E_PERMISSION, KYMO_E_INVALID (too long), KYMO_E_IO.
 */
int ky_user_place_check(const char *path, char real[KY_USER_PLACE_MAX + 1], struct kymo_error *err);
/*
 * Whether the file system writes changed data to new places (copy on write): on a full disk, even
 * pages with earlier data then fail.
 */
bool ky_user_place_copies(const char *real);
/*
 * Whether it is on persistent memory, on a platform that writes CPUs' caches there at a power
 * failure.
 */
bool ky_user_place_keeps_caches(const char *real);
/* Whether programs of @uid have access to it. */
bool ky_user_place_is_open(const char *real, uid_t uid);

/*
 * Make a session's directory with @session, of @bytes, as its session file. No program sees it yet.
 * @place: a checked directory for it; NULL: the runtime directory. Returns 0; KYMO_E_PERMISSION:
 * the place belongs to another user; KYMO_E_IO.
 */
int ky_user_dir_make(uid_t uid, const char *place, const void *session, size_t bytes,
		     struct ky_user_dir *dir, struct kymo_error *err);

/*
 * Replaces the session file by @session, with a new cookie: programs read the new one from now on.
 */
int ky_user_dir_change(struct ky_user_dir *dir, const void *session, size_t bytes,
		       struct kymo_error *err);

/*
 * Whether it is on persistent memory (a file system mounted with DAX), where the mapping of rings
 * survives a power failure.
 */
bool ky_user_dir_is_synced(const struct ky_user_dir *dir);

/* Makes the directory visible to programs. */
int ky_user_dir_publish(struct ky_user_dir *dir, struct kymo_error *err);

/* Hides the directory from new programs. */
void ky_user_dir_unpublish(struct ky_user_dir *dir);

/* Removes it with its contents, and closes it. */
void ky_user_dir_remove(struct ky_user_dir *dir);

/* A directory of a dead recorder. */
struct ky_user_stale {
	char path[KY_SESSION_PATH_MAX + 1];
	uid_t uid; /* the user of the programs */
	uint64_t
		cookie; /* of its session, from its file, which that user may have written; 0: unknown */
	unsigned int n_rings; /* rings with unread events */
	uint64_t bytes;	      /* total size of these rings */
	/* The parent, the directory and its name. Open during the call only. */
	int parent_fd, fd;
	const char *name;
};

/*
 * Search for leftovers of dead recorders in the runtime directories of this user, or, for root, of
 * all users, through our own links there, and in @place (a checked directory, which may have other
 * files, too; or NULL). Call @found for each; @clean: remove directories without unread events.
 * When users have put other files there, only those files can be affected.
 */
void ky_user_stale_scan(const char *place, bool clean,
			void (*found)(void *data, const struct ky_user_stale *stale), void *data);
/* The state of a session's directory. */
enum ky_user_dir_state {
	KY_USER_DIR_NONE, /* it has no session file */
	KY_USER_DIR_LIVE, /* its recorder runs */
	KY_USER_DIR_DEAD,
};
enum ky_user_dir_state ky_user_dir_state(int fd);
/*
 * Removes the session's directory @fd of a dead recorder, named @name in @parent_fd, if it has no
 * ring file any more.
 */
void ky_user_dir_clean(int parent_fd, const char *name, int fd);

/* Whether @name is the name of a finished ring file. */
bool ky_user_is_ring_name(const char *name);

/*
 * Open a regular file of the directory's user that has no other hard link; @flags:
 * O_RDONLY or O_RDWR. Returns -1 with errno on failure (EPERM: another kind of file; ENOENT: the
 * file is gone, maybe since it was opened).
 */
int ky_user_dir_open_file(const struct ky_user_dir *dir, const char *name, int flags);

#endif
