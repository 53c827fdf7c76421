/* SPDX-License-Identifier: MIT */
/* The fragments of a CTF 2 metadata stream. */
#include "ctf/ctf2/ctf2-read.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "ctf/ctf2/attributes.h"

#define RECORD_SEPARATOR 0x1e

int ky_ctf2_need_object(struct ky_ctf2_reader *r, const struct ky_json *node, const char *what)
{
	return node->kind == KY_JSON_OBJECT
		       ? KYMO_OK
		       : ky_json_error(r->err, node, "%s must be an object", what);
}

/* ---- aliases, the trace class ----------------------------------------------------------------- */

/* Where aliases are used they unfold; what is said of themselves has no other place than theirs. */
static int keep_alias(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	const struct ky_json *attributes = ky_json_get(fragment, "attributes");
	int ret;

	r->alias_attributes |=
		attributes && attributes->kind == KY_JSON_OBJECT && attributes->list.first;
	ky_strbuf_addc(&r->alias_text, RECORD_SEPARATOR);
	ret = ky_json_put(&r->alias_text, fragment);
	ky_strbuf_addc(&r->alias_text, '\n');
	return ky_strbuf_failed(&r->alias_text) ? KYMO_E_MEMORY : ret;
}

static int read_alias(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	const struct ky_json *cls = ky_json_get(fragment, "field-class");
	struct ky_field_class *unused;
	const char *name;
	int ret = ky_ctf2_string(r, fragment, "name", true, &name);

	if (ret < 0)
		return ret;
	if (!cls)
		return ky_json_error(r->err, fragment, "property 'field-class' is missing");
	if (ky_names_get(&r->aliases, name))
		return ky_json_error(r->err, fragment, "there is a field class alias '%s' already",
				     name);
	/* Building it once finds mistakes here, and names that are not there yet. */
	r->checking = true;
	ret = ky_ctf2_field_class(r, cls, NULL, &unused);
	r->checking = false;
	if (ret < 0)
		return ret;
	if (cls->kind == KY_JSON_STRING)
		cls = ky_names_get(&r->aliases, cls->string.data);
	if (ky_names_set(&r->aliases, name, (void *)cls) < 0 || keep_alias(r, fragment) < 0)
		return ky_error_nomem(r->err);
	return KYMO_OK;
}

static bool is_above_i64(const struct ky_json *integer)
{
	return !integer->integer.negative && integer->integer.u > INT64_MAX;
}

static const char *env_text(struct ky_ctf2_reader *r, const struct ky_json *item)
{
	if (item->kind == KY_JSON_INTEGER)
		return ky_arena_printf(&r->trace->arena, "%" PRIu64, item->integer.u);
	return ky_arena_strdup(&r->trace->arena,
			       item->kind == KY_JSON_BIG ? item->number : item->string.data);
}

static int read_environment(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	const struct ky_json *list = ky_json_get(fragment, "environment");
	int ret = KYMO_OK;

	if (!list)
		return KYMO_OK;
	if (ky_ctf2_need_object(r, list, "'environment'") < 0)
		return KYMO_E_FORMAT;
	for (const struct ky_json *item = list->list.first; item && ret == KYMO_OK;
	     item = item->next) {
		const char *name = ky_arena_strdup(&r->trace->arena, item->key);
		const char *text;

		if (!name)
			return ky_error_nomem(r->err);
		if (item->kind == KY_JSON_INTEGER && !is_above_i64(item)) {
			ret = ky_env_add_number(r->trace, name, (int64_t)item->integer.u);
		} else if (item->kind == KY_JSON_INTEGER || item->kind == KY_JSON_BIG ||
			   item->kind == KY_JSON_STRING) {
			/* A number that does not fit is kept as it is written. */
			text = env_text(r, item);
			ret = text ? ky_env_add_text(r->trace, name, text) : KYMO_E_MEMORY;
		} else {
			return ky_json_error(r->err, item,
					     "an environment entry is an integer or a string");
		}
	}
	return ret < 0 ? ky_error_nomem(r->err) : KYMO_OK;
}

static int read_trace_class(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	struct ky_field_class *roots[KY_SCOPE_COUNT] = {NULL};
	int ret;

	if (r->trace->streams.len)
		return ky_json_error(r->err, fragment,
				     "the trace class must stand before data stream classes");
	ret = ky_ctf2_string(r, fragment, "name", false, &r->trace->name);
	if (ret == KYMO_OK)
		ret = ky_ctf2_attributes(r, fragment, &r->trace->attributes);
	if (ret == KYMO_OK)
		ret = read_environment(r, fragment);
	if (ret < 0)
		return ret;
	r->clock = NULL;
	ret = ky_ctf2_scope(r, fragment, "packet-header-field-class", KY_SCOPE_PACKET_HEADER,
			    &roots[KY_SCOPE_PACKET_HEADER]);
	r->trace->packet_header = roots[KY_SCOPE_PACKET_HEADER];
	return ret < 0 ? ret : ky_ctf2_locate(r, roots);
}

/* ---- data stream and event record classes ---------------------------------------------------- */

