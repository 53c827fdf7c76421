/* SPDX-License-Identifier: MIT */
#include "store/read/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "store/read/feed.h"
#include "store/read/stream.h"

/* Directories below a path. */
#define DEPTH_MAX 16
/* A recording's path, and how far above a trace it may lie: DIR/ust/pid/NAME, DIR/ust/uid/UID/64-bit. */
#define ANCESTORS 4

struct ky_follow {
	int fd;		   /* of inotify */
	bool changed;	   /* something new was seen */
	uint32_t delay_ms; /* that the reader wants */
	KY_VEC(struct ky_feed *) feeds;
	KY_VEC(int) locks; /* descriptors of directories whose writers are to know of this reader */
};

/* ---- what is watched ------------------------------------------------------------------ */

static int follow_error(int errnum, const char *path, struct kymo_error *err)
{
	int ret = ky_error_errno(err, errnum, "cannot watch the directory");

	ky_error_path(err, path);
	if (errnum == ENOENT)
		ky_error_hint(
			err,
			"no recording of this name is running, either; 'kymo sessions' shows the running recordings");
	if (errnum != ENOSPC)
		return ret;
	ky_error_hint(err, "this user watches too many directories: raise sysctl "
			   "fs.inotify.max_user_watches");
	if (err)
		err->code = KYMO_E_LIMIT;
	return KYMO_E_LIMIT;
}

static int watch_tree(struct ky_follow *follow, const char *path, int depth,
		      struct kymo_error *err);

static int watch_children(struct ky_follow *follow, const char *path, DIR *dir, int depth,
			  struct kymo_error *err)
{
	struct dirent *entry;
	int ret = KYMO_OK;

	while (!ret && (entry = readdir(dir))) {
		char *child;

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "index") == 0 ||
		    (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		if (asprintf(&child, "%s/%s", path, entry->d_name) < 0)
			return ky_error_nomem(err);
		ret = watch_tree(follow, child, depth + 1, err);
		free(child);
	}
	return ret;
}

