/* SPDX-License-Identifier: MIT */
/* Sessions' directories of recorders that were killed: finding them, and cleaning up. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <kymo/ring.h>

#include "os/file.h"
#include "record/runtime/user-runtime-internal.h"

/* A hidden directory of a recorder that is about to publish it is not older than this. */
#define MAKING_S 60
/* A user's directory may be full of anything. */
#define ENTRIES_MAX 4096

bool ky_user_is_ring_name(const char *name)
{
	size_t len = strlen(name), suffix = strlen(KY_RING_SUFFIX);

	return name[0] != '.' && len > suffix && strcmp(name + len - suffix, KY_RING_SUFFIX) == 0;
}

/* *cookie, if not NULL: from its session file. */
static enum ky_user_dir_state user_leftovers_state_of(int fd, uint64_t *cookie)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int session = ky_file_open_regular(fd, KY_SESSION_FILE, O_RDONLY | O_NOFOLLOW);
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

enum ky_user_dir_state ky_user_dir_state(int fd)
{
	return user_leftovers_state_of(fd, NULL);
}

/* Whether its recorder is dead; also one that died before it had written the session's file. */
static bool user_leftovers_is_stale(int fd, uint64_t *cookie)
{
	enum ky_user_dir_state state = user_leftovers_state_of(fd, cookie);
	struct stat st;

	if (state != KY_USER_DIR_NONE)
		return state == KY_USER_DIR_DEAD;
	return fstat(fd, &st) == 0 && time(NULL) - st.st_mtime > MAKING_S;
}

static bool has_unread_events(int dir_fd, const char *name)
{
	struct kymo_ring_reader_options options = {.size_bytes = sizeof(options),
						   .flags = KYMO_RING_READ_ONLY};
	int fd = ky_file_open_regular(dir_fd, name, O_RDONLY | O_NOFOLLOW);
	struct kymo_ring_reader *reader;
	struct kymo_ring_stats stats = {0};

	if (fd < 0)
		return false;
	if (kymo_ring_reader_open(&reader, fd, &options, NULL) == 0) {
		kymo_ring_reader_stats(reader, KYMO_RING_ALL, &stats);
		kymo_ring_reader_close(reader);
	}
	close(fd);
	return stats.unread_records != 0;
}

/* What is taken up on the disk, or in memory. */
static uint64_t user_leftovers_bytes_of(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_blocks * 512
								    : 0;
}

/*
 * Remove files that are no longer needed; count the rest. @keep_rings: ring files stay, with any content. The
 * search ends after ENTRIES_MAX files, so that a user cannot keep the recorder busy with masses of files.
 */
static void look_through(int dir_fd, bool clean, bool keep_rings, struct ky_user_stale *stale)
{
	DIR *dir = ky_dir_open(dir_fd, ".");
	struct dirent *entry = NULL;

	for (int n = 0; dir && n < ENTRIES_MAX && (entry = readdir(dir)); n++) {
		if (ky_user_is_ring_name(entry->d_name) &&
		    (keep_rings || has_unread_events(dir_fd, entry->d_name))) {
			stale->n_rings++;
			stale->bytes += user_leftovers_bytes_of(dir_fd, entry->d_name);
		} else if (clean && strcmp(entry->d_name, KY_SESSION_FILE) != 0) {
			(void)unlinkat(dir_fd, entry->d_name, 0);
		}
	}
	/* By it the directory is known as a dead recorder's; so it goes last. */
	if (clean && !stale->n_rings && !entry)
		(void)unlinkat(dir_fd, KY_SESSION_FILE, 0);
	if (dir)
		closedir(dir);
}

/* Whether @name in @parent_fd is still the directory @fd. */
static bool user_leftovers_is_same(int parent_fd, const char *name, int fd)
{
	struct stat named, opened;

	return fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
	       named.st_ino == opened.st_ino;
}

