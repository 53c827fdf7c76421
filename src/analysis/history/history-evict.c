/* SPDX-License-Identifier: MIT */
/* The state history: indexes that nobody has used for long make room for new ones. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "analysis/history/history-internal.h"
#include "base/vec.h"

/* All indexes together have at most this part of the file system. */
#define SHARE 10u

struct index {
	char name[KY_HISTORY_NAME_BYTES];
	struct timespec used;
	uint64_t size_bytes;
};

struct indexes {
	KY_VEC(struct index) all;
	uint64_t size_bytes;
};

static bool is_index(const char *name)
{
	static const char end[] = ".history";
	size_t digits = strspn(name, "0123456789abcdef");

	return digits == 32 && strcmp(name + digits, end) == 0;
}

static void history_evict_add(struct indexes *indexes, int dir, const char *name)
{
	struct index index = {.name = ""};
	struct stat st;

	if (!is_index(name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return;
	memcpy(index.name, name, strlen(name) + 1);
	index.used = st.st_mtim;
	index.size_bytes = (uint64_t)st.st_blocks * 512;
	/* One that is not listed is not removed. */
	if (ky_vec_push(&indexes->all, index) == 0)
		indexes->size_bytes += index.size_bytes;
}

static int list(int dir, struct indexes *indexes)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((entry = readdir(stream)))
		history_evict_add(indexes, dir, entry->d_name);
	closedir(stream);
	return 0;
}

static int by_use(const void *left, const void *right)
{
	const struct index *a = left, *b = right;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

void ky_history_evict(int dir, const char *keep)
{
	struct indexes indexes = {.size_bytes = 0};
	struct statvfs fs;
	uint64_t most;

	if (fstatvfs(dir, &fs) < 0 || list(dir, &indexes) < 0)
		return;
	most = (uint64_t)fs.f_blocks * fs.f_frsize / SHARE;
	if (indexes.size_bytes > most)
		qsort(indexes.all.data, indexes.all.len, sizeof(*indexes.all.data), by_use);
	for (size_t i = 0; i < indexes.all.len && indexes.size_bytes > most; i++) {
		const struct index *index = &indexes.all.data[i];

		/* A process that reads the index has it until its end. */
		if (strcmp(index->name, keep) != 0 && unlinkat(dir, index->name, 0) == 0)
			indexes.size_bytes -= index->size_bytes;
	}
	ky_vec_fini(&indexes.all);
}
