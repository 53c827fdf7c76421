/* SPDX-License-Identifier: MIT */
/* What takes long of a ring file, as tasks of other threads (user-work.h): to open it, to describe events, to finish its trace. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/rings/user-ring-internal.h"
#include "record/user/user-files-internal.h"

struct ky_user_ring_file *ky_user_file_of(struct ky_user_task *task)
{
	return (struct ky_user_ring_file *)((char *)task -
					    offsetof(struct ky_user_ring_file, task));
}

/* Its error comes along, as far as there is memory for it. */
static void end_task(struct ky_user_ring_file *file, int ret, const struct kymo_error *err)
{
	file->ret = ret;
	free(file->err);
	file->err = ret < 0 ? malloc(sizeof(*err)) : NULL;
	if (file->err)
		*file->err = *err;
}

/* What there is room for of one user's descriptions, besides @bytes. 0: nothing. */
static uint64_t description_room(const struct ky_user_owner *owner)
{
	uint64_t bytes = __atomic_load_n(&owner->described, __ATOMIC_RELAXED);

	return bytes < KY_USER_DESCRIPTIONS_MAX ? KY_USER_DESCRIPTIONS_MAX - bytes : 0;
}

void ky_user_file_describe(struct ky_user_ring_file *file, uint64_t bytes)
{
	__atomic_add_fetch(&file->owner->described, bytes - file->described, __ATOMIC_RELAXED);
	file->described = bytes;
}

/* The ring of all programs of a user: it ends with the recording. */
bool ky_user_is_shared(const struct ky_user *user, const char *name)
{
	return user->options.shares_buffers && strcmp(name, KY_SHARED_RING) == 0;
}

static int user_file_tasks_open(struct ky_user_ring_file *file, struct kymo_error *err)
{
	struct ky_user *user = file->user;
	struct ky_user_ring_options options = {
		.store = user->options.store,
		.group = user->options.group,
		.is_late = user->options.is_late,
		.log = user->options.log,
		.subbuf_bytes = user->request.subbuf_bytes,
		.n_subbufs = user->request.n_subbufs,
		.session_uuid = user->request.uuid,
		.since_ns = user->since_ns,
		.is_shared = ky_user_is_shared(user, file->name),
		.uid = file->owner->dir.uid,
		.comm = user->options.comm,
		.is_flight = user->options.overwrite,
		.dump_excluded = user->dump_excluded,
		.description_max = description_room(file->owner),
		.clock = &file->clock,
		.counts = &user->counts,
	};
	int fd = ky_user_dir_open_file(&file->owner->dir, file->name, O_RDWR), ret;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		file->device = st.st_dev;
		file->inode = st.st_ino;
	}
	if (fd < 0 && errno == ENOENT)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "it is gone");
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return ky_error_set(err, KYMO_E_LIMIT, "too many files are open (ulimit -n)");
	if (fd < 0)
		return ky_error_set(err, KYMO_E_FORMAT, "it is not a file that programs create");
	if (!options.description_max) {
		close(fd);
		return ky_error_set(
			err, KYMO_E_LIMIT,
			"the programs of its user have too many descriptions of events");
	}
	ret = ky_user_ring_open(fd, file->name, &options, &file->ring, err);
	if (ret < 0)
		return ret;
	ky_user_file_describe(file, file->ring->blob_bytes);
	return ky_user_ring_excuse(file->ring, ky_user_dump_opened(user, file->ring, err), err);
}

void ky_user_file_run_open(struct ky_user_task *task)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);
	struct kymo_error err;

	end_task(file, user_file_tasks_open(file, &err), &err);
}

void ky_user_file_run_follow(struct ky_user_task *task)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);
	struct kymo_error err;
	int ret = ky_user_dump_noted(file->user, file->ring, &err);

	if (!ret)
		ret = ky_user_ring_follow(file->ring, &err);
	end_task(file, ky_user_ring_excuse(file->ring, ret, &err), &err);
	ky_user_file_describe(file, file->ring->blob_bytes);
	if (!description_room(file->owner))
		ky_user_ring_set_broken(file->ring,
					"the programs of its user have too many descriptions of "
					"events");
}

/* Names that the filter may have meant. */
static void keep_names(struct ky_user *user, const struct ky_user_ring *ring)
{
	struct ky_user_blob blob = {ky_user_ring_blob(ring), ring->blob_bytes};
	struct ky_user_event event;
	int ret = KYMO_OK;

	if (!user->request.filter.names.len)
		return;
	pthread_mutex_lock(&user->notes_lock);
	for (size_t at = 0; !ret && ky_user_blob_next(&blob, &at, &event);) {
		if (event.record->kind != KY_EVENT_CONTEXT)
			ret = ky_user_names_add(&user->seen_names, &event);
	}
	pthread_mutex_unlock(&user->notes_lock);
}

void ky_user_file_run_dump(struct ky_user_task *task)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);
	struct kymo_error err;
	int ret = file->ended ? ky_user_dump_noted(file->user, file->ring, &err)
			      : ky_user_dump_ring(file->user, file->ring, &err);

	end_task(file, ky_user_ring_excuse(file->ring, ret, &err), &err);
}

void ky_user_file_run_rotate(struct ky_user_task *task)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);
	struct kymo_error err;
	/* What programs have noted until now belongs to the trace that ends. */
	int ret = KYMO_OK;

	if (file->ring->reader && !file->ring->is_broken)
		ret = ky_user_dump_all_noted(file->user, file->ring, &err);
	ret = ky_user_ring_excuse(file->ring, ret < 0 ? ret : KYMO_OK, &err);
	if (!ret)
		ret = ky_user_ring_rotate(file->ring, file->job.archive, &file->job.ended,
					  &file->job.next, &err);
	if (!ret && file->ring->reader && !file->ring->is_broken)
		ret = ky_user_ring_excuse(file->ring,
					  ky_user_dump_ring(file->user, file->ring, &err), &err);
	end_task(file, ret, &err);
}

void ky_user_file_run_finish(struct ky_user_task *task)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);
	struct kymo_error err;
	int ret;

	/* Libraries that were loaded meanwhile. */
	ret = file->dumps ? ky_user_dump_ring(file->user, file->ring, &err)
			  : ky_user_dump_noted(file->user, file->ring, &err);
	ret = ky_user_ring_excuse(file->ring, ret, &err);
	if (!ret)
		ret = ky_user_ring_finish(file->ring, &err);
	if (!ret) {
		keep_names(file->user, file->ring);
		ky_user_ring_forget_events(file->ring);
		ky_user_file_describe(file, 0);
	}
	end_task(file, ret, &err);
}
