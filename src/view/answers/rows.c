/* SPDX-License-Identifier: MIT */
/* Events as rows of a table, by their number in the order of time. */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/foreign.h"
#include "flow/graph/sink.h"
#include "flow/sinks/json-value.h"
#include "flow/sinks/text.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

/* A row shows the begin of a longer text; the details of the event have all of it. */
#define MAX_TEXT_BYTES	 ((size_t)16 << 10)
#define MAX_ANSWER_BYTES ((size_t)64 << 20)

/* Rows of an answer. Time INT64_MIN: none; a CPU's number and one, 0: none. */
struct columns {
	struct ky_view_column times, traces, cpus, texts;
	struct ky_view_names names;
};

/* Writes single events. */
struct writer {
	const struct ky_view *view;
	struct ky_strbuf *out; /* JSON, or: */
	struct columns *columns;
	struct ky_text *text;
	struct ky_sink *json; /* or NULL: only rows */
	uint64_t n;	      /* written */
};

/* ---- events ------------------------------------------------------------------------------ */

static size_t rows_trace_of(const struct ky_view *view, const struct ky_stream *stream)
{
	size_t i = 0;

	while (i + 1 < view->set->traces.len && view->set->traces.data[i] != stream->trace)
		i++;
	return i;
}

/* The part of a line after "[time] name: ": all scopes. */
static const char *after_name(const char *line, size_t *len, const struct ky_event *event)
{
	struct ky_strbuf name = KY_STRBUF_INIT;
	const char *at = line, *end = line + *len;

	if (event->ns != INT64_MIN) {
		at = memchr(line, ']', *len);
		at = at && end - at >= 2 ? at + 2 : line;
	}
	ky_foreign_adds(&name, event->cls->name);
	if ((size_t)(end - at) >= name.len + 2 && memcmp(at, ky_strbuf_text(&name), name.len) == 0)
		at += name.len + 2;
	ky_strbuf_fini(&name);
	*len = (size_t)(end - at);
	return at;
}

