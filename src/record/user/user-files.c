/* SPDX-License-Identifier: MIT */
/*
 * Ring files of programs, from when they come to the end of their traces. What takes long is a task (user-work.h),
 * during which nobody reads the ring: what does not fit into it meanwhile its program loses, and counts.
 *
 * Whatever is wrong with a file, or with what its program says, costs that program; errors that are returned here are
 * those of the recording: no memory, a disk that is full.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/rings/user-ring-internal.h"
#include "record/rings/user-states.h"
#include "record/user/user-files-internal.h"

/* The maximum number of warnings about refused files. */
#define REFUSALS_TOLD	50
#define TASKS_AT_A_TIME 64
/* State notes that wait for a ring that is away. */
#define STATE_NOTES_MAX 16384
/* When a file was closed, it is looked at so often, with this time between, until nobody has it open. */
#define LOOKS	10
#define LOOK_NS 100000000

/* ---- files by their names ------------------------------------------------------------- */

/* Where it is in the owner's table, or would be. */
static uint64_t user_files_key_of(const struct ky_user_owner *owner, const char *name)
{
	uint64_t key = ky_hash_bytes(name, strlen(name));
	const struct ky_user_ring_file *file;

	while ((file = ky_map_get(&owner->files, key)) && strcmp(file->name, name) != 0)
		key++;
	return key;
}

static struct ky_user_ring_file *user_files_find_file(const struct ky_user_owner *owner,
						      const char *name)
{
	return ky_map_get(&owner->files, user_files_key_of(owner, name));
}

void ky_user_file_free(struct ky_user_ring_file *file)
{
	ky_user_ring_free(file->ring);
	free(file->err);
	free(file->job.archive);
	ky_vec_foreach(&file->notes, note)
		free(*note);
	ky_vec_fini(&file->notes);
	free(file->name);
	free(file);
}

/* Out of the list of those that are read. */
static void stop_reading(struct ky_user_ring_file *file)
{
	struct ky_user_owner *owner = file->owner;
	struct ky_user_ring_file *last;

	if (file->place == SIZE_MAX)
		return;
	last = owner->reading.data[--owner->reading.len];
	owner->reading.data[file->place] = last;
	last->place = file->place;
	file->place = SIZE_MAX;
}

/* A program that begins anew gives its next ring the name of the last one. */
static bool user_files_has_name(const struct ky_user_ring_file *file)
{
	struct stat st;

	return file->inode && ky_file_stat_here(file->owner->dir.fd, file->name, &st) == 0 &&
	       st.st_ino == file->inode && st.st_dev == file->device;
}

/* Another file may be known by its name from now on. */
static void give_name(struct ky_user_ring_file *file)
{
	if (user_files_find_file(file->owner, file->name) == file)
		(void)ky_map_del(&file->owner->files, user_files_key_of(file->owner, file->name));
}

/* It is finished, or was refused: what it has of the owner's is free again. */
static void forget_name(struct ky_user_ring_file *file)
{
	stop_reading(file);
	if (user_files_has_name(file))
		(void)unlinkat(file->owner->dir.fd, file->name, 0);
	give_name(file);
	file->owner->n_open -= file->is_counted;
	file->is_counted = false;
}

/* ---- tasks ---------------------------------------------------------------------------- */

/* Notes of its programs, for the next task; the file is not away. */
static void bring_notes(struct ky_user_ring_file *file)
{
	ky_vec_foreach(&file->notes, name)
		ky_user_states_add_note(file->ring, &file->owner->dir, *name);
	ky_vec_clear(&file->notes);
}

static void user_files_give(struct ky_user_ring_file *file, void (*run)(struct ky_user_task *task))
{
	stop_reading(file);
	if (file->ring)
		bring_notes(file);
	file->is_away = true;
	file->task.run = run;
	ky_user_work_add(&file->user->work, &file->owner->queue, &file->task);
}

void ky_user_file_dump(struct ky_user_ring_file *file)
{
	user_files_give(file, ky_user_file_run_dump);
}

/* ---- what has become of them ---------------------------------------------------------- */

