/* SPDX-License-Identifier: MIT */
#include "net/viewer/viewer-trace-files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

/* The parts of the process's descriptors from which complete traces give theirs back, and no further ones are followed. */
#define MANY_SHARE 16
#define MOST_SHARE 8

static size_t n_open; /* of all traces */
/* Complete traces that were opened again, by their last use: the oldest ones give their descriptors back first. */
static struct ky_viewer_trace *newest, *oldest;

static size_t limit_of(unsigned int share)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (size_t)limit.rlim_cur / share : 0;
}

bool ky_viewer_traces_are_many(void)
{
	return n_open > limit_of(MANY_SHARE);
}

bool ky_viewer_traces_are_too_many(void)
{
	return n_open > limit_of(MOST_SHARE);
}

/* The number of a directory that is gone can be another one's: its birth is not. */
bool ky_viewer_trace_identify(int fd, struct ky_viewer_trace_id *id)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0)
		return false;
	*id = (struct ky_viewer_trace_id){.device_major = st.stx_dev_major,
					  .device_minor = st.stx_dev_minor,
					  .inode = st.stx_ino};
	if (st.stx_mask & STATX_BTIME) {
		id->born_s = st.stx_btime.tv_sec;
		id->born_ns = st.stx_btime.tv_nsec;
	}
	return true;
}

bool ky_viewer_trace_is(const struct ky_viewer_trace *trace, const struct ky_viewer_trace_id *id)
{
	return trace->id.inode == id->inode && trace->id.device_major == id->device_major &&
	       trace->id.device_minor == id->device_minor && trace->id.born_s == id->born_s &&
	       trace->id.born_ns == id->born_ns;
}

static void viewer_trace_files_unlist(struct ky_viewer_trace *trace)
{
	if (!trace->newer && !trace->older && newest != trace)
		return;
	*(trace->newer ? &trace->newer->older : &newest) = trace->older;
	*(trace->older ? &trace->older->newer : &oldest) = trace->newer;
	trace->newer = trace->older = NULL;
}

static void viewer_trace_files_list(struct ky_viewer_trace *trace)
{
	viewer_trace_files_unlist(trace);
	trace->older = newest;
	*(newest ? &newest->newer : &oldest) = trace;
	newest = trace;
}

bool ky_viewer_trace_open(struct ky_viewer_trace *trace, int dir_fd)
{
	trace->fd = trace->metadata_fd = -1;
	if (!ky_viewer_trace_identify(dir_fd, &trace->id))
		return false;
	trace->fd = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	n_open += trace->fd >= 0;
	return trace->fd >= 0;
}

/* Where its directory is now, as the last rotation has left it. */
static void viewer_trace_files_note_place(struct ky_viewer_trace *trace)
{
	char link[40], place[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", trace->fd);
	len = readlink(link, place, sizeof(place) - 1);
	free(trace->place);
	trace->place = len > 0 ? strndup(place, (size_t)len) : NULL;
}

static int viewer_trace_files_open_again(struct ky_viewer_trace *trace)
{
	struct ky_viewer_trace_id id;
	int fd;

	while (oldest && ky_viewer_traces_are_many())
		ky_viewer_trace_close(oldest);
	fd = ky_file_open(AT_FDCWD, trace->place, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd >= 0 && (!ky_viewer_trace_identify(fd, &id) || !ky_viewer_trace_is(trace, &id))) {
		close(fd);
		errno = ENOENT;
		return -1;
	}
	n_open += fd >= 0;
	return trace->fd = fd;
}

int ky_viewer_trace_fd(struct ky_viewer_trace *trace)
{
	if (!trace->place)
		return trace->fd;
	if (trace->fd < 0 && viewer_trace_files_open_again(trace) < 0)
		return -1;
	if (newest != trace)
		viewer_trace_files_list(trace);
	return trace->fd;
}

void ky_viewer_trace_keep_metadata(struct ky_viewer_trace *trace, int fd)
{
	n_open += trace->metadata_fd < 0;
	if (trace->metadata_fd >= 0)
		close(trace->metadata_fd);
	trace->metadata_fd = fd;
}

void ky_viewer_trace_close(struct ky_viewer_trace *trace)
{
	viewer_trace_files_unlist(trace);
	if (trace->fd >= 0)
		viewer_trace_files_note_place(trace);
	n_open -= (size_t)(trace->fd >= 0) + (size_t)(trace->metadata_fd >= 0);
	if (trace->fd >= 0)
		close(trace->fd);
	if (trace->metadata_fd >= 0)
		close(trace->metadata_fd);
	trace->fd = trace->metadata_fd = -1;
}
