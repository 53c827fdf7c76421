/* SPDX-License-Identifier: MIT */
/* One CSV table of chosen fields. */
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "flow/sinks/csv.h"
#include "flow/graph/lines.h"

#define DEPTH_MAX 8

enum column_kind {
	COLUMN_FIELD,
	COLUMN_TIME,
	COLUMN_EVENT,
	COLUMN_STREAM,
	COLUMN_CPU,
};

struct column {
	enum column_kind kind;
	char *text;	  /* as the user wrote it */
	const char *path; /* of a field, without the scope */
	/* The scopes to search, ended by KY_SCOPE_COUNT. */
	const enum ky_scope *scopes;
};

/* Where a column's field lies in events of one class. */
struct place {
	enum ky_scope scope; /* KY_SCOPE_COUNT: nowhere */
	unsigned int depth;
	size_t members[DEPTH_MAX];
};

struct table_sink {
	struct ky_lines_sink lines;
	bool raw; /* texts as they are */
	KY_VEC(struct column) columns;
	struct ky_arena arena;
	struct ky_map places; /* event class -> struct place[columns] */
	struct ky_values values[KY_SCOPE_COUNT];
	bool decoded[KY_SCOPE_COUNT];
	struct ky_strbuf scratch;
};

static const enum ky_scope any_scope[] = {KY_SCOPE_PAYLOAD, KY_SCOPE_EVENT_CONTEXT,
					  KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_PACKET_CONTEXT,
					  KY_SCOPE_COUNT};
static const enum ky_scope context_scopes[] = {KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_STREAM_CONTEXT,
					       KY_SCOPE_COUNT};
static const enum ky_scope payload_scope[] = {KY_SCOPE_PAYLOAD, KY_SCOPE_COUNT};
static const enum ky_scope packet_scope[] = {KY_SCOPE_PACKET_CONTEXT, KY_SCOPE_COUNT};

/* ---- columns ------------------------------------------------------------------------------ */

static int parse_column(struct column *column, struct kymo_error *err)
{
	static const struct {
		const char *name;
		enum column_kind kind;
		const enum ky_scope *scopes;
	} words[] = {
		{"$time", COLUMN_TIME, NULL},
		{"$event", COLUMN_EVENT, NULL},
		{"$stream", COLUMN_STREAM, NULL},
		{"$cpu", COLUMN_CPU, NULL},
		{"$ctx.", COLUMN_FIELD, context_scopes},
		{"$payload.", COLUMN_FIELD, payload_scope},
		{"$packet.", COLUMN_FIELD, packet_scope},
	};

	column->kind = COLUMN_FIELD;
	column->path = column->text;
	column->scopes = any_scope;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].name);

		if (strncmp(column->text, words[i].name, len) != 0 ||
		    (words[i].kind != COLUMN_FIELD && column->text[len]))
			continue;
		column->kind = words[i].kind;
		column->path = column->text + len;
		column->scopes = words[i].scopes;
		return KYMO_OK;
	}
	if (column->text[0] && column->text[0] != '$')
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "'%s' is no field", column->text);
	ky_error_hint(err, "fields begin with a letter; special ones are $time, $event, $stream, "
			   "$cpu, $ctx.NAME, $payload.NAME and $packet.NAME");
	return KYMO_E_INVALID;
}

static int add_column(struct table_sink *s, const char *text, size_t len, struct kymo_error *err)
{
	struct column column = {.text = NULL};
	int ret;

	while (len && *text == ' ') {
		text++;
		len--;
	}
	while (len && text[len - 1] == ' ')
		len--;
	column.text = ky_arena_strndup(&s->arena, text, len);
	if (!column.text)
		return ky_error_nomem(err);
	ret = parse_column(&column, err);
	if (ret == KYMO_OK && ky_vec_push(&s->columns, column) < 0)
		ret = ky_error_nomem(err);
	return ret;
}

static int parse_columns(struct table_sink *s, const char *fields, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (const char *at = fields; ret == KYMO_OK;) {
		size_t len = strcspn(at, ",");

		ret = add_column(s, at, len, err);
		if (!at[len])
			break;
		at += len + 1;
	}
	return ret;
}

/* ---- where they lie ----------------------------------------------------------------------- */

static bool csv_table_is_name(const struct ky_member *member, const char *name, size_t len)
{
	return (strlen(member->display) == len && memcmp(member->display, name, len) == 0) ||
	       (strlen(member->name) == len && memcmp(member->name, name, len) == 0);
}

