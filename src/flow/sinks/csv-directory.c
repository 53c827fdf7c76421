/* SPDX-License-Identifier: MIT */
/* One CSV file per event name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deep.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "flow/sinks/csv.h"
#include "flow/graph/sink.h"
#include "os/file.h"

#define FILE_BUFFER_BYTES ((size_t)64 << 10)
#define NAME_BYTES_MAX	  200

/*
 * Files are opened to append each time a buffer is full: traces have more event classes than a
 * process may have files open.
 */
struct csv_file {
	char *name;	  /* without ".csv" */
	char *event_name; /* that, but for a number */
	char *header;
	struct ky_strbuf out;
	struct csv_file *to; /* of a part: the file of the sink that writes; NULL: not known yet */
};

/* Lines of one file that lie one behind the other in what a part holds. */
struct csv_run {
	struct csv_file *file;
	size_t len;
};

struct csv_sink {
	struct ky_sink sink;
	bool raw;	       /* texts as they are */
	int dir_fd;	       /* of a part -1 */
	struct ky_strbuf held; /* by a part: lines as they come, and the part of each line */
	KY_VEC(struct csv_run) runs;
	KY_VEC(struct csv_file *) files;
	struct ky_names by_name; /* name -> file */
	struct ky_map by_class;	 /* event class -> file */
	struct ky_values values;
	struct ky_strbuf scratch;
};

/* ---- files -------------------------------------------------------------------------------- */

static int file_error(const struct csv_file *file, int errnum, struct kymo_error *err)
{
	return ky_error_errno(err, errnum, "cannot write %s.csv", file->name);
}

static int csv_directory_write_out(struct csv_sink *s, struct csv_file *file,
				   struct kymo_error *err)
{
	char name[NAME_BYTES_MAX + 32];
	int fd, ret;

	if (ky_strbuf_failed(&file->out))
		return ky_error_nomem(err);
	snprintf(name, sizeof(name), "%s.csv", file->name);
	fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return file_error(file, errno, err);
	ret = ky_write_all(fd, file->out.data, file->out.len);
	if (close(fd) < 0 && !ret)
		ret = -errno;
	ky_strbuf_clear(&file->out);
	return ret < 0 ? file_error(file, -ret, err) : KYMO_OK;
}

static void file_free(struct csv_file *file)
{
	if (!file)
		return;
	ky_strbuf_fini(&file->out);
	free(file->name);
	free(file->event_name);
	free(file->header);
	free(file);
}

/* ---- columns ------------------------------------------------------------------------------ */

KY_DEEP4(bool, csv_directory_put_columns, struct ky_strbuf *, const struct ky_field_class *, bool,
	 struct ky_strbuf *)

/* False when out of memory; that is noted in @out, too. */
static bool csv_directory_put_columns(struct ky_strbuf *out, const struct ky_field_class *cls,
				      bool raw, struct ky_strbuf *path)
{
	size_t len = path->len;

	if (cls->kind != KY_FIELD_STRUCT) {
		ky_strbuf_addc(out, ',');
		ky_csv_text(out, ky_strbuf_text(path), path->len, raw);
		return true;
	}
	for (size_t i = 0; i < cls->st.n_members; i++) {
		ky_strbuf_addf(path, "%s%s", len ? "." : "", cls->st.members[i].display);
		if (!csv_directory_put_columns_deep(false, out, cls->st.members[i].cls, raw,
						    path)) {
			out->failed = true;
			return false;
		}
		if (path->data) {
			path->len = len;
			path->data[len] = '\0';
		}
	}
	return true;
}

static void csv_directory_put_header(struct ky_strbuf *out, const struct ky_event_class *cls,
				     bool raw)
{
	struct ky_strbuf path = KY_STRBUF_INIT;

	ky_strbuf_adds(out, "timestamp_ns,stream,cpu");
	for (int scope = KY_SCOPE_STREAM_CONTEXT; scope < KY_SCOPE_COUNT; scope++) {
		const struct ky_field_class *root = ky_scope_root(cls, (enum ky_scope)scope);

		ky_strbuf_clear(&path);
		if (scope != KY_SCOPE_PAYLOAD)
			ky_strbuf_adds(&path, "ctx");
		if (root)
			csv_directory_put_columns(out, root, raw, &path);
	}
	ky_strbuf_addc(out, '\n');
	out->failed |= path.failed;
	ky_strbuf_fini(&path);
}

/* ---- which file --------------------------------------------------------------------------- */

/* A file's name for an event's: no slashes, no control characters, not hidden, not too long. */
static void clean_name(char out[NAME_BYTES_MAX + 1], const char *name)
{
	size_t n = 0;

	for (; name[n] && n < NAME_BYTES_MAX; n++) {
		unsigned char c = (unsigned char)name[n];

		out[n] = c < 0x20 || c == 0x7f || c == '/' || (!n && c == '.') ? '_' : (char)c;
	}
	out[n] = '\0';
	if (!n)
		snprintf(out, NAME_BYTES_MAX + 1, "event");
}

