/* SPDX-License-Identifier: MIT */
/* kymo timeline: rows as JSON. */
#include "cli/view/timeline.h"

#include "cli/terminal/json-output.h"

/* ---- JSON ------------------------------------------------------------------------------------------------ */

/* What the value of @state means. */
static void set_value(json_t *run, const struct timeline *timeline, uint64_t state)
{
	uint64_t value = ky_state_value(state);
	enum ky_state_kind kind = ky_state_kind(state);

	if (ky_state_has_name(kind) && value)
		json_object_set_new(run, "name",
				    ky_jansson_text(ky_history_name(timeline->history, value)));
	else if (kind == KY_STATE_RUNS)
		json_object_set_new(run, "row", json_integer((json_int_t)value));
	else if (kind == KY_STATE_ACTIVE && value)
		json_object_set_new(run, "row", json_integer((json_int_t)(value - 1)));
	else if (kind == KY_STATE_VALUE || kind == KY_STATE_READ || kind == KY_STATE_WRITE ||
		 kind == KY_STATE_OTHER)
		json_object_set_new(run, "value", json_integer((json_int_t)value));
}

static json_t *make_run(const struct timeline *timeline, const struct ky_history_pixel *pixel,
			size_t begin, size_t end, bool more)
{
	json_t *run = json_pack("{s:I,s:I,s:s,s:b}", "begin_px", (json_int_t)begin, "end_px",
				(json_int_t)end, "state",
				ky_state_text(ky_state_kind(pixel->state)), "more", more);

	if (run)
		set_value(run, timeline, pixel->state);
	return run;
}

/* Pixels of the same state are one run; unknown ones are left out. */
static json_t *make_runs(const struct timeline *timeline, const struct ky_history_pixel *pixels)
{
	json_t *runs = json_array();

	for (size_t x = 0, end; x < timeline->width; x = end) {
		bool more = false;

		for (end = x; end < timeline->width && pixels[end].state == pixels[x].state; end++)
			more |= pixels[end].more;
		if (pixels[x].state != KY_STATE_NONE || more)
			json_array_append_new(runs, make_run(timeline, &pixels[x], x, end, more));
	}
	return runs;
}

static json_t *make_events(const struct timeline *timeline, const double *events)
{
	json_t *counts = json_array();
	json_int_t before = 0;
	double sum = 0;

	/* Whole numbers with the right sum. */
	for (size_t x = 0; x < timeline->width; x++) {
		json_int_t now = (json_int_t)((sum += events[x]) + 0.5);

		json_array_append_new(counts, json_integer(now - before));
		before = now;
	}
	return counts;
}

static json_t *make_row(const struct timeline *timeline, const struct timeline_row *row)
{
	json_t *object =
		json_pack("{s:I,s:s,s:I,s:o}", "id", (json_int_t)row->row->id, "kind",
			  ky_row_kind_text(row->row->kind), "number", (json_int_t)row->row->number,
			  "name", ky_jansson_text(row->row->name));

	if (!object)
		return NULL;
	if (row->row->parent != KY_HISTORY_NO_ROW)
		json_object_set_new(object, "parent", json_integer(row->row->parent));
	if (row->events)
		json_object_set_new(object, "events", make_events(timeline, row->events));
	else if (row->pixels)
		json_object_set_new(object, "runs", make_runs(timeline, row->pixels));
	return object;
}

int timeline_put_json(const struct timeline *timeline, struct kymo_error *err)
{
	json_t *rows = json_array();
	json_t *root = json_pack(
		"{s:I,s:I,s:I,s:I,s:b,s:I,s:o}", "begin_ns", (json_int_t)timeline->begin_ns,
		"end_ns", (json_int_t)timeline->end_ns, "width_px", (json_int_t)timeline->width,
		"events", (json_int_t)ky_history_n_events(timeline->history), "index_built",
		timeline->built, "index_bytes",
		(json_int_t)ky_history_size_bytes(timeline->history), "rows", rows);

	for (size_t i = 0; root && i < timeline->n_rows; i++) {
		if (!timeline->rows[i].hidden)
			json_array_append_new(rows, make_row(timeline, &timeline->rows[i]));
	}
	return ky_cli_put_json(root, 1, err);
}
