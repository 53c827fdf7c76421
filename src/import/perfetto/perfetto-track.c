/* SPDX-License-Identifier: MIT */
/* Track events: slices become pairs NAME_begin and NAME_end, as those of Kymo's own programs; counters have their value. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/perfetto/perfetto-trace.h"

#define FIELDS_MAX     64
#define PARENTS_MAX    16
#define NAME_MAX_BYTES 200
#define NESTED_MAX     8
#define NESTED_BYTES   4096

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };

/* ---- tracks ----------------------------------------------------------------------------- */

static struct ky_perfetto_track *perfetto_track_get(struct ky_perfetto *perfetto, uint64_t uuid)
{
	struct ky_perfetto_track *track = ky_map_get(&perfetto->tracks, uuid);

	if (track)
		return track;
	track = ky_arena_new(&perfetto->arena, struct ky_perfetto_track);
	if (!track || ky_vec_push(&perfetto->all_tracks, track) < 0 ||
	    ky_map_set(&perfetto->tracks, uuid, track) < 0) {
		ky_error_nomem(perfetto->err);
		return NULL;
	}
	return track;
}

static void perfetto_track_thread(struct ky_perfetto_track *track, const struct ky_pb_field *from)
{
	struct ky_pb_reader reader = ky_pb_reader(from->data, from->len);
	struct ky_pb_field field;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes)
			track->pid = (int32_t)field.value;
		else if (field.number == 2 && !field.has_bytes)
			track->tid = (int32_t)field.value;
	}
}

int ky_perfetto_describe(struct ky_perfetto *perfetto, const uint8_t *data, size_t len)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	struct ky_perfetto_track told = {0}, *track;
	struct ky_pb_field field, process = {0}, thread = {0}, name = {0};
	uint64_t uuid = 0;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes)
			uuid = field.value;
		else if (field.number == 5 && !field.has_bytes)
			told.parent = field.value;
		else if (field.has_bytes && field.number == 2)
			name = field;
		else if (field.has_bytes && field.number == 3)
			process = field;
		else if (field.has_bytes && field.number == 4)
			thread = field;
	}
	track = perfetto_track_get(perfetto, uuid);
	if (!track)
		return perfetto->err->code;
	track->parent = told.parent;
	if (process.data) {
		perfetto_track_thread(track, &process);
		track->tid = 0;
	}
	if (thread.data)
		perfetto_track_thread(track, &thread);
	if (name.data)
		track->name = ky_perfetto_text(perfetto, &name);
	return KYMO_OK;
}

/* Whose track it is: its own thread, or that of the track that it is in. */
static void perfetto_track_who(const struct ky_perfetto *perfetto,
			       const struct ky_perfetto_track *track, int64_t *tid, int64_t *pid)
{
	*tid = *pid = 0;
	for (int i = 0; track && i < PARENTS_MAX; i++) {
		*tid = *tid ? *tid : track->tid;
		*pid = *pid ? *pid : track->pid;
		track = track->parent ? ky_map_get(&perfetto->tracks, track->parent) : NULL;
	}
}

/* ---- values ----------------------------------------------------------------------------- */

static const char *perfetto_track_name(const struct ky_perfetto_sequence *sequence,
				       enum ky_perfetto_names table, uint64_t iid)
{
	return ky_map_get(&sequence->names[table], iid);
}

static double perfetto_track_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void perfetto_track_annotation(struct ky_perfetto *perfetto,
				      const struct ky_perfetto_sequence *sequence,
				      const struct ky_pb_field *from, struct ky_log_value *value,
				      int depth);

/* A dictionary or list as one text: {a=1, b=x}, [1, 2]. */
static void perfetto_track_nested(struct ky_perfetto *perfetto,
				  const struct ky_perfetto_sequence *sequence,
				  const struct ky_pb_field *from, uint32_t number, int depth)
{
	struct ky_pb_reader reader = ky_pb_reader(from->data, from->len);
	struct ky_strbuf *out = &perfetto->scratch;
	struct ky_log_value value;
	struct ky_pb_field field;
	const char *between = "";

	ky_strbuf_addc(out, number == 11 ? '{' : '[');
	while (out->len < NESTED_BYTES && ky_pb_next(&reader, &field)) {
		if (field.number != number || !field.has_bytes)
			continue;
		ky_strbuf_adds(out, between);
		between = ", ";
		perfetto_track_annotation(perfetto, sequence, &field, &value, depth + 1);
		if (number == 11 && value.kind != KY_MAKER_BYTES) {
			ky_strbuf_add(out, value.name, value.name_len);
			ky_strbuf_addc(out, '=');
		}
		if (value.kind == KY_MAKER_TEXT)
			ky_strbuf_add(out, value.text, value.len);
		else if (value.kind == KY_MAKER_DOUBLE)
			ky_strbuf_addf(out, "%.17g", value.real);
		else if (value.kind != KY_MAKER_BYTES)
			ky_strbuf_addi(out, value.number);
	}
	ky_strbuf_addc(out, number == 11 ? '}' : ']');
}

