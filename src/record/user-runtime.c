/* SPDX-License-Identifier: MIT */
#include "record/user-runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <kymo/ring.h>

#include "base/error.h"
#include "os/file.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* A hidden directory of a recorder that is about to publish it is not older than this. */
#define MAKING_S 60

static const char *const formats[] = {KY_RUNTIME_ROOT, KY_RUNTIME_USER, KY_RUNTIME_SHM};
#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

static int path_error(struct kymo_error *err, int code, const char *path)
{
	ky_error_path(err, path);
	return code;
}

/* ---- the runtime directory ------------------------------------------------------------ */

static bool is_tmpfs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* Memory, and a place that exists on this machine; which one depends on who we are. */
static const char *choose_format(uid_t uid)
{
	char parent[64];
	struct stat st;

	if (geteuid() == 0)
		return is_tmpfs("/run") ? KY_RUNTIME_ROOT : KY_RUNTIME_SHM;
	snprintf(parent, sizeof(parent), "/run/user/%u", uid);
	return stat(parent, &st) == 0 && st.st_uid == uid && is_tmpfs(parent) ? KY_RUNTIME_USER
									      : KY_RUNTIME_SHM;
}

int ky_user_runtime_path(uid_t uid, char path[KY_SESSION_PATH_MAX + 1], struct kymo_error *err)
{
	struct stat st;
	int ret;

	snprintf(path, KY_SESSION_PATH_MAX + 1, choose_format(uid), uid);
	if (lstat(path, &st) < 0)
		return KYMO_OK;
	if (S_ISDIR(st.st_mode) && (st.st_uid == uid || st.st_uid == 0) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return KYMO_OK;
	ret = ky_error_set(err, KYMO_E_PERMISSION,
			   "this does not belong to user %u, or others may write there", uid);
	ky_error_hint(err, "remove it, as root");
	return path_error(err, ret, path);
}

/* Make @path, one level, with @uid as its owner, if it is not there. */
static int make_level(const char *path, uid_t uid, mode_t mode, struct kymo_error *err)
{
	int fd, ret = KYMO_OK;
	struct stat st;

	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? KYMO_OK
				       : path_error(err,
						    ky_error_errno(err, errno,
								   "cannot create the directory "
								   "for sessions"),
						    path);
	fd = open(path, DIR_FLAGS);
	/* What we made is ours until it is given away; anything else has been put there since. */
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    (uid != geteuid() && fchown(fd, uid, (gid_t)-1) < 0) || fchmod(fd, mode) < 0)
		ret = path_error(err, ky_error_set(err, KYMO_E_IO, "cannot set the owner"), path);
	if (fd >= 0)
		close(fd);
	return ret;
}

int ky_user_recordings_path(bool make, char path[KY_SESSION_PATH_MAX + 1], struct kymo_error *err)
{
	uid_t uid = geteuid();
	const char *format = choose_format(uid);
	struct stat st;
	int ret = KYMO_OK;

	if (format == formats[0])
		snprintf(path, KY_SESSION_PATH_MAX + 1, "/run/kymo/recordings");
	else if (format == formats[1])
		snprintf(path, KY_SESSION_PATH_MAX + 1, "/run/user/%u/kymo-recordings", uid);
	else
		snprintf(path, KY_SESSION_PATH_MAX + 1, "/dev/shm/kymo-recordings-%u", uid);
	if (make && format == formats[0])
		ret = make_level("/run/kymo", 0, 0755, err);
	if (make && !ret)
		ret = make_level(path, uid, 0700, err);
	if (ret < 0)
		return ret;
	if (lstat(path, &st) < 0)
		return path_error(err, ky_error_set(err, KYMO_E_NOT_FOUND, "it is not there"),
				  path);
	if (S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077))
		return KYMO_OK;
	ret = ky_error_set(err, KYMO_E_PERMISSION,
			   "this does not belong to user %u, or others may get in", uid);
	ky_error_hint(err, "remove it, as root");
	return path_error(err, ret, path);
}

static int open_base(uid_t uid, struct ky_user_dir *dir, struct kymo_error *err)
{
	const char *format = choose_format(uid);
	int ret = ky_user_runtime_path(uid, dir->path, err);

	if (!ret && format == formats[0])
		ret = make_level("/run/kymo", 0, 0755, err);
	/* Below /run/kymo, root's; elsewhere the user's, who can record there too. */
	if (!ret)
		ret = make_level(dir->path, format == formats[0] ? 0 : uid,
				 format == formats[0] ? 0755 : 0700, err);
	if (ret < 0)
		return ret;
	dir->base_fd = open(dir->path, DIR_FLAGS);
	if (dir->base_fd < 0)
		return path_error(err, ky_error_errno(err, errno, "cannot open it"), dir->path);
	return ky_user_runtime_path(uid, dir->path, err);
}

