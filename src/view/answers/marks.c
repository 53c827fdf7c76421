/* SPDX-License-Identifier: MIT */
/*
 * Events as marks on rows: those of programs on the rows of their threads, marks of triggers, and all that a filter selects.
 * The events of the range are read, up to a limit.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/answers/row-index.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

#define MAX_EVENTS 4000000 /* a second, or less */
#define MAX_MARKS  20000
#define MARK_EVENT "kymo:mark"

/* An event class, as far as marks go. */
struct class
{
	struct ky_handle tid, text;
	bool is_trigger;
};

/* Events of a row in a pixel. */
struct mark {
	uint32_t row, n;
	size_t pixel, name;
};

struct marks {
	int64_t begin_ns;
	double span_ns;
	size_t n;
	struct ky_row_index index;
	uint32_t *machines;    /* of streams: their machines' rows */
	struct ky_map classes; /* event class -> struct class * */
	struct ky_map places;  /* row << 32 | pixel -> place in ->list + 1 */
	KY_VEC(struct mark) list;
	struct ky_view_names names;
	uint64_t n_events;
	int64_t until_ns; /* what is later was not read; INT64_MAX: everything was */
};

/* Marks of triggers are on no row. */
#define TRIGGERS (KY_HISTORY_NO_ROW - 1)

/* ---- classes --------------------------------------------------------------------------------- */

static struct class *marks_class_of(struct marks *marks, const struct ky_event_class *cls)
{
	static const char *const names[] = {"vtid", "tid"};
	static const enum ky_scope scopes[] = {KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_STREAM_CONTEXT};
	struct class *found = ky_map_get(&marks->classes, (uintptr_t)cls);

	if (found)
		return found;
	found = calloc(1, sizeof(*found));
	if (!found || ky_map_set(&marks->classes, (uintptr_t)cls, found) < 0) {
		free(found);
		return NULL;
	}
	for (int i = 0; i < 4 && !found->tid.cls; i++)
		ky_handle_find(&found->tid, cls, scopes[i & 1], names[i >> 1]);
	found->is_trigger = strcmp(cls->name, MARK_EVENT) == 0;
	if (found->is_trigger)
		ky_handle_find(&found->text, cls, KY_SCOPE_PAYLOAD, "name");
	return found;
}

/* ---- marks ------------------------------------------------------------------------------------- */

static int add_mark(struct marks *marks, uint32_t row, int64_t ns, const char *name, size_t len)
{
	double place = (double)((uint64_t)ns - (uint64_t)marks->begin_ns) / marks->span_ns;
	size_t pixel = (size_t)(place * (double)marks->n);
	struct mark mark = {.row = row, .n = 1};
	uintptr_t at;
	uint64_t key;

	mark.pixel = pixel < marks->n ? pixel : marks->n - 1;
	key = (uint64_t)row << 32 | mark.pixel;
	at = (uintptr_t)ky_map_get(&marks->places, key);
	if (at) {
		marks->list.data[at - 1].n += marks->list.data[at - 1].n < UINT32_MAX;
		return KYMO_OK;
	}
	if (marks->list.len >= MAX_MARKS) {
		marks->until_ns = ns;
		return KYMO_OK;
	}
	mark.name = ky_view_number_of(&marks->names, name, len);
	if (!mark.name || ky_vec_push(&marks->list, mark) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&marks->places, key, (void *)(uintptr_t)marks->list.len);
}

/* The row of the event's thread; else of its CPU, or of its stream. */
static uint32_t marks_row_of(const struct marks *marks, const struct ky_stream *stream,
			     const struct ky_event *event, const struct class *class)
{
	uint32_t machine = marks->machines[stream->index], row = KY_HISTORY_NO_ROW;
	int64_t tid = ky_get_i64(event, &class->tid, 0);

	if (tid > 0)
		row = ky_row_find(&marks->index, KY_ROW_THREAD, machine, tid, event->ns);
	if (row == KY_HISTORY_NO_ROW && event->cpu_id != UINT32_MAX &&
	    ky_is_kernel_trace(stream->trace))
		row = ky_row_find(&marks->index, KY_ROW_CPU, machine, event->cpu_id, event->ns);
	if (row == KY_HISTORY_NO_ROW)
		row = ky_row_find(&marks->index, KY_ROW_STREAM, machine, stream->index, event->ns);
	return row;
}

static int marks_add_event(struct marks *marks, const struct ky_stream *stream,
			   const struct ky_event *event)
{
	const struct class *class = marks_class_of(marks, event->cls);
	const char *name = event->cls->name;
	uint32_t row = TRIGGERS;
	size_t len = strlen(name);

	if (!class)
		return KYMO_E_MEMORY;
	if (class->is_trigger && class->text.cls)
		name = ky_get_text(event, &class->text, &len);
	if (!class->is_trigger)
		row = marks_row_of(marks, stream, event, class);
	return row == KY_HISTORY_NO_ROW ? KYMO_OK : add_mark(marks, row, event->ns, name, len);
}

static int marks_add_events(struct marks *marks, const struct ky_batch *batch)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++) {
		const struct ky_event *event = &batch->events[i];

		if (event->ns == INT64_MIN || marks->until_ns != INT64_MAX)
			continue;
		ret = marks_add_event(marks, ky_batch_stream(batch, event), event);
		if (++marks->n_events >= MAX_EVENTS)
			marks->until_ns = event->ns;
	}
	return ret;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static bool has_triggers(const struct ky_trace *trace)
{
	ky_vec_foreach(&trace->cls->events, event) {
		if (strcmp((*event)->name, MARK_EVENT) == 0)
			return true;
	}
	return false;
}

