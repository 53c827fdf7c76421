/* SPDX-License-Identifier: MIT */
#include "ctf/ctf2/ctf2-edit.h"

#include <stdio.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/text.h"
#include "ctf/ctf2/attributes.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/json/json.h"

#define RECORD_SEPARATOR 0x1e

/* Calls @each for every fragment; @begin to @end is its text. */
static int each_fragment(const char *text, size_t len_bytes,
			 int (*each)(void *data, struct ky_arena *arena, struct ky_json *fragment,
				     const char *begin, const char *end),
			 void *data, struct kymo_error *err)
{
	struct ky_arena arena;
	struct ky_json_reader json = {.at = text,
				      .end = text + len_bytes,
				      .line_begin = text,
				      .line = 1,
				      .depth_left = KY_JSON_DEPTH + len_bytes / 16,
				      .arena = &arena,
				      .err = err};
	struct ky_json *fragment;
	const char *begin;
	int ret = KYMO_OK;

	ky_arena_init(&arena);
	while (ret == KYMO_OK && ky_json_more(&json)) {
		if (*json.at == RECORD_SEPARATOR) {
			json.at++;
			continue;
		}
		begin = json.at;
		fragment = ky_json_read(&json);
		ret = fragment ? each(data, &arena, fragment, begin, json.at) : err->code;
	}
	ky_arena_fini(&arena);
	return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : ret;
}

static bool is_type(const struct ky_json *fragment, const char *name)
{
	const struct ky_json *type = ky_json_get(fragment, "type");

	return type && type->kind == KY_JSON_STRING && strcmp(type->string.data, name) == 0;
}

/* ---- offsets ------------------------------------------------------------------------------ */

static struct ky_json *new_item(struct ky_arena *arena, enum ky_json_kind kind, const char *key)
{
	struct ky_json *item = ky_arena_new(arena, struct ky_json);

	if (!item)
		return NULL;
	*item = (struct ky_json){.kind = kind, .key = key};
	return item;
}

/* {"seconds": ..., "cycles": ...}, at the end of @fragment. */
static struct ky_json *new_offset(struct ky_arena *arena, const struct ky_clock_class *clock)
{
	struct ky_json *offset = new_item(arena, KY_JSON_OBJECT, "offset-from-origin");
	struct ky_json *seconds = new_item(arena, KY_JSON_INTEGER, "seconds");
	struct ky_json *cycles = new_item(arena, KY_JSON_INTEGER, "cycles");
	uint64_t cycles_value;
	int64_t seconds_value;

	if (!offset || !seconds || !cycles)
		return NULL;
	ky_ctf2_offset(clock, &seconds_value, &cycles_value);
	seconds->integer.u = (uint64_t)seconds_value;
	seconds->integer.negative = seconds_value < 0;
	seconds->next = cycles;
	cycles->integer.u = cycles_value;
	offset->list.first = seconds;
	offset->list.len = 2;
	return offset;
}

static int replace_offset(struct ky_arena *arena, struct ky_json *fragment,
			  const struct ky_clock_class *clock)
{
	struct ky_json *offset = new_offset(arena, clock), **at = &fragment->list.first;

	if (!offset)
		return KYMO_E_MEMORY;
	while (*at && strcmp((*at)->key, "offset-from-origin") != 0)
		at = &(*at)->next;
	if (*at)
		offset->next = (*at)->next;
	*at = offset;
	return KYMO_OK;
}

static const struct ky_clock_class *ctf2_edit_clock_of(const struct ky_trace_class *trace,
						       const struct ky_json *fragment)
{
	const struct ky_json *id = ky_json_get(fragment, "id");

	ky_vec_foreach(&trace->clocks, clock) {
		if (id && id->kind == KY_JSON_STRING &&
		    strcmp((*clock)->name, id->string.data) == 0)
			return *clock;
	}
	return NULL;
}

struct offsets {
	const struct ky_trace_class *trace;
	struct ky_strbuf *out;
};

static int write_fragment(void *data, struct ky_arena *arena, struct ky_json *fragment,
			  const char *begin, const char *end)
{
	const struct offsets *o = data;
	const struct ky_clock_class *clock = NULL;
	int ret = KYMO_OK;

	if (is_type(fragment, "clock-class"))
		clock = ctf2_edit_clock_of(o->trace, fragment);
	ky_strbuf_addc(o->out, RECORD_SEPARATOR);
	if (clock)
		ret = replace_offset(arena, fragment, clock);
	if (ret < 0)
		return ret;
	if (clock) {
		ret = ky_json_put(o->out, fragment);
		ky_strbuf_addc(o->out, '\n');
	} else {
		ky_strbuf_add(o->out, begin, (size_t)(end - begin));
	}
	return ret;
}

int ky_ctf2_set_offsets(const struct ky_trace_class *trace, const char *text, size_t len_bytes,
			struct ky_strbuf *out, struct kymo_error *err)
{
	struct offsets offsets = {trace, out};
	struct kymo_error own;
	int ret = each_fragment(text, len_bytes, write_fragment, &offsets, err ? err : &own);

	return ret == KYMO_OK && ky_strbuf_failed(out) ? ky_error_nomem(err) : ret;
}

/* ---- what has no place in CTF 1.8 --------------------------------------------------------- */

enum left {
	LEFT_ATTRIBUTES,
	LEFT_NAMESPACE,
	LEFT_UID,
	LEFT_NAME,
	LEFT_ACCURACY,
	LEFT_ORIGIN,
	LEFT_MEDIA_TYPE,
	LEFT_FLAGS,
	LEFT_LABELS,
	LEFT_COUNT,
};