/* Follow @path from @st. A name with a dot in it is tried before its parts. */
static bool csv_table_follow(const struct ky_field_class *st, const char *path, struct place *place)
{
	size_t len = strlen(path);

	if (!st || st->kind != KY_FIELD_STRUCT || place->depth == DEPTH_MAX)
		return false;
	for (;;) {
		for (size_t i = 0; i < st->st.n_members; i++) {
			if (!csv_table_is_name(&st->st.members[i], path, len))
				continue;
			place->members[place->depth++] = i;
			if (!path[len] ||
			    csv_table_follow(st->st.members[i].cls, path + len + 1, place))
				return true;
			place->depth--;
		}
		while (len && path[len - 1] != '.')
			len--;
		if (!len)
			return false;
		len--;
	}
}

static bool csv_table_find_place(const struct column *column, const struct ky_event_class *cls,
				 struct place *place)
{
	*place = (struct place){.scope = KY_SCOPE_COUNT};
	for (size_t i = 0; column->scopes && column->scopes[i] != KY_SCOPE_COUNT; i++) {
		if (csv_table_follow(ky_scope_root(cls, column->scopes[i]), column->path, place)) {
			place->scope = column->scopes[i];
			return true;
		}
	}
	return false;
}

static const struct place *places_of(struct table_sink *s, const struct ky_event_class *cls)
{
	struct place *places = ky_map_get(&s->places, (uint64_t)(uintptr_t)cls);

	if (places)
		return places;
	places = ky_arena_array(&s->arena, s->columns.len, sizeof(*places));
	for (size_t i = 0; places && i < s->columns.len; i++)
		(void)csv_table_find_place(&s->columns.data[i], cls, &places[i]);
	if (places && ky_map_set(&s->places, (uint64_t)(uintptr_t)cls, places) < 0)
		return NULL;
	return places;
}

/* ---- names that nothing has --------------------------------------------------------------- */

struct nearest {
	const char *name;
	size_t distance;
};

static void compare_names(struct nearest *nearest, const struct ky_field_class *st,
			  const char *word)
{
	for (size_t i = 0; st && i < st->st.n_members; i++) {
		size_t distance = ky_edit_distance(word, st->st.members[i].display);

		if (distance < nearest->distance) {
			nearest->distance = distance;
			nearest->name = st->st.members[i].display;
		}
	}
}

static int check_column(const struct ky_trace_set *set, const struct column *column,
			struct kymo_error *err)
{
	struct nearest nearest = {NULL, SIZE_MAX};
	struct place place;

	if (column->kind != COLUMN_FIELD)
		return KYMO_OK;
	ky_vec_foreach(&set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, cls) {
			if (csv_table_find_place(column, *cls, &place))
				return KYMO_OK;
			for (size_t i = 0; column->scopes[i] != KY_SCOPE_COUNT; i++)
				compare_names(&nearest, ky_scope_root(*cls, column->scopes[i]),
					      column->path);
		}
	}
	ky_error_set(err, KYMO_E_INVALID, "no event has a field '%s'", column->text);
	if (nearest.name)
		ky_error_hint(err, "the nearest name is %s", nearest.name);
	return KYMO_E_INVALID;
}

/* ---- events ------------------------------------------------------------------------------- */

/* The value at @place, or NULL. */
static const struct ky_value *find_value(const struct ky_values *values, const struct place *place)
{
	const struct ky_value *v = values->list.data;

	for (unsigned int depth = 0; depth < place->depth; depth++) {
		size_t member = place->members[depth];

		v++;
		while (member--)
			v += 1 + v->n_below;
	}
	return v;
}

static int csv_table_put_field(struct table_sink *s, const struct ky_event *event,
			       const struct place *place, struct kymo_error *err)
{
	struct ky_values *values;
	int n;

	if (place->scope == KY_SCOPE_COUNT)
		return KYMO_OK;
	values = &s->values[place->scope];
	if (!s->decoded[place->scope]) {
		n = ky_values_decode(values, event, place->scope, err);
		if (n < 0)
			return n;
		s->decoded[place->scope] = true;
	}
	ky_csv_value(&s->lines.out, find_value(values, place), s->raw, &s->scratch);
	return KYMO_OK;
}