/*
 * Streams of programs, and all with a filter, but for marks of triggers those that can have some. False: there are
 * none.
 */
static bool marks_choose(const struct ky_view *view, const char *filter, bool *only)
{
	bool of_triggers = strcmp(filter, "$event == \"" MARK_EVENT "\"") == 0, any = false;

	ky_vec_foreach(&view->set->streams, stream) {
		const struct ky_trace *trace = (*stream)->trace;

		only[(*stream)->index] =
			of_triggers ? has_triggers(trace) : filter[0] || !ky_is_kernel_trace(trace);
		any |= only[(*stream)->index];
	}
	return any;
}

static int marks_read_range(struct marks *marks, const struct ky_view *view,
			    const struct ky_view_request *request, const struct ky_view_stop *stop,
			    const bool *only, struct kymo_error *err)
{
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow_only(view, only, request->filter, request->begin_ns, request->end_ns,
				    stop, &flow, err);

	if (ret < 0)
		return ret;
	while (marks->until_ns == INT64_MAX && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		if (marks_add_events(marks, &batch) < 0) {
			ret = ky_error_nomem(err);
			break;
		}
	}
	ky_flow_close(flow);
	/* The state of counting tells of damage. */
	return ret > 0 || ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_IO ? KYMO_OK
											  : ret;
}

static int marks_prepare(struct marks *marks, const struct ky_view *view,
			 struct ky_history *history)
{
	marks->machines = calloc(view->set->streams.len + 1, sizeof(*marks->machines));
	if (!marks->machines || ky_row_index_init(&marks->index, history) < 0)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&view->set->streams, stream)
		marks->machines[(*stream)->index] =
			ky_row_machine(&marks->index, history, (*stream)->trace);
	return KYMO_OK;
}

static void marks_fini(struct marks *marks)
{
	size_t pos = 0;
	uint64_t key;
	void *class;

	while (ky_map_next(&marks->classes, &pos, &key, &class))
		free(class);
	ky_map_fini(&marks->classes);
	ky_map_fini(&marks->places);
	ky_view_names_fini(&marks->names);
	ky_row_index_fini(&marks->index);
	ky_vec_fini(&marks->list);
	free(marks->machines);
}

/* ---- the answer -------------------------------------------------------------------------------- */

static void marks_put_list(const struct marks *marks, struct ky_strbuf *out)
{
	struct ky_view_column rows = KY_VIEW_COLUMN("row", KY_VIEW_NUMBERS);
	struct ky_view_column pixels = KY_VIEW_COLUMN("pixel", KY_VIEW_STEPS);
	struct ky_view_column events = KY_VIEW_COLUMN("events", KY_VIEW_NUMBERS);
	struct ky_view_column names = KY_VIEW_COLUMN("name", KY_VIEW_NUMBERS);

	ky_vec_foreach(&marks->list, mark) {
		ky_view_add_number(&rows, mark->row == TRIGGERS ? 0 : (uint64_t)mark->row + 1);
		ky_view_add_step(&pixels, (int64_t)mark->pixel);
		ky_view_add_number(&events, mark->n);
		ky_view_add_number(&names, mark->name);
	}
	ky_view_put_column(out, &rows);
	ky_view_put_column(out, &pixels);
	ky_view_put_column(out, &events);
	ky_view_put_column(out, &names);
}

/* Row 0: of a trigger; else the row's number and one. */
static void put_answer(struct marks *marks, struct ky_strbuf *out)
{
	struct ky_strbuf head = KY_STRBUF_INIT;

	ky_strbuf_addf(&head, "{\"count\": %zu, \"until\": ", marks->n);
	if (marks->until_ns == INT64_MAX)
		ky_strbuf_adds(&head, "null");
	else
		ky_strbuf_addi(&head, marks->until_ns);
	ky_strbuf_adds(&head, "}");
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	marks_put_list(marks, out);
	ky_view_put_column(out, &marks->names.texts);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
}

static int marks_answer(struct marks *marks, struct ky_view *view,
			const struct ky_view_request *request, const struct ky_view_stop *stop,
			struct kymo_error *err)
{
	bool *only = calloc(view->set->streams.len + 1, sizeof(*only));
	int ret = only ? KYMO_OK : ky_error_nomem(err);

	if (ret == KYMO_OK && marks_choose(view, request->filter, only))
		ret = marks_read_range(marks, view, request, stop, only, err);
	free(only);
	return ret;
}

/* Others may ask the history while events are read. 1: it is there; 0: it is not yet. */
static int take_rows(struct marks *marks, struct ky_view *view, struct kymo_error *err)
{
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK && history)
		ret = marks_prepare(marks, view, history) < 0 ? ky_error_nomem(err) : 1;
	ky_view_put_history(view);
	return ret;
}

int ky_view_marks(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	uint64_t span = (uint64_t)request->end_ns - (uint64_t)request->begin_ns + 1;
	struct marks marks = {
		.begin_ns = request->begin_ns, .n = request->count, .until_ns = INT64_MAX};
	int ret;

	if (span && span < marks.n)
		marks.n = (size_t)span;
	marks.span_ns = (double)(span - 1) + 1;
	ky_view_names_init(&marks.names, "names", "name");
	ky_map_init(&marks.classes);
	ky_map_init(&marks.places);
	ret = take_rows(&marks, view, err);
	if (ret > 0)
		ret = marks_answer(&marks, view, request, stop, err);
	if (ret == KYMO_OK)
		put_answer(&marks, out);
	marks_fini(&marks);
	return ret;
}
