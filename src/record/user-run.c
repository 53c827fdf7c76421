/* SPDX-License-Identifier: MIT */
/* The thread of a recording of user space: programs come and go, and their rings are read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/user-dump.h"
#include "record/user-internal.h"

/*
 * Rings are looked at in time for one that is written at this rate; looking at one in which
 * there is nothing new costs less than waking up.
 */
#define FAST_BYTES_PER_MS 240000
#define PERIOD_MIN_MS	  1
#define PERIOD_MAX_MS	  20

/* Whoever makes rubbish in masses has it named so often. */
#define REFUSALS_TOLD 50

/* ---- programs come -------------------------------------------------------------------- */

static struct ky_user_ring_file *find_file(struct ky_user *user, const struct ky_user_dir *dir,
					   const char *name)
{
	/* The newest first: those that end at once. */
	for (size_t i = user->rings.len; i-- > 0;) {
		struct ky_user_ring_file *file = user->rings.data[i];

		if (file->dir == dir && strcmp(file->name, name) == 0)
			return file;
	}
	return NULL;
}

int ky_user_open_file(const struct ky_user_dir *dir, const char *name, int flags)
{
	int fd = ky_file_open_regular(dir->fd, name, flags | O_NOFOLLOW);
	struct stat st;

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	if (fstat(fd, &st) < 0 || st.st_uid != dir->uid || st.st_nlink != 1) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

int ky_user_dump_ring(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct ky_blob *blob = ky_user_ring_blob(ring);
	uint64_t refusals = ky_file_refusals();
	int ret = KYMO_OK;

	if (user->dump_excluded == KY_USER_DUMP_ALL)
		return KYMO_OK;
	if (blob->pid && blob->pid <= INT32_MAX)
		ret = ky_user_dump(ring, (pid_t)blob->pid, &user->clock, err);
	/* It may be called otherwise in its PID namespace. */
	if (!ret && !ky_user_ring_is_left(ring))
		ret = ky_user_dump_elsewhere(ring, &user->clock, err);
	ring->dump_missing += ky_file_refusals() - refusals;
	return ret < 0 ? ret : KYMO_OK;
}

static int keep_file(struct ky_user *user, struct ky_user_dir *dir, const char *name,
		     struct ky_user_ring *ring, struct kymo_error *err)
{
	struct ky_user_ring_file *file = calloc(1, sizeof(*file));

	if (file)
		file->name = strdup(name);
	if (!file || !file->name || ky_vec_push(&user->rings, file) < 0) {
		if (file)
			free(file->name);
		free(file);
		ky_user_ring_free(ring);
		return ky_error_nomem(err);
	}
	file->dir = dir;
	file->ring = ring;
	dir->n_open++;
	return KYMO_OK;
}

static void refuse(struct ky_user *user, struct ky_user_dir *dir, const char *name,
		   const char *reason)
{
	if (user->stats.n_refused++ < REFUSALS_TOLD)
		ky_log_warning(user->options.log, "%s/%s is not read: %s", dir->path, name, reason);
	else if (user->stats.n_refused == REFUSALS_TOLD + 1)
		ky_log_warning(user->options.log, "further ring files are not read, either");
	(void)unlinkat(dir->fd, name, 0);
}

/* Files that a ring keeps open at most: itself, the trace's directories, two per stream. */
static uint64_t files_of_ring(const struct ky_user *user)
{
	if (user->options.overwrite)
		return 1;
	return 3 + 2 * ((uint64_t)sysconf(_SC_NPROCESSORS_CONF) + 2);
}

/* Ours for everything else. */
#define OTHER_FILES 64

/*
 * Whether one more can be read: what cannot be opened in the midst of it would end the recording of
 * all. Of several users one gets no more than half of what there is.
 */
static bool has_room(const struct ky_user *user, const struct ky_user_dir *dir)
{
	struct rlimit limit;
	uint64_t room, n = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < OTHER_FILES)
		return false;
	room = (limit.rlim_cur - OTHER_FILES) / files_of_ring(user);
	ky_vec_foreach(&user->dirs, it)
		n += (*it)->n_open;
	return n < room && (user->dirs.len == 1 || dir->n_open < room - room / 2);
}

static int add_ring(struct ky_user *user, struct ky_user_dir *dir, const char *name,
		    struct kymo_error *err)
{
	struct ky_user_ring_options options = {
		.output = user->options.output,
		.log = user->options.log,
		.subbuf_bytes = user->request.subbuf_bytes,
		.n_subbufs = user->request.n_subbufs,
		.session_uuid = user->request.uuid,
		.since_ns = user->since_ns,
		.comm = user->options.comm,
		.is_flight = user->options.overwrite,
		.dump_excluded = user->dump_excluded,
	};
	struct ky_user_ring *ring;
	int fd, ret;