static struct csv_file *new_file(struct csv_sink *s, const char *name, const char *event_name,
				 const char *header)
{
	struct csv_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->name = strdup(name);
	file->event_name = strdup(event_name);
	file->header = strdup(header);
	ky_strbuf_adds(&file->out, header);
	if (!file->name || !file->event_name || !file->header || ky_vec_reserve(&s->files, 1) < 0 ||
	    ky_names_set(&s->by_name, file->name, file) < 0) {
		file_free(file);
		return NULL;
	}
	s->files.data[s->files.len++] = file;
	return file;
}

/* The file of that name with that header; others of the name are numbered. */
static struct csv_file *csv_directory_find_file(struct csv_sink *s, const char *name,
						const char *header)
{
	char numbered[NAME_BYTES_MAX + 24];
	struct csv_file *file;

	snprintf(numbered, sizeof(numbered), "%s", name);
	for (unsigned int n = 2; (file = ky_names_get(&s->by_name, numbered)); n++) {
		if (strcmp(file->header, header) == 0)
			return file;
		snprintf(numbered, sizeof(numbered), "%s-%u", name, n);
	}
	return new_file(s, numbered, name, header);
}

static struct csv_file *csv_directory_file_of(struct csv_sink *s, const struct ky_event_class *cls)
{
	struct csv_file *file = ky_map_get(&s->by_class, (uint64_t)(uintptr_t)cls);
	char name[NAME_BYTES_MAX + 1];
	struct ky_strbuf header = KY_STRBUF_INIT;

	if (file)
		return file;
	clean_name(name, cls->name);
	csv_directory_put_header(&header, cls, s->raw);
	if (!ky_strbuf_failed(&header))
		file = csv_directory_find_file(s, name, ky_strbuf_text(&header));
	ky_strbuf_fini(&header);
	if (file && ky_map_set(&s->by_class, (uint64_t)(uintptr_t)cls, file) < 0)
		return NULL;
	return file;
}

/* ---- events ------------------------------------------------------------------------------- */

KY_DEEP3(const struct ky_value *, put_cells, struct csv_sink *, struct ky_strbuf *,
	 const struct ky_value *)

/* The cells of a value: of each member, where it is a structure. Returns the value behind it. */
static const struct ky_value *put_cells(struct csv_sink *s, struct ky_strbuf *out,
					const struct ky_value *v)
{
	const struct ky_value *end = v + 1 + v->n_below, *child = v + 1;

	if (v->cls->kind != KY_FIELD_STRUCT) {
		ky_strbuf_addc(out, ',');
		ky_csv_value(out, v, s->raw, &s->scratch);
		return end;
	}
	while (child < end && child)
		child = put_cells_deep(NULL, s, out, child);
	if (!child)
		out->failed = true;
	return end;
}

static int csv_directory_put_event(struct csv_sink *s, struct ky_strbuf *out,
				   const struct ky_event *event, const struct ky_stream *stream,
				   struct kymo_error *err)
{
	int n = 0;

	if (event->ns != INT64_MIN)
		ky_strbuf_addi(out, event->ns);
	ky_strbuf_addc(out, ',');
	ky_csv_text(out, stream->name, strlen(stream->name), s->raw);
	ky_strbuf_addc(out, ',');
	if (event->cpu_id != UINT32_MAX)
		ky_strbuf_addu(out, event->cpu_id);
	for (int scope = KY_SCOPE_STREAM_CONTEXT; scope < KY_SCOPE_COUNT && n >= 0; scope++) {
		n = ky_values_decode(&s->values, event, (enum ky_scope)scope, err);
		if (n > 0)
			put_cells(s, out, s->values.list.data);
	}
	ky_strbuf_addc(out, '\n');
	return n < 0 ? n : KYMO_OK;
}

static int csv_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct csv_sink *s = (struct csv_sink *)sink;
	int ret = KYMO_OK;

	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++) {
		struct csv_file *file = csv_directory_file_of(s, batch->events[i].cls);
		size_t whole;

		if (!file)
			return ky_error_nomem(err);
		whole = file->out.len;
		ret = csv_directory_put_event(s, &file->out, &batch->events[i], batch->stream, err);
		if (ret < 0) {
			file->out.len = whole; /* no half lines */
			ky_sink_place(batch->stream, err);
		} else if (file->out.len >= FILE_BUFFER_BYTES) {
			ret = csv_directory_write_out(s, file, err);
		}
	}
	return ret;
}

/* ---- parts -------------------------------------------------------------------------------- */

