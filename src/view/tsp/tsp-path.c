/* SPDX-License-Identifier: MIT */
/* The critical path of a thread: from the report of that name. */
#include "view/tsp/tsp-path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

struct ky_tsp_path *ky_tsp_path_new(const struct ky_tsp_request *request)
{
	struct ky_tsp_path *path = calloc(1, sizeof(*path));

	if (!path)
		return NULL;
	pthread_mutex_init(&path->lock, NULL);
	ky_arena_init(&path->arena);
	path->n_users = 1;
	path->tid = request->tid;
	path->has_range = request->has_range;
	path->begin_ns = request->begin_ns;
	path->end_ns = request->end_ns;
	if (path->has_range)
		snprintf(path->id, sizeof(path->id),
			 KY_TSP_PATH ".%" PRId64 ".%" PRId64 ".%" PRId64, path->tid, path->begin_ns,
			 path->end_ns);
	else
		snprintf(path->id, sizeof(path->id), KY_TSP_PATH ".%" PRId64, path->tid);
	path->name = strdup(request->name && *request->name ? request->name : path->id);
	if (path->name)
		return path;
	ky_tsp_path_free(path);
	return NULL;
}

static void tsp_path_clear(struct ky_tsp_path *path)
{
	ky_vec_fini(&path->rows);
	ky_vec_fini(&path->parts);
	ky_vec_fini(&path->arrows);
	ky_arena_fini(&path->arena);
	ky_arena_init(&path->arena);
	path->is_made = false;
}

void ky_tsp_path_free(struct ky_tsp_path *path)
{
	if (!path)
		return;
	tsp_path_clear(path);
	ky_arena_fini(&path->arena);
	pthread_mutex_destroy(&path->lock);
	free(path->name);
	free(path);
}

/* ---- from the report ------------------------------------------------------------------------- */

struct making {
	struct ky_tsp_path *path;
	struct ky_map places;	/* tid -> place in the path's rows, from 1 on */
	struct ky_names labels; /* -> the same text in the path's arena */
};

static const char *tsp_path_text(const struct ky_json *row, const char *name)
{
	const struct ky_json *value = ky_json_get(row, name);

	return value && value->kind == KY_JSON_STRING ? value->string.data : "";
}

static int64_t tsp_path_number(const struct ky_json *row, const char *name)
{
	const struct ky_json *value = ky_json_get(row, name);

	return value && value->kind == KY_JSON_INTEGER ? (int64_t)value->integer.u : INT64_MIN;
}

/* What is drawn for a cause: the states with such colours. */
static enum ky_state_kind tsp_path_kind(const char *cause)
{
	static const struct {
		const char *begin, *has;
		enum ky_state_kind kind;
	} kinds[] = {
		{"running in user space", "", KY_STATE_USER},
		{"running", "", KY_STATE_SYSCALL},
		{"interrupted", "", KY_STATE_IRQ},
		{"preempted", "", KY_STATE_WAIT_CPU},
		{"waiting for a CPU", "", KY_STATE_WAIT_CPU},
		{"", "disk", KY_STATE_DISK},
		{"", ": lock", KY_STATE_LOCK},
		{"", ": futex", KY_STATE_LOCK},
		{"", "network", KY_STATE_NETWORK},
		{"", "timer", KY_STATE_TIMER},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strncmp(cause, kinds[i].begin, strlen(kinds[i].begin)) == 0 &&
		    strstr(cause, kinds[i].has))
			return kinds[i].kind;
	}
	return KY_STATE_BLOCKED;
}

/* The row of @process, {"name", "tid"}; a new one at the first time. UINT32_MAX: out of memory. */
static uint32_t tsp_path_row(struct making *making, const struct ky_json *process)
{
	struct ky_tsp_path *path = making->path;
	int64_t tid = process ? tsp_path_number(process, "tid") : -1;
	uintptr_t place = (uintptr_t)ky_map_get(&making->places, (uint64_t)tid);
	struct ky_tsp_path_row row = {.tid = tid, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};

	if (place)
		return (uint32_t)place - 1;
	row.name = ky_arena_strdup(&path->arena, process ? tsp_path_text(process, "name") : "");
	if (!row.name || ky_vec_push(&path->rows, row) < 0 ||
	    ky_map_set(&making->places, (uint64_t)tid, (void *)(uintptr_t)path->rows.len) < 0)
		return UINT32_MAX;
	return (uint32_t)path->rows.len - 1;
}

/* "blocked: disk, read" */
static const char *tsp_path_label(struct making *making, const struct ky_json *row)
{
	const char *call = tsp_path_text(row, "syscall"), *known;
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *copy = NULL;

	ky_strbuf_addf(&text, *call ? "%s, %s" : "%s", tsp_path_text(row, "cause"), call);
	known = ky_names_get(&making->labels, ky_strbuf_text(&text));
	if (!known && !ky_strbuf_failed(&text)) {
		copy = ky_arena_strdup(&making->path->arena, ky_strbuf_text(&text));
		if (copy && ky_names_set(&making->labels, copy, copy) < 0)
			copy = NULL;
	}
	ky_strbuf_fini(&text);
	return known ? known : copy;
}