	if (ky_user_take_note(user, dir, name) || !ky_user_is_ring_name(name) ||
	    find_file(user, dir, name))
		return KYMO_OK;
	while (!has_room(user, dir) && ky_user_flight_make_room(user))
		;
	if (!has_room(user, dir)) {
		refuse(user, dir, name,
		       "too many programs at a time for the limit of open files (ulimit -n)");
		return KYMO_OK;
	}
	fd = ky_user_open_file(dir, name, O_RDWR);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return ky_error_errno(err, errno, "too many programs at a time");
	if (fd < 0) {
		if (errno != ENOENT)
			refuse(user, dir, name, "it is not what programs create");
		return KYMO_OK;
	}
	ret = ky_user_ring_open(fd, name, &options, &ring, err);
	if (ret == KYMO_E_NOT_FOUND) {
		(void)unlinkat(dir->fd, name, 0);
		return KYMO_OK;
	}
	if (ret == KYMO_E_FORMAT || ret == KYMO_E_UNSUPPORTED || ret == KYMO_E_STATE) {
		refuse(user, dir, name, err->message);
		return KYMO_OK;
	}
	if (!ret)
		ret = keep_file(user, dir, name, ring, err);
	return ret ? ret : ky_user_dump_ring(user, ring, err);
}

int ky_user_find_rings(struct ky_user *user, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < user->dirs.len && !ret; i++) {
		struct ky_user_dir *dir = user->dirs.data[i];
		DIR *stream = ky_dir_open(dir->fd, ".");
		struct dirent *entry;

		while (!ret && stream && (entry = readdir(stream)))
			ret = add_ring(user, dir, entry->d_name, err);
		if (stream)
			closedir(stream);
	}
	return ret;
}

/* ---- programs go ---------------------------------------------------------------------- */

/* A filter on a field that no event has lets nothing pass: better said, as soon as a program has shown it. */
static void check_filter(struct ky_user *user, const struct ky_user_ring *ring)
{
	struct ky_user_blob blob = {ky_user_ring_blob(ring), ring->blob_bytes};
	struct ky_user_event event;
	int ret = KYMO_OK;

	if (!user->request.filter.names.len)
		return;
	for (size_t at = 0; !ret && ky_user_blob_next(&blob, &at, &event);) {
		if (event.record->kind != KY_EVENT_CONTEXT)
			ret = ky_user_names_add(&user->seen_names, &event);
	}
	ky_user_tell_filter(user);
}

void ky_user_tell_filter(struct ky_user *user)
{
	struct kymo_error err;

	if (user->is_filter_told ||
	    ky_user_names_check(&user->seen_names, &user->request.filter, &err) == KYMO_OK)
		return;
	user->is_filter_told = true;
	ky_log_warning(user->options.log, "%s:%u:%u: %s", err.path, err.line, err.column,
		       err.message);
}

static int finish_file(struct ky_user *user, struct ky_user_ring_file *file, struct kymo_error *err)
{
	int ret;

	if (file->ring->fd < 0)
		return KYMO_OK;
	file->dir->n_open--;
	ret = ky_user_ring_finish(file->ring, err);
	check_filter(user, file->ring);
	(void)unlinkat(file->dir->fd, file->name, 0);
	return ret;
}

void ky_user_forget_ring(struct ky_user *user, struct ky_user_ring_file *file)
{
	size_t i = 0;

	while (user->rings.data[i] != file)
		i++;
	user->rings.len--;
	memmove(&user->rings.data[i], &user->rings.data[i + 1],
		(user->rings.len - i) * sizeof(user->rings.data[0]));
	(void)unlinkat(file->dir->fd, file->name, 0);
	file->dir->n_open -= file->ring->fd >= 0;
	ky_user_ring_free(file->ring);
	free(file->name);
	free(file);
}

/* Nobody writes to the ring any more. */
static int end_file(struct ky_user *user, struct ky_user_ring_file *file, struct kymo_error *err)
{
	if (!user->options.overwrite)
		return finish_file(user, file, err);
	ky_user_flight_keep(user, file);
	return KYMO_OK;
}

int ky_user_finish_rings(struct ky_user *user, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < user->rings.len && !ret; i++) {
		struct ky_user_ring_file *file = user->rings.data[i];

		/* Libraries that were loaded meanwhile. */
		if (file->ring->fd >= 0 && !file->ended)
			ret = ky_user_dump_ring(user, file->ring, err);
		if (!ret)
			ret = finish_file(user, file, err);
	}
	return ret;
}

