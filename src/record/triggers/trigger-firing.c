/* SPDX-License-Identifier: MIT */
#include "record/triggers/trigger-firing.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/foreign.h"
#include "base/text.h"
#include "ctf/json/json.h"
#include "os/file.h"

#define NS_PER_S INT64_C(1000000000)

void ky_trigger_time(char out[KY_TRIGGER_TIME_BYTES], int64_t ns)
{
	time_t s = (time_t)(ns / NS_PER_S);
	struct tm tm;
	size_t len;

	if (ns < 0 || !gmtime_r(&s, &tm)) {
		snprintf(out, KY_TRIGGER_TIME_BYTES, "?");
		return;
	}
	len = strftime(out, KY_TRIGGER_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + len, KY_TRIGGER_TIME_BYTES - len, ".%06lldZ",
		 (long long)(ns % NS_PER_S / 1000));
}

/* Text that may be anything, as JSON. */
static void trigger_firing_put_text(struct ky_strbuf *out, const char *text, size_t len)
{
	struct ky_strbuf clean = KY_STRBUF_INIT;
	char escape[KY_FOREIGN_ESCAPE_BYTES];

	for (size_t at = 0, n; at < len; at += n) {
		n = 1;
		escape[0] = '\0';
		if ((unsigned char)text[at] >= 0x80)
			n = ky_foreign_next(text + at, len - at, escape);
		if (escape[0])
			ky_strbuf_adds(&clean, "\xef\xbf\xbd");
		else
			ky_strbuf_add(&clean, text + at, n);
	}
	ky_json_put_text(out, ky_strbuf_text(&clean), clean.len);
	out->failed |= clean.failed;
	ky_strbuf_fini(&clean);
}

/* ---- fields ---------------------------------------------------------------------------- */

static void trigger_firing_put_number(struct ky_strbuf *out, const struct ky_value *value)
{
	const struct ky_field_class *cls = value->cls;

	if (ky_value_is_big(value))
		ky_strbuf_addf(out, "\"0x%llx\"", (unsigned long long)ky_value_word(value, 0));
	else if (cls->kind == KY_FIELD_FLOAT && isfinite(value->f))
		ky_strbuf_addf(out, "%.17g", value->f);
	else if (cls->kind == KY_FIELD_FLOAT)
		ky_strbuf_adds(out, "null");
	else if (cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT)
		ky_strbuf_addi(out, value->s);
	else
		ky_strbuf_addu(out, value->u);
}

/* A field with all that it contains: structures are lists of their members. */
static void trigger_firing_put_value(struct ky_strbuf *out, const struct ky_value *value)
{
	const struct ky_value *end = value + 1 + value->n_below;

	switch (value->cls->kind) {
	case KY_FIELD_STRUCT:
	case KY_FIELD_ARRAY:
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		/* Flat: a deep nest of a program costs no stack. */
		ky_strbuf_addc(out, '[');
		for (const struct ky_value *at = value + 1, *first = at; at < end; at++) {
			if (at->cls->kind == KY_FIELD_STRUCT || at->cls->kind == KY_FIELD_ARRAY ||
			    at->cls->kind == KY_FIELD_OPTIONAL ||
			    at->cls->kind == KY_FIELD_VARIANT) {
				first = at == first ? at + 1 : first;
				continue;
			}
			if (at != first)
				ky_strbuf_addc(out, ',');
			trigger_firing_put_value(out, at);
		}
		ky_strbuf_addc(out, ']');
		break;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		trigger_firing_put_text(out, value->str.data, value->str.len_bytes);
		break;
	case KY_FIELD_BLOB:
		ky_strbuf_addf(out, "\"%zu bytes\"", value->str.len_bytes);
		break;
	default:
		trigger_firing_put_number(out, value);
	}
}

/* The payload comes first, and some contexts have the same names. */
static bool trigger_firing_has_field(const struct ky_trigger_firing *firing, const char *name)
{
	ky_vec_foreach(&firing->fields, field)
		if (strcmp(field->name, name) == 0)
			return true;
	return false;
}

