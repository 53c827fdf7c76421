/* SPDX-License-Identifier: MIT */
/* The rows of a saved page: all states of the history in a range. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/save-internal.h"

struct rows {
	struct ky_history *history;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	struct ky_strbuf *out, names;
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

/* Offset from the begin, duration, kind, detail. */
static int save_rows_put_state(struct rows *rows, const struct ky_history_interval *interval,
			       bool is_first, struct kymo_error *err)
{
	int64_t from_ns = interval->begin_ns > rows->begin_ns ? interval->begin_ns : rows->begin_ns;
	int64_t to_ns = interval->end_ns < rows->end_ns ? interval->end_ns : rows->end_ns;
	uint64_t detail;

	if (++rows->n_states > KY_SAVED_MAX_STATES)
		return ky_saved_too_much("two million states", err);
	if (save_rows_detail_of(rows, interval->state, &detail) < 0)
		return ky_error_nomem(err);
	ky_strbuf_addf(rows->out, "%s%llu,%llu,%d,%llu", is_first ? "" : ",",
		       (unsigned long long)(from_ns - rows->begin_ns),
		       (unsigned long long)(to_ns - from_ns), (int)ky_state_kind(interval->state),
		       (unsigned long long)detail);
	return rows->out->len > KY_SAVED_MAX_BYTES ? ky_saved_too_much("256 MiB of data", err)
						   : KYMO_OK;
}

static int save_rows_put_states(struct rows *rows, uint32_t id, struct kymo_error *err)
{
	struct ky_history_interval interval;
	bool is_first = true;
	int ret = KYMO_OK;

	for (int64_t ns = rows->begin_ns; ns < rows->end_ns && ret == KYMO_OK;
	     ns = interval.end_ns) {
		ret = ky_history_at(rows->history, id, ns, &interval, err);
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
	return row->begin_ns != INT64_MIN && row->end_ns > rows->begin_ns &&
	       row->begin_ns < rows->end_ns;
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
	ky_strbuf_addf(out, "%s[%u,", rows->n_rows++ ? ",\n" : "", row->id);
	if (row->parent == KY_HISTORY_NO_ROW)
		ky_strbuf_adds(out, "null");
	else
		ky_strbuf_addu(out, row->parent);
	ky_strbuf_addf(out, ",\"%s\",%lld,", ky_row_kind_text(row->kind), (long long)row->number);
	ky_view_put_text(out, row->name);
	ky_strbuf_addf(out, ",%lld,[", (long long)row->origin);
	if (save_rows_has_states(rows, row))
		ret = save_rows_put_states(rows, row->id, err);
	ky_strbuf_adds(out, "]]");
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
	ky_strbuf_adds(rows->out, "]}");
	if (ret == KYMO_OK && ky_strbuf_failed(&rows->names))
		ret = ky_error_nomem(err);
	ky_names_fini(&rows->numbers);
	ky_strbuf_fini(&rows->names);
	return ret;
}

int ky_saved_rows(const struct ky_view *view, int64_t begin_ns, int64_t end_ns,
		  struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_history_source source = {.open = save_rows_open_events};
	struct rows rows = {.begin_ns = begin_ns,
			    .end_ns = end_ns < INT64_MAX ? end_ns + 1 : INT64_MAX,
			    .out = out,
			    .names = KY_STRBUF_INIT};
	struct kymo_error damage;
	bool built;
	int ret = ky_history_get(view->set, &source, &rows.history, &built, &damage, err);

	if (ret < 0)
		return ret;
	ret = save_rows_put_rows(&rows, err);
	ky_history_close(rows.history);
	return ret;
}
