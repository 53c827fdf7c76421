/* SPDX-License-Identifier: MIT */
#include "import/common/foreign-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/sigbus-guard.h"

#define WINDOW_BYTES ((size_t)1 << 20)

int ky_foreign_open_content(const char *path, int fd)
{
	int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
			   : ky_file_open_regular(AT_FDCWD, path, O_RDONLY);

	return fd >= 0 && copy < 0 ? -errno : copy;
}

int ky_foreign_open(struct ky_foreign_file *file, const char *path, int fd, struct kymo_error *err)
{
	struct stat st;
	int ret;

	memset(file, 0, sizeof(*file));
	file->path = path;
	file->fd = ky_foreign_open_content(path, fd);
	if (file->fd < 0) {
		ret = fd < 0 && file->fd == -EINVAL
			      ? ky_error_set(err, KYMO_E_IO, "cannot read: not a regular file")
			      : ky_error_errno(err, -file->fd, "cannot read");
		ky_error_path(err, path);
		return ret;
	}
	if (fstat(file->fd, &st) == 0)
		file->size_bytes = (uint64_t)st.st_size;
	return KYMO_OK;
}

void ky_foreign_close(struct ky_foreign_file *file)
{
	if (file->map) {
		ky_sigbus_guard_remove(file->map, file->size_bytes);
		munmap((void *)(uintptr_t)file->map, file->size_bytes);
	}
	if (file->path && file->fd >= 0)
		close(file->fd);
	free(file->window);
	memset(file, 0, sizeof(*file));
	file->fd = -1;
}

bool ky_foreign_map(struct ky_foreign_file *file)
{
	void *map;

	if (file->map || !file->size_bytes || file->size_bytes > SIZE_MAX)
		return file->map;
	map = mmap(NULL, file->size_bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
	if (map == MAP_FAILED)
		return false;
	if (ky_sigbus_guard_add(map, file->size_bytes) < 0) {
		munmap(map, file->size_bytes);
		return false;
	}
	(void)madvise(map, file->size_bytes, MADV_SEQUENTIAL);
	file->map = map;
	return true;
}

bool ky_foreign_is_cut(const struct ky_foreign_file *file)
{
	return file->map && ky_sigbus_guard_hit(file->map, file->size_bytes);
}

int ky_foreign_bad(const struct ky_foreign_file *file, uint64_t offset, const char *what,
		   struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_FORMAT, "%s", what);

	ky_error_path(err, file->path);
	ky_error_offset(err, offset);
	return code;
}

/* Of thousands of small files, each has no more than its size, which holds @len. */
static size_t foreign_file_window(const struct ky_foreign_file *file, size_t len)
{
	size_t most = file->size_bytes < WINDOW_BYTES ? (size_t)file->size_bytes : WINDOW_BYTES;

	return len > most ? len : most;
}

static bool foreign_file_reserve(struct ky_foreign_file *file, size_t len)
{
	size_t cap = foreign_file_window(file, len);
	uint8_t *window;

	if (file->window && cap <= file->window_cap)
		return true;
	window = realloc(file->window, cap ? cap : 1);
	if (!window)
		return false;
	file->window = window;
	file->window_cap = cap;
	return true;
}

/* Fills the window from @offset on, at least @len bytes. 0; 1: the file has fewer; -errno. */
static int foreign_file_fill(struct ky_foreign_file *file, uint64_t offset, size_t len)
{
	size_t want = foreign_file_window(file, len);

	file->window_at = offset;
	file->window_bytes = 0;
	while (file->window_bytes < want) {
		ssize_t got =
			pread(file->fd, file->window + file->window_bytes,
			      want - file->window_bytes, (off_t)(offset + file->window_bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		file->window_bytes += (size_t)got;
	}
	return file->window_bytes < len;
}

const uint8_t *ky_foreign_bytes(struct ky_foreign_file *file, uint64_t offset, uint64_t len,
				const char *what, struct kymo_error *err)
{
	int ret;

	if (offset >= file->window_at && offset - file->window_at <= file->window_bytes &&
	    len <= file->window_bytes - (offset - file->window_at) && file->window)
		return file->window + (offset - file->window_at);
	if (offset > file->size_bytes || len > file->size_bytes - offset) {
		ky_error_set(err, KYMO_E_FORMAT, "%s is cut: the file ends before", what);
		ky_error_path(err, file->path);
		ky_error_offset(err, offset);
		return NULL;
	}
	if (len > KY_FOREIGN_PIECE_MAX) {
		ky_error_set(err, KYMO_E_LIMIT, "%s is too long", what);
		ky_error_path(err, file->path);
		ky_error_offset(err, offset);
		return NULL;
	}
	if (!foreign_file_reserve(file, (size_t)len)) {
		ky_error_nomem(err);
		return NULL;
	}
	ret = foreign_file_fill(file, offset, (size_t)len);
	if (ret == 0)
		return file->window;
	if (ret < 0) {
		ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, file->path);
	} else {
		ky_foreign_bad(file, offset, "the file became shorter while it was read", err);
	}
	return NULL;
}

int ky_foreign_unpack(struct ky_foreign_file *file, uint64_t offset, uint64_t bytes,
		      struct kymo_error *err)
{
	uint64_t max = KY_FOREIGN_FREE_BYTES + file->size_bytes * KY_FOREIGN_RATIO_MAX;

	if (bytes > max || file->unpacked_bytes > max - bytes) {
		ky_error_set(err, KYMO_E_LIMIT, "the file unpacks to more than a trace has");
		ky_error_path(err, file->path);
		ky_error_offset(err, offset);
		return KYMO_E_LIMIT;
	}
	file->unpacked_bytes += bytes;
	return KYMO_OK;
}

bool ky_foreign_begins(const char *path, uint64_t offset, const void *magic, size_t len)
{
	uint8_t bytes[32];
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
	bool is = false;

	if (fd < 0)
		return false;
	if (len <= sizeof(bytes) && pread(fd, bytes, len, (off_t)offset) == (ssize_t)len)
		is = memcmp(bytes, magic, len) == 0;
	close(fd);
	return is;
}