/* ---- a session's directory ------------------------------------------------------------ */

/* Below this name nobody looks. */
static void hidden_name(const struct ky_user_dir *dir, char name[KY_SESSION_NAME_MAX + 2])
{
	snprintf(name, KY_SESSION_NAME_MAX + 2, ".%s", dir->name);
}

static int lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &lock);
}

static int write_session(struct ky_user_dir *dir, const void *session, size_t bytes,
			 struct kymo_error *err)
{
	static const char name[] = "." KY_SESSION_FILE;
	int ret;

	(void)unlinkat(dir->fd, name, 0);
	/* Programs of the directory's user read it; nobody else comes that far. */
	dir->session_fd =
		openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (dir->session_fd < 0)
		return ky_error_errno(err, errno, "cannot create the session's file");
	(void)fchmod(dir->session_fd, 0644);
	ret = ky_write_all(dir->session_fd, session, bytes);
	if (ret < 0)
		return ky_error_errno(err, -ret, "cannot write the session's file");
	if (lock(dir->session_fd) < 0 || renameat(dir->fd, name, dir->fd, KY_SESSION_FILE) < 0)
		return ky_error_errno(err, errno, "cannot lock the session's file");
	return KYMO_OK;
}

int ky_user_dir_change(struct ky_user_dir *dir, const void *session, size_t bytes,
		       struct kymo_error *err)
{
	int old = dir->session_fd, ret;

	dir->session_fd = -1;
	ret = write_session(dir, session, bytes, err);
	if (ret < 0) {
		if (dir->session_fd >= 0)
			close(dir->session_fd);
		dir->session_fd = old;
		return path_error(err, ret, dir->path);
	}
	if (old >= 0)
		close(old);
	return KYMO_OK;
}

static int make_directory(struct ky_user_dir *dir, struct kymo_error *err)
{
	char hidden[KY_SESSION_NAME_MAX + 2];
	struct stat st;
	uint64_t word;

	if (getrandom(&word, sizeof(word), 0) != sizeof(word))
		return ky_error_errno(err, errno, "no random numbers");
	snprintf(dir->name, sizeof(dir->name), "%d-%016llx", (int)getpid(),
		 (unsigned long long)word);
	hidden_name(dir, hidden);
	if (mkdirat(dir->base_fd, hidden, 0700) < 0)
		return ky_error_errno(err, errno, "cannot create the session's directory");
	dir->fd = openat(dir->base_fd, hidden, DIR_FLAGS);
	if (dir->fd < 0 || fstat(dir->fd, &st) < 0 || st.st_uid != geteuid())
		return ky_error_set(err, KYMO_E_IO, "the session's directory was taken away");
	if (dir->uid != geteuid() && fchown(dir->fd, dir->uid, (gid_t)-1) < 0)
		return ky_error_errno(err, errno, "cannot give the session's directory to user %u",
				      dir->uid);
	return KYMO_OK;
}

/* Another recorder may remove the runtime directory, empty as it is, as soon as it was made. */
#define MAKE_TRIES 8

int ky_user_dir_make(uid_t uid, const void *session, size_t bytes, struct ky_user_dir *dir,
		     struct kymo_error *err)
{
	int ret = KYMO_E_NOT_FOUND;
	size_t len;

	for (int i = 0; i < MAKE_TRIES && ret == KYMO_E_NOT_FOUND; i++) {
		*dir = (struct ky_user_dir){
			.uid = uid, .base_fd = -1, .fd = -1, .session_fd = -1, .watch = -1};
		ret = open_base(uid, dir, err);
		if (!ret)
			ret = make_directory(dir, err);
		if (ret < 0)
			ky_user_dir_remove(dir);
	}
	if (!ret)
		ret = write_session(dir, session, bytes, err);
	if (ret < 0) {
		path_error(err, ret, dir->path);
		ky_user_dir_remove(dir);
		return ret;
	}
	len = strlen(dir->path);
	snprintf(dir->path + len, sizeof(dir->path) - len, "/%s", dir->name);
	return KYMO_OK;
}

int ky_user_dir_publish(struct ky_user_dir *dir, struct kymo_error *err)
{
	char hidden[KY_SESSION_NAME_MAX + 2];

	hidden_name(dir, hidden);
	if (renameat(dir->base_fd, hidden, dir->base_fd, dir->name) < 0)
		return path_error(err, ky_error_errno(err, errno, "cannot publish the session"),
				  dir->path);
	dir->is_published = true;
	return KYMO_OK;
}