static int note_run(struct csv_sink *s, struct csv_file *file, size_t len)
{
	struct csv_run *last = s->runs.len ? ky_vec_last(&s->runs) : NULL;

	if (!last || last->file != file)
		return ky_vec_push(&s->runs, (struct csv_run){file, len});
	last->len += len;
	return 0;
}

static int part_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct csv_sink *s = (struct csv_sink *)sink;
	int ret = KYMO_OK;

	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++) {
		struct csv_file *file = csv_directory_file_of(s, batch->events[i].cls);
		size_t whole = s->held.len;

		if (!file)
			return ky_error_nomem(err);
		ret = csv_directory_put_event(s, &s->held, &batch->events[i], batch->stream, err);
		if (ret < 0) {
			s->held.len = whole;
			ky_sink_place(batch->stream, err);
		} else if (ky_strbuf_failed(&s->held) ||
			   note_run(s, file, s->held.len - whole) < 0) {
			ret = ky_error_nomem(err);
		}
	}
	return ret;
}

static void part_hold(struct ky_sink *sink)
{
	(void)sink;
}

static void part_begin(struct ky_sink *sink)
{
	struct csv_sink *s = (struct csv_sink *)sink;

	ky_strbuf_clear(&s->held);
	ky_vec_clear(&s->runs);
}

static size_t part_held(const struct ky_sink *sink)
{
	return ((const struct csv_sink *)sink)->held.len;
}

/* Nothing is written by a part. */
static int part_finish(struct ky_sink *sink, struct kymo_error *err)
{
	(void)sink;
	(void)err;
	return KYMO_OK;
}

static int add_run(struct csv_sink *s, const struct csv_run *run, const char *lines,
		   struct kymo_error *err)
{
	struct csv_file *file = run->file;

	if (!file->to)
		file->to = csv_directory_find_file(s, file->event_name, file->header);
	if (!file->to)
		return ky_error_nomem(err);
	ky_strbuf_add(&file->to->out, lines, run->len);
	return file->to->out.len >= FILE_BUFFER_BYTES ? csv_directory_write_out(s, file->to, err)
						      : KYMO_OK;
}

int ky_csv_directory_sink_add(void *sink, struct ky_sink *part, struct kymo_error *err)
{
	struct csv_sink *from = (struct csv_sink *)part;
	int ret = KYMO_OK;
	size_t at = 0;

	ky_vec_foreach(&from->runs, run) {
		if (ret == KYMO_OK)
			ret = add_run(sink, run, from->held.data + at, err);
		at += run->len;
	}
	part_begin(part);
	return ret;
}

/* ---- the end ------------------------------------------------------------------------------ */

static int csv_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct csv_sink *s = (struct csv_sink *)sink;
	int ret = KYMO_OK;

	for (size_t i = 0; i < s->files.len && ret == KYMO_OK; i++) {
		if (s->files.data[i]->out.len || ky_strbuf_failed(&s->files.data[i]->out))
			ret = csv_directory_write_out(s, s->files.data[i], err);
	}
	return ret;
}

static void csv_free(struct ky_sink *sink)
{
	struct csv_sink *s = (struct csv_sink *)sink;

	ky_vec_foreach(&s->files, file)
		file_free(*file);
	ky_vec_fini(&s->files);
	ky_names_fini(&s->by_name);
	ky_map_fini(&s->by_class);
	ky_values_fini(&s->values);
	ky_strbuf_fini(&s->scratch);
	ky_strbuf_fini(&s->held);
	ky_vec_fini(&s->runs);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s);
}

static const struct ky_sink_ops csv_ops = {
	.batch = csv_batch,
	.finish = csv_finish,
	.free = csv_free,
};

static const struct ky_sink_ops part_ops = {
	.batch = part_batch,
	.finish = part_finish,
	.free = csv_free,
	.hold = part_hold,
	.begin = part_begin,
	.held = part_held,
};

static struct csv_sink *sink_new(const struct ky_sink_ops *ops, bool raw)
{
	struct csv_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sink.ops = ops;
	s->raw = raw;
	s->dir_fd = -1;
	ky_names_init(&s->by_name);
	ky_map_init(&s->by_class);
	ky_values_init(&s->values);
	return s;
}

struct ky_sink *ky_csv_directory_part_new(bool raw)
{
	struct csv_sink *s = sink_new(&part_ops, raw);

	return s ? &s->sink : NULL;
}

int ky_csv_directory_sink_open(const char *path, bool raw, struct ky_sink **sink,
			       struct kymo_error *err)
{
	struct csv_sink *s = sink_new(&csv_ops, raw);
	int ret;

	if (!s)
		return ky_error_nomem(err);
	s->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0) {
		ret = ky_error_errno(err, errno, "cannot open the directory");
		ky_error_path(err, path);
		csv_free(&s->sink);
		return ret;
	}
	*sink = &s->sink;
	return KYMO_OK;
}