/* The watch first, so that it reports files that appear during the listing. */
static int watch_tree(struct ky_follow *follow, const char *path, int depth, struct kymo_error *err)
{
	int watch = inotify_add_watch(follow->fd, path,
				      IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR);
	DIR *dir;
	int ret;

	/* A directory that has gone meanwhile. */
	if (watch < 0 && depth && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return KYMO_OK;
	if (watch < 0)
		return follow_error(errno, path, err);
	if (depth >= DEPTH_MAX)
		return KYMO_OK;
	dir = opendir(path);
	if (!dir)
		return depth ? KYMO_OK : follow_error(errno, path, err);
	ret = watch_children(follow, path, dir, depth, err);
	closedir(dir);
	return ret;
}

/* A directory that cannot be locked has no recorder that looks for readers. */
static int lock_directory(struct ky_follow *follow, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return KYMO_OK;
	ky_live_want(fd, follow->delay_ms);
	if (ky_vec_push(&follow->locks, fd) == 0)
		return KYMO_OK;
	close(fd);
	return KYMO_E_MEMORY;
}

/* The recording may be above the trace that the caller names. */
static int lock_path(struct ky_follow *follow, const char *path, struct kymo_error *err)
{
	char *real = realpath(path, NULL), *slash;
	int ret = KYMO_OK;

	if (!real)
		return follow_error(errno, path, err);
	for (int i = 0; i <= ANCESTORS && !ret && real[0] && real[1]; i++) {
		ret = lock_directory(follow, real);
		slash = strrchr(real, '/');
		*slash = '\0';
	}
	free(real);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

int ky_follow_open(const char *const *paths, size_t n_paths, uint32_t delay_ms,
		   struct ky_follow **out, struct kymo_error *err)
{
	struct ky_follow *follow = calloc(1, sizeof(*follow));
	int ret = KYMO_OK;

	*out = NULL;
	if (!follow)
		return ky_error_nomem(err);
	follow->delay_ms = delay_ms;
	follow->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (follow->fd < 0)
		ret = ky_error_errno(err, errno, "cannot watch directories");
	for (size_t i = 0; i < n_paths && !ret; i++) {
		ret = lock_path(follow, paths[i], err);
		if (!ret)
			ret = watch_tree(follow, paths[i], 0, err);
	}
	if (ret < 0) {
		ky_follow_close(follow);
		return ret;
	}
	*out = follow;
	return KYMO_OK;
}

int ky_follow_add_feed(struct ky_follow *follow, struct ky_feed *feed, struct kymo_error *err)
{
	/* The set that is opened now has all of it. */
	feed->has_news = false;
	return ky_vec_push(&follow->feeds, feed) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

void ky_follow_close(struct ky_follow *follow)
{
	if (!follow)
		return;
	ky_vec_foreach(&follow->locks, fd)
		close(*fd);
	ky_vec_fini(&follow->locks);
	ky_vec_fini(&follow->feeds);
	if (follow->fd >= 0)
		close(follow->fd);
	free(follow);
}

void ky_follow_wait(struct ky_follow *follow, int timeout_ms)
{
	struct pollfd fd = {follow->fd, POLLIN, 0};
	int left_ms = timeout_ms;

	ky_vec_foreach(&follow->feeds, feed) {
		if ((*feed)->has_ended)
			continue;
		ky_feed_wait(*feed, timeout_ms / (int)follow->feeds.len);
		left_ms = 0;
	}
	(void)poll(&fd, 1, left_ms);
}

/* Anything but a writer's temporary and hidden files is news; so is what was too much to tell. */
static void follow_take_events(struct ky_follow *follow)
{
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t got;

	while ((got = read(follow->fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			if ((event->mask & IN_Q_OVERFLOW) || (event->len && event->name[0] != '.'))
				follow->changed = true;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
}

bool ky_follow_is_claimed(const struct ky_follow *follow)
{
	ky_vec_foreach(&follow->locks, fd)
		if (ky_live_is_claimed(*fd))
			return true;
	return false;
}

/* ---- traces --------------------------------------------------------------------------- */

static const struct ky_clock_class *follow_clock_of(const struct ky_trace *trace)
{
	ky_vec_foreach(&trace->cls->streams, stream)
		if ((*stream)->clock)
			return (*stream)->clock;
	return NULL;
}

/* After this time without news, a writer no longer holds up the events of other writers. */
#define LATE_NS 2000000000u

int64_t ky_follow_told_ns(const struct ky_trace *trace)
{
	const struct ky_clock_class *clock = follow_clock_of(trace);

	return trace->live.state.is_told && clock
		       ? ky_clock_to_ns(clock, trace->live.state.until_cycles)
		       : INT64_MIN;
}

/* @before_ns: the bound until now. */
static void set_bound(struct ky_trace *trace, int64_t before_ns)
{
	struct ky_trace_live *live = &trace->live;
	uint64_t now = ky_os_now_ns();

	live->until_ns = ky_follow_told_ns(trace);
	if (live->until_ns != before_ns || !live->moved_ns) {
		live->moved_ns = now;
		live->is_late = false;
		return;
	}
	/* A relay says when a stream is idle, as often as its own timer wants. */
	if (!trace->feed && !live->is_late && live->is_written && now - live->moved_ns > LATE_NS) {
		live->is_late = true;
		ky_log_warning(trace->log,
			       "%s: its recorder has sent no news for %u s; its events may be late",
			       trace->path, (unsigned int)(LATE_NS / 1000000000));
	}
}

int ky_follow_begin(struct ky_trace *trace, struct kymo_error *err)
{
	if (trace->feed) {
		trace->live.is_written = trace->feed->is_written;
		if (!trace->live.moved_ns)
			trace->live.until_ns = INT64_MIN;
		return ky_feed_state(trace->feed, &trace->live.state) < 0 ? ky_error_nomem(err)
									  : KYMO_OK;
	}
	/* The lock first: a file that is read after that is of a trace that was being written. */
	trace->live.is_written = ky_live_is_written(trace->path);
	if (!trace->live.moved_ns)
		trace->live.until_ns = INT64_MIN;
	return trace->live.is_written ? ky_live_read(trace->path, &trace->live.state, err)
				      : KYMO_OK;
}

/* Streams that the set knows get longer; *changed: there is one that it does not know. */
static int grow_streams(struct ky_trace *trace, bool *changed, struct kymo_error *err)
{
	const struct ky_live_state *state = &trace->live.state;
	size_t known = 0;
	int ret = KYMO_OK;

	ky_vec_foreach(&trace->streams, it) {
		struct ky_stream *stream = *it;
		uint64_t size =
			trace->live.is_written ? ky_live_size(state, stream->name) : UINT64_MAX;

		/* One that was empty is opened again: its first packet says what it is. */
		if (!stream->file.data)
			*changed |= size > 0;
		else
			ret = ky_stream_grow(stream, size, err);
		if (ret < 0)
			return ret;
	}
	ky_vec_foreach(&trace->streams, it)
		known += trace->live.is_written && ky_live_size(state, (*it)->name) > 0;
	ky_vec_foreach(&state->streams, stream)
		known -= trace->live.is_written && stream->size_bytes > 0 &&
			 !(trace->leaves_out_late && ky_live_is_late(stream->name));
	*changed |= known != 0;
	return KYMO_OK;
}

static int update_trace(struct ky_trace *trace, bool *changed, struct kymo_error *err)
{
	struct ky_live_state before = trace->live.state;
	int64_t before_ns = trace->live.until_ns;
	int ret;

	trace->live.state = (struct ky_live_state){0};
	ret = ky_follow_begin(trace, err);
	/* It has ended meanwhile, or is about to. */
	if (!ret && trace->live.is_written && !trace->live.state.is_told) {
		ky_live_state_fini(&trace->live.state);
		trace->live.state = before;
	} else {
		ky_live_state_fini(&before);
	}
	if (!ret)
		ret = grow_streams(trace, changed, err);
	set_bound(trace, before_ns);
	return ret;
}

static void follow_drop_old_of(int64_t until_ns, struct ky_trace *trace)
{
	const struct ky_clock_class *clock = trace->feed ? follow_clock_of(trace) : NULL;

	if (clock)
		ky_feed_drop(trace->feed, ky_clock_from_ns(clock, until_ns));
}

/* The readers have no event in hand that is earlier than all traces' bounds until now. */
static void drop_old(const struct ky_trace_set *set)
{
	int64_t until_ns = INT64_MAX;

	ky_vec_foreach(&set->traces, trace)
		if ((*trace)->live.is_written && ky_trace_live_until(*trace) < until_ns)
			until_ns = ky_trace_live_until(*trace);
	if (until_ns == INT64_MAX || until_ns == INT64_MIN)
		return;
	ky_vec_foreach(&set->traces, it)
		follow_drop_old_of(until_ns, *it);
}

static bool feeds_have_news(const struct ky_follow *follow)
{
	ky_vec_foreach(&follow->feeds, feed)
		if ((*feed)->has_news)
			return true;
	return false;
}

int ky_follow_update(struct ky_follow *follow, struct ky_trace_set *set, bool *changed,
		     struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (follow->feeds.len)
		drop_old(set);

	/* Traces first: whatever comes after that is later than their bounds. */
	*changed = false;
	for (size_t i = 0; i < set->traces.len && !ret; i++) {
		if (set->traces.data[i]->live.is_written)
			ret = update_trace(set->traces.data[i], changed, err);
	}
	follow_take_events(follow);
	*changed |= follow->changed || feeds_have_news(follow);
	return ret;
}

bool ky_follow_has_news(struct ky_follow *follow)
{
	bool has_news;

	follow_take_events(follow);
	has_news = follow->changed;
	follow->changed = false;
	return has_news;
}

bool ky_follow_is_live(const struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace)
		if ((*trace)->live.is_written)
			return true;
	return false;
}