void ky_user_dir_unpublish(struct ky_user_dir *dir)
{
	char hidden[KY_SESSION_NAME_MAX + 2];

	if (!dir->is_published)
		return;
	(void)unlinkat(dir->fd, KY_SESSION_FILE, 0);
	hidden_name(dir, hidden);
	(void)renameat(dir->base_fd, dir->name, dir->base_fd, hidden);
	dir->is_published = false;
}

/* All files of a directory; directories that somebody made there stay. */
static void remove_files(int dir_fd)
{
	int fd = openat(dir_fd, ".", DIR_FLAGS);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		(void)unlinkat(dir_fd, entry->d_name, 0);
	closedir(dir);
}

/* When nobody has a session there. */
static void remove_base(uid_t uid)
{
	char path[64];

	snprintf(path, sizeof(path), choose_format(uid), uid);
	(void)rmdir(path);
}

void ky_user_dir_remove(struct ky_user_dir *dir)
{
	char hidden[KY_SESSION_NAME_MAX + 2];

	ky_user_dir_unpublish(dir);
	hidden_name(dir, hidden);
	if (dir->fd >= 0) {
		remove_files(dir->fd);
		close(dir->fd);
	}
	if (dir->session_fd >= 0)
		close(dir->session_fd);
	if (dir->base_fd >= 0) {
		if (dir->name[0])
			(void)unlinkat(dir->base_fd, hidden, AT_REMOVEDIR);
		close(dir->base_fd);
		remove_base(dir->uid);
	}
	dir->fd = dir->session_fd = dir->base_fd = -1;
}

/* ---- what dead recorders left --------------------------------------------------------- */

bool ky_user_is_ring_name(const char *name)
{
	size_t len = strlen(name), suffix = strlen(KY_RING_SUFFIX);

	return name[0] != '.' && len > suffix && strcmp(name + len - suffix, KY_RING_SUFFIX) == 0;
}

/* Whether its recorder is dead; *cookie from its session file. */
static bool is_stale(int fd, uint64_t *cookie)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int session = openat(fd, KY_SESSION_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct ky_session_file file;
	struct stat st;
	bool is_locked;

	*cookie = 0;
	if (session < 0)
		return fstat(fd, &st) == 0 && time(NULL) - st.st_mtime > MAKING_S;
	is_locked = fcntl(session, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
	if (pread(session, &file, sizeof(file), 0) == sizeof(file) &&
	    file.magic == KY_SESSION_MAGIC)
		*cookie = file.cookie;
	close(session);
	return !is_locked;
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

/* Remove what nobody needs; count the rest. */
static unsigned int look_through(int dir_fd, bool clean)
{
	int fd = openat(dir_fd, ".", DIR_FLAGS);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	unsigned int n_rings = 0;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((entry = readdir(dir))) {
		if (ky_user_is_ring_name(entry->d_name) && has_unread_events(fd, entry->d_name))
			n_rings++;
		else if (clean && strcmp(entry->d_name, KY_SESSION_FILE) != 0)
			(void)unlinkat(fd, entry->d_name, 0);
	}
	/* By it the directory is known as a dead recorder's; so it goes last. */
	if (clean && !n_rings)
		(void)unlinkat(fd, KY_SESSION_FILE, 0);
	closedir(dir);
	return n_rings;
}

static void look_at(int base_fd, const char *base, const char *name, uid_t uid, bool clean,
		    void (*found)(void *data, const struct ky_user_stale *stale), void *data)
{
	struct ky_user_stale stale = {0};
	int fd = openat(base_fd, name, DIR_FLAGS);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && (st.st_uid == uid || st.st_uid == 0) &&
	    is_stale(fd, &stale.cookie)) {
		snprintf(stale.path, sizeof(stale.path), "%.127s/%.*s", base,
			 KY_SESSION_NAME_MAX + 1, name);
		stale.n_rings = look_through(fd, clean);
		if (clean && !stale.n_rings)
			(void)unlinkat(base_fd, name, AT_REMOVEDIR);
		found(data, &stale);
	}
	close(fd);
}

void ky_user_stale_scan(uid_t uid, bool clean,
			void (*found)(void *data, const struct ky_user_stale *stale), void *data)
{
	char path[64];

	for (size_t i = 0; i < N_FORMATS; i++) {
		struct dirent *entry;
		struct stat st;
		DIR *dir;
		int fd;

		snprintf(path, sizeof(path), formats[i], uid);
		fd = open(path, DIR_FLAGS);
		if (fd < 0)
			continue;
		dir = fstat(fd, &st) == 0 && (st.st_uid == uid || st.st_uid == 0) ? fdopendir(fd)
										  : NULL;
		if (!dir) {
			close(fd);
			continue;
		}
		while ((entry = readdir(dir))) {
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				look_at(fd, path, entry->d_name, uid, clean, found, data);
		}
		closedir(dir);
	}
}