static int csv_table_put_cell(struct table_sink *s, const struct column *column,
			      const struct place *place, const struct ky_event *event,
			      const struct ky_stream *stream, struct kymo_error *err)
{
	switch (column->kind) {
	case COLUMN_TIME:
		if (event->ns != INT64_MIN)
			ky_strbuf_addi(&s->lines.out, event->ns);
		return KYMO_OK;
	case COLUMN_EVENT:
		ky_csv_text(&s->lines.out, event->cls->name, strlen(event->cls->name), s->raw);
		return KYMO_OK;
	case COLUMN_STREAM:
		ky_csv_text(&s->lines.out, stream->name, strlen(stream->name), s->raw);
		return KYMO_OK;
	case COLUMN_CPU:
		if (event->cpu_id != UINT32_MAX)
			ky_strbuf_addu(&s->lines.out, event->cpu_id);
		return KYMO_OK;
	default:
		return csv_table_put_field(s, event, place, err);
	}
}

static int csv_table_put_event(struct table_sink *s, const struct ky_event *event,
			       const struct ky_stream *stream, struct kymo_error *err)
{
	const struct place *places = places_of(s, event->cls);
	int ret = places ? KYMO_OK : ky_error_nomem(err);

	memset(s->decoded, 0, sizeof(s->decoded));
	for (size_t i = 0; i < s->columns.len && ret == KYMO_OK; i++) {
		if (i)
			ky_strbuf_addc(&s->lines.out, ',');
		ret = csv_table_put_cell(s, &s->columns.data[i], &places[i], event, stream, err);
	}
	ky_strbuf_addc(&s->lines.out, '\n');
	return ret;
}

static int table_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct table_sink *s = (struct table_sink *)sink;
	size_t whole;
	int ret = KYMO_OK;

	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++) {
		whole = s->lines.out.len;
		ret = csv_table_put_event(s, &batch->events[i], batch->stream, err);
		ret = ky_lines_put(&s->lines, whole, ret, batch->stream, err);
	}
	return ret;
}

static void table_free(struct ky_sink *sink)
{
	struct table_sink *s = (struct table_sink *)sink;

	for (int i = 0; i < KY_SCOPE_COUNT; i++)
		ky_values_fini(&s->values[i]);
	ky_vec_fini(&s->columns);
	ky_map_fini(&s->places);
	ky_arena_fini(&s->arena);
	ky_strbuf_fini(&s->lines.out);
	ky_strbuf_fini(&s->scratch);
	free(s);
}

static const struct ky_sink_ops table_ops = {
	.batch = table_batch,
	.flush = ky_lines_flush,
	.finish = ky_lines_flush,
	.free = table_free,
	.hold = ky_lines_hold,
	.resume = ky_lines_resume,
	.begin = ky_lines_begin,
	.held = ky_lines_held,
	.take = ky_lines_take,
};

static void csv_table_put_header(struct table_sink *s)
{
	for (size_t i = 0; i < s->columns.len; i++) {
		if (i)
			ky_strbuf_addc(&s->lines.out, ',');
		ky_csv_text(&s->lines.out, s->columns.data[i].text, strlen(s->columns.data[i].text),
			    s->raw);
	}
	ky_strbuf_addc(&s->lines.out, '\n');
}

static int new_table(const char *fields, bool raw, int fd, struct table_sink **table,
		     struct kymo_error *err)
{
	struct table_sink *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return ky_error_nomem(err);
	s->lines.sink.ops = &table_ops;
	s->raw = raw;
	s->lines.fd = fd;
	s->lines.what = "the table";
	ky_arena_init(&s->arena);
	ky_map_init(&s->places);
	for (int i = 0; i < KY_SCOPE_COUNT; i++)
		ky_values_init(&s->values[i]);
	ret = parse_columns(s, fields, err);
	if (ret < 0)
		table_free(&s->lines.sink);
	else
		*table = s;
	return ret;
}

int ky_csv_table_begin(const struct ky_trace_set *set, const char *fields, bool raw, int fd,
		       struct kymo_error *err)
{
	struct table_sink *s;
	int ret = new_table(fields, raw, fd, &s, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < s->columns.len && ret == KYMO_OK; i++)
		ret = check_column(set, &s->columns.data[i], err);
	csv_table_put_header(s);
	if (ret == KYMO_OK)
		ret = ky_lines_flush(&s->lines.sink, err);
	table_free(&s->lines.sink);
	return ret;
}

struct ky_sink *ky_csv_table_sink_new(const char *fields, bool raw, int fd)
{
	struct table_sink *s;

	return new_table(fields, raw, fd, &s, NULL) == KYMO_OK ? &s->lines.sink : NULL;
}
