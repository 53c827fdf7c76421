/* SPDX-License-Identifier: MIT */
#include "net/sender/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

/* Space goes back to the file system in pieces of at least this size. */
#define PUNCH_BYTES (4u << 20)

/* In front of each record. Only this process reads it. */
struct sizes {
	uint32_t head_bytes, bytes;
};

static uint64_t record_bytes(uint32_t head_bytes, uint32_t bytes)
{
	return sizeof(struct sizes) + head_bytes + (uint64_t)bytes;
}

int ky_spill_open(struct ky_spill *spill, const char *dir, uint64_t limit_bytes,
		  struct kymo_error *err)
{
	const char *const choices[] = {dir, getenv("TMPDIR"), "/var/tmp", "/tmp"};
	int ret = -ENOENT;

	*spill = (struct ky_spill){.fd = -1, .limit_bytes = limit_bytes};
	for (size_t i = 0; i < (dir ? 1 : sizeof(choices) / sizeof(choices[0])); i++) {
		if (!choices[i] || !*choices[i])
			continue;
		ret = ky_file_open_unnamed(choices[i]);
		if (ret >= 0)
			break;
	}
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot make the spill file");
		ky_error_path(err, dir ? dir : "/var/tmp");
		return ret;
	}
	spill->fd = ret;
	return KYMO_OK;
}

void ky_spill_close(struct ky_spill *spill)
{
	if (spill->fd >= 0)
		close(spill->fd);
	*spill = (struct ky_spill){.fd = -1};
}

bool ky_spill_has_room(const struct ky_spill *spill, uint64_t bytes)
{
	return spill->fd >= 0 && !spill->is_broken &&
	       spill->end - spill->punched + bytes <= spill->limit_bytes;
}

static bool spill_write_at(int fd, struct iovec *parts, int n, uint64_t at)
{
	while (n) {
		ssize_t done = pwritev(fd, parts, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += (uint64_t)done;
		while (n && (size_t)done >= parts->iov_len) {
			done -= (ssize_t)parts->iov_len;
			parts++;
			n--;
		}
		if (n) {
			parts->iov_base = (char *)parts->iov_base + done;
			parts->iov_len -= (size_t)done;
		}
	}
	return true;
}

bool ky_spill_put(struct ky_spill *spill, const void *head, uint32_t head_bytes, const void *data,
		  uint32_t bytes)
{
	struct sizes sizes = {head_bytes, bytes};
	struct iovec parts[] = {
		{&sizes, sizeof(sizes)}, {(void *)head, head_bytes}, {(void *)data, bytes}};
	uint64_t size = record_bytes(head_bytes, bytes);

	if (!ky_spill_has_room(spill, size))
		return false;
	if (!spill_write_at(spill->fd, parts, bytes ? 3 : 2, spill->end)) {
		spill->is_broken = true;
		return false;
	}
	spill->end += size;
	spill->total_bytes += size;
	spill->n++;
	return true;
}

static int spill_read_at(int fd, void *data, size_t bytes, uint64_t at)
{
	char *to = data;

	while (bytes) {
		ssize_t got = pread(fd, to, bytes, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		to += got;
		at += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return 0;
}

int ky_spill_next(const struct ky_spill *spill, uint32_t *head_bytes, uint32_t *bytes)
{
	struct sizes sizes;
	int ret = spill_read_at(spill->fd, &sizes, sizeof(sizes), spill->begin);

	*head_bytes = ret < 0 ? 0 : sizes.head_bytes;
	*bytes = ret < 0 ? 0 : sizes.bytes;
	return ret;
}

int ky_spill_read(const struct ky_spill *spill, void *head, uint32_t head_bytes, void *data,
		  uint32_t bytes)
{
	uint64_t at = spill->begin + sizeof(struct sizes);
	int ret = spill_read_at(spill->fd, head, head_bytes, at);

	return ret < 0 ? ret : spill_read_at(spill->fd, data, bytes, at + head_bytes);
}

void ky_spill_advance(struct ky_spill *spill, uint32_t head_bytes, uint32_t bytes)
{
	uint64_t to;

	spill->begin += record_bytes(head_bytes, bytes);
	spill->n--;
	if (!spill->n) {
		spill->begin = spill->end = spill->punched = 0;
		spill->is_broken = ftruncate(spill->fd, 0) < 0;
		return;
	}
	if (spill->begin - spill->punched < PUNCH_BYTES)
		return;
	/* Where the file system cannot do that, the file fills up to its limit, and empties at once. */
	to = spill->begin / PUNCH_BYTES * PUNCH_BYTES;
	if (fallocate(spill->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)spill->punched,
		      (off_t)(to - spill->punched)) == 0)
		spill->punched = to;
}