static int default_clock(struct ky_ctf2_reader *r, const struct ky_json *fragment,
			 struct ky_stream_class *stream)
{
	const char *id = NULL;
	int ret = ky_ctf2_string(r, fragment, "default-clock-class-id", false, &id);

	r->clock = NULL;
	if (ret < 0 || !id)
		return ret;
	stream->clock = r->clock = ky_ctf2_find_clock(r, id);
	return r->clock
		       ? KYMO_OK
		       : ky_json_error(r->err, fragment, "there is no clock class '%s' before", id);
}

static int ctf2_read_stream(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	struct ky_field_class *roots[KY_SCOPE_COUNT] = {r->trace->packet_header};
	struct ky_stream_class *stream;
	uint64_t id = 0;
	int ret = ky_ctf2_uint(r, fragment, "id", false, &id);

	if (ret < 0)
		return ret;
	if (ky_map_get(&r->trace->streams_by_id, id))
		return ky_json_error(r->err, fragment,
				     "there is a data stream class with id %llu already",
				     (unsigned long long)id);
	stream = ky_stream_class_new(r->trace, id);
	if (!stream)
		return ky_error_nomem(r->err);
	stream->has_id = true;
	ret = ky_ctf2_string(r, fragment, "name", false, &stream->name);
	if (ret == KYMO_OK)
		ret = ky_ctf2_attributes(r, fragment, &stream->attributes);
	if (ret == KYMO_OK)
		ret = default_clock(r, fragment, stream);
	if (ret == KYMO_OK)
		ret = ky_ctf2_scope(r, fragment, "packet-context-field-class",
				    KY_SCOPE_PACKET_CONTEXT, &roots[KY_SCOPE_PACKET_CONTEXT]);
	if (ret == KYMO_OK)
		ret = ky_ctf2_scope(r, fragment, "event-record-header-field-class",
				    KY_SCOPE_EVENT_HEADER, &roots[KY_SCOPE_EVENT_HEADER]);
	if (ret == KYMO_OK)
		ret = ky_ctf2_scope(r, fragment, "event-record-common-context-field-class",
				    KY_SCOPE_STREAM_CONTEXT, &roots[KY_SCOPE_STREAM_CONTEXT]);
	if (ret < 0)
		return ret;
	stream->packet_context = roots[KY_SCOPE_PACKET_CONTEXT];
	stream->event_header = roots[KY_SCOPE_EVENT_HEADER];
	stream->event_context = roots[KY_SCOPE_STREAM_CONTEXT];
	return ky_ctf2_locate(r, roots);
}

static int ctf2_read_event(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	struct ky_field_class *roots[KY_SCOPE_COUNT];
	struct ky_stream_class *stream;
	struct ky_event_class *event;
	uint64_t id = 0, stream_id = 0;
	const char *name = "";
	int ret = ky_ctf2_uint(r, fragment, "id", false, &id);

	if (ret == KYMO_OK)
		ret = ky_ctf2_uint(r, fragment, "data-stream-class-id", false, &stream_id);
	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, fragment, "name", false, &name);
	if (ret < 0)
		return ret;
	stream = ky_map_get(&r->trace->streams_by_id, stream_id);
	if (!stream)
		return ky_json_error(r->err, fragment,
				     "there is no data stream class with id %llu before",
				     (unsigned long long)stream_id);
	if (ky_map_get(&stream->events_by_id, id))
		return ky_json_error(r->err, fragment,
				     "there is an event record class with id %llu already",
				     (unsigned long long)id);
	event = ky_event_class_new(stream, id, name);
	if (!event)
		return ky_error_nomem(r->err);
	if (ky_attributes_keep(&r->trace->arena, ky_json_get(fragment, "attributes"), event,
			       &event->attributes) < 0)
		return ky_error_nomem(r->err);
	roots[KY_SCOPE_PACKET_HEADER] = r->trace->packet_header;
	roots[KY_SCOPE_PACKET_CONTEXT] = stream->packet_context;
	roots[KY_SCOPE_EVENT_HEADER] = stream->event_header;
	roots[KY_SCOPE_STREAM_CONTEXT] = stream->event_context;
	r->clock = stream->clock;
	ret = ky_ctf2_scope(r, fragment, "specific-context-field-class", KY_SCOPE_EVENT_CONTEXT,
			    &roots[KY_SCOPE_EVENT_CONTEXT]);
	if (ret == KYMO_OK)
		ret = ky_ctf2_scope(r, fragment, "payload-field-class", KY_SCOPE_PAYLOAD,
				    &roots[KY_SCOPE_PAYLOAD]);
	if (ret < 0)
		return ret;
	event->context = roots[KY_SCOPE_EVENT_CONTEXT];
	event->payload = roots[KY_SCOPE_PAYLOAD];
	return ky_ctf2_locate(r, roots);
}

/* ---- the sequence ---------------------------------------------------------------------------- */

/* Whose class it is, is nothing that reading depends on; but it must be said rightly. */
static int ctf2_read_check_identity(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	static const char *const keys[] = {"namespace", "name", "uid"};
	const char *unused;
	int ret = KYMO_OK;

	for (size_t i = 0; i < 3 && ret == KYMO_OK; i++)
		ret = ky_ctf2_string(r, fragment, keys[i], false, &unused);
	return ret;
}