void ky_user_dir_clean(int parent_fd, const char *name, int fd)
{
	struct ky_user_stale stale = {0};

	if (user_leftovers_state_of(fd, NULL) != KY_USER_DIR_DEAD)
		return;
	look_through(fd, true, true, &stale);
	if (!stale.n_rings && user_leftovers_is_same(parent_fd, name, fd))
		(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

/* ---- looking for them ----------------------------------------------------------------- */

/* Who looks, and for what. */
struct search {
	uid_t uid; /* whose directories these are, besides root's */
	const char *place;
	bool clean;
	void (*found)(void *data, const struct ky_user_stale *stale);
	void *data;
};

/* As recorders call them: "4711-0123456789abcdef"; one that is not published has a dot in front. */
static bool is_session_name(const char *name)
{
	size_t digits;

	name += *name == '.';
	digits = strspn(name, "0123456789");
	return digits && name[digits] == '-' && strlen(name + digits + 1) == 16 &&
	       strspn(name + digits + 1, "0123456789abcdef") == 16;
}

static bool is_roots(int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) == 0 && st.st_uid == 0;
}

/* The session's directory @name in @base_fd. @must_have: a directory without a session file does not count. */
static void user_leftovers_look_at(const struct search *search, int base_fd, const char *base,
				   const char *name, bool must_have)
{
	struct ky_user_stale stale = {.uid = search->uid, .parent_fd = base_fd, .name = name};
	struct stat st;

	if (!is_session_name(name))
		return;
	stale.fd = openat(base_fd, name, DIR_FLAGS);
	if (stale.fd < 0)
		return;
	/* The owner of the parent directory may have moved another directory of root there. */
	if (fstat(stale.fd, &st) == 0 &&
	    (st.st_uid == search->uid || (st.st_uid == 0 && is_roots(base_fd))) &&
	    user_leftovers_is_stale(stale.fd, &stale.cookie) && (stale.cookie || !must_have)) {
		snprintf(stale.path, sizeof(stale.path), "%.*s/%.*s", KY_USER_PLACE_MAX, base,
			 KY_SESSION_NAME_MAX, name);
		look_through(stale.fd, search->clean, false, &stale);
		if (search->clean && !stale.n_rings)
			(void)unlinkat(base_fd, name, AT_REMOVEDIR);
		search->found(search->data, &stale);
	}
	close(stale.fd);
}

/*
 * Others' links may lead anywhere, to where opening alone takes for ever. Those of root's recorders lead to directories
 * of the user whose programs they record.
 */
static bool is_our_link(int base_fd, const char *name)
{
	struct stat st;

	return fstatat(base_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == 0);
}

/* The link @name of a recorder whose session's directory is elsewhere. */
static void look_behind(const struct search *search, int base_fd, const char *name)
{
	char target[KY_SESSION_PATH_MAX + 1], *slash;
	ssize_t len =
		is_our_link(base_fd, name) ? readlinkat(base_fd, name, target, sizeof(target)) : -1;
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
		user_leftovers_look_at(search, fd, target, slash + 1, true);
		close(fd);
	}
	*slash = '/';
	if (search->clean && access(target, F_OK) < 0 && errno == ENOENT)
		(void)unlinkat(base_fd, name, 0);
}

static DIR *open_owned(int dir_fd, const char *path, uid_t uid)
{
	DIR *dir = ky_dir_open(dir_fd, path);
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
	DIR *dir = open_owned(AT_FDCWD, search->place, search->uid);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		user_leftovers_look_at(search, dirfd(dir), search->place, entry->d_name, true);
	if (dir)
		closedir(dir);
}

/* A runtime directory: @name in @parent_fd, whose path is @path. */
static void look_in(const struct search *search, int parent_fd, const char *name, const char *path)
{
	DIR *dir = open_owned(parent_fd, name, search->uid);
	struct dirent *entry;

	for (int n = 0; dir && n < ENTRIES_MAX && (entry = readdir(dir)); n++) {
		user_leftovers_look_at(search, dirfd(dir), path, entry->d_name, false);
		look_behind(search, dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* KY_RUNTIME_*, in parts. */
static const struct {
	const char *parent, *prefix, *suffix;
} runtimes[] = {{"/run/kymo", "u", ""}, {"/run/user", "", "/kymo"}, {"/dev/shm", "kymo-", ""}};

/* The user whose runtime directory would be @name, as it stands there. */
static bool parse_uid(const char *name, const char *prefix, uid_t *uid)
{
	size_t skip = strlen(prefix);
	unsigned long number;
	char again[16];

	if (strncmp(name, prefix, skip) != 0)
		return false;
	number = strtoul(name + skip, NULL, 10);
	snprintf(again, sizeof(again), "%lu", number & UINT32_MAX);
	*uid = (uid_t)number;
	return strcmp(again, name + skip) == 0;
}

static void look_in_runtime(struct search *search, size_t kind, DIR *parent, struct dirent *entry)
{
	char name[NAME_MAX + 8], path[NAME_MAX + 64];

	if (!parse_uid(entry->d_name, runtimes[kind].prefix, &search->uid))
		return;
	snprintf(name, sizeof(name), "%s%s", entry->d_name, runtimes[kind].suffix);
	snprintf(path, sizeof(path), "%s/%s", runtimes[kind].parent, name);
	look_in(search, dirfd(parent), name, path);
}

/* All users' directories of one kind. */
static void look_in_all(struct search *search, size_t kind)
{
	DIR *parent = ky_dir_open(AT_FDCWD, runtimes[kind].parent);
	struct dirent *entry;

	while (parent && (entry = readdir(parent)))
		look_in_runtime(search, kind, parent, entry);
	if (parent)
		closedir(parent);
}

void ky_user_stale_scan(const char *place, bool clean,
			void (*found)(void *data, const struct ky_user_stale *stale), void *data)
{
	struct search search = {geteuid(), place, clean, found, data};
	char path[64];

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		if (geteuid() == 0) {
			look_in_all(&search, i);
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s%u%s", runtimes[i].parent, runtimes[i].prefix,
			 geteuid(), runtimes[i].suffix);
		look_in(&search, AT_FDCWD, path, path);
	}
	search.uid = geteuid();
	if (place)
		look_in_place(&search);
}