/* ---- the loop ------------------------------------------------------------------------- */

static struct ky_user_dir *dir_of_watch(struct ky_user *user, int watch)
{
	ky_vec_foreach(&user->dirs, dir) {
		if ((*dir)->watch == watch)
			return *dir;
	}
	return NULL;
}

static int take_event(struct ky_user *user, const struct inotify_event *event,
		      struct kymo_error *err)
{
	struct ky_user_dir *dir = dir_of_watch(user, event->wd);
	struct ky_user_ring_file *file;

	if (event->mask & IN_Q_OVERFLOW)
		return ky_user_find_rings(user, err);
	if (!dir || !event->len)
		return KYMO_OK;
	if (event->mask & IN_MOVED_TO)
		return add_ring(user, dir, event->name, err);
	if (ky_user_take_note(user, dir, event->name))
		return KYMO_OK;
	/* The last one who had it mapped is gone. */
	file = find_file(user, dir, event->name);
	if (file && file->ring->fd >= 0 && ky_user_ring_is_left(file->ring))
		return end_file(user, file, err);
	return KYMO_OK;
}

static int take_events(struct ky_user *user, struct kymo_error *err)
{
	_Alignas(struct inotify_event) char buffer[16384];
	ssize_t got = read(user->inotify_fd, buffer, sizeof(buffer));
	int ret = KYMO_OK;

	for (ssize_t at = 0; at < got && !ret;) {
		const struct inotify_event *event = (const void *)(buffer + at);

		ret = take_event(user, event, err);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return ret;
}

/* Returns whether there was anything, or negative. */
static int read_rings(struct ky_user *user, struct kymo_error *err)
{
	int ret, found = 0;

	ky_vec_foreach(&user->rings, file) {
		if ((*file)->ring->fd < 0)
			continue;
		ret = ky_user_ring_read((*file)->ring, false, err);
		if (ret < 0)
			return ret;
		found |= ret;
	}
	return found;
}

/* -1: until somebody tells. */
static int period_ms(const struct ky_user *user)
{
	uint64_t bytes = (uint64_t)user->request.subbuf_bytes * user->request.n_subbufs;
	uint64_t ms = bytes / 2 / FAST_BYTES_PER_MS;

	if (user->options.overwrite)
		return ky_user_follows_uids(user) ? KY_USER_UIDS_MS : -1;
	return ms < PERIOD_MIN_MS ? PERIOD_MIN_MS : ms > PERIOD_MAX_MS ? PERIOD_MAX_MS : (int)ms;
}

static int run(struct ky_user *user, struct kymo_error *err)
{
	struct pollfd fds[] = {{user->stop_fd, POLLIN, 0},
			       {user->inotify_fd, POLLIN, 0},
			       {user->order_fd, POLLIN, 0}};
	int period = period_ms(user), ret = KYMO_OK;
	bool is_busy = false;

	while (!ret) {
		int n = poll(fds, 3, is_busy && period > 1 ? period / 2 : period);

		if (n < 0 && errno != EINTR)
			return ky_error_errno(err, errno, "cannot wait for programs");
		if (n > 0 && fds[0].revents)
			break;
		/* The rings first: who ends is finished after that. */
		ret = read_rings(user, err);
		is_busy = ret > 0;
		ret = ret < 0 ? ret : KYMO_OK;
		if (!ret && n > 0 && fds[1].revents)
			ret = take_events(user, err);
		if (!ret && n > 0 && fds[2].revents)
			ky_user_flight_obey(user);
		if (!ret)
			ret = ky_user_look_for_uids(user, err);
	}
	return ret;
}

/*
 * On a busy machine a few milliseconds without a CPU are enough to lose events. Where we may, we
 * go before others: it is little that is done in a round, and between rounds we sleep, whatever
 * programs write.
 */
static void go_first(void)
{
	const struct sched_param param = {.sched_priority = 1};

	(void)pthread_setschedparam(pthread_self(), SCHED_RR, &param);
}

void *ky_user_run(void *data)
{
	struct ky_user *user = data;
	uint64_t one = 1;

	pthread_mutex_lock(&user->lock);
	user->tid = gettid();
	pthread_cond_broadcast(&user->answered);
	pthread_mutex_unlock(&user->lock);
	go_first();
	user->result = run(user, &user->err);
	pthread_mutex_lock(&user->lock);
	user->is_over = true;
	pthread_cond_broadcast(&user->answered);
	pthread_mutex_unlock(&user->lock);
	if (user->result < 0 && write(user->failed_fd, &one, sizeof(one)) < 0)
		return NULL;
	return NULL;
}