static void end_file(struct ky_user_ring_file *file)
{
	/* No thread writes to the ring now. */
	if (file->user->options.overwrite) {
		ky_user_flight_keep(file->user, file);
		return;
	}
	file->dumps = false;
	user_files_give(file, ky_user_file_run_finish);
}

static int user_files_fail(const struct ky_user_ring_file *file, struct kymo_error *err)
{
	if (!file->err)
		return ky_error_nomem(err);
	if (err)
		*err = *file->err;
	return file->ret;
}

/* A flight recorder does not read its rings: a task takes the notes at once. */
static void user_files_follow_notes(struct ky_user_ring_file *file)
{
	if (file->is_away || !file->ring)
		return;
	bring_notes(file);
	if (file->user->options.overwrite && ky_user_states_are_behind(file->ring))
		user_files_give(file, ky_user_file_run_dump);
}

/* It is read from now on. */
static int read_on(struct ky_user_ring_file *file, struct kymo_error *err)
{
	struct ky_user_owner *owner = file->owner;
	char name[NAME_MAX + 1];

	/* A flight recorder may drop the file. */
	snprintf(name, sizeof(name), "%s", file->name);
	file->place = owner->reading.len;
	if (ky_vec_push(&owner->reading, file) < 0) {
		file->place = SIZE_MAX;
		return ky_error_nomem(err);
	}
	user_files_follow_notes(file);
	/* Notifications of this file were lost meanwhile. */
	return file->ended || file->is_away ? KYMO_OK
					    : ky_user_file_closed(file->user, owner, name, err);
}

static void tell_refused(struct ky_user *user, const struct ky_user_owner *owner, const char *name,
			 const char *reason)
{
	if (user->stats.n_refused++ < REFUSALS_TOLD)
		ky_log_warning(user->options.log, "%s/%s is not read: %s", owner->dir.path, name,
			       reason);
	else if (user->stats.n_refused == REFUSALS_TOLD + 1)
		ky_log_warning(user->options.log, "more ring files are not read");
}

/* The name is free. A restarted program may have used it for a new ring, whose notification was lost. */
static int user_files_look_again(struct ky_user *user, struct ky_user_owner *owner,
				 const char *name, struct kymo_error *err)
{
	struct stat st;

	if (ky_file_stat_here(owner->dir.fd, name, &st) < 0)
		return KYMO_OK;
	return ky_user_file_comes(user, owner, name, err);
}

/* There is no ring. */
static int take_refused(struct ky_user_ring_file *file, struct kymo_error *err)
{
	struct ky_user *user = file->user;
	bool is_gone = file->ret == KYMO_E_NOT_FOUND;
	int ret = KYMO_OK;

	if (!is_gone) {
		tell_refused(user, file->owner, file->name,
			     file->err ? file->err->message : "no memory");
		if (!file->inode)
			(void)unlinkat(file->owner->dir.fd, file->name, 0);
	}
	forget_name(file);
	/* What cannot be opened and cannot be removed, such as a directory, would come again and again. */
	if (is_gone || (file->inode && !user_files_has_name(file)))
		ret = user_files_look_again(user, file->owner, file->name, err);
	ky_user_file_free(file);
	return ret;
}

static int take_opened(struct ky_user_ring_file *file, struct kymo_error *err)
{
	struct ky_user *user = file->user;

	if (file->ring) {
		if (ky_vec_push(&user->rings, file) < 0)
			return ky_error_nomem(err);
		return file->ret < 0 ? user_files_fail(file, err) : read_on(file, err);
	}
	if (!ky_user_ring_is_own_error(file->ret) && file->ret != KYMO_E_NOT_FOUND)
		return user_files_fail(file, err);
	return take_refused(file, err);
}

static int take_rotated(struct ky_user *user, struct ky_user_ring_file *file,
			struct kymo_error *err)
{
	user->rotation.n_tasks--;
	file->rotation = file->job.number;
	free(file->job.archive);
	file->job.archive = NULL;
	if (file->ret < 0)
		return user_files_fail(file, err);
	if (file->ring->reader)
		return read_on(file, err);
	/* Its program has ended, and its trace is in the archive. */
	ky_user_count_archived(user, file->ring);
	ky_user_forget_ring(user, file);
	return KYMO_OK;
}