/* How much of a text a row shows. */
static size_t rows_shown_of(const char *text, size_t len)
{
	size_t n = len < MAX_TEXT_BYTES ? len : MAX_TEXT_BYTES;

	while (n < len && n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static void rows_put_text(struct ky_strbuf *out, const char *text, size_t len)
{
	size_t n = rows_shown_of(text, len);

	ky_json_text(out, text, n);
	if (n < len) {
		out->len--; /* the quote */
		ky_strbuf_adds(out, "\xe2\x80\xa6\"");
	}
}

int ky_view_line(struct ky_text *text, const struct ky_batch *one, const char **line, size_t *len,
		 struct kymo_error *err)
{
	struct ky_sink_before before = {0};
	struct ky_sink_held held;
	int ret;

	ky_text_begin(text);
	ret = ky_text_batch(text, one, err);
	if (ret < 0)
		return ret;
	ky_text_take(text, &before, &held);
	*len = held.len && held.data[held.len - 1] == '\n' ? held.len - 1 : held.len;
	*line = after_name(held.data, len, one->events);
	return KYMO_OK;
}

static int rows_put_line(struct writer *writer, const struct ky_batch *one, struct kymo_error *err)
{
	const char *text;
	size_t len;
	int ret = ky_view_line(writer->text, one, &text, &len, err);

	if (ret == KYMO_OK)
		rows_put_text(writer->out, text, len);
	return ret;
}

/* [time, trace, CPU, name, text] */
static int rows_put_row(struct writer *writer, const struct ky_batch *one, struct kymo_error *err)
{
	const struct ky_event *event = one->events;
	struct ky_strbuf *out = writer->out;
	int ret;

	ky_strbuf_adds(out, "[");
	if (event->ns == INT64_MIN)
		ky_strbuf_adds(out, "null");
	else
		ky_strbuf_addi(out, event->ns);
	ky_strbuf_addf(out, ",%zu,", rows_trace_of(writer->view, one->stream));
	if (event->cpu_id == UINT32_MAX)
		ky_strbuf_adds(out, "null");
	else
		ky_strbuf_addu(out, event->cpu_id);
	ky_strbuf_adds(out, ",");
	ky_view_put_text(out, event->cls->name);
	ky_strbuf_adds(out, ",");
	ret = rows_put_line(writer, one, err);
	ky_strbuf_adds(out, "]");
	return ret;
}

static int rows_add_line(struct columns *columns, struct writer *writer, const struct ky_batch *one,
			 struct kymo_error *err)
{
	struct ky_strbuf shown = KY_STRBUF_INIT;
	const char *text;
	size_t len, n;
	int ret = ky_view_line(writer->text, one, &text, &len, err);

	if (ret < 0)
		return ret;
	n = rows_shown_of(text, len);
	ky_strbuf_add(&shown, text, n);
	if (n < len)
		ky_strbuf_adds(&shown, "\xe2\x80\xa6");
	ky_view_add_text(&columns->texts, ky_strbuf_text(&shown), shown.len);
	columns->texts.bytes.failed |= shown.failed;
	ky_strbuf_fini(&shown);
	return KYMO_OK;
}

static int rows_add_row(struct writer *writer, const struct ky_batch *one, struct kymo_error *err)
{
	struct columns *columns = writer->columns;
	const struct ky_event *event = one->events;

	ky_view_add_step(&columns->times, event->ns);
	ky_view_add_number(&columns->traces, rows_trace_of(writer->view, one->stream));
	ky_view_add_number(&columns->cpus,
			   event->cpu_id == UINT32_MAX ? 0 : (uint64_t)event->cpu_id + 1);
	ky_view_add_name(&columns->names, event->cls->name);
	return rows_add_line(columns, writer, one, err);
}

/* The same, with the event as JSON: all fields, with their types. */
static int put_details(struct writer *writer, const struct ky_batch *one, struct kymo_error *err)
{
	struct ky_sink_before before = {0};
	struct ky_sink_held held;
	int ret;

	writer->json->ops->begin(writer->json);
	ret = ky_sink_batch(writer->json, one, err);
	if (ret < 0)
		return ret;
	writer->json->ops->take(writer->json, &before, &held);
	if (held.len > MAX_ANSWER_BYTES)
		return ky_error_set(err, KYMO_E_LIMIT, "the event is too large to show");
	ky_strbuf_adds(writer->out, ", \"event\": ");
	ky_strbuf_add(writer->out, held.data, held.len);
	return KYMO_OK;
}

static int put_one(struct writer *writer, const struct ky_batch *batch, size_t i,
		   struct kymo_error *err)
{
	struct ky_batch one = *batch;
	int ret;

	one.events = &batch->events[i];
	one.n_events = 1;
	one.loss = NULL;
	one.stream = ky_batch_stream(batch, one.events);
	ret = writer->columns ? rows_add_row(writer, &one, err) : rows_put_row(writer, &one, err);
	if (ret == KYMO_OK && writer->json)
		ret = put_details(writer, &one, err);
	if (ret < 0)
		ky_sink_place(one.stream, err);
	writer->n++;
	return ret;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Damage ends the rows of a stream; the state of counting tells of it. */
static int forgive(int ret)
{
	return ret > 0 || ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_IO ? KYMO_OK
											  : ret;
}

/* @skip events of the range from @begin_ns to @end_ns, then up to @n into @writer. */
static int rows_read_range(struct writer *writer, const char *filter, int64_t begin_ns,
			   int64_t end_ns, uint64_t skip, uint64_t n,
			   const struct ky_view_stop *stop, struct kymo_error *err)
{
	uint64_t until = writer->n + n;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(writer->view, filter, begin_ns, end_ns, stop, &flow, err);

	if (ret < 0)
		return ret;
	while (writer->n < until && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		size_t i = skip < batch.n_events ? (size_t)skip : batch.n_events;

		skip -= i;
		for (ret = KYMO_OK; i < batch.n_events && writer->n < until && ret == KYMO_OK; i++)
			ret = put_one(writer, &batch, i, err);
		if (ret < 0)
			break;
	}
	ky_flow_close(flow);
	return forgive(ret);
}

/* Counted events from @row on, which is in bucket @at after @before events. */
static int read_counted(struct writer *writer, struct ky_counts *counts, size_t at, uint64_t skip,
			uint64_t n, const struct ky_view_stop *stop, struct kymo_error *err)
{
	size_t from, to;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && writer->n < n &&
	       ky_counts_window(counts, at, skip + n - writer->n, &from, &to)) {
		int64_t begin_ns = from ? ky_counts_time(counts, from) : INT64_MIN;
		int64_t end_ns = to < KY_COUNT_BUCKETS ? ky_counts_time(counts, to) - 1 : INT64_MAX;

		ret = rows_read_range(writer, ky_counts_filter(counts), begin_ns, end_ns, skip,
				      n - writer->n, stop, err);
		at = to;
		skip = 0;
	}
	return ret;
}

/* Rows beyond those that were counted: about the right ones. With a filter they are unknown. */
static int read_estimated(struct writer *writer, struct ky_counts *counts,
			  const struct ky_counts_state *state, uint64_t row, uint64_t n,
			  const struct ky_view_stop *stop, struct kymo_error *err)
{
	const struct ky_view *view = writer->view;
	double bits = (double)(row - (row > state->n ? state->n : row)) /
		      ky_view_rate(view, counts, state);
	int64_t from_ns = ky_counts_time(counts, state->n_exact);

	if (state->is_over || ky_counts_filter(counts)[0])
		return KYMO_OK;
	return rows_read_range(writer, "", ky_view_time_after(view, from_ns, bits), INT64_MAX, 0, n,
			       stop, err);
}

static int rows_writer_init(struct writer *writer, const struct ky_view *view,
			    struct ky_strbuf *out, bool with_details, struct kymo_error *err)
{
	static const struct ky_text_options options = {.no_delta = true,
						       .fields = KY_TEXT_FIELDS_CHOSEN};

	*writer = (struct writer){.view = view, .out = out, .text = ky_text_new(-1, &options)};
	if (writer->text)
		ky_text_hold(writer->text);
	if (with_details)
		writer->json = ky_json_sink_new(-1, NULL);
	if (writer->json)
		writer->json->ops->hold(writer->json);
	return writer->text && (writer->json || !with_details) ? KYMO_OK : ky_error_nomem(err);
}

static void writer_fini(struct writer *writer)
{
	ky_text_free(writer->text);
	ky_sink_free(writer->json);
}

/* ---- all events of a range --------------------------------------------------------------- */

struct walk {
	struct writer writer;
	struct ky_strbuf text; /* of one event */
	int (*put)(void *data, int64_t ns, const struct ky_strbuf *json, struct kymo_error *err);
	void *data;
};

static int walk_batch(struct walk *walk, const struct ky_batch *batch, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++) {
		ky_strbuf_clear(&walk->text);
		ky_strbuf_adds(&walk->text, "{\"line\": ");
		ret = put_one(&walk->writer, batch, i, err);
		ky_strbuf_adds(&walk->text, "}");
		if (ret == KYMO_OK && ky_strbuf_failed(&walk->text))
			ret = ky_error_nomem(err);
		if (ret == KYMO_OK)
			ret = walk->put(walk->data, batch->events[i].ns, &walk->text, err);
	}
	return ret;
}

int ky_view_walk(const struct ky_view *view, int64_t begin_ns, int64_t end_ns,
		 const struct ky_view_stop *stop,
		 int (*put)(void *data, int64_t ns, const struct ky_strbuf *json,
			    struct kymo_error *err),
		 void *data, struct kymo_error *damage, struct ky_broken_list *broken,
		 struct kymo_error *err)
{
	struct walk walk = {.text = KY_STRBUF_INIT, .put = put, .data = data};
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = rows_writer_init(&walk.writer, view, &walk.text, true, err);

	if (ret == KYMO_OK)
		ret = ky_view_flow(view, "", begin_ns, end_ns, stop, &flow, err);
	if (ret == KYMO_OK) {
		while ((ret = ky_flow_next(flow, &batch, damage)) > 0) {
			ret = walk_batch(&walk, &batch, err);
			if (ret < 0)
				break;
		}
		if (ret < 0 && damage->code && ret == damage->code) {
			ky_broken_note(broken, view->set, flow);
			ret = ret == KYMO_E_MEMORY ? ky_error_nomem(err) : KYMO_OK;
		}
		ky_flow_close(flow);
	}
	writer_fini(&walk.writer);
	ky_strbuf_fini(&walk.text);
	return ret < 0 ? ret : KYMO_OK;
}

/* ---- answers ----------------------------------------------------------------------------- */

/* "{\"row\": ..., \"exact\": ..." and how far counting is, to @head. */
static int rows_read_rows(struct writer *writer, struct ky_counts *counts,
			  const struct ky_view_request *request, const struct ky_view_stop *stop,
			  struct ky_strbuf *head, struct kymo_error *err)
{
	bool is_event = request->what == KY_VIEW_EVENT;
	uint64_t n = is_event ? 1 : request->count, before;
	struct ky_counts_state state;
	size_t bucket;
	bool is_exact;
	int ret;

	ky_counts_state(counts, &state);
	is_exact = ky_counts_find(counts, request->row, &bucket, &before);
	ky_strbuf_addf(head, "{\"row\": %llu, \"exact\": %s, ", (unsigned long long)request->row,
		       is_exact || state.is_over ? "true" : "false");
	ky_view_put_state(writer->view, counts, &state, head);
	ky_strbuf_adds(head, is_event ? ", \"line\": " : "}");
	if (is_exact)
		ret = read_counted(writer, counts, bucket, request->row - before, n, stop, err);
	else
		ret = read_estimated(writer, counts, &state, request->row, n, stop, err);
	if (ret == KYMO_OK && is_event && !writer->n)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such event");
	if (is_event)
		ky_strbuf_adds(head, "}\n");
	return ret;
}

static void rows_columns_init(struct columns *columns)
{
	*columns = (struct columns){.times = KY_VIEW_COLUMN("ns", KY_VIEW_TIMES),
				    .traces = KY_VIEW_COLUMN("trace", KY_VIEW_NUMBERS),
				    .cpus = KY_VIEW_COLUMN("cpu", KY_VIEW_NUMBERS),
				    .texts = KY_VIEW_COLUMN("text", KY_VIEW_TEXTS)};
	ky_view_names_init(&columns->names, "names", "name");
}

static void rows_columns_put(struct columns *columns, const struct ky_strbuf *head,
			     struct ky_strbuf *out)
{
	ky_view_begin_columns(out);
	ky_view_put_head(out, head);
	ky_view_put_column(out, &columns->times);
	ky_view_put_column(out, &columns->traces);
	ky_view_put_column(out, &columns->cpus);
	ky_view_put_names(out, &columns->names);
	ky_view_put_column(out, &columns->texts);
	ky_view_end_columns(out);
}

int ky_view_rows(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	bool is_event = request->what == KY_VIEW_EVENT;
	struct ky_strbuf head = KY_STRBUF_INIT;
	struct ky_counts *counts;
	struct columns columns;
	struct writer writer;
	int ret = ky_view_take_counts(view, request->filter, &counts, err);

	if (ret < 0)
		return ret;
	rows_columns_init(&columns);
	ret = rows_writer_init(&writer, view, out, is_event, err);
	writer.columns = is_event ? NULL : &columns;
	if (ret == KYMO_OK)
		ret = rows_read_rows(&writer, counts, request, stop, is_event ? out : &head, err);
	if (!is_event)
		rows_columns_put(&columns, &head, out);
	writer_fini(&writer);
	ky_strbuf_fini(&head);
	ky_view_put_counts(view, counts);
	return ret;
}

/* Events of bucket @bucket before @ns. */
static int count_before(const struct ky_view *view, struct ky_counts *counts, size_t bucket,
			int64_t ns, const struct ky_view_stop *stop, uint64_t *n,
			struct kymo_error *err)
{
	int64_t begin_ns = bucket ? ky_counts_time(counts, bucket) : INT64_MIN;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret;

	if (ns == INT64_MIN || ns <= begin_ns)
		return KYMO_OK;
	ret = ky_view_flow(view, ky_counts_filter(counts), begin_ns, ns - 1, stop, &flow, err);
	if (ret < 0)
		return ret;
	while ((ret = ky_flow_next(flow, &batch, err)) > 0)
		*n += batch.n_events;
	ky_flow_close(flow);
	return forgive(ret);
}

static int rank(struct ky_view *view, struct ky_counts *counts, int64_t ns,
		const struct ky_view_stop *stop, uint64_t *row, bool *is_exact,
		struct kymo_error *err)
{
	size_t bucket = ky_counts_bucket(counts, ns);
	struct ky_counts_state state;
	int64_t from_ns;

	ky_counts_state(counts, &state);
	*is_exact = state.is_over || bucket < state.n_exact;
	if (*is_exact) {
		*row = ky_counts_sum(counts, 0, bucket);
		return count_before(view, counts, bucket, ns, stop, row, err);
	}
	from_ns = ky_counts_time(counts, state.n_exact);
	*row = state.n +
	       (uint64_t)(ky_view_bits(view, from_ns, ns) * ky_view_rate(view, counts, &state));
	return KYMO_OK;
}

int ky_view_rank(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_counts *counts;
	uint64_t row = 0;
	bool is_exact;
	int ret = ky_view_take_counts(view, request->filter, &counts, err);

	if (ret < 0)
		return ret;
	ret = rank(view, counts, request->ns, stop, &row, &is_exact, err);
	ky_strbuf_addf(out, "{\"row\": %llu, \"exact\": %s}\n", (unsigned long long)row,
		       is_exact ? "true" : "false");
	ky_view_put_counts(view, counts);
	return ret;
}
