/* SPDX-License-Identifier: MIT */
#include "import/perf/perf-parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* perf has a thread for each CPU at most. */
#define PARTS_MAX 4096

bool ky_perf_parts_find(const char *path, char **data)
{
	struct stat st;

	*data = NULL;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || asprintf(data, "%s/data", path) < 0)
		return false;
	if (stat(*data, &st) == 0 && S_ISREG(st.st_mode))
		return true;
	free(*data);
	*data = NULL;
	return false;
}

int ky_perf_parts_open(struct ky_perf_parts *parts, const char *path,
		       const struct ky_perf_file *perf, struct kymo_error *err)
{
	for (int i = 0; i < PARTS_MAX; i++) {
		struct ky_perf_part part = {0};

		if (asprintf(&part.path, "%s/data.%d", path, i) < 0)
			return ky_error_nomem(err);
		if (ky_foreign_open(&part.file, part.path, -1, NULL) < 0) {
			free(part.path);
			break;
		}
		part.file.swap = perf->file.swap;
		part.end = part.file.size_bytes;
		if (ky_vec_push(&parts->parts, part) < 0) {
			ky_foreign_close(&part.file);
			free(part.path);
			return ky_error_nomem(err);
		}
	}
	return KYMO_OK;
}

void ky_perf_parts_fini(struct ky_perf_parts *parts)
{
	ky_vec_foreach(&parts->parts, part) {
		ky_perf_unpack_free(part->unpack);
		ky_foreign_close(&part->file);
		free(part->path);
	}
	ky_vec_fini(&parts->parts);
	free(parts->path);
}

#define SWAP(a, b)                        \
	do {                              \
		__typeof__(a) kept = (a); \
                                          \
		(a) = (b);                \
		(b) = kept;               \
	} while (0)

void ky_perf_part_swap(struct ky_perf_part *part, struct ky_perf_file *perf)
{
	SWAP(part->file, perf->file);
	SWAP(part->at, perf->at);
	SWAP(part->end, perf->end);
	SWAP(part->unpack, perf->unpack);
	perf->is_in_part = !perf->is_in_part;
}

uint64_t ky_perf_parts_until(const struct ky_perf_parts *parts)
{
	uint64_t until = UINT64_MAX;

	ky_vec_foreach(&parts->parts, part)
		if (!part->is_done && part->round_ns < until)
			until = part->round_ns;
	return until;
}
