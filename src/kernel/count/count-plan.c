/* SPDX-License-Identifier: MIT */
/* Which events count, and by what: from names and expressions to configs of the program. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/count/count-internal.h"
#include "kernel/events/native-calls.h"

/* A tracepoint of each event is attached, and the kernel takes its time for that. */
#define EVENTS_MAX 2000

/* "prev_comm", "$ctx.tid", "$event", "event". */
static enum ky_name_kind count_plan_kind_of(const char **name)
{
	static const struct {
		const char *text;
		enum ky_name_kind kind;
	} kinds[] = {{"$event", KY_NAME_EVENT},
		     {"event", KY_NAME_EVENT},
		     {"$cpu", KY_NAME_CPU},
		     {"cpu", KY_NAME_CPU}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(*name, kinds[i].text) == 0)
			return kinds[i].kind;
	if (strncmp(*name, "$ctx.", 5) == 0) {
		*name += 5;
		return KY_NAME_CONTEXT;
	}
	if (strncmp(*name, "$payload.", 9) == 0) {
		*name += 9;
		return KY_NAME_PAYLOAD;
	}
	return KY_NAME_FIELD;
}

static uint32_t text_bytes_of(const struct ky_condition_field *field)
{
	switch (field->source) {
	case KY_CONDITION_CHARS:
		return field->size < KY_COUNT_TEXT_BYTES ? (field->size + 7) & ~7u
							 : KY_COUNT_TEXT_BYTES;
	case KY_CONDITION_DYNAMIC:
	case KY_CONDITION_USER:
		return KY_COUNT_TEXT_BYTES;
	case KY_CONDITION_COMM:
		return KY_EVENT_COMM_BYTES;
	default:
		return 0;
	}
}

/* ---- events ----------------------------------------------------------------------------- */

static int count_plan_read_event(struct ky_count_plan *plan, const struct ky_event_source *source,
				 const struct ky_tracefs *fs, struct ky_strbuf *text,
				 struct kymo_error *err)
{
	struct ky_count_event event = {
		.system = source->system, .event = source->event, .name = source->name};
	struct ky_event_field *fields = NULL;
	struct ky_format format;
	int ret = ky_event_source_format(source, fs, text, err), n;

