/* SPDX-License-Identifier: MIT */
#include "kernel/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* Of a new pipe, unless the user's limit is used up; it then takes fewer and splice() says so. */
#define PIPE_PAGES 16

int ky_ring_open(struct ky_ring *ring, const struct ky_instance *instance, uint32_t cpu,
		 uint32_t page_bytes, struct kymo_error *err)
{
	int code;

	memset(ring, 0, sizeof(*ring));
	ring->pipe[0] = ring->pipe[1] = -1;
	ring->cpu = cpu;
	ring->page_bytes = page_bytes;
	snprintf(ring->path, sizeof(ring->path), "%s/per_cpu/cpu%u/trace_pipe_raw", instance->path,
		 cpu);
	ring->fd = open(ring->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ring->page = malloc(page_bytes);
	if (ring->fd >= 0 && ring->page && pipe2(ring->pipe, O_CLOEXEC | O_NONBLOCK) == 0)
		return KYMO_OK;
	code = ky_error_errno(err, errno, "cannot read the ring buffer");
	ky_error_path(err, ring->path);
	ky_ring_close(ring);
	return code;
}

void ky_ring_close(struct ky_ring *ring)
{
	if (ring->fd >= 0)
		close(ring->fd);
	for (int i = 0; i < 2; i++)
		if (ring->pipe[i] >= 0)
			close(ring->pipe[i]);
	free(ring->page);
	ring->page = NULL;
	ring->fd = ring->pipe[0] = ring->pipe[1] = -1;
}

static int failed(const struct ky_ring *ring, struct kymo_error *err)
{
	int code = ky_error_errno(err, errno, "cannot read the ring buffer");

	ky_error_path(err, ring->path);
	return code;
}

/* Move full pages into the pipe. 0, or negative. */
static int fill_pipe(struct ky_ring *ring, struct kymo_error *err)
{
	ssize_t n;

	do {
		n = splice(ring->fd, NULL, ring->pipe[1], NULL,
			   (size_t)ring->page_bytes * PIPE_PAGES, SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		ring->pages_in_pipe = (uint32_t)((size_t)n / ring->page_bytes);
	else if (n < 0 && (errno == EINVAL || errno == ENOSYS))
		ring->no_splice = true;
	else if (n < 0 && errno != EAGAIN)
		return failed(ring, err);
	return KYMO_OK;
}

static int read_page(struct ky_ring *ring, int fd, struct kymo_error *err)
{
	ssize_t n;

	do {
		n = read(fd, ring->page, ring->page_bytes);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return failed(ring, err);
	return n < 0 ? 0 : (int)n;
}

int ky_ring_next(struct ky_ring *ring, bool partial, const uint8_t **page, struct kymo_error *err)
{
	int ret;

	*page = ring->page;
	ring->is_partial = false;
	if (!ring->pages_in_pipe && !ring->no_splice) {
		ret = fill_pipe(ring, err);
		if (ret < 0)
			return ret;
	}
	if (ring->pages_in_pipe) {
		ring->pages_in_pipe--;
		ret = read_page(ring, ring->pipe[0], err);
		/* The pipe holds whole pages, one buffer each: anything else is a bug somewhere. */
		if (ret >= 0 && (uint32_t)ret != ring->page_bytes)
			return ky_error_set(err, KYMO_E_IO, "a page of the ring came in pieces");
		return ret;
	}
	if (!partial && !ring->no_splice)
		return 0;
	ring->is_partial = !ring->no_splice;
	return read_page(ring, ring->fd, err);
}

static uint64_t stat_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int ky_ring_stats(const struct ky_instance *instance, uint32_t cpu, struct ky_ring_stats *stats,
		  struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *at;
	char name[48];
	int ret;

	memset(stats, 0, sizeof(*stats));
	snprintf(name, sizeof(name), "per_cpu/cpu%u/stats", cpu);
	ret = ky_tracefs_read(instance->fd, instance->path, name, &text, err);
	if (ret == 0) {
		at = ky_strbuf_text(&text);
		stats->entries = stat_value(at, "entries: ");
		/* The first "overrun: " is not the one in "commit overrun: ". */
		stats->overrun = stat_value(at, "\noverrun: ");
		stats->commit_overrun = stat_value(at, "commit overrun: ");
		stats->dropped = stat_value(at, "dropped events: ");
		stats->read = stat_value(at, "read events: ");
	}
	ky_strbuf_fini(&text);
	return ret;
}
