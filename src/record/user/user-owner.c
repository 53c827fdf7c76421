/* SPDX-License-Identifier: MIT */
/* Whose programs are recorded: a directory for the ring files of each user. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-internal.h"

struct ky_user_owner *ky_user_owner_of(const struct ky_user *user, uid_t uid)
{
	for (size_t i = 0; i < user->owners.len; i++) {
		if (user->owners.data[i]->dir.uid == uid)
			return user->owners.data[i];
	}
	return NULL;
}

int ky_user_owner_new(struct ky_user *user, uid_t uid, struct ky_user_owner **out,
		      struct kymo_error *err)
{
	const struct ky_strbuf *file = ky_user_request_file(&user->request, uid);
	struct ky_user_owner *owner = calloc(1, sizeof(*owner));
	int ret;

	*out = NULL;
	if (!owner)
		return ky_error_nomem(err);
	ret = ky_user_dir_make(uid, user->place[0] ? user->place : NULL, file->data, file->len,
			       &owner->dir, err);
	if (ret < 0) {
		free(owner);
		return ret;
	}
	owner->cookie = user->request.cookie;
	ky_map_init(&owner->files);
	*out = owner;
	return KYMO_OK;
}

int ky_user_owner_update(struct ky_user *user, struct ky_user_owner *owner, struct kymo_error *err)
{
	const struct ky_strbuf *file = ky_user_request_file(&user->request, owner->dir.uid);
	int ret;

	if (owner->cookie == user->request.cookie)
		return KYMO_OK;
	pthread_mutex_lock(&user->beat.lock);
	ret = ky_user_dir_change(&owner->dir, file->data, file->len, err);
	pthread_mutex_unlock(&user->beat.lock);
	if (!ret)
		owner->cookie = user->request.cookie;
	return ret;
}

void ky_user_owner_free(struct ky_user_owner *owner)
{
	size_t pos = 0;
	void *value;

	if (!owner)
		return;
	/* Those that were opened are the recording's. */
	while (ky_map_next(&owner->files, &pos, NULL, &value)) {
		struct ky_user_ring_file *file = value;

		if (!file->ring)
			ky_user_file_free(file);
	}
	ky_map_fini(&owner->files);
	ky_vec_fini(&owner->reading);
	ky_user_dir_remove(&owner->dir);
	free(owner);
}

static int user_owner_watch(struct ky_user *user, struct ky_user_dir *dir, struct kymo_error *err)
{
	char path[40];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir->fd);
	dir->watch = inotify_add_watch(user->inotify_fd, path, IN_MOVED_TO | IN_CLOSE_WRITE);
	if (dir->watch >= 0)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot watch the session's directory");
	ky_error_path(err, dir->path);
	return ret;
}

int ky_user_owner_add(struct ky_user *user, struct ky_user_owner *owner, struct kymo_error *err)
{
	int ret = user_owner_watch(user, &owner->dir, err);

	pthread_mutex_lock(&user->beat.lock);
	if (!ret && ky_vec_push(&user->owners, owner) < 0)
		ret = ky_error_nomem(err);
	pthread_mutex_unlock(&user->beat.lock);
	if (ret < 0)
		ky_user_owner_free(owner);
	return ret;
}

/* ---- descriptors ---------------------------------------------------------------------- */

/* Files that a ring keeps open at most: itself, the trace's directories, two per stream. */
static uint64_t files_of_ring(const struct ky_user *user)
{
	if (user->options.overwrite)
		return 1;
	return 3 + 2 * ((uint64_t)sysconf(_SC_NPROCESSORS_CONF) + 2);
}

/* Ours for everything else; and for each user's directory. */
#define OTHER_FILES 64
#define OWNER_FILES 4

bool ky_user_owner_has_room(const struct ky_user *user, const struct ky_user_owner *owner)
{
	uint64_t room, others = 0, used = OTHER_FILES + OWNER_FILES * user->owners.len;
	struct rlimit limit;

	/* Partner: ky_user_scan(). */
	used += __atomic_load_n(&user->n_control_files, __ATOMIC_RELAXED);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < used)
		return false;
	room = (limit.rlim_cur - used) / files_of_ring(user);
	room /= user->options.n_sharing ? user->options.n_sharing : 1;
	for (size_t i = 0; i < user->owners.len; i++)
		others += user->owners.data[i] != owner ? user->owners.data[i]->n_open : 0;
	room = room > others ? room - others : 0;
	return owner->n_open < (user->owners.len == 1 ? room : room / 2 + (room & 1));
}
