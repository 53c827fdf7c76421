/* SPDX-License-Identifier: MIT */
#include "import/archive/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/zstd-library.h"
#include "os/file.h"

#define SIZE_LIMIT	  (UINT64_C(1) << 33)
#define IN_BYTES	  (256u << 10)
#define DEPTH_MAX	  32
#define COMPRESSION_LEVEL 3

_Static_assert(sizeof(struct ky_archive_head) == KY_ARCHIVE_BLOCK_BYTES, "a head is one block");

struct ky_archive {
	char *path, *part; /* the name in the end, and the one until then */
	int fd;
	ZSTD_CStream *zstd;
	uint8_t *in, *out;
	size_t out_bytes;
	time_t now;
};

static int archive_failed(const struct ky_archive *archive, int errnum, const char *what,
			  struct kymo_error *err)
{
	int ret = ky_error_errno(err, errnum, "cannot %s the archive", what);

	ky_error_path(err, archive->path);
	return ret;
}

unsigned int ky_archive_checksum(const struct ky_archive_head *head)
{
	const uint8_t *bytes = (const uint8_t *)head;
	size_t at = offsetof(struct ky_archive_head, checksum);
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(*head); i++)
		sum += i >= at && i < at + sizeof(head->checksum) ? ' ' : bytes[i];
	return sum;
}

/* ---- bytes ----------------------------------------------------------------------------- */

static int compress(struct ky_archive *archive, const void *data, size_t len, ZSTD_EndDirective end,
		    struct kymo_error *err)
{
	ZSTD_inBuffer in = {data, len, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {archive->out, archive->out_bytes, 0};
		int ret;

		left = ky_zstd.ZSTD_compressStream2(archive->zstd, &out, &in, end);
		if (ky_zstd.ZSTD_isError(left))
			return ky_error_set(err, KYMO_E_MEMORY, "cannot compress: %s",
					    ky_zstd.ZSTD_getErrorName(left));
		ret = out.pos ? ky_write_all(archive->fd, out.dst, out.pos) : 0;
		if (ret < 0)
			return archive_failed(archive, -ret, "write", err);
	} while (in.pos < in.size || (end == ZSTD_e_end && left));
	return KYMO_OK;
}

static int archive_pad(struct ky_archive *archive, uint64_t size_bytes, struct kymo_error *err)
{
	static const uint8_t zeros[KY_ARCHIVE_BLOCK_BYTES];
	size_t rest = (size_t)(size_bytes % KY_ARCHIVE_BLOCK_BYTES);

	return rest ? compress(archive, zeros, KY_ARCHIVE_BLOCK_BYTES - rest, ZSTD_e_continue, err)
		    : KYMO_OK;
}

/* ---- members --------------------------------------------------------------------------- */

/* A long name is cut at a slash: PREFIX/NAME. */
static bool archive_put_name(struct ky_archive_head *head, const char *name)
{
	size_t len = strlen(name);
	const char *slash;

	if (len <= sizeof(head->name)) {
		memcpy(head->name, name, len);
		return len != 0;
	}
	slash = strchr(name + len - sizeof(head->name) - 1, '/');
	if (!slash || !slash[1] || (size_t)(slash - name) > sizeof(head->prefix))
		return false;
	memcpy(head->prefix, name, (size_t)(slash - name));
	memcpy(head->name, slash + 1, strlen(slash + 1));
	return true;
}

static int archive_put_head(struct ky_archive *archive, const char *name, uint64_t size_bytes,
			    struct kymo_error *err)
{
	struct ky_archive_head head = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
	char number[24];

	if (!archive_put_name(&head, name))
		return ky_error_set(err, KYMO_E_INVALID, "%s: the name is too long for an archive",
				    name);
	memcpy(head.mode, "0000600", 8);
	memcpy(head.uid, "0000000", 8);
	memcpy(head.gid, "0000000", 8);
	snprintf(number, sizeof(number), "%011llo", (unsigned long long)size_bytes);
	memcpy(head.size, number, sizeof(head.size));
	snprintf(number, sizeof(number), "%011llo", (unsigned long long)archive->now);
	memcpy(head.mtime, number, sizeof(head.mtime));
	snprintf(number, sizeof(number), "%06o", ky_archive_checksum(&head));
	memcpy(head.checksum, number, 7);
	head.checksum[7] = ' ';
	return compress(archive, &head, sizeof(head), ZSTD_e_continue, err);
}

int ky_archive_add(struct ky_archive *archive, const char *name, const void *data, size_t len_bytes,
		   struct kymo_error *err)
{
	int ret = archive_put_head(archive, name, len_bytes, err);

	if (!ret)
		ret = compress(archive, data, len_bytes, ZSTD_e_continue, err);
	return ret < 0 ? ret : archive_pad(archive, len_bytes, err);
}

/* A file that has become shorter ends with zeros. */
static int archive_copy(struct ky_archive *archive, int fd, uint64_t size_bytes,
			struct kymo_error *err)
{
	uint64_t at = 0;
	int ret = KYMO_OK;

