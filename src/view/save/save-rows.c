/* SPDX-License-Identifier: MIT */
/* The rows of a saved page: all states of the history in a range. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/save/save-internal.h"

/* How far the page goes back to the wait or the begin of the call that the range begins in, states. */
#define MAX_BACK 1000

struct rows {
	struct ky_history *history;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	int64_t unknown_ns;	  /* after the begin: the end of what does not end */
	struct ky_strbuf *out, names;
	struct ky_saved_threads *threads;
	struct ky_names numbers; /* of names */
	size_t n_names, n_rows, n_states;
};

static int save_rows_open_events(void *data, const struct ky_trace_set *set, struct ky_flow **flow,
				 struct kymo_error *err)
{
	struct ky_selection selection;

	(void)data;
	ky_selection_init(&selection);
	return ky_flow_open_selected(set, &selection, flow, err);
}

/* From 1 on; 0: no name. */
static int save_rows_number_of(struct rows *rows, const char *name, uint64_t *number)
{
	*number = 0;
	if (!*name)
		return KYMO_OK;
	*number = (uintptr_t)ky_names_get(&rows->numbers, name);
	if (*number)
		return KYMO_OK;
	*number = ++rows->n_names;
	ky_strbuf_adds(&rows->names, *number > 1 ? ", " : "");
	ky_view_put_text(&rows->names, name);
	return ky_names_set(&rows->numbers, name, (void *)(uintptr_t)*number);
}

/* As the server's answers: the number of a name, or the value. */
static int save_rows_detail_of(struct rows *rows, uint64_t state, uint64_t *detail)
{
	*detail = ky_state_value(state);
	if (!ky_state_has_name(ky_state_kind(state)))
		return KYMO_OK;
	return save_rows_number_of(rows, ky_history_name(rows->history, *detail), detail);
}

/* After the range's begin. What is far, or was ever so, is at the edge: a double holds all offsets. */
static int64_t save_rows_offset(const struct rows *rows, int64_t ns)
{
	if (ns < rows->begin_ns)
		return (uint64_t)rows->begin_ns - (uint64_t)ns < (uint64_t)KY_SAVED_FAR_NS
			       ? ns - rows->begin_ns
			       : -KY_SAVED_FAR_NS;
	return (uint64_t)ns - (uint64_t)rows->begin_ns < (uint64_t)rows->unknown_ns
		       ? ns - rows->begin_ns
		       : rows->unknown_ns;
}

/* Offset from the begin, duration, kind, detail; of what the range has a part of. */
static int save_rows_put_state(struct rows *rows, const struct ky_history_interval *interval,
			       bool is_first, struct kymo_error *err)
{
	int64_t from = save_rows_offset(rows, interval->begin_ns);
	int64_t to = save_rows_offset(rows, interval->end_ns);
	uint64_t detail;

	if (++rows->n_states > KY_SAVED_MAX_STATES)
		return ky_saved_too_much("two million states", err);
	if (save_rows_detail_of(rows, interval->state, &detail) < 0)
		return ky_error_nomem(err);
	ky_strbuf_addf(rows->out, "%s%lld,%lld,%d,%llu", is_first ? "" : ",", (long long)from,
		       (long long)(to - from), (int)ky_state_kind(interval->state),
		       (unsigned long long)detail);
	return rows->out->len > KY_SAVED_MAX_BYTES ? ky_saved_too_much("256 MiB of data", err)
						   : KYMO_OK;
}

/*
 * Where a thread's states begin for a page: those of the call that it is in at the begin of the range, and its last wait, which tell of
 * causes and durations.
 */
static int save_rows_begin(struct rows *rows, uint32_t id, int64_t *begin_ns,
			   struct kymo_error *err)
{
	struct ky_history_interval found;
	bool in_call = true, has_waited = false;
	int64_t ns = rows->begin_ns;
	int ret = KYMO_OK;

	*begin_ns = ns;
	for (int i = 0; i < MAX_BACK && (in_call || !has_waited); i++) {
		enum ky_state_kind kind;

		ret = ky_history_at(rows->history, id, ns, &found, err);
		kind = ret < 0 ? KY_STATE_NONE : ky_state_kind(found.state);
		if (kind == KY_STATE_NONE)
			break;
		if (kind == KY_STATE_USER || kind == KY_STATE_RUNNING)
			in_call = false;
		if (kind >= KY_STATE_BLOCKED && kind <= KY_STATE_STOPPED)
			has_waited = true;
		if (in_call || has_waited)
			*begin_ns = ns;
		if (found.begin_ns == INT64_MIN)
			break;
		ns = found.begin_ns - 1;
	}
	return ret;
}

/* All events of a stream at one time: an interval without a length. */
static int save_rows_put_point(struct rows *rows, const struct ky_history_row *row,
			       struct kymo_error *err)
{
	double n = 0;
	int ret = row->begin_ns == INT64_MAX
			  ? KYMO_OK
			  : ky_history_density(rows->history, row->id, row->begin_ns,
					       row->begin_ns + 1, 1, &n, err);

	if (ret == KYMO_OK && n >= 1 && row->begin_ns >= rows->begin_ns)
		ky_strbuf_addf(rows->out, "%lld,1,%d,%.0f",
			       (long long)save_rows_offset(rows, row->begin_ns), KY_STATE_EVENTS,
			       n);
	return ret;
}

static int save_rows_put_states(struct rows *rows, const struct ky_history_row *row,
				struct kymo_error *err)
{
	struct ky_history_interval interval;
	bool is_first = true;
	int64_t ns = rows->begin_ns;
	int ret = row->kind == KY_ROW_THREAD ? save_rows_begin(rows, row->id, &ns, err) : KYMO_OK;