static int tsp_path_add_part(struct making *making, const struct ky_json *row)
{
	struct ky_tsp_path *path = making->path;
	struct ky_tsp_part part = {.begin_ns = tsp_path_number(row, "begin"),
				   .end_ns = tsp_path_number(row, "end"),
				   .kind = tsp_path_kind(tsp_path_text(row, "cause"))};
	struct ky_tsp_path_row *of;

	part.row = tsp_path_row(making, ky_json_get(row, "process"));
	part.label = tsp_path_label(making, row);
	if (part.row == UINT32_MAX || !part.label || ky_vec_push(&path->parts, part) < 0)
		return KYMO_E_MEMORY;
	of = &path->rows.data[part.row];
	of->begin_ns = part.begin_ns < of->begin_ns ? part.begin_ns : of->begin_ns;
	of->end_ns = part.end_ns > of->end_ns ? part.end_ns : of->end_ns;
	return KYMO_OK;
}

static int tsp_path_add_arrow(struct making *making, const struct ky_json *row)
{
	const struct ky_tsp_path_arrow arrow = {
		.ns = tsp_path_number(row, "time"),
		.from = tsp_path_row(making, ky_json_get(row, "waker")),
		.to = tsp_path_row(making, ky_json_get(row, "process"))};

	if (arrow.from == UINT32_MAX || arrow.to == UINT32_MAX ||
	    ky_vec_push(&making->path->arrows, arrow) < 0)
		return KYMO_E_MEMORY;
	return KYMO_OK;
}

/* Several threads can have the number, of several machines: then there are several paths. */
static int tsp_path_by_begin(const void *a, const void *b)
{
	const struct ky_tsp_part *one = a, *other = b;

	if (one->begin_ns != other->begin_ns)
		return one->begin_ns < other->begin_ns ? -1 : 1;
	return one->row < other->row ? -1 : one->row > other->row;
}

static const struct ky_json *tsp_path_first(const struct ky_json *object, const char *name)
{
	const struct ky_json *array = object ? ky_json_get(object, name) : NULL;

	return array && array->kind == KY_JSON_ARRAY ? array->list.first : NULL;
}

static int tsp_path_take(struct ky_tsp_path *path, const struct ky_json *root)
{
	const struct ky_json *report = tsp_path_first(root, "reports");
	struct making making = {.path = path};
	int ret = KYMO_OK;

	ky_map_init(&making.places);
	ky_names_init(&making.labels);
	for (const struct ky_json *table = tsp_path_first(report, "tables"); table;
	     table = table->next) {
		bool is_log = strcmp(tsp_path_text(table, "name"), "log") == 0;

		if (!is_log && strcmp(tsp_path_text(table, "name"), "arrows") != 0)
			continue;
		for (const struct ky_json *row = tsp_path_first(table, "rows");
		     row && ret == KYMO_OK; row = row->next)
			ret = is_log ? tsp_path_add_part(&making, row)
				     : tsp_path_add_arrow(&making, row);
	}
	if (path->parts.len)
		qsort(path->parts.data, path->parts.len, sizeof(*path->parts.data),
		      tsp_path_by_begin);
	ky_map_fini(&making.places);
	ky_names_fini(&making.labels);
	return ret;
}

/* ---- asking for the report ------------------------------------------------------------------- */

/* A row of the thread. KYMO_E_NOT_FOUND: the trace has no such thread. */
static int tsp_path_find_thread(struct ky_history *history, int64_t tid, uint64_t *id,
				struct kymo_error *err)
{
	for (size_t i = 0; i < ky_history_n_rows(history); i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		*id = row->id;
		if (row->kind == KY_ROW_THREAD && row->number == tid)
			return KYMO_OK;
	}
	return ky_error_set(err, KYMO_E_NOT_FOUND, "the trace has no thread %lld", (long long)tid);
}

static int tsp_path_ask(struct ky_tsp_answer *answer, struct ky_tsp_path *path, uint64_t row,
			struct kymo_error *err)
{
	struct ky_view_request *request = calloc(1, sizeof(*request));
	const struct ky_json *root;
	struct ky_arena arena;
	int ret;

	if (!request)
		return ky_error_nomem(err);
	ky_arena_init(&arena);
	request->what = KY_VIEW_REPORT;
	request->has_row = true;
	request->row = row;
	request->begin_ns = path->has_range ? path->begin_ns : answer->view->begin_ns;
	request->end_ns = path->has_range ? path->end_ns : answer->view->end_ns;
	snprintf(request->name, sizeof(request->name), "critical-path");
	ret = ky_tsp_ask(answer, request, &arena, &root, err);
	if (ret == KYMO_OK && tsp_path_take(path, root) < 0)
		ret = ky_error_nomem(err);
	path->made_begin_ns = request->begin_ns;
	path->made_end_ns = request->end_ns;
	ky_vec_foreach(&path->rows, one) {
		if (one->begin_ns > one->end_ns) { /* only arrows lead to it */
			one->begin_ns = request->begin_ns;
			one->end_ns = request->end_ns;
		}
	}
	ky_arena_fini(&arena);
	free(request);
	return ret;
}

int ky_tsp_path_make(struct ky_tsp_answer *answer, struct ky_tsp_path *path, bool *is_running,
		     struct kymo_error *err)
{
	struct ky_history *history;
	uint64_t row = 0;
	int ret;

	*is_running = false;
	/* Traces of a recording grow. */
	if (path->is_made && (path->has_range || path->made_end_ns == answer->view->end_ns))
		return KYMO_OK;
	history = ky_tsp_begin_history(answer, err);
	*is_running = !history;
	if (!history)
		return err->code;
	ret = tsp_path_find_thread(history, path->tid, &row, err);
	ky_view_put_history(answer->view);
	tsp_path_clear(path);
	if (ret == KYMO_OK)
		ret = tsp_path_ask(answer, path, row, err);
	path->is_made = ret == KYMO_OK;
	return ret;
}
