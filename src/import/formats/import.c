/* SPDX-License-Identifier: MIT */
#include "import/common/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "import/common/import-internal.h"
#include "os/file.h"

static const struct ky_import_format *const formats[] =
	{
		&ky_import_raw,	 &ky_import_archive,  &ky_import_perf,	  &ky_import_dat,
		&ky_import_pcap, &ky_import_perfetto, &ky_import_uftrace, &ky_import_crash,
		&ky_import_logs, /* the last: it looks at the first lines of any file */
};

static const struct ky_import_format *import_find(const char *path)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i]->probe(path))
			return formats[i];
	return NULL;
}

struct ky_scratch_trace *ky_import_new_trace(struct ky_import *imports)
{
	struct ky_scratch_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	ky_strbuf_init(&trace->metadata);
	trace->uses_memory = true;
	if (ky_vec_push(&imports->traces, trace) == 0)
		return trace;
	free(trace);
	return NULL;
}

void ky_import_broken(struct ky_import *imports, const struct kymo_error *why)
{
	if (!imports->broken.code)
		imports->broken = *why;
}

/* A copy that lives as long as @imports: a caller's path may not. NULL: no memory. */
static const char *import_keep(struct ky_import *imports, const char *text)
{
	char *copy = strdup(text);

	if (copy && ky_vec_push(&imports->names, copy) == 0)
		return copy;
	free(copy);
	return NULL;
}

int ky_import_add_place(struct ky_import *imports, const char *path, const char *name,
			const struct ky_scratch_trace *trace, struct kymo_error *err)
{
	struct ky_strbuf place = KY_STRBUF_INIT;
	struct ky_trace_at at = {.trace = trace};

	if (imports->member)
		ky_strbuf_addf(&place, "%s/", imports->member);
	ky_strbuf_adds(&place, name);
	if (!ky_strbuf_failed(&place)) {
		at.path = import_keep(imports, path);
		at.name = import_keep(imports, ky_strbuf_text(&place));
	}
	ky_strbuf_fini(&place);
	return !at.path || !at.name || ky_vec_push(&imports->places, at) < 0 ? ky_error_nomem(err)
									     : KYMO_OK;
}

static int import_convert(struct ky_import *imports, const struct ky_import_format *format,
			  const char *path, const struct ky_log *log, bool says,
			  struct kymo_error *err)
{
	struct ky_scratch_trace *trace = ky_import_new_trace(imports);
	struct ky_packet_store *store;
	int ret;

	if (!trace)
		return ky_error_nomem(err);
	ret = ky_import_add_place(imports, path, "kernel", trace, err);
	if (!ret)
		ret = ky_scratch_store_open(trace, &store, err);
	if (ret < 0)
		return ret;
	ret = format->convert(path, store, log, says, err);
	ky_store_free(store);
	return ret;
}

/* A file that has no other format, where the user says how to read logs. */
static bool import_is_users_log(const char *path, const struct ky_import_options *logs,
				const struct ky_import_format *format)
{
	struct stat st;

	return logs && logs->format && (!format || format == &ky_import_logs) &&
	       stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

const char *ky_import_content(const struct ky_import *imports, const char *path, char content[32])
{
	if (imports->unpacked_fd < 0)
		return path;
	snprintf(content, 32, "/proc/self/fd/%d", imports->unpacked_fd);
	return content;
}

/* The content of @path is @fd. 1: it is of no known format, or of one of @left_out. */
static int import_content(struct ky_import *imports, const char *path, int fd,
			  const struct ky_import_format *left_out, const struct ky_log *log,
			  struct kymo_error *err)
{
	const struct ky_import_options *logs = imports->options;
	const struct ky_import_format *format;
	int ret = 1, outer_fd = imports->unpacked_fd;
	char content[32];

	imports->unpacked_fd = fd;
	ky_import_content(imports, path, content);
	format = import_find(content);
	if (import_is_users_log(content, logs, format))
		ret = ky_import_log(imports, path, logs, log, err);
	else if (format && format != left_out && format != &ky_import_crash && format->open)
		ret = format->open(imports, path, log, err);
	imports->unpacked_fd = outer_fd;
	return ret;
}

int ky_import_unpacked(struct ky_import *imports, const char *path, int fd,
		       const struct ky_log *log, struct kymo_error *err)
{
	return import_content(imports, path, fd, &ky_import_archive, log, err);
}

int ky_import_piped(struct ky_import *imports, const char *path, int fd, const struct ky_log *log,
		    struct kymo_error *err)
{
	return import_content(imports, path, fd, NULL, log, err);
}

int ky_import_new_file(struct kymo_error *err)
{
	const char *directory = getenv("TMPDIR");
	int fd, ret;

	if (!directory)
		directory = "/var/tmp";
	fd = ky_file_open_unnamed(directory);
	if (fd >= 0)
		return fd;
	ret = ky_error_errno(err, -fd, "cannot make a temporary file");
	ky_error_path(err, directory);
	ky_error_hint(err, "TMPDIR names another directory");
	return ret;
}

/* A pipe has its content once, and some commands open their traces twice. */
static bool import_has(const struct ky_import *imports, const char *path)
{
	ky_vec_foreach(&imports->places, place)
		if (strcmp(place->path, path) == 0)
			return true;
	return false;
}

static int import_path(struct ky_import *imports, const char *path, const struct ky_log *log,
		       bool says, struct kymo_error *err)
{
	const struct ky_import_options *logs = imports->options;
	const struct ky_import_format *format;

	if (ky_import_pipe_is(path))
		return import_has(imports, path) ? KYMO_OK
						 : ky_import_pipe(imports, path, log, err);
	format = import_find(path);
	if (import_is_users_log(path, logs, format))
		return ky_import_log(imports, path, logs, log, err);
	if (format && format->open)
		return format->open(imports, path, log, err);
	return format ? import_convert(imports, format, path, log, says, err) : KYMO_OK;
}

int ky_import_paths(struct ky_import *imports, char **paths, size_t n_paths,
		    const struct ky_import_options *logs, const struct ky_log *log, bool says,
		    struct kymo_error *err)
{
	int ret = KYMO_OK;

	imports->options = logs;
	for (size_t i = 0; i < n_paths && !ret; i++)
		ret = import_path(imports, paths[i], log, says, err);
	return ret;
}

struct ky_import_mark ky_import_mark(const struct ky_import *imports)
{
	return (struct ky_import_mark){imports->traces.len, imports->places.len};
}

void ky_import_undo(struct ky_import *imports, const struct ky_import_mark *mark)
{
	for (size_t i = mark->n_traces; i < imports->traces.len; i++) {
		ky_scratch_trace_fini(imports->traces.data[i]);
		free(imports->traces.data[i]);
	}
	imports->traces.len = mark->n_traces;
	imports->places.len = mark->n_places;
}

void ky_import_fini(struct ky_import *imports)
{
	const struct ky_import_mark nothing = {0};

	ky_import_undo(imports, &nothing);
	ky_vec_foreach(&imports->names, name)
		free(*name);
	ky_vec_fini(&imports->names);
	ky_vec_fini(&imports->traces);
	ky_vec_fini(&imports->places);
}