	for (; ns <= rows->end_ns && ret == KYMO_OK; ns = interval.end_ns) {
		ret = ky_history_at(rows->history, row->id, ns, &interval, err);
		if (ret < 0 || interval.end_ns <= ns)
			break;
		if (ky_state_kind(interval.state) == KY_STATE_NONE)
			continue;
		ret = save_rows_put_state(rows, &interval, is_first, err);
		is_first = false;
	}
	return ret;
}

static bool save_rows_has_states(const struct rows *rows, const struct ky_history_row *row)
{
	return row->begin_ns != INT64_MIN && row->end_ns >= rows->begin_ns &&
	       row->begin_ns < rows->end_ns;
}

/* A thread that has states here. */
static int save_rows_add_thread(struct rows *rows, const struct ky_history_row *row,
				struct kymo_error *err)
{
	struct ky_saved_thread thread = {.tid = (int32_t)row->number};
	struct ky_history_height height;
	int ret = ky_history_heights(rows->history, row->id, rows->begin_ns, rows->end_ns, 1,
				     &height, err);

	if (ret < 0)
		return ret;
	thread.ran_ns = height.sum_ns;
	return ky_vec_push(rows->threads, thread) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* "[id, parent or null, kind, number, name, origin,". @any: rows are before it. */
static void save_rows_put_head(struct ky_strbuf *out, const struct ky_history_row *row, bool any)
{
	ky_strbuf_addf(out, "%s[%u,", any ? ",\n" : "", row->id);
	if (row->parent == KY_HISTORY_NO_ROW)
		ky_strbuf_adds(out, "null");
	else
		ky_strbuf_addu(out, row->parent);
	ky_strbuf_addf(out, ",\"%s\",%lld,", ky_row_kind_text(row->kind), (long long)row->number);
	ky_view_put_text(out, row->name);
	ky_strbuf_addf(out, ",%lld,", (long long)row->origin);
}

/* [id, parent or null, kind, number, name, origin, states]. Threads and the like without states in the range are left out. */
static int save_rows_put_row(struct rows *rows, const struct ky_history_row *row,
			     struct kymo_error *err)
{
	struct ky_strbuf *out = rows->out;
	int ret = KYMO_OK;

	if (!save_rows_has_states(rows, row) && row->kind != KY_ROW_MACHINE &&
	    row->kind != KY_ROW_PROCESS && row->kind != KY_ROW_CPU && row->kind != KY_ROW_DISK &&
	    (row->kind != KY_ROW_THREAD || row->begin_ns != INT64_MIN))
		return KYMO_OK;
	save_rows_put_head(out, row, rows->n_rows++ != 0);
	ky_strbuf_adds(out, "[");
	if (save_rows_has_states(rows, row))
		ret = row->kind == KY_ROW_STREAM && row->begin_ns == row->end_ns
			      ? save_rows_put_point(rows, row, err)
			      : save_rows_put_states(rows, row, err);
	ky_strbuf_adds(out, "]]");
	if (ret == KYMO_OK && row->kind == KY_ROW_THREAD && save_rows_has_states(rows, row))
		ret = save_rows_add_thread(rows, row, err);
	return ret;
}

static int save_rows_put_rows(struct rows *rows, struct kymo_error *err)
{
	size_t n = ky_history_n_rows(rows->history);
	int ret = KYMO_OK;

	ky_names_init(&rows->numbers);
	ky_strbuf_adds(rows->out, "{\"rows\": [");
	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = save_rows_put_row(rows, ky_history_row(rows->history, (uint32_t)i), err);
	ky_strbuf_adds(rows->out, "], \"names\": [");
	ky_strbuf_add(rows->out, ky_strbuf_text(&rows->names), rows->names.len);
	ky_strbuf_adds(rows->out, "]");
	if (ret == KYMO_OK && ky_strbuf_failed(&rows->names))
		ret = ky_error_nomem(err);
	ky_names_fini(&rows->numbers);
	ky_strbuf_fini(&rows->names);
	return ret;
}

/* Later than the range, as far as a double can tell. */
static int64_t save_rows_unknown(const struct rows *rows)
{
	uint64_t span = (uint64_t)rows->end_ns - (uint64_t)rows->begin_ns;
	uint64_t most = ((uint64_t)1 << 53) - 1 - 2 * (uint64_t)KY_SAVED_FAR_NS;

	return (int64_t)((span < most ? span : most) + (uint64_t)KY_SAVED_FAR_NS);
}

int ky_saved_rows(const struct ky_view *view, int64_t begin_ns, int64_t end_ns,
		  const struct ky_broken_list *broken, struct ky_saved_threads *threads,
		  struct ky_strbuf *out, bool *again, struct kymo_error *err)
{
	const struct ky_history_source source = {.open = save_rows_open_events, .log = view->log};
	struct rows rows = {.begin_ns = begin_ns,
			    .end_ns = end_ns < INT64_MAX ? end_ns + 1 : INT64_MAX,
			    .out = out,
			    .threads = threads,
			    .names = KY_STRBUF_INIT};
	struct kymo_error damage;
	bool built;
	int ret = ky_history_get(view->set, &source, &rows.history, &built, &damage, err);

	if (ret < 0)
		return ret;
	rows.unknown_ns = save_rows_unknown(&rows);
	ret = save_rows_put_rows(&rows, err);
	ky_strbuf_adds(out, ", \"streams\": ");
	if (ret == KYMO_OK)
		ret = ky_saved_losses(view, rows.history, begin_ns, end_ns, broken, out, err);
	ky_strbuf_adds(out, "}");
	*again = ret == KYMO_E_FORMAT && ky_history_is_damaged(rows.history) && !built;
	ky_history_close(rows.history);
	return ret;
}
