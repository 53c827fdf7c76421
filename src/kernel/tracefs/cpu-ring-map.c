/* SPDX-License-Identifier: MIT */
#include "kernel/tracefs/cpu-ring-map.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* TRACE_MMAP_IOCTL_GET_READER of linux/trace_mmap.h */
#define GET_READER _IO('R', 0x20)

/* A sub-buffer with less room than this takes no more events. */
#define EVENT_MIN_BYTES 8

static int bad_meta(struct kymo_error *err, const char *what, uint64_t value)
{
	return ky_error_set(err, KYMO_E_FORMAT, "the mapped ring buffer has a %s of %llu", what,
			    (unsigned long long)value);
}

/* The part that changes. */
static int check_reader(uint32_t id, uint32_t read, uint32_t n_subbufs, uint32_t data_bytes,
			struct kymo_error *err)
{
	if (id >= n_subbufs)
		return bad_meta(err, "reader's number", id);
	if (read > data_bytes)
		return bad_meta(err, "reader's position", read);
	return KYMO_OK;
}

int ky_cpu_ring_meta_check(const struct ky_cpu_ring_meta *meta, uint32_t system_page_bytes,
			   uint32_t subbuf_bytes, const struct ky_page_layout *layout,
			   struct kymo_error *err)
{
	uint64_t total = (uint64_t)meta->subbuf_bytes * meta->n_subbufs;

	if (!meta->meta_page_bytes || meta->meta_page_bytes % system_page_bytes ||
	    (meta->meta_page_bytes > system_page_bytes && meta->meta_page_bytes > subbuf_bytes))
		return bad_meta(err, "meta page size", meta->meta_page_bytes);
	if (meta->meta_struct_bytes < offsetof(struct ky_cpu_ring_meta, flags) ||
	    meta->meta_struct_bytes > meta->meta_page_bytes)
		return bad_meta(err, "description size", meta->meta_struct_bytes);
	if (meta->subbuf_bytes != subbuf_bytes || subbuf_bytes % system_page_bytes ||
	    subbuf_bytes <= layout->data_offset)
		return bad_meta(err, "sub-buffer size", meta->subbuf_bytes);
	/* One for the reader, and at least one for the writer. */
	if (meta->n_subbufs < 2 || total > KY_CPU_RING_MAP_MAX_BYTES)
		return bad_meta(err, "sub-buffer count", meta->n_subbufs);
	return check_reader(meta->reader.id, meta->reader.read, meta->n_subbufs,
			    subbuf_bytes - layout->data_offset, err);
}

static int cpu_ring_map_refused(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "the kernel does not map its ring buffer: %s",
			    strerror(errno));
}

static int map_data(struct ky_cpu_ring_map *map, off_t data_offset, struct kymo_error *err)
{
	void *at = mmap(NULL, map->data_bytes, PROT_READ, MAP_SHARED, map->fd, data_offset);

	if (at == MAP_FAILED)
		return cpu_ring_map_refused(err);
	map->data = at;
	return KYMO_OK;
}

/* What the kernel calls the meta page is as large as a sub-buffer; what is in it is small. */
static int map_meta(struct ky_cpu_ring_map *map, size_t bytes, struct kymo_error *err)
{
	void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, map->fd, 0);

	if (at == MAP_FAILED)
		return cpu_ring_map_refused(err);
	map->meta = at;
	map->meta_bytes = bytes;
	return KYMO_OK;
}

/* The reader's page; another reader has its first `read` bytes. */
static int open_page(struct ky_cpu_ring_map *map, struct kymo_error *err)
{
	const uint8_t *data = map->data + (size_t)map->id * map->subbuf_bytes;

	return ky_page_open(&map->layout, data, map->subbuf_bytes, &map->page, err);
}

int ky_cpu_ring_map_open(struct ky_cpu_ring_map *map, int fd, uint32_t subbuf_bytes,
			 const struct ky_page_layout *layout, struct kymo_error *err)
{
	uint32_t system_page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	struct ky_cpu_ring_meta meta;
	int ret;

	memset(map, 0, sizeof(*map));
	map->fd = fd;
	map->layout = *layout;
	ret = map_meta(map, system_page_bytes, err);
	if (!ret) {
		meta = *map->meta;
		ret = ky_cpu_ring_meta_check(&meta, system_page_bytes, subbuf_bytes, layout, err);
	}
	if (!ret) {
		map->subbuf_bytes = subbuf_bytes;
		map->n_subbufs = meta.n_subbufs;
		map->data_bytes = (size_t)meta.n_subbufs * subbuf_bytes;
		map->id = meta.reader.id;
		map->read = meta.reader.read;
		ret = map_data(map, meta.meta_page_bytes, err);
	}
	if (!ret && map->read)
		ret = open_page(map, err);
	if (ret < 0)
		ky_cpu_ring_map_close(map);
	return ret;
}

void ky_cpu_ring_map_close(struct ky_cpu_ring_map *map)
{
	if (map->data)
		munmap((void *)map->data, map->data_bytes);
	if (map->meta)
		munmap((void *)map->meta, map->meta_bytes);
	map->data = NULL;
	map->meta = NULL;
}

static int advance(struct ky_cpu_ring_map *map, uint32_t *id, uint32_t *read,
		   struct kymo_error *err)
{
	const volatile struct ky_cpu_ring_meta *meta = map->meta;
	int ret;

	do {
		ret = ioctl(map->fd, GET_READER);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return ky_error_errno(err, errno, "cannot read the mapped ring buffer");
	*id = meta->reader.id;
	*read = meta->reader.read;
	/* Partner: the kernel's writer, which writes records before it counts them as committed. */
	atomic_thread_fence(memory_order_acquire);
	return check_reader(*id, *read, map->n_subbufs, map->subbuf_bytes - map->layout.data_offset,
			    err);
}

int ky_cpu_ring_map_next(struct ky_cpu_ring_map *map, struct ky_page *page, bool *partial,
			 struct kymo_error *err)
{
	uint32_t id = 0, read = 0, room, from = map->read;
	int ret = advance(map, &id, &read, err);

	*partial = false;
	if (ret < 0 || (id == map->id && read == map->read))
		return ret;
	/* Someone who clears the ring takes the reader back to the beginning. */
	if (id != map->id || read < from)
		from = 0;
	map->id = id;
	map->read = read;
	if (from == 0) {
		ret = open_page(map, err);
		if (ret < 0)
			return ret;
		/* Only pages that the writer has left have losses. */
		map->finished = map->page.missed;
	} else {
		map->page.missed = false;
		map->page.end = from;
		ky_page_skip(&map->page, from);
	}
	map->page.end = read;
	room = map->subbuf_bytes - map->layout.data_offset - read;
	*partial = !map->finished && room >= EVENT_MIN_BYTES;
	*page = map->page;
	return 1;
}
