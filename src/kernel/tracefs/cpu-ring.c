/* SPDX-License-Identifier: MIT */
#include "kernel/tracefs/cpu-ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

static int cpu_ring_failed(const struct ky_cpu_ring *ring, struct kymo_error *err)
{
	int code = ky_error_errno(err, errno, "cannot read the ring buffer");

	ky_error_path(err, ring->path);
	return code;
}

/* A CPU that was never online since the instance was made has no ring yet: ENODEV. */
bool ky_cpu_ring_is_empty(int error)
{
	return error == EAGAIN || error == ENODEV;
}

/*
 * splice() moves no more than the pipe has slots for, counting each as a page of memory, however large a
 * sub-buffer is.
 */
static int open_pipe(struct ky_cpu_ring *ring)
{
	if (pipe2(ring->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	ring->splice_bytes = ring->page_bytes > KY_CPU_RING_SPLICE_BYTES ? ring->page_bytes
									 : KY_CPU_RING_SPLICE_BYTES;
	(void)fcntl(ring->pipe[1], F_SETPIPE_SZ, (int)ring->splice_bytes);
	return 0;
}

static void cpu_ring_init(struct ky_cpu_ring *ring, uint32_t cpu, uint32_t page_bytes,
			  const struct ky_page_layout *layout)
{
	memset(ring, 0, sizeof(*ring));
	ring->pipe[0] = ring->pipe[1] = -1;
	ring->cpu = cpu;
	ring->page_bytes = page_bytes;
	ring->layout = *layout;
}

int ky_cpu_ring_open(struct ky_cpu_ring *ring, const struct ky_instance *instance, uint32_t cpu,
		     uint32_t page_bytes, const struct ky_page_layout *layout,
		     enum ky_cpu_ring_way way, struct kymo_error *err)
{
	int ret = KYMO_OK;

	cpu_ring_init(ring, cpu, page_bytes, layout);
	ring->asked = way;
	ring->way = way == KY_CPU_RING_READ ? KY_CPU_RING_READ : KY_CPU_RING_SPLICE;
	snprintf(ring->path, sizeof(ring->path), "%s/per_cpu/cpu%u/trace_pipe_raw", instance->path,
		 cpu);
	ring->fd = open(ring->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ring->page = malloc(page_bytes);
	if (ring->fd < 0 || !ring->page || open_pipe(ring) < 0)
		ret = cpu_ring_failed(ring, err);
	else if (way == KY_CPU_RING_MMAP)
		ret = ky_cpu_ring_switch(ring, KY_CPU_RING_MMAP, err);
	if (ret < 0)
		ky_cpu_ring_close(ring);
	return ret;
}

int ky_cpu_ring_open_file(struct ky_cpu_ring *ring, const char *path, uint32_t cpu,
			  uint32_t page_bytes, const struct ky_page_layout *layout,
			  struct kymo_error *err)
{
	cpu_ring_init(ring, cpu, page_bytes, layout);
	ring->asked = ring->way = KY_CPU_RING_READ;
	ring->is_file = true;
	snprintf(ring->path, sizeof(ring->path), "%s", path);
	ring->fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY);
	if (ring->fd == -ENOENT)
		ring->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else if (ring->fd < 0)
		errno = -ring->fd;
	ring->page = malloc(page_bytes);
	if (ring->fd >= 0 && ring->page)
		return KYMO_OK;
	cpu_ring_failed(ring, err);
	ky_cpu_ring_close(ring);
	return KYMO_E_IO;
}

void ky_cpu_ring_close(struct ky_cpu_ring *ring)
{
	ky_cpu_ring_map_close(&ring->map);
	if (ring->fd >= 0)
		close(ring->fd);
	for (int i = 0; i < 2; i++)
		if (ring->pipe[i] >= 0)
			close(ring->pipe[i]);
	free(ring->page);
	ring->page = NULL;
	ring->fd = ring->pipe[0] = ring->pipe[1] = -1;
}

int ky_cpu_ring_switch(struct ky_cpu_ring *ring, enum ky_cpu_ring_way way, struct kymo_error *err)
{
	int ret;

	if (way == ring->way)
		return KYMO_OK;
	if (way == KY_CPU_RING_MMAP) {
		ret = ky_cpu_ring_map_open(&ring->map, ring->fd, ring->page_bytes, &ring->layout,
					   err);
		if (ret < 0) {
			ky_error_path(err, ring->path);
			ky_error_hint(err, "kymo doctor has the reason; try the reader 'auto'");
			return ret;
		}
	} else {
		ky_cpu_ring_map_close(&ring->map);
	}
	ring->way = way;
	ring->whole_pages = ring->light_rounds = 0;
	return KYMO_OK;
}

/* See the measurements in ring.h. */
static int choose_way(struct ky_cpu_ring *ring, struct kymo_error *err)
{
	if (ring->way == KY_CPU_RING_MMAP && ring->whole_pages >= KY_CPU_RING_HEAVY_PAGES)
		return ky_cpu_ring_switch(ring, KY_CPU_RING_SPLICE, err);
	if (ring->way == KY_CPU_RING_SPLICE && ring->light_rounds >= KY_CPU_RING_LIGHT_ROUNDS &&
	    !ring->no_map)
		ring->no_map = ky_cpu_ring_switch(ring, KY_CPU_RING_MMAP, NULL) < 0;
	return KYMO_OK;
}

static void count_page(struct ky_cpu_ring *ring)
{
	if (!ring->is_partial) {
		ring->whole_pages++;
		return;
	}
	ring->light_rounds = ring->whole_pages ? 0 : ring->light_rounds + 1;
	ring->whole_pages = 0;
}

/* This kernel has no splice() for its rings. */
static int without_splice(struct ky_cpu_ring *ring, struct kymo_error *err)
{
	int code;

	if (ring->asked == KY_CPU_RING_AUTO)
		return ky_cpu_ring_switch(ring, KY_CPU_RING_READ, err);
	code = ky_error_set(err, KYMO_E_UNSUPPORTED, "the ring buffer cannot be read by splice");
	ky_error_path(err, ring->path);
	ky_error_hint(err, "the reader 'auto' does without");
	return code;
}

/* Move full pages into @pipe_fd. How many; or negative. */
static int move_pages(struct ky_cpu_ring *ring, int pipe_fd, size_t len_bytes,
		      struct kymo_error *err)
{
	ssize_t n;

	do {
		n = splice(ring->fd, NULL, pipe_fd, NULL, len_bytes, SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return (int)((size_t)n / ring->page_bytes);
	if (n < 0 && (errno == EINVAL || errno == ENOSYS))
		return without_splice(ring, err);
	if (n < 0 && !ky_cpu_ring_is_empty(errno))
		return cpu_ring_failed(ring, err);
	return 0;
}

/* 0, or negative. */
static int fill_pipe(struct ky_cpu_ring *ring, struct kymo_error *err)
{
	int ret = move_pages(ring, ring->pipe[1], ring->splice_bytes, err);

	if (ret > 0)
		ring->pages_in_pipe = (uint32_t)ret;
	return ret < 0 ? ret : KYMO_OK;
}

/* 1: a page was copied to @to; 0: none exists. */
static int cpu_ring_copy_bytes(struct ky_cpu_ring *ring, int fd, uint8_t *to,
			       struct kymo_error *err)
{
	ssize_t n;

	do {
		n = read(fd, to, ring->page_bytes);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && !ky_cpu_ring_is_empty(errno))
		return cpu_ring_failed(ring, err);
	if (n <= 0 || (ring->is_file && (size_t)n != ring->page_bytes))
		return 0;
	/* The pipe holds whole pages, one buffer each: anything else is a bug somewhere. */
	if ((size_t)n != ring->page_bytes)
		return ky_error_set(err, KYMO_E_IO, "a page of the ring came in pieces");
	return 1;
}

static int copy_page(struct ky_cpu_ring *ring, int fd, struct ky_page *page, struct kymo_error *err)
{
	int ret;

	for (;;) {
		ret = cpu_ring_copy_bytes(ring, fd, ring->page, err);
		if (ret <= 0)
			return ret;
		ret = ky_page_open(&ring->layout, ring->page, ring->page_bytes, page, err);
		if (ret != KYMO_E_FORMAT || !ring->is_file)
			return ret < 0 ? ret : 1;
		ring->bad_pages++;
	}
}

static int cpu_ring_next_page(struct ky_cpu_ring *ring, bool partial, struct ky_page *page,
			      struct kymo_error *err)
{
	int ret;

	if (!ring->pages_in_pipe && ring->way == KY_CPU_RING_SPLICE) {
		ret = fill_pipe(ring, err);
		if (ret < 0)
			return ret;
	}
	/* What is in the pipe is older than what is in the ring, however that is read. */
	if (ring->pages_in_pipe) {
		ring->pages_in_pipe--;
		return copy_page(ring, ring->pipe[0], page, err);
	}
	if (ring->way == KY_CPU_RING_MMAP)
		return ky_cpu_ring_map_next(&ring->map, page, &ring->is_partial, err);
	if (ring->way == KY_CPU_RING_READ)
		return copy_page(ring, ring->fd, page, err);
	ring->is_partial = partial;
	return partial ? copy_page(ring, ring->fd, page, err) : 0;
}

int ky_cpu_ring_next(struct ky_cpu_ring *ring, bool partial, struct ky_page *page,
		     struct kymo_error *err)
{
	int ret = ring->asked == KY_CPU_RING_AUTO ? choose_way(ring, err) : KYMO_OK;

	ring->is_partial = false;
	if (!ret)
		ret = cpu_ring_next_page(ring, partial, page, err);
	if (ret > 0)
		count_page(ring);
	else if (ret == 0)
		ring->whole_pages = 0;
	else
		ky_error_path(err, ring->path);
	return ret;
}

int ky_cpu_ring_copy(struct ky_cpu_ring *ring, bool partial, uint8_t *to, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!ring->pages_in_pipe && ring->way != KY_CPU_RING_READ)
		ret = fill_pipe(ring, err);
	if (ret < 0)
		;
	else if (ring->pages_in_pipe)
		ret = cpu_ring_copy_bytes(ring, ring->pipe[0], to, err);
	else if (partial || ring->way == KY_CPU_RING_READ)
		ret = cpu_ring_copy_bytes(ring, ring->fd, to, err);
	if (ring->pages_in_pipe)
		ring->pages_in_pipe--;
	if (ret < 0)
		ky_error_path(err, ring->path);
	return ret;
}

int ky_cpu_ring_move(struct ky_cpu_ring *ring, int pipe_fd, struct kymo_error *err)
{
	int ret = 0;

	if (!ring->pages_in_pipe && ring->way == KY_CPU_RING_SPLICE)
		ret = move_pages(ring, pipe_fd, ring->page_bytes, err);
	/* What is in its own pipe comes first. */
	if (ret == 0 && (ring->pages_in_pipe || ring->way != KY_CPU_RING_SPLICE))
		ret = ky_error_set(err, KYMO_E_UNSUPPORTED, "pages cannot be moved");
	if (ret < 0)
		ky_error_path(err, ring->path);
	return ret;
}

static uint64_t stat_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int ky_cpu_ring_stats(const struct ky_instance *instance, uint32_t cpu,
		      struct ky_cpu_ring_stats *stats, struct kymo_error *err)
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
		stats->bytes = stat_value(at, "\nbytes: ");
	}
	ky_strbuf_fini(&text);
	return ret;
}