static int take_task(struct ky_user *user, struct ky_user_task *task, struct kymo_error *err)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);

	if (task == &user->newcomers.task) {
		ky_user_newcomers_done(user);
		return KYMO_OK;
	}
	file->is_away = false;
	if (task->run == ky_user_file_run_open) {
		user->n_opening--;
		user->rotation.n_opening -= file->rotation != user->rotation.number;
		return take_opened(file, err);
	}
	if (task->run == ky_user_file_run_rotate)
		return take_rotated(user, file, err);
	if (file->ret < 0)
		return user_files_fail(file, err);
	if (task->run == ky_user_file_run_follow || task->run == ky_user_file_run_dump)
		return read_on(file, err);
	forget_name(file);
	ky_user_tell_filter(user);
	return user_files_has_name(file)
		       ? KYMO_OK
		       : user_files_look_again(user, file->owner, file->name, err);
}

int ky_user_take_tasks(struct ky_user *user, struct kymo_error *err)
{
	struct ky_user_task *task;
	int ret = KYMO_OK;

	/* Not for ever: rings are to be read. For those that are left, the descriptor stays readable. */
	for (int n = 0; !ret && n < TASKS_AT_A_TIME; n++) {
		task = ky_user_work_take(&user->work);
		if (!task)
			break;
		ret = take_task(user, task, err);
	}
	return ret;
}

/* ---- they come and go ----------------------------------------------------------------- */

/* Known by its name from now on. */
static struct ky_user_ring_file *file_new(struct ky_user *user, struct ky_user_owner *owner,
					  const char *name)
{
	struct ky_user_ring_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->user = user;
	file->owner = owner;
	file->clock = user->clock_record;
	file->rotation = user->rotation.number;
	file->place = SIZE_MAX;
	file->name = strdup(name);
	if (!file->name || ky_map_set(&owner->files, user_files_key_of(owner, name), file) < 0) {
		ky_user_file_free(file);
		return NULL;
	}
	owner->n_open++;
	file->is_counted = true;
	return file;
}

/*
 * Whether a file of this name is one that is not known. Another one may have had the name before: it is finished
 * first, after which the name is looked at again; but a flight recorder keeps that one, and reads both.
 */
static bool user_files_is_new(const struct ky_user_owner *owner, const char *name)
{
	struct ky_user_ring_file *file = user_files_find_file(owner, name);

	if (!file || file->is_away || user_files_has_name(file))
		return !file;
	if (!file->ended && ky_user_ring_is_left(file->ring))
		end_file(file);
	/* It may be gone now. */
	file = user_files_find_file(owner, name);
	if (file && file->ended)
		give_name(file);
	return !file || file->ended;
}

/* What a program that shares its ring has loaded. */
static bool take_state_note(struct ky_user *user, struct ky_user_owner *owner, const char *name)
{
	struct ky_user_ring_file *file;
	char *copy;

	if (!ky_user_is_state_note(name))
		return false;
	file = user->options.shares_buffers && user->dump_excluded != KY_USER_DUMP_ALL
		       ? user_files_find_file(owner, KY_SHARED_RING)
		       : NULL;
	copy = file && file->notes.len < STATE_NOTES_MAX ? strdup(name) : NULL;
	if (copy && ky_vec_push(&file->notes, copy) == 0) {
		user_files_follow_notes(file);
		return true;
	}
	free(copy);
	(void)unlinkat(owner->dir.fd, name, 0);
	return true;
}

int ky_user_file_comes(struct ky_user *user, struct ky_user_owner *owner, const char *name,
		       struct kymo_error *err)
{
	struct ky_user_ring_file *file;

	if (take_state_note(user, owner, name) || ky_user_take_note(user, &owner->dir, name) ||
	    !ky_user_is_ring_name(name) || owner->is_given_up || !user_files_is_new(owner, name))
		return KYMO_OK;
	while (!ky_user_owner_has_room(user, owner) && ky_user_flight_make_room(user, owner))
		;
	if (!ky_user_owner_has_room(user, owner)) {
		tell_refused(user, owner, name,
			     "too many programs at a time for the limit of open files (ulimit -n)");
		(void)unlinkat(owner->dir.fd, name, 0);
		return KYMO_OK;
	}
	file = file_new(user, owner, name);
	if (!file)
		return ky_error_nomem(err);
	user->n_opening++;
	user_files_give(file, ky_user_file_run_open);
	return KYMO_OK;
}