	if (ret == KYMO_OK)
		ret = ky_format_parse(&plan->arena, ky_strbuf_text(text), text->len, &format, err);
	if (ret < 0)
		return ret;
	n = ky_event_fields(&plan->arena, source->system, &format, &fields);
	if (n < 0)
		return ky_error_nomem(err);
	event.fields = fields;
	event.n_fields = (size_t)n;
	return ky_vec_push(&plan->events, event) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int count_plan_read_events(struct ky_count_plan *plan, const bool *chosen,
				  const struct ky_tracefs *fs, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	for (size_t i = 0; i < plan->catalogue.events.len && ret == KYMO_OK; i++) {
		if (!chosen[i] || plan->catalogue.events.data[i].of_bpf)
			continue;
		if (plan->events.len == EVENTS_MAX)
			ret = ky_error_set(err, KYMO_E_LIMIT, "these are more than %d events",
					   EVENTS_MAX);
		else
			ret = count_plan_read_event(plan, &plan->catalogue.events.data[i], fs,
						    &text, err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

/*
 * System calls of x86-64 are counted at the tracepoints of all calls, where programs see the registers: the record that tracefs makes costs as
 * much as the counting, and the kernel takes a twentieth of a second to leave the tracepoint of each call.
 */
static void choose_calls(struct ky_count_plan *plan)
{
	ky_vec_foreach(&plan->events, event) {
		bool is_exit = strncmp(event->name, "syscall_exit_", 13) == 0;
		bool is_entry = strncmp(event->name, "syscall_entry_", 14) == 0;

		event->call = -1;
		if (strcmp(event->system, "syscalls") == 0 && (is_exit || is_entry))
			event->call = ky_native_call_number(event->name + (is_exit ? 13 : 14));
		if (event->call >= KY_COUNT_CALLS)
			event->call = -1;
		if (event->call < 0)
			continue;
		event->config.calls = is_exit ? KY_COUNT_EXITS : KY_COUNT_ENTRIES;
	}
}

static int choose_events(struct ky_count_plan *plan, const char *rule, const char **filter,
			 struct kymo_error *err)
{
	struct ky_tracefs fs;
	bool *chosen = NULL;
	int ret = ky_tracefs_open(&fs, err);

	if (ret < 0)
		return ret;
	ret = ky_catalogue_load(&plan->catalogue, &fs, err);
	if (ret == KYMO_OK) {
		chosen = calloc(plan->catalogue.events.len + 1, sizeof(*chosen));
		ret = chosen ? ky_catalogue_match_rule(&plan->catalogue, rule, chosen, filter, err)
			     : ky_error_nomem(err);
	}
	if (ret >= 0)
		ret = count_plan_read_events(plan, chosen, &fs, err);
	free(chosen);
	ky_tracefs_close(&fs);
	choose_calls(plan);
	if (ret == KYMO_OK && !plan->events.len)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "no event is left to count");
	return ret;
}

/* ---- columns ---------------------------------------------------------------------------- */

/* What an event tells of column @i. */
static int take_column(struct ky_count_plan *plan, size_t i, struct ky_count_event *event,
		       struct kymo_error *err)
{
	struct ky_count_column *column = &plan->columns[i];
	struct ky_condition_field *field = &event->config.fields[i].value;
	const struct ky_event_field *source;
	const char *name = column->name;
	enum ky_name_kind kind = count_plan_kind_of(&name);
	uint32_t text_bytes;

	if (!ky_count_find_field(event, kind, name, field, &source) ||
	    !ky_condition_reach(field, &event->config.condition.record_bytes)) {
		*field = (struct ky_condition_field){0};
		event->config.missing |= 1u << i;
		return KYMO_OK;
	}
	text_bytes = text_bytes_of(field);
	if (column->base && column->is_text != (text_bytes > 0))
		return ky_error_set(
			err, KYMO_E_INVALID,
			"the field '%s' is a number in some events and a text in others",
			column->name);
	column->is_text = text_bytes > 0;
	column->is_event = field->source == KY_COUNT_EVENT;
	column->is_kernel_stack = field->source == KY_COUNT_KERNEL_STACK;
	column->is_user_stack = field->source == KY_COUNT_USER_STACK;
	column->is_signed |= field->is_signed != 0;
	if (text_bytes > column->text_bytes)
		column->text_bytes = text_bytes;
	column->is_device = source && source->is_device && (!column->base || column->is_device);
	if (!column->base) {
		column->base = source && source->base == 16 ? 16 : 10;
		column->labels = source ? source->labels : NULL;
		column->n_labels = source ? source->n_labels : 0;
	}
	return KYMO_OK;
}

static int find_columns(struct ky_count_plan *plan, struct kymo_error *err)
{
	for (size_t i = 0; i < plan->n_columns; i++) {
		ky_vec_foreach(&plan->events, event) {
			int ret = take_column(plan, i, event, err);

			if (ret < 0)
				return ret;
			plan->has_missing |= event->config.missing != 0;
		}
		if (!plan->columns[i].base) {
			ky_error_set(err, KYMO_E_INVALID,
				     "none of these events has a field '%s' that can be counted by",
				     plan->columns[i].name);
			ky_error_hint(
				err,
				"kymo list shows the fields of events; all events have event, cpu, tid, pid, "
				"procname and uid");
			return KYMO_E_INVALID;
		}
	}
	return KYMO_OK;
}

static void place_columns(struct ky_count_plan *plan)
{
	uint32_t at = plan->has_missing ? 8 : 0;

	for (size_t i = 0; i < plan->n_columns; i++) {
		struct ky_count_column *column = &plan->columns[i];

		column->at = at;
		ky_vec_foreach(&plan->events, event) {
			event->config.fields[i].at = at;
			event->config.fields[i].text_bytes = column->text_bytes;
		}
		at += column->is_text ? column->text_bytes : 8;
	}
	plan->key_bytes = at;
	ky_vec_foreach(&plan->events, event) {
		event->config.key_bytes = at;
		event->config.n_fields = (uint32_t)plan->n_columns;
		event->config.has_missing = plan->has_missing;
	}
}

/* Events without the field are not counted. */
static int choose_sum(struct ky_count_plan *plan, const char *sum, struct kymo_error *err)
{
	const struct ky_event_field *source;
	enum ky_name_kind kind;
	size_t n = 0;

	if (!sum)
		return KYMO_OK;
	kind = count_plan_kind_of(&sum);
	ky_vec_foreach(&plan->events, event) {
		struct ky_condition_field *field = &event->config.sum;

		if (ky_count_find_field(event, kind, sum, field, &source) &&
		    field->source < KY_CONDITION_SOURCES && !text_bytes_of(field) &&
		    ky_condition_reach(field, &event->config.condition.record_bytes))
			n++;
		else
			event->is_never = true;
	}
	return n ? KYMO_OK
		 : ky_error_set(err, KYMO_E_INVALID,
				"none of these events has a number '%s' to add up", sum);
}

/* The place of a mistake is that in the rule, of which the condition is the end. */
static int compile_condition(struct ky_count_plan *plan, const char *rule, const char *condition,
			     struct kymo_error *err)
{
	struct ky_condition_event *events;
	size_t n = 0, i = 0;
	int ret;

	if (!condition)
		return KYMO_OK;
	events = ky_arena_array(&plan->arena, plan->events.len, sizeof(*events));
	if (!events)
		return ky_error_nomem(err);
	ky_vec_foreach(&plan->events, event)
		events[i++] = (struct ky_condition_event){.name = event->name,
							  .fields = event->fields,
							  .n_fields = event->n_fields,
							  .to = &event->config.condition};
	ret = ky_condition_compile(condition, events, i, &plan->arena, err);
	for (i = 0; i < plan->events.len; i++) {
		plan->events.data[i].is_never |= events[i].is_never;
		n += !events[i].is_never;
	}
	if (ret < 0 && err->column)
		ky_error_line(err, 1, err->column + (uint32_t)(strlen(rule) - strlen(condition)));
	return ret == KYMO_OK && !n
		       ? ky_error_set(err, KYMO_E_INVALID,
				      "the condition '%s' is true of none of these events",
				      condition)
		       : ret;
}

int ky_count_plan_init(struct ky_count_plan *plan, const struct ky_count_options *options,
		       struct kymo_error *err)
{
	const char *filter = NULL;
	int ret;

	memset(plan, 0, sizeof(*plan));
	ky_arena_init(&plan->arena);
	if (options->n_by > KY_COUNT_FIELDS_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "a key has %d fields at most",
				    KY_COUNT_FIELDS_MAX);
	plan->n_columns = options->n_by ? options->n_by : 1;
	plan->columns[0].name = "event";
	for (size_t i = 0; i < options->n_by; i++)
		plan->columns[i].name = options->by[i];
	ret = choose_events(plan, options->rule, &filter, err);
	if (ret == KYMO_OK)
		ret = find_columns(plan, err);
	if (ret == KYMO_OK)
		ret = compile_condition(plan, options->rule, filter, err);
	if (ret == KYMO_OK)
		ret = choose_sum(plan, options->sum, err);
	if (ret == KYMO_OK)
		place_columns(plan);
	return ret;
}

void ky_count_plan_fini(struct ky_count_plan *plan)
{
	ky_vec_fini(&plan->events);
	ky_catalogue_fini(&plan->catalogue);
	ky_arena_fini(&plan->arena);
}
