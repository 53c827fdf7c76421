/* SPDX-License-Identifier: MIT */
/* The layer of programs' own trackers: a series per name of a program and tracker. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "latency/layers/latency-internal.h"
#include "latency/programs/program-cells.h"
#include "os/file.h"
#include "record/common/cgroup.h"

/* Programs choose their names, so there is a limit. */
#define SERIES_MAX 4096

/* The id of its control group of version 2: the inode of the directory. 0: it has none. */
static uint64_t cgroup_of(pid_t pid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t id = 0;
	const char *line;
	char path[4200];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (ky_read_file(AT_FDCWD, path, 65536, &text) == 0 &&
	    (line = strstr(ky_strbuf_text(&text), "0::/"))) {
		int len = (int)strcspn(line + 3, "\n");

		snprintf(path, sizeof(path), KY_CGROUP_ROOT "/unified%.*s", len, line + 3);
		if (stat(path, &st) < 0) {
			snprintf(path, sizeof(path), KY_CGROUP_ROOT "%.*s", len, line + 3);
			st.st_ino = stat(path, &st) < 0 ? 0 : st.st_ino;
		}
		id = st.st_ino;
	}
	ky_strbuf_fini(&text);
	return id;
}

static uint64_t owner_of(const struct ky_latency *latency, const struct ky_program_file *file)
{
	switch (latency->options.by) {
	case KY_LATENCY_BY_PROCESS:
		return (uint64_t)file->pid;
	case KY_LATENCY_BY_USER:
		return file->uid;
	case KY_LATENCY_BY_CGROUP:
		return cgroup_of(file->pid);
	default:
		return 0;
	}
}

static int take_program(void *data, const struct ky_program_file *file, const char *tracker,
			const struct ky_histogram *added)
{
	struct ky_latency *latency = data;
	struct ky_latency_key key = {.layer = KY_LATENCY_PROGRAM, .who = owner_of(latency, file)};
	char name[KY_LATENCY_COMM_BYTES + KY_LATENCY_NAME_BYTES + 1];
	struct ky_series *series;

	snprintf(name, sizeof(name), "%.15s %.63s", file->comm, tracker);
	key.sub = ky_hash_bytes(name, strlen(name));
	series = ky_latency_series_find(latency, &key);
	if (!series && latency->n_program_series >= SERIES_MAX) {
		latency->n_lost_programs += added->count;
		return KYMO_OK;
	}
	if (!series) {
		latency->program_name = name;
		series = ky_latency_series_of(latency, &key);
		latency->program_name = NULL;
		if (!series)
			return KYMO_E_MEMORY;
		series->is_keyed = true;
		latency->n_program_series++;
	}
	ky_series_add(series, added, latency->slot);
	return KYMO_OK;
}

static int ignore_program(void *data, const struct ky_program_file *file, const char *tracker,
			  const struct ky_histogram *added)
{
	(void)data;
	(void)file;
	(void)tracker;
	(void)added;
	return KYMO_OK;
}

int ky_latency_begin_programs(struct ky_latency *latency, struct kymo_error *err)
{
	int ret = ky_latency_look(latency, err);

	return ret < 0 ? ret : ky_program_cells_read(&latency->programs, ignore_program, NULL, err);
}

bool ky_latency_has_programs(const struct ky_latency *latency)
{
	return latency->has_programs;
}

static int latency_programs_look(struct ky_latency *latency, bool is_last, struct kymo_error *err)
{
	if (!latency->has_programs)
		return KYMO_OK;
	latency->programs.only_pid = latency->options.pid;
	return ky_program_files_look(&latency->programs, is_last, err);
}

int ky_latency_look(struct ky_latency *latency, struct kymo_error *err)
{
	return latency_programs_look(latency, false, err);
}

int ky_latency_read_programs(struct ky_latency *latency, struct kymo_error *err)
{
	int ret = latency_programs_look(latency, true, err);

	if (ret >= 0)
		ret = ky_program_cells_read(&latency->programs, take_program, latency, err);
	if (ret >= 0)
		ky_program_files_sweep(&latency->programs);
	return ret;
}