/*
 * The kernel tells of a file that is closed a moment before nobody has it open. On a kernel that is preemptible, the reading
 * thread, which has the higher priority, can look within that moment: it looks again later.
 */
static int user_files_look_at_end(struct ky_user_ring_file *file, struct kymo_error *err)
{
	struct ky_user *user = file->user;
	struct ky_user_owner *owner = file->owner;
	char name[NAME_MAX + 1];

	file->n_looks--;
	if (!ky_user_ring_is_left(file->ring)) {
		if (file->n_looks && !user->has_closing)
			user->closing_ns = ky_os_now_ns();
		user->has_closing |= file->n_looks > 0;
		return KYMO_OK;
	}
	file->n_looks = 0;
	/* A flight recorder may drop the file. */
	snprintf(name, sizeof(name), "%s", file->name);
	end_file(file);
	/* One that is finished frees its name later. */
	return user->options.overwrite ? user_files_look_again(user, owner, name, err) : KYMO_OK;
}

int ky_user_file_closed(struct ky_user *user, struct ky_user_owner *owner, const char *name,
			struct kymo_error *err)
{
	struct ky_user_ring_file *file;

	if (ky_user_take_note(user, &owner->dir, name))
		return KYMO_OK;
	/* Of one that is away, this is looked at when it comes back. */
	file = user_files_find_file(owner, name);
	if (!file || file->is_away || file->ended ||
	    (ky_user_is_shared(user, name) && user_files_has_name(file)))
		return KYMO_OK;
	file->n_looks = LOOKS;
	return user_files_look_at_end(file, err);
}

int ky_user_look_at_closing(struct ky_user *user, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!user->has_closing || ky_os_now_ns() - user->closing_ns < LOOK_NS)
		return KYMO_OK;
	user->has_closing = false;
	for (size_t i = 0; i < user->owners.len; i++) {
		const struct ky_user_owner *owner = user->owners.data[i];

		/* A file that ends leaves the list to the last one, which was looked at. */
		for (size_t k = owner->reading.len; !ret && k-- > 0;) {
			struct ky_user_ring_file *file =
				k < owner->reading.len ? owner->reading.data[k] : NULL;

			if (file && file->n_looks && !file->ended)
				ret = user_files_look_at_end(file, err);
		}
	}
	return ret;
}

void ky_user_file_follow(struct ky_user_ring_file *file)
{
	user_files_give(file, ky_user_file_run_follow);
}

int ky_user_file_rotate(struct ky_user_ring_file *file, const struct ky_user_rotation *rotation,
			struct kymo_error *err)
{
	file->job = (struct ky_user_rotate_job){
		.archive = strdup(rotation->archive),
		.ended = rotation->ended,
		.next = rotation->next,
		.number = rotation->number,
	};
	if (!file->job.archive)
		return ky_error_nomem(err);
	user_files_give(file, ky_user_file_run_rotate);
	return KYMO_OK;
}

void ky_user_file_finish(struct ky_user_ring_file *file)
{
	file->dumps = !file->ended;
	user_files_give(file, ky_user_file_run_finish);
}

void ky_user_file_drop(struct ky_user_task *task)
{
	struct ky_user_ring_file *file = ky_user_file_of(task);

	file->is_away = false;
	if (file->ring) {
		ky_user_ring_abandon(file->ring);
		return;
	}
	(void)unlinkat(file->owner->dir.fd, file->name, 0);
	forget_name(file);
	ky_user_file_free(file);
}

void ky_user_forget_ring(struct ky_user *user, struct ky_user_ring_file *file)
{
	size_t i = 0;

	while (user->rings.data[i] != file)
		i++;
	user->rings.len--;
	memmove(&user->rings.data[i], &user->rings.data[i + 1],
		(user->rings.len - i) * sizeof(user->rings.data[0]));
	forget_name(file);
	ky_user_file_describe(file, 0);
	ky_user_file_free(file);
}