/*
 * A debug annotation. What is nested is appended to the scratch text: at the top it is the value; below it (kind BYTES) it is where it
 * belongs already.
 */
static void perfetto_track_annotation(struct ky_perfetto *perfetto,
				      const struct ky_perfetto_sequence *sequence,
				      const struct ky_pb_field *from, struct ky_log_value *value,
				      int depth)
{
	struct ky_pb_reader reader = ky_pb_reader(from->data, from->len);
	const char *name = NULL;
	struct ky_pb_field field;
	uint32_t nested = 0;

	*value = ky_log_number("value", 0);
	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes) {
			name = perfetto_track_name(sequence, KY_PERFETTO_ANNOTATIONS, field.value);
			if (name) {
				value->name = name;
				value->name_len = strlen(name);
			}
		} else if (field.number == 10 && field.has_bytes && field.len) {
			value->name = (const char *)field.data;
			value->name_len = field.len;
		} else if (field.number == 5 && !field.has_bytes) {
			value->kind = KY_MAKER_DOUBLE;
			value->real = perfetto_track_double(field.value);
		} else if (!field.has_bytes && (field.number == 2 || field.number == 4)) {
			value->kind = KY_MAKER_S64;
			value->number = (int64_t)field.value;
		} else if (!field.has_bytes && field.number == 3) {
			value->kind = KY_MAKER_U64;
			value->number = (int64_t)field.value;
		} else if (!field.has_bytes && field.number == 7) {
			value->kind = KY_MAKER_HEX;
			value->number = (int64_t)field.value;
		} else if (field.has_bytes && (field.number == 6 || field.number == 9)) {
			value->kind = KY_MAKER_TEXT;
			value->text = (const char *)field.data;
			value->len = field.len;
		} else if (!field.has_bytes && field.number == 17) {
			name = perfetto_track_name(sequence, KY_PERFETTO_TEXTS, field.value);
			value->kind = KY_MAKER_TEXT;
			value->text = name ? name : "";
			value->len = strlen(value->text);
		} else if (field.has_bytes && (field.number == 11 || field.number == 12)) {
			nested = field.number;
		}
	}
	if (nested && depth < NESTED_MAX) {
		perfetto_track_nested(perfetto, sequence, from, nested, depth);
		value->kind = KY_MAKER_BYTES;
	}
}

/* ---- events ----------------------------------------------------------------------------- */

struct track_event {
	uint64_t type, track;
	bool has_track;
	const char *name;
	size_t name_len;
	struct ky_log_value values[FIELDS_MAX];
	size_t n;
};

static void perfetto_track_add(struct ky_perfetto *perfetto,
			       const struct ky_perfetto_sequence *sequence,
			       const struct ky_pb_field *field, struct track_event *event)
{
	struct ky_log_value *value = &event->values[event->n];
	char *text;

	if (event->n >= FIELDS_MAX - 2)
		return;
	ky_strbuf_clear(&perfetto->scratch);
	perfetto_track_annotation(perfetto, sequence, field, value, 0);
	if (value->kind == KY_MAKER_BYTES) {
		text = ky_arena_strndup(&perfetto->of_event, ky_strbuf_text(&perfetto->scratch),
					perfetto->scratch.len);
		perfetto->has_event_texts = true;
		value->kind = KY_MAKER_TEXT;
		value->text = text ? text : "";
		value->len = strlen(value->text);
	}
	if (value->name_len && value->name_len < NAME_MAX_BYTES)
		event->n++;
}

