/* SPDX-License-Identifier: MIT */
#include "import/perf/perf-parts.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* perf has a thread for each CPU at most. */
#define PARTS_MAX 4096u

KY_VEC_TYPE(perf_parts_numbers, int);

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

/* N of "data.N"; negative: it is another name. */
static int perf_parts_number(const char *name)
{
	char *end, again[24];
	unsigned long number;

	if (strncmp(name, "data.", 5) != 0)
		return -1;
	number = strtoul(name + 5, &end, 10);
	snprintf(again, sizeof(again), "data.%lu", number);
	return number < INT_MAX && strcmp(again, name) == 0 ? (int)number : -1;
}

static int perf_parts_compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

/* The numbers of the files, sorted. 0 or negative: @err. */
static int perf_parts_list(struct perf_parts_numbers *numbers, const char *path,
			   struct kymo_error *err)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	int ret = KYMO_OK;

	if (!dir) {
		ret = ky_error_errno(err, errno, "cannot list the directory");
		ky_error_path(err, path);
		return ret;
	}
	while (!ret && (entry = readdir(dir))) {
		int number = perf_parts_number(entry->d_name);

		if (number >= 0 && ky_vec_push(numbers, number) < 0)
			ret = ky_error_nomem(err);
	}
	closedir(dir);
	if (numbers->len)
		qsort(numbers->data, numbers->len, sizeof(*numbers->data), perf_parts_compare);
	return ret;
}

void ky_perf_parts_tell(const struct ky_perf_parts *parts, struct kymo_error *broken,
			const struct kymo_error *why)
{
	if (!broken->code)
		*broken = *why;
	else
		ky_log_warning(parts->log, "%s: %s", why->path, why->message);
}

/* No file has the number before @number. */
static void perf_parts_tell_gap(const struct ky_perf_parts *parts, const char *path, int number,
				struct kymo_error *broken)
{
	struct kymo_error why = {0};
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s/data.%d", path, number - 1);
	ky_error_set(&why, KYMO_E_NOT_FOUND,
		     "a part of the recording is missing, though there are later ones");
	ky_error_path(&why, name);
	ky_perf_parts_tell(parts, broken, &why);
}

/* A directory or a FIFO is never opened; the error is then that of an argument. */
static void perf_parts_say_kind(const char *path, struct kymo_error *why)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return;
	ky_error_set(why, KYMO_E_FORMAT, "a part of the recording is not a regular file");
	ky_error_path(why, path);
}

/* What cannot be opened is left out. */
static int perf_parts_add(struct ky_perf_parts *parts, const char *path, int number,
			  const struct ky_perf_file *perf, struct kymo_error *broken,
			  struct kymo_error *err)
{
	struct ky_perf_part part = {0};
	struct kymo_error why = {0};

	if (asprintf(&part.path, "%s/data.%d", path, number) < 0)
		return ky_error_nomem(err);
	if (ky_foreign_open(&part.file, part.path, -1, &why) < 0) {
		perf_parts_say_kind(part.path, &why);
		ky_perf_parts_tell(parts, broken, &why);
		free(part.path);
		return KYMO_OK;
	}
	part.file.swap = perf->file.swap;
	part.end = part.file.size_bytes;
	if (ky_vec_push(&parts->parts, part) == 0)
		return KYMO_OK;
	ky_foreign_close(&part.file);
	free(part.path);
	return ky_error_nomem(err);
}

static void perf_parts_tell_limit(const struct ky_perf_parts *parts, const char *path,
				  struct kymo_error *broken)
{
	struct kymo_error why = {0};

	ky_error_set(&why, KYMO_E_LIMIT, "the recording has more than %u parts", PARTS_MAX);
	ky_error_path(&why, path);
	ky_perf_parts_tell(parts, broken, &why);
}

int ky_perf_parts_open(struct ky_perf_parts *parts, const char *path,
		       const struct ky_perf_file *perf, struct kymo_error *broken,
		       struct kymo_error *err)
{
	struct perf_parts_numbers numbers = KY_VEC_INIT;
	struct kymo_error why = {0};
	int ret = KYMO_OK, next = 0;

	if (perf_parts_list(&numbers, path, &why) < 0)
		ky_perf_parts_tell(parts, broken, &why);
	if (numbers.len > PARTS_MAX)
		perf_parts_tell_limit(parts, path, broken);
	for (size_t i = 0; i < numbers.len && i < PARTS_MAX && !ret; i++) {
		if (numbers.data[i] > next)
			perf_parts_tell_gap(parts, path, numbers.data[i], broken);
		next = numbers.data[i] + 1;
		ret = perf_parts_add(parts, path, numbers.data[i], perf, broken, err);
	}
	ky_vec_fini(&numbers);
	return ret;
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