static const char *const left_names[LEFT_COUNT] = {
	"attributes",
	"namespaces",
	"UIDs",
	"names of traces, streams and clocks",
	"clock accuracy",
	"clock origins",
	"media types",
	"flags of bit maps",
	"labels of integers beyond 64 bits",
};

/* Of an event's attributes LTTng's have a place. */
static bool has_place(const struct ky_json *attributes)
{
	const struct ky_json *space = attributes->list.first;

	if (!space || space->next || strcmp(space->key, KY_CTF2_LTTNG_NAMESPACE) != 0 ||
	    space->kind != KY_JSON_OBJECT)
		return !space;
	for (const struct ky_json *item = space->list.first; item; item = item->next) {
		if (strcmp(item->key, "log-level") != 0 && strcmp(item->key, "emf-uri") != 0)
			return false;
	}
	return true;
}

/* An integer that becomes words, which have no labels. */
static bool has_long_labels(const struct ky_json *cls)
{
	const struct ky_json *length = ky_json_get(cls, "length");

	return ky_json_get(cls, "mappings") && length && length->kind == KY_JSON_INTEGER &&
	       length->integer.u > 64;
}

KY_DEEP2(int, count_below, const struct ky_json *, unsigned int *)

/* Field classes: attributes anywhere, and what single classes have. */
static int count_below(const struct ky_json *value, unsigned int *counts)
{
	const struct ky_json *media;
	int ret = KYMO_OK;

	if (value->kind != KY_JSON_OBJECT && value->kind != KY_JSON_ARRAY)
		return KYMO_OK;
	if (value->kind == KY_JSON_OBJECT) {
		media = ky_json_get(value, "media-type");
		counts[LEFT_MEDIA_TYPE] +=
			media && media->kind == KY_JSON_STRING &&
			strcmp(media->string.data, "application/octet-stream") != 0;
		counts[LEFT_FLAGS] += is_type(value, "fixed-length-bit-map");
		counts[LEFT_LABELS] += has_long_labels(value);
		counts[LEFT_ATTRIBUTES] += ky_json_get(value, "attributes") != NULL;
	}
	for (const struct ky_json *item = value->list.first; item && ret == KYMO_OK;
	     item = item->next) {
		if (!item->key ||
		    (strcmp(item->key, "attributes") != 0 && strcmp(item->key, "mappings") != 0 &&
		     strcmp(item->key, "environment") != 0 && strcmp(item->key, "flags") != 0))
			ret = count_below_deep(KYMO_E_MEMORY, item, counts);
	}
	return ret;
}

static bool ctf2_edit_is_uuid(const struct ky_json *uid)
{
	uint8_t uuid[16];

	return uid->kind == KY_JSON_STRING && ky_parse_uuid(uid->string.data, uuid);
}

static void count_clock(const struct ky_json *fragment, unsigned int counts[LEFT_COUNT])
{
	const struct ky_json *uid = ky_json_get(fragment, "uid");
	const struct ky_json *name = ky_json_get(fragment, "name"), *id;
	const struct ky_json *origin = ky_json_get(fragment, "origin");

	id = ky_json_get(fragment, "id");
	counts[LEFT_UID] += uid && !ctf2_edit_is_uuid(uid);
	counts[LEFT_NAME] += name && id && name->kind == KY_JSON_STRING &&
			     id->kind == KY_JSON_STRING &&
			     strcmp(name->string.data, id->string.data) != 0;
	counts[LEFT_ACCURACY] += ky_json_get(fragment, "accuracy") != NULL;
	counts[LEFT_ORIGIN] += origin && origin->kind == KY_JSON_OBJECT;
}

static int count_fragment(void *data, struct ky_arena *arena, struct ky_json *fragment,
			  const char *begin, const char *end)
{
	unsigned int *counts = data;
	const struct ky_json *attributes = ky_json_get(fragment, "attributes");

	(void)arena;
	(void)begin;
	(void)end;
	if (count_below(fragment, counts) < 0)
		return KYMO_E_MEMORY;
	/* An alias counts where it is, not where it is used. */
	counts[LEFT_NAMESPACE] += ky_json_get(fragment, "namespace") != NULL;
	if (is_type(fragment, "event-record-class") && attributes &&
	    attributes->kind == KY_JSON_OBJECT && has_place(attributes))
		counts[LEFT_ATTRIBUTES]--;
	if (is_type(fragment, "clock-class")) {
		count_clock(fragment, counts);
		return KYMO_OK;
	}
	counts[LEFT_UID] += ky_json_get(fragment, "uid") != NULL;
	if (is_type(fragment, "trace-class") || is_type(fragment, "data-stream-class"))
		counts[LEFT_NAME] += ky_json_get(fragment, "name") != NULL;
	return KYMO_OK;
}

int ky_ctf2_left_out(const char *text, size_t len_bytes, struct ky_strbuf *out,
		     struct kymo_error *err)
{
	unsigned int counts[LEFT_COUNT] = {0};
	struct kymo_error own;
	bool any = false;
	int ret = each_fragment(text, len_bytes, count_fragment, counts, err ? err : &own);

	for (int i = 0; i < LEFT_COUNT && ret == KYMO_OK; i++) {
		if (counts[i])
			ky_strbuf_addf(out, "%s%s (%u)", any ? ", " : "", left_names[i], counts[i]);
		any |= counts[i] > 0;
	}
	return ret == KYMO_OK && ky_strbuf_failed(out) ? ky_error_nomem(err) : ret;
}
