/* SPDX-License-Identifier: MIT */
#include "flow/parallel/slice-write.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/source.h"
#include "os/file.h"

/* What a write() should have at least. */
#define WRITE_BYTES ((size_t)128 << 10)

/* ---- one slice ----------------------------------------------------------------------------- */

/* Where one source's warnings go. */
struct ky_slice_log {
	struct ky_log log;
	struct ky_slice_lines *lines;
	struct ky_flow *source;
	size_t number;
};

static void keep_warning(void *data, enum ky_log_level level, const char *text)
{
	struct ky_slice_log *log = data;
	struct ky_slice_warning warning = {
		.source = log->number,
		.kind = ky_source_warned(log->source),
		.level = level,
		.text = strdup(text),
	};

	/* Without memory there are worse troubles. */
	if (warning.text && ky_vec_push(&log->lines->warnings, warning) < 0)
		free(warning.text);
}

static void slice_write_forget(struct ky_slice_lines *lines)
{
	ky_vec_foreach(&lines->marks, mark) {
		ky_loss_drop(mark->loss);
		free(mark->loss);
	}
	ky_vec_clear(&lines->marks);
	ky_vec_foreach(&lines->warnings, warning)
		free(warning->text);
	ky_vec_clear(&lines->warnings);
}

static void slice_lines_init_source(struct ky_slice_lines *lines, struct ky_flow *const *sources,
				    size_t i)
{
	lines->logs[i] =
		(struct ky_slice_log){{keep_warning, &lines->logs[i]}, lines, sources[i], i};
	ky_source_log(sources[i], &lines->logs[i].log);
	ky_source_keep(sources[i]);
}

int ky_slice_lines_init(struct ky_slice_lines *lines, struct ky_sink *sink,
			struct ky_flow *const *sources, size_t n)
{
	lines->sink = sink;
	lines->logs = calloc(n + 1, sizeof(*lines->logs));
	if (!sink || !lines->logs)
		return KYMO_E_MEMORY;
	sink->ops->hold(sink);
	for (size_t i = 0; i < n; i++)
		slice_lines_init_source(lines, sources, i);
	return KYMO_OK;
}

void ky_slice_lines_fini(struct ky_slice_lines *lines)
{
	slice_write_forget(lines);
	ky_vec_fini(&lines->marks);
	ky_vec_fini(&lines->warnings);
	ky_sink_free(lines->sink);
	free(lines->logs);
}

void ky_slice_lines_begin(struct ky_slice_lines *lines)
{
	slice_write_forget(lines);
	lines->sink->ops->begin(lines->sink);
}

int ky_slice_lines_loss(struct ky_slice_lines *lines, const struct ky_loss *loss)
{
	struct ky_slice_mark mark = {ky_slice_lines_held(lines), malloc(sizeof(*loss))};

	if (!mark.loss)
		return KYMO_E_MEMORY;
	*mark.loss = *loss;
	if (ky_loss_keep(mark.loss) == KYMO_OK) {
		if (ky_vec_push(&lines->marks, mark) == 0)
			return KYMO_OK;
		ky_loss_drop(mark.loss);
	}
	free(mark.loss);
	return KYMO_E_MEMORY;
}

/* ---- writing ------------------------------------------------------------------------------- */

int ky_slice_writer_init(struct ky_slice_writer *writer, const struct ky_slices *how,
			 const struct ky_copies *copies)
{
	*writer = (struct ky_slice_writer){.how = how, .copies = copies};
	writer->told = calloc(copies->n_streams + 1, sizeof(*writer->told));
	for (size_t i = 0; writer->told && i < copies->n_streams; i++)
		ky_log_keep_init(&writer->told[i].log);
	return writer->told ? KYMO_OK : KYMO_E_MEMORY;
}

void ky_slice_writer_fini(struct ky_slice_writer *writer)
{
	for (size_t i = 0; writer->told && i < writer->copies->n_streams; i++)
		ky_log_keep_fini(&writer->told[i].log);
	ky_strbuf_fini(&writer->pending);
	free(writer->told);
}

static int slice_write_bytes(struct ky_slice_writer *w, const char *data, size_t len,
			     struct kymo_error *err)
{
	int ret = ky_write_all(w->how->fd, data, len);

