/* SPDX-License-Identifier: MIT */
/* A numeric field of an event as a curve: the events of the range are read for it. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

/* A range with packets of more bits takes too long: some seconds. */
#define MAX_READ_BITS 8e9
#define MAX_FIELDS    20000

/* ---- which fields there are -------------------------------------------------------------- */

static bool view_field_is_numeric(const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_BOOL:
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
	case KY_FIELD_FLOAT:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return true;
	default:
		return false;
	}
}

/* "EVENT.FIELD" for each; @n counts. */
static void put_fields(const struct ky_event_class *event, struct ky_strbuf *out, size_t *n)
{
	const struct ky_field_class *payload = event->payload;
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t i = 0; payload && i < payload->st.n_members && *n < MAX_FIELDS; i++) {
		if (!view_field_is_numeric(payload->st.members[i].cls))
			continue;
		ky_strbuf_clear(&text);
		ky_strbuf_addf(&text, "%s.%s", event->name, payload->st.members[i].display);
		ky_strbuf_adds(out, (*n)++ ? ",\n" : "");
		ky_view_put_text(out, ky_strbuf_text(&text));
	}
	ky_strbuf_fini(&text);
}

int ky_view_fields(const struct ky_view *view, struct ky_strbuf *out)
{
	size_t n = 0;

	ky_strbuf_adds(out, "{\"fields\": [");
	ky_vec_foreach(&view->set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, event)
			put_fields(*event, out, &n);
	}
	ky_strbuf_adds(out, "]}\n");
	return KYMO_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

struct values {
	int64_t begin_ns;
	double span_ns;
	size_t n;
	struct ky_history_height *heights; /* ->ns: events */
	const char *field;
	struct ky_map handles; /* event class -> struct ky_handle * */
	uint64_t n_values;
};

static const struct ky_handle *handle_of(struct values *values, const struct ky_event_class *cls)
{
	struct ky_handle *handle = ky_map_get(&values->handles, (uintptr_t)cls);

	if (handle)
		return handle;
	handle = calloc(1, sizeof(*handle));
	if (!handle || ky_map_set(&values->handles, (uintptr_t)cls, handle) < 0) {
		free(handle);
		return NULL;
	}
	ky_handle_find_any(handle, cls, values->field);
	return handle;
}

static bool view_field_value_of(const struct ky_event *event, const struct ky_handle *handle,
				double *value)
{
	uint64_t number;

	if (!handle->cls)
		return false;
	if (handle->cls->kind == KY_FIELD_FLOAT)
		return ky_get_real(event, handle, value) && *value - *value == 0; /* finite */
	if (!view_field_is_numeric(handle->cls) || !ky_get_number(event, handle, &number))
		return false;
	*value = handle->cls->kind == KY_FIELD_SINT || handle->cls->kind == KY_FIELD_VARSINT
			 ? (double)(int64_t)number
			 : (double)number;
	return true;
}

static void view_field_add_value(struct values *values, int64_t ns, double value)
{
	double place = (double)((uint64_t)ns - (uint64_t)values->begin_ns) / values->span_ns;
	size_t x = (size_t)(place * (double)values->n);
	struct ky_history_height *height = &values->heights[x < values->n ? x : values->n - 1];

	if (height->ns <= 0 || value < height->low)
		height->low = value;
	if (height->ns <= 0 || value > height->high)
		height->high = value;
	height->sum_ns += value;
	height->ns++;
	values->n_values++;
}

static int read_values(struct values *values, struct ky_flow *flow, struct kymo_error *err)
{
	struct ky_batch batch;
	double value;
	int ret;

	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events; i++) {
			const struct ky_event *event = &batch.events[i];
			const struct ky_handle *handle = handle_of(values, event->cls);

			if (!handle)
				return ky_error_nomem(err);
			if (event->ns != INT64_MIN && view_field_value_of(event, handle, &value))
				view_field_add_value(values, event->ns, value);
		}
	}
	/* The state of counting tells of damage. */
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_IO ? KYMO_OK : ret;
}

/* ---- the answer -------------------------------------------------------------------------- */

/* "EVENT.FIELD" to a filter for the event; *@field: the second part. */
static int view_field_parse(const struct ky_view_request *request, struct ky_strbuf *filter,
			    const char **field, struct kymo_error *err)
{
	const char *dot = strrchr(request->field, '.'), *chosen;
	struct ky_strbuf expression = KY_STRBUF_INIT;
	int ret;

	if (!dot || dot == request->field || !dot[1] || strpbrk(request->field, "\"\\"))
		return ky_error_set(err, KYMO_E_INVALID,
				    "not a field; try EVENT.FIELD, such as sched_switch.next_prio");
	*field = dot + 1;
	ky_strbuf_addf(filter, "$event == \"%.*s\"", (int)(dot - request->field), request->field);
	ret = ky_view_expression(request->filter, &expression, &chosen, err);
	if (ret == KYMO_OK && chosen)
		ky_strbuf_addf(filter, " && (%s)", chosen);
	ky_strbuf_adds(filter, ky_view_text(request->filter));
	ky_strbuf_fini(&expression);
	return ret;
}

static int view_field_read_range(const struct ky_view *view, const struct ky_view_request *request,
				 const struct ky_view_stop *stop, struct values *values,
				 struct kymo_error *err)
{
	struct ky_strbuf filter = KY_STRBUF_INIT;
	struct ky_flow *flow;
	int ret = view_field_parse(request, &filter, &values->field, err);

	if (ret == KYMO_OK &&
	    ky_view_bits(view, request->begin_ns, request->end_ns) > MAX_READ_BITS)
		ret = ky_error_set(err, KYMO_E_LIMIT,
				   "the range has too many events for a curve of a field; zoom in");
	if (ret == KYMO_OK)
		ret = ky_view_flow(view, ky_strbuf_text(&filter), request->begin_ns,
				   request->end_ns, stop, &flow, err);
	if (ret == KYMO_OK) {
		ret = read_values(values, flow, err);
		ky_flow_close(flow);
	}
	ky_strbuf_fini(&filter);
	return ret;
}

static void view_field_put_curve(const struct values *values, struct ky_strbuf *out)
{
	struct ky_view_column numbers = KY_VIEW_COLUMN("value", KY_VIEW_REALS);
	struct ky_strbuf head = KY_STRBUF_INIT;
	struct ky_view_runs runs;

	ky_view_runs_init(&runs, "code", "extent");
	ky_strbuf_addf(&head, "{\"count\": %zu, \"values\": %llu}", values->n,
		       (unsigned long long)values->n_values);
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	ky_view_add_curve(&runs, &numbers, values->heights, values->n);
	ky_view_put_runs(out, &runs);
	ky_view_put_column(out, &numbers);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
}

static void values_fini(struct values *values)
{
	size_t pos = 0;
	uint64_t key;
	void *handle;

	while (ky_map_next(&values->handles, &pos, &key, &handle))
		free(handle);
	ky_map_fini(&values->handles);
	free(values->heights);
}

int ky_view_field(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct values values = {.begin_ns = request->begin_ns, .n = request->count};
	uint64_t span = (uint64_t)request->end_ns - (uint64_t)request->begin_ns + 1;
	int ret = KYMO_OK;

	if (span && span < values.n)
		values.n = (size_t)span;
	values.span_ns = (double)(span - 1) + 1;
	ky_map_init(&values.handles);
	values.heights = calloc(values.n, sizeof(*values.heights));
	if (!values.heights)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = view_field_read_range(view, request, stop, &values, err);
	if (ret == KYMO_OK)
		view_field_put_curve(&values, out);
	values_fini(&values);
	return ret;
}