	while (at < size_bytes && !ret) {
		size_t want = size_bytes - at < IN_BYTES ? (size_t)(size_bytes - at) : IN_BYTES;
		ssize_t got = pread(fd, archive->in, want, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return archive_failed(archive, errno, "read a file for", err);
		memset(archive->in + got, 0, want - (size_t)got);
		ret = compress(archive, archive->in, want, ZSTD_e_continue, err);
		at += want;
	}
	return ret;
}

int ky_archive_add_file(struct ky_archive *archive, const char *name, int fd,
			struct kymo_error *err)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0)
		return archive_failed(archive, errno, "read a file for", err);
	if ((uint64_t)st.st_size >= SIZE_LIMIT)
		return ky_error_set(err, KYMO_E_LIMIT, "%s: the file is too large for an archive",
				    name);
	ret = archive_put_head(archive, name, (uint64_t)st.st_size, err);
	if (!ret)
		ret = archive_copy(archive, fd, (uint64_t)st.st_size, err);
	return ret < 0 ? ret : archive_pad(archive, (uint64_t)st.st_size, err);
}

static int add_directory(struct ky_archive *archive, const char *name, int dir_fd, int depth,
			 struct kymo_error *err);

static int archive_add_entry(struct ky_archive *archive, const char *name, int dir_fd,
			     const char *entry, int depth, struct kymo_error *err)
{
	int fd = openat(dir_fd, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), ret = 0;
	char path[PATH_MAX];
	struct stat st;

	if (fd < 0)
		return KYMO_OK;
	if (snprintf(path, sizeof(path), "%s/%s", name, entry) >= (int)sizeof(path) ||
	    fstat(fd, &st) < 0) {
		close(fd);
		return KYMO_OK;
	}
	if (S_ISDIR(st.st_mode))
		return add_directory(archive, path, fd, depth + 1, err);
	if (S_ISREG(st.st_mode))
		ret = ky_archive_add_file(archive, path, fd, err);
	close(fd);
	return ret;
}

/* Takes over @dir_fd. */
static int add_directory(struct ky_archive *archive, const char *name, int dir_fd, int depth,
			 struct kymo_error *err)
{
	DIR *dir = depth < DEPTH_MAX ? fdopendir(dir_fd) : NULL;
	struct dirent *entry;
	int ret = KYMO_OK;

	if (!dir) {
		close(dir_fd);
		return KYMO_OK;
	}
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = archive_add_entry(archive, name, dirfd(dir), entry->d_name, depth,
						err);
	closedir(dir);
	return ret;
}

int ky_archive_add_tree(struct ky_archive *archive, const char *name, const char *path,
			struct kymo_error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int ret = ky_error_errno(err, errno, "cannot read the directory");

		ky_error_path(err, path);
		return ret;
	}
	return add_directory(archive, name, fd, 0, err);
}

/* ---- the archive ----------------------------------------------------------------------- */

static void free_archive(struct ky_archive *archive)
{
	if (archive->fd >= 0)
		close(archive->fd);
	(void)ky_zstd.ZSTD_freeCStream(archive->zstd);
	free(archive->in);
	free(archive->out);
	free(archive->path);
	free(archive->part);
	free(archive);
}

static int archive_open_part(struct ky_archive *archive, struct kymo_error *err)
{
	if (access(archive->path, F_OK) == 0)
		return archive_failed(archive, EEXIST, "create", err);
	archive->fd = mkostemp(archive->part, O_CLOEXEC);
	return archive->fd < 0 ? archive_failed(archive, errno, "create", err) : KYMO_OK;
}

int ky_archive_create(const char *path, struct ky_archive **out, struct kymo_error *err)
{
	struct ky_archive *archive;
	int ret = ky_zstd_library_load(err);

	*out = NULL;
	if (ret < 0)
		return ret;
	archive = calloc(1, sizeof(*archive));
	if (!archive)
		return ky_error_nomem(err);
	archive->fd = -1;
	archive->now = time(NULL);
	archive->path = strdup(path);
	if (asprintf(&archive->part, "%s.XXXXXX", path) < 0)
		archive->part = NULL;
	archive->zstd = ky_zstd.ZSTD_createCStream();
	archive->out_bytes = ky_zstd.ZSTD_CStreamOutSize();
	archive->in = malloc(IN_BYTES);
	archive->out = malloc(archive->out_bytes);
	if (!archive->path || !archive->part || !archive->zstd || !archive->in || !archive->out ||
	    ky_zstd.ZSTD_isError(ky_zstd.ZSTD_CCtx_setParameter(
		    archive->zstd, ZSTD_c_compressionLevel, COMPRESSION_LEVEL)))
		ret = ky_error_nomem(err);
	else
		ret = archive_open_part(archive, err);
	if (ret < 0) {
		free_archive(archive);
		return ret;
	}
	*out = archive;
	return KYMO_OK;
}

void ky_archive_discard(struct ky_archive *archive)
{
	if (!archive)
		return;
	(void)unlink(archive->part);
	free_archive(archive);
}

int ky_archive_close(struct ky_archive *archive, struct kymo_error *err)
{
	static const uint8_t zeros[2 * KY_ARCHIVE_BLOCK_BYTES];
	int ret = compress(archive, zeros, sizeof(zeros), ZSTD_e_end, err);

	/* As a new name: a file that came meanwhile stays. */
	if (!ret && link(archive->part, archive->path) < 0)
		ret = archive_failed(archive, errno, "create", err);
	(void)unlink(archive->part);
	free_archive(archive);
	return ret;
}