static void trigger_firing_add_field(struct ky_trigger_firing *firing, const struct ky_value *value,
				     size_t *bytes)
{
	bool is_text = value->cls->kind == KY_FIELD_STRING || value->cls->kind == KY_FIELD_TEXT;
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_trigger_field field = {.is_text = is_text};

	if (is_text)
		ky_strbuf_add(&text, value->str.data,
			      strnlen(value->str.data, value->str.len_bytes));
	else
		trigger_firing_put_value(&text, value);
	*bytes += text.len + 64;
	if (!ky_strbuf_failed(&text) && *bytes <= KY_TRIGGER_FIELDS_BYTES_MAX) {
		field.name = strdup(value->name);
		field.value = strdup(ky_strbuf_text(&text));
	}
	ky_strbuf_fini(&text);
	if (field.name && field.value && ky_vec_push(&firing->fields, field) == 0)
		return;
	free(field.name);
	free(field.value);
}

static void add_scope(struct ky_trigger_firing *firing, const struct ky_event *event,
		      enum ky_scope scope, size_t *bytes)
{
	const struct ky_value *value, *end;
	struct ky_values values;

	ky_values_init(&values);
	if (ky_values_decode(&values, event, scope, NULL) > 0) {
		end = values.list.data + 1 + values.list.data[0].n_below;
		for (value = values.list.data + 1; value < end; value += 1 + value->n_below)
			if (value->name && !trigger_firing_has_field(firing, value->name))
				trigger_firing_add_field(firing, value, bytes);
	}
	ky_values_fini(&values);
}

static void trigger_firing_add_text(struct ky_trigger_firing *firing, const char *name,
				    const char *value, bool is_text)
{
	struct ky_trigger_field field = {strdup(name), strdup(value), is_text};

	if (field.name && field.value && ky_vec_push(&firing->fields, field) == 0)
		return;
	free(field.name);
	free(field.value);
}

/* The process and the name of the event's thread, if it still exists. */
static void trigger_firing_add_thread(struct ky_trigger_firing *firing, const char *tid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[64];
	const char *pid;

	snprintf(path, sizeof(path), "/proc/%.20s/status", tid);
	if (ky_read_file(AT_FDCWD, path, 4096, &text) == 0) {
		pid = strstr(ky_strbuf_text(&text), "\nTgid:\t");
		if (pid && text.len > 6 && strncmp(text.data, "Name:\t", 6) == 0) {
			char number[24];

			snprintf(number, sizeof(number), "%ld", strtol(pid + 7, NULL, 10));
			text.data[strcspn(text.data, "\n")] = '\0';
			if (!trigger_firing_has_field(firing, "pid"))
				trigger_firing_add_text(firing, "pid", number, false);
			if (!trigger_firing_has_field(firing, "procname"))
				trigger_firing_add_text(firing, "procname", text.data + 6, true);
		}
	}
	ky_strbuf_fini(&text);
}

static void trigger_firing_find_thread(struct ky_trigger_firing *firing)
{
	ky_vec_foreach(&firing->fields, field) {
		if (strcmp(field->name, "tid") == 0 && !trigger_firing_has_field(firing, "vtid")) {
			trigger_firing_add_thread(firing, field->value);
			return;
		}
	}
}

struct ky_trigger_firing *ky_trigger_firing_new(uint32_t number,
						const struct ky_trigger_match *match,
						const struct ky_trigger_hit *hit,
						const struct ky_event *event)
{
	struct ky_trigger_firing *firing = calloc(1, sizeof(*firing));
	size_t bytes = 0;

	if (!firing)
		return NULL;
	firing->trigger = number;
	firing->n = match->n_fired;
	firing->n_held = match->n_held;
	firing->hit = *hit;
	firing->cpu = event ? event->cpu_id : UINT32_MAX;
	firing->condition = strdup(match->condition->text);
	if (event)
		firing->event = strdup(event->cls->name ? event->cls->name : "");
	if (!firing->condition || (event && !firing->event)) {
		ky_trigger_firing_free(firing);
		return NULL;
	}
	if (!event)
		return firing;
	add_scope(firing, event, KY_SCOPE_PAYLOAD, &bytes);
	add_scope(firing, event, KY_SCOPE_EVENT_CONTEXT, &bytes);
	add_scope(firing, event, KY_SCOPE_STREAM_CONTEXT, &bytes);
	trigger_firing_find_thread(firing);
	return firing;
}