static void perfetto_track_field(struct ky_perfetto *perfetto,
				 const struct ky_perfetto_sequence *sequence,
				 const struct ky_pb_field *field, struct track_event *event)
{
	const char *name;

	if (field->number == 9 && !field->has_bytes) {
		event->type = field->value;
	} else if (field->number == 10 && !field->has_bytes) {
		name = perfetto_track_name(sequence, KY_PERFETTO_EVENTS, field->value);
		event->name = name;
		event->name_len = name ? strlen(name) : 0;
	} else if (field->number == 23 && field->has_bytes) {
		event->name = (const char *)field->data;
		event->name_len = field->len;
	} else if (field->number == 11 && !field->has_bytes) {
		event->track = field->value;
		event->has_track = true;
	} else if (field->number == 3 && !field->has_bytes && event->n < FIELDS_MAX - 2) {
		name = perfetto_track_name(sequence, KY_PERFETTO_CATEGORIES, field->value);
		if (name && !event->n)
			event->values[event->n++] = ky_log_text("cat", name, strlen(name));
	} else if (field->number == 22 && field->has_bytes && !event->n) {
		event->values[event->n++] =
			ky_log_text("cat", (const char *)field->data, field->len);
	} else if (field->number == 4 && field->has_bytes) {
		perfetto_track_add(perfetto, sequence, field, event);
	} else if (field->number == 30 && !field->has_bytes && event->n < FIELDS_MAX) {
		event->values[event->n++] = ky_log_number("value", (int64_t)field->value);
	} else if (field->number == 44 && !field->has_bytes && event->n < FIELDS_MAX) {
		event->values[event->n] = ky_log_number("value", 0);
		event->values[event->n].kind = KY_MAKER_DOUBLE;
		event->values[event->n++].real = perfetto_track_double(field->value);
	}
}

/* The event's name, with what tells begin and end; the name of an end is that of its begin. */
static int perfetto_track_title(struct ky_perfetto *perfetto, struct ky_perfetto_track *track,
				const struct track_event *event, char *title, size_t size)
{
	const char *name = event->name;
	char *kept = NULL;
	int len = (int)(event->name_len < NAME_MAX_BYTES ? event->name_len : NAME_MAX_BYTES);

	if (!name || !len) {
		name = event->type == TYPE_COUNTER && track->name ? track->name : "slice";
		len = (int)strlen(name);
		len = len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES;
	}
	if (event->type == TYPE_BEGIN && track->open.len < KY_PERFETTO_DEPTH_MAX) {
		kept = strndup(name, (size_t)len);
		if (!kept || ky_vec_push(&track->open, kept) < 0) {
			free(kept);
			return ky_error_nomem(perfetto->err);
		}
		kept = NULL;
	} else if (event->type == TYPE_BEGIN) {
		track->n_deeper++;
	} else if (event->type == TYPE_END && track->n_deeper) {
		track->n_deeper--;
	} else if (event->type == TYPE_END && track->open.len) {
		name = kept = track->open.data[--track->open.len];
		len = (int)strlen(name);
	}
	snprintf(title, size, "%.*s%s", len, name,
		 event->type == TYPE_BEGIN ? "_begin"
		 : event->type == TYPE_END ? "_end"
					   : "");
	free(kept);
	return KYMO_OK;
}

static void perfetto_track_forget_texts(struct ky_perfetto *perfetto)
{
	if (!perfetto->has_event_texts)
		return;
	ky_arena_fini(&perfetto->of_event);
	ky_arena_init(&perfetto->of_event);
	perfetto->has_event_texts = false;
}

int ky_perfetto_event(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
		      const uint8_t *data, size_t len, int64_t ns)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	struct track_event event = {.track = sequence->track};
	char title[NAME_MAX_BYTES + 16];
	struct ky_perfetto_track *track;
	struct ky_pb_field field;
	int64_t tid, pid;
	int ret;

	while (ky_pb_next(&reader, &field))
		perfetto_track_field(perfetto, sequence, &field, &event);
	ky_perfetto_check(perfetto, &reader);
	ky_perfetto_check_time(perfetto, ns);
	track = perfetto_track_get(perfetto, event.track);
	if (!track)
		return perfetto->err->code;
	ret = perfetto_track_title(perfetto, track, &event, title, sizeof(title));
	if (ret < 0)
		return ret;
	ret = ky_log_begin(&perfetto->user, title, ns, event.values, event.n);
	if (ret < 0)
		return ret;
	perfetto_track_who(perfetto, track, &tid, &pid);
	ky_maker_number(perfetto->user.maker, (uint64_t)tid);
	ky_maker_number(perfetto->user.maker, (uint64_t)pid);
	ret = ky_log_put(&perfetto->user, event.values, event.n);
	perfetto_track_forget_texts(perfetto);
	return ret;
}
