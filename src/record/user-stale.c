/* SPDX-License-Identifier: MIT */
/* Sessions' directories of recorders that were killed: finding them, and cleaning up. */
#include "record/user-runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <kymo/ring.h>

#include "os/file.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* A hidden directory of a recorder that is about to publish it is not older than this. */
#define MAKING_S 60

bool ky_user_is_ring_name(const char *name)
{
	size_t len = strlen(name), suffix = strlen(KY_RING_SUFFIX);

	return name[0] != '.' && len > suffix && strcmp(name + len - suffix, KY_RING_SUFFIX) == 0;
}

/* *cookie, if not NULL: from its session file. */
static enum ky_user_dir_state state_of(int fd, uint64_t *cookie)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int session = openat(fd, KY_SESSION_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct ky_session_file file;
	bool is_locked;

	if (session < 0)
		return KY_USER_DIR_NONE;
	is_locked = fcntl(session, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
	if (cookie && pread(session, &file, sizeof(file), 0) == sizeof(file) &&
	    file.magic == KY_SESSION_MAGIC)
		*cookie = file.cookie;
	close(session);
	return is_locked ? KY_USER_DIR_LIVE : KY_USER_DIR_DEAD;
}

enum ky_user_dir_state ky_user_dir_state(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum ky_user_dir_state state = KY_USER_DIR_NONE;

	if (fd >= 0) {
		state = state_of(fd, NULL);
		close(fd);
	}
	return state;
}

/* Whether its recorder is dead; also one that died before it had written the session's file. */
static bool is_stale(int fd, uint64_t *cookie)
{
	enum ky_user_dir_state state = state_of(fd, cookie);
	struct stat st;

	if (state != KY_USER_DIR_NONE)
		return state == KY_USER_DIR_DEAD;
	return fstat(fd, &st) == 0 && time(NULL) - st.st_mtime > MAKING_S;
}

static bool has_unread_events(int dir_fd, const char *name)
{
	struct kymo_ring_reader_options options = {.size_bytes = sizeof(options),
						   .flags = KYMO_RING_READ_ONLY};
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct kymo_ring_reader *reader;
	struct kymo_ring_stats stats = {0};
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    kymo_ring_reader_open(&reader, fd, &options, NULL) == 0) {
		kymo_ring_reader_stats(reader, KYMO_RING_ALL, &stats);
		kymo_ring_reader_close(reader);
	}
	close(fd);
	return stats.unread_records != 0;
}

/*
 * Remove what nobody needs; count the rest. @keep_rings: ring files are needed, whatever is in them.
 */
static unsigned int look_through(int dir_fd, bool clean, bool keep_rings)
{
	DIR *dir = ky_dir_open(dir_fd, ".");
	unsigned int n_rings = 0;
	struct dirent *entry;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (ky_user_is_ring_name(entry->d_name) &&
		    (keep_rings || has_unread_events(dir_fd, entry->d_name)))
			n_rings++;
		else if (clean && strcmp(entry->d_name, KY_SESSION_FILE) != 0)
			(void)unlinkat(dir_fd, entry->d_name, 0);
	}
	/* By it the directory is known as a dead recorder's; so it goes last. */
	if (clean && !n_rings)
		(void)unlinkat(dir_fd, KY_SESSION_FILE, 0);
	closedir(dir);
	return n_rings;
}

void ky_user_dir_clean(const char *path)
{
	int fd = open(path, DIR_FLAGS);

	if (fd < 0)
		return;
	if (state_of(fd, NULL) == KY_USER_DIR_DEAD && !look_through(fd, true, true))
		(void)rmdir(path);
	close(fd);
}

/* ---- looking for them ----------------------------------------------------------------- */

/* Who looks, and for what. */
struct search {
	uid_t uid;
	const char *place;
	bool clean;
	void (*found)(void *data, const struct ky_user_stale *stale);
	void *data;
};

static void look_at(const struct search *search, int base_fd, const char *base, const char *name)
{
	struct ky_user_stale stale = {0};
	int fd = openat(base_fd, name, DIR_FLAGS);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && (st.st_uid == search->uid || st.st_uid == 0) &&
	    is_stale(fd, &stale.cookie)) {
		snprintf(stale.path, sizeof(stale.path), "%.*s/%.*s", KY_USER_PLACE_MAX, base,
			 KY_SESSION_NAME_MAX, name);
		stale.n_rings = look_through(fd, search->clean, false);
		if (search->clean && !stale.n_rings)
			(void)unlinkat(base_fd, name, AT_REMOVEDIR);
		search->found(search->data, &stale);
	}
	close(fd);
}

/* The link @name of a recorder whose session's directory is elsewhere. */
static void look_behind(const struct search *search, int base_fd, const char *name)
{
	char target[KY_SESSION_PATH_MAX + 1], *slash;
	ssize_t len = readlinkat(base_fd, name, target, sizeof(target));
	int fd;

	if (len <= 0 || len == (ssize_t)sizeof(target) || target[0] != '/')
		return;
	target[len] = 0;
	slash = strrchr(target, '/');
	*slash = 0;
	/* In the place itself they are found anyway. */
	fd = search->place && strcmp(target, search->place) == 0
		     ? -1
		     : open(slash == target ? "/" : target, DIR_FLAGS);
	if (fd >= 0) {
		look_at(search, fd, target, slash + 1);
		close(fd);
	}
	*slash = '/';
	if (search->clean && access(target, F_OK) < 0 && errno == ENOENT)
		(void)unlinkat(base_fd, name, 0);
}

/* As recorders call them: "4711-0123456789abcdef". */
static bool is_session_name(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && name[digits] == '-' && strlen(name + digits + 1) == 16 &&
	       strspn(name + digits + 1, "0123456789abcdef") == 16;
}

static DIR *open_owned(const char *path, uid_t uid)
{
	DIR *dir = ky_dir_open(AT_FDCWD, path);
	struct stat st;

	if (dir && (fstat(dirfd(dir), &st) < 0 || (st.st_uid != uid && st.st_uid != 0))) {
		closedir(dir);
		return NULL;
	}
	return dir;
}

/* Others' files may be there: only what is called like one of ours, and has a session's file. */
static void look_in_place(const struct search *search)
{
	DIR *dir = open_owned(search->place, search->uid);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = is_session_name(entry->d_name)
				 ? openat(dirfd(dir), entry->d_name, DIR_FLAGS)
				 : -1;
		uint64_t cookie = 0;

		if (fd < 0)
			continue;
		if (state_of(fd, &cookie) == KY_USER_DIR_DEAD && cookie)
			look_at(search, dirfd(dir), search->place, entry->d_name);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

void ky_user_stale_scan(uid_t uid, const char *place, bool clean,
			void (*found)(void *data, const struct ky_user_stale *stale), void *data)
{
	static const char *const formats[] = {KY_RUNTIME_ROOT, KY_RUNTIME_USER, KY_RUNTIME_SHM};
	const struct search search = {uid, place, clean, found, data};
	char path[64];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct dirent *entry;
		DIR *dir;

		snprintf(path, sizeof(path), formats[i], uid);
		dir = open_owned(path, uid);
		while (dir && (entry = readdir(dir))) {
			if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
				continue;
			look_at(&search, dirfd(dir), path, entry->d_name);
			look_behind(&search, dirfd(dir), entry->d_name);
		}
		if (dir)
			closedir(dir);
	}
	if (place)
		look_in_place(&search);
}