static int read_fragment(struct ky_ctf2_reader *r, struct ky_json *fragment, bool first,
			 bool *has_trace_class)
{
	const char *type;
	int ret = ky_ctf2_need_object(r, fragment, "a fragment");

	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, fragment, "type", true, &type);
	if (ret < 0)
		return ret;
	if ((strcmp(type, "preamble") == 0) != first)
		return ky_json_error(r->err, fragment,
				     first ? "the first fragment must be a preamble"
					   : "there is a second preamble");
	if (first)
		return ky_ctf2_preamble(r, fragment);
	ret = ky_ctf2_no_extensions(r, fragment);
	if (ret == KYMO_OK)
		ret = ky_ctf2_from_draft(r, fragment);
	if (ret == KYMO_OK)
		ret = ctf2_read_check_identity(r, fragment);
	if (ret < 0)
		return ret;
	if (strcmp(type, "field-class-alias") == 0)
		return read_alias(r, fragment);
	if (strcmp(type, "clock-class") == 0)
		return ky_ctf2_clock(r, fragment);
	if (strcmp(type, "data-stream-class") == 0)
		return ctf2_read_stream(r, fragment);
	if (strcmp(type, "event-record-class") == 0)
		return ctf2_read_event(r, fragment);
	if (strcmp(type, "trace-class") != 0)
		return ky_json_error(r->err, ky_json_get(fragment, "type"),
				     "unknown fragment type '%s'", type);
	if (*has_trace_class)
		return ky_json_error(r->err, fragment, "there is a second trace class");
	*has_trace_class = true;
	return read_trace_class(r, fragment);
}

static int no_fragment(struct ky_ctf2_reader *r, const struct ky_json_reader *json,
		       const char *what)
{
	ky_error_set(r->err, KYMO_E_FORMAT, "%s", what);
	ky_error_line(r->err, json->line, (uint32_t)(json->at - json->line_begin) + 1);
	return KYMO_E_FORMAT;
}

static int read_sequence(struct ky_ctf2_reader *r, struct ky_json_reader *json)
{
	bool first = true, has_trace_class = false;
	struct ky_json *fragment;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && ky_json_more(json)) {
		if (*json->at != RECORD_SEPARATOR)
			return no_fragment(r, json,
					   "a record separator (0x1e) is expected before a "
					   "fragment");
		json->at++;
		/* An empty text between two separators holds nothing. */
		if (!ky_json_more(json) || *json->at == RECORD_SEPARATOR)
			continue;
		fragment = ky_json_read(json);
		if (!fragment)
			return r->err ? r->err->code : KYMO_E_FORMAT;
		ret = read_fragment(r, fragment, first, &has_trace_class);
		first = false;
	}
	/* Without a data stream class it describes a trace without data, which may grow yet. */
	if (ret == KYMO_OK && first)
		return no_fragment(r, json, "the metadata has no preamble");
	return ret;
}

int ky_ctf2_read(const char *text, size_t len_bytes, struct ky_trace_class **trace,
		 struct kymo_error *err)
{
	struct kymo_error local;
	struct ky_ctf2_reader r = {.err = err ? err : &local, .classes_more = len_bytes / 16};
	struct ky_json_reader json = {.at = text,
				      .end = text + len_bytes,
				      .line_begin = text,
				      .line = 1,
				      .depth_left = KY_JSON_DEPTH + len_bytes / 16,
				      .arena = &r.json,
				      .err = r.err};
	int ret;

	*trace = NULL;
	r.trace = ky_trace_class_new();
	if (!r.trace)
		return ky_error_nomem(err);
	r.trace->major = 2;
	ky_arena_init(&r.json);
	ky_names_init(&r.aliases);
	ky_names_init(&r.clocks);
	ky_child_tables_init(&r.tables);
	ky_map_init(&r.places);
	ky_map_init(&r.attributes);
	r.alias_text = (struct ky_strbuf)KY_STRBUF_INIT;
	ret = read_sequence(&r, &json);
	if (ret == KYMO_OK && r.alias_attributes) {
		r.trace->aliases = ky_arena_strdup(&r.trace->arena, ky_strbuf_text(&r.alias_text));
		ret = r.trace->aliases ? KYMO_OK : KYMO_E_MEMORY;
	}
	if (ret == KYMO_OK)
		ret = ky_trace_class_finish(r.trace, false, r.err);
	if (ret == KYMO_E_MEMORY)
		ky_error_nomem(r.err);
	ky_vec_fini(&r.pending);
	ky_map_fini(&r.places);
	ky_map_fini(&r.attributes);
	ky_strbuf_fini(&r.alias_text);
	ky_names_fini(&r.aliases);
	ky_names_fini(&r.clocks);
	ky_child_tables_fini(&r.tables);
	ky_arena_fini(&r.json);
	if (ret < 0)
		ky_trace_class_free(r.trace);
	else
		*trace = r.trace;
	return ret;
}