void ky_trigger_firing_free(struct ky_trigger_firing *firing)
{
	if (!firing)
		return;
	ky_vec_foreach(&firing->fields, field) {
		free(field->name);
		free(field->value);
	}
	ky_vec_fini(&firing->fields);
	free(firing->condition);
	free(firing->event);
	free(firing);
}

/* ---- output ---------------------------------------------------------------------------- */

static void put_member(struct ky_strbuf *out, const char *name, const char *value)
{
	ky_strbuf_addf(out, ", \"%s\": ", name);
	trigger_firing_put_text(out, value, strlen(value));
}

void ky_trigger_firing_json(struct ky_strbuf *out, const struct ky_trigger_firing *firing,
			    const char *action, const char *argument)
{
	char time[KY_TRIGGER_TIME_BYTES];

	ky_trigger_time(time, firing->hit.ns);
	ky_strbuf_addf(out, "{\"time_ns\": %lld, \"time\": \"%s\", \"trigger\": %u, \"n\": %llu",
		       (long long)firing->hit.ns, time, firing->trigger,
		       (unsigned long long)firing->n);
	ky_strbuf_addf(out, ", \"held\": %llu", (unsigned long long)firing->n_held);
	put_member(out, "when", firing->condition);
	if (action)
		put_member(out, "do", action);
	if (argument)
		put_member(out, "result", argument);
	if (firing->hit.has_duration)
		ky_strbuf_addf(out, ", \"duration_ns\": %llu",
			       (unsigned long long)firing->hit.duration_ns);
	if (firing->event)
		put_member(out, "event", firing->event);
	if (firing->cpu != UINT32_MAX)
		ky_strbuf_addf(out, ", \"cpu\": %u", firing->cpu);
	if (firing->event) {
		ky_strbuf_adds(out, ", \"fields\": {");
		ky_vec_foreach(&firing->fields, field) {
			if (field != firing->fields.data)
				ky_strbuf_adds(out, ", ");
			trigger_firing_put_text(out, field->name, strlen(field->name));
			ky_strbuf_adds(out, ": ");
			if (field->is_text)
				trigger_firing_put_text(out, field->value, strlen(field->value));
			else
				ky_strbuf_adds(out, field->value);
		}
		ky_strbuf_addc(out, '}');
	}
	ky_strbuf_addc(out, '}');
}

void ky_trigger_firing_text(struct ky_strbuf *out, const struct ky_trigger_firing *firing)
{
	char text[KY_TRIGGER_TIME_BYTES];

	ky_trigger_time(text, firing->hit.ns);
	/* Number 0: it is no trigger of the recording. */
	if (firing->trigger)
		ky_strbuf_addf(out, "%s trigger %u: %s", text, firing->trigger, firing->condition);
	else
		ky_strbuf_addf(out, "%s %s", text, firing->condition);
	if (firing->hit.has_duration)
		ky_strbuf_addf(out, ": %s", ky_format_duration(text, firing->hit.duration_ns));
	if (!firing->event)
		return;
	ky_strbuf_addf(out, ": %s {", firing->event);
	ky_vec_foreach(&firing->fields, field) {
		ky_strbuf_addf(out, "%s %s = ", field == firing->fields.data ? "" : ",",
			       field->name);
		if (field->is_text)
			trigger_firing_put_text(out, field->value, strlen(field->value));
		else
			ky_strbuf_adds(out, field->value);
	}
	ky_strbuf_adds(out, " }");
}