	return ret < 0 ? ky_error_errno(err, -ret, "cannot write the text") : KYMO_OK;
}

static int slice_write_flush(struct ky_slice_writer *w, struct kymo_error *err)
{
	int ret = slice_write_bytes(w, ky_strbuf_text(&w->pending), w->pending.len, err);

	ky_strbuf_clear(&w->pending);
	return ret;
}

/* Add to what is to be written; much is written at once. */
static int slice_write_put(struct ky_slice_writer *w, const char *data, size_t len,
			   struct kymo_error *err)
{
	int ret = KYMO_OK;

	w->n_bytes += len;
	if (w->pending.len + len < WRITE_BYTES) {
		ky_strbuf_add(&w->pending, data, len);
		return ky_strbuf_failed(&w->pending) ? ky_error_nomem(err) : KYMO_OK;
	}
	if (w->pending.len)
		ret = slice_write_flush(w, err);
	return ret == KYMO_OK ? slice_write_bytes(w, data, len, err) : ret;
}

/* Bytes @from to @to of @held, with what belongs in between. */
static int put_held(struct ky_slice_writer *w, const struct ky_sink_held *held, size_t from,
		    size_t to, struct kymo_error *err)
{
	bool joint = held->joint_len && held->joint_at >= from && held->joint_at < to;
	int ret = KYMO_OK;

	if (joint) {
		ret = slice_write_put(w, held->data + from, held->joint_at - from, err);
		if (ret == KYMO_OK)
			ret = slice_write_put(w, held->joint, held->joint_len, err);
		from = held->joint_at;
	}
	return ret == KYMO_OK && from < to ? slice_write_put(w, held->data + from, to - from, err)
					   : ret;
}

/* Each stream is warned of once. */
static void keep_warnings(struct ky_slice_writer *w, const struct ky_slice_lines *lines)
{
	ky_vec_foreach(&lines->warnings, warning) {
		struct ky_slice_told *told = &w->told[warning->source];

		if (!(warning->kind & ~told->kinds))
			continue;
		told->kinds |= warning->kind;
		told->log.log.write(told->log.log.data, warning->level, warning->text);
	}
}

static void slice_write_tell_warnings(struct ky_slice_writer *w)
{
	for (size_t i = 0; i < w->copies->n_streams; i++)
		ky_log_keep_tell(&w->told[i].log, w->copies->streams[i]->trace->log);
}

/* Lines that are not of one file: losses follow them. */
static int write_elsewhere(struct ky_slice_writer *w, struct ky_slice_lines *lines,
			   struct kymo_error *err)
{
	int ret;

	w->n_bytes += ky_slice_lines_held(lines);
	ret = w->how->write(w->how->write_data, lines->sink, err);
	ky_vec_foreach(&lines->marks, mark) {
		if (ret == KYMO_OK)
			w->how->loss(w->how->loss_data, mark->loss);
	}
	return ret;
}

static int slice_write_lines(struct ky_slice_writer *w, struct ky_slice_lines *lines,
			     struct kymo_error *err)
{
	struct ky_sink_held held;
	size_t at = 0;
	int ret = KYMO_OK;

	lines->sink->ops->take(lines->sink, &w->before, &held);
	ky_vec_foreach(&lines->marks, mark) {
		if (ret == KYMO_OK)
			ret = put_held(w, &held, at, mark->at, err);
		if (ret == KYMO_OK)
			ret = slice_write_flush(w, err);
		if (ret == KYMO_OK)
			w->how->loss(w->how->loss_data, mark->loss);
		at = mark->at;
	}
	return ret == KYMO_OK ? put_held(w, &held, at, held.len, err) : ret;
}

int ky_slice_write(struct ky_slice_writer *w, struct ky_slice_lines *lines, struct kymo_error *err)
{
	int ret;

	keep_warnings(w, lines);
	ret = w->how->write ? write_elsewhere(w, lines, err) : slice_write_lines(w, lines, err);
	slice_write_forget(lines);
	return ret;
}

int ky_slice_writer_end(struct ky_slice_writer *w, bool failed, struct kymo_error *err)
{
	int ret = failed ? KYMO_OK : slice_write_flush(w, err);

	slice_write_tell_warnings(w);
	return ret;
}
