/* SPDX-License-Identifier: MIT */
#include "ctf/ctf2/attributes.h"

#include <string.h>

#include "base/error.h"

/* LTTng's namespace stands first, so that what belongs to it can be put there. */
#define LTTNG_BEGIN "{\"" KY_CTF2_LTTNG_NAMESPACE "\": {"

/* Take member @key of @object out of it; NULL when none exists. */
static struct ky_json *attributes_take(struct ky_json *object, const char *key)
{
	for (struct ky_json **at = &object->list.first; *at; at = &(*at)->next) {
		struct ky_json *item = *at;

		if (strcmp(item->key, key) != 0)
			continue;
		*at = item->next;
		object->list.len--;
		item->next = NULL;
		return item;
	}
	return NULL;
}

/* They never matter for decoding, so what is odd stays what it is. */
static int take_lttng(struct ky_arena *arena, struct ky_json *lttng, struct ky_event_class *event)
{
	const struct ky_json *level = ky_json_get(lttng, "log-level");
	const struct ky_json *uri = ky_json_get(lttng, "emf-uri");

	if (level && level->kind == KY_JSON_INTEGER) {
		event->has_loglevel = true;
		event->loglevel = (int64_t)level->integer.u;
		(void)attributes_take(lttng, "log-level");
	}
	if (uri && uri->kind == KY_JSON_STRING) {
		event->emf_uri = ky_arena_strdup(arena, uri->string.data);
		if (!event->emf_uri)
			return KYMO_E_MEMORY;
		(void)attributes_take(lttng, "emf-uri");
	}
	return KYMO_OK;
}

static int keep_text(struct ky_arena *arena, const struct ky_json *object, const char **text)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret = ky_json_put(&out, object);

	if (ret == KYMO_OK && !ky_strbuf_failed(&out))
		*text = ky_arena_strdup(arena, ky_strbuf_text(&out));
	ky_strbuf_fini(&out);
	return *text ? KYMO_OK : KYMO_E_MEMORY;
}

int ky_attributes_keep(struct ky_arena *arena, struct ky_json *object, struct ky_event_class *event,
		       const char **text)
{
	struct ky_json *lttng;
	int ret = KYMO_OK;

	*text = NULL;
	if (!object || object->kind != KY_JSON_OBJECT)
		return KYMO_OK;
	lttng = attributes_take(object, KY_CTF2_LTTNG_NAMESPACE);
	if (lttng && event && lttng->kind == KY_JSON_OBJECT)
		ret = take_lttng(arena, lttng, event);
	if (ret < 0)
		return ret;
	if (lttng && lttng->kind == KY_JSON_OBJECT && lttng->list.first) {
		lttng->next = object->list.first;
		object->list.first = lttng;
		object->list.len++;
	}
	return object->list.first ? keep_text(arena, object, text) : KYMO_OK;
}

int ky_attributes_parse(struct ky_arena *arena, const char *given, struct ky_event_class *event,
			const char **text, struct kymo_error *err)
{
	struct ky_arena own;
	struct ky_json_reader json = {.at = given,
				      .end = given + strlen(given),
				      .line_begin = given,
				      .line = 1,
				      .depth_left = KY_JSON_DEPTH,
				      .arena = &own,
				      .err = err};
	struct ky_json *object;
	int ret = KYMO_OK;

	*text = NULL;
	ky_arena_init(&own);
	object = ky_json_read(&json);
	if (!object)
		ret = err->code;
	else if (object->kind != KY_JSON_OBJECT || ky_json_more(&json))
		ret = ky_json_error(err, object, "attributes are one JSON object");
	else if (ky_attributes_keep(arena, object, event, text) < 0)
		ret = ky_error_nomem(err);
	ky_arena_fini(&own);
	return ret;
}

/* What LTTng has words for, without the end of the namespace. */
static void put_lttng(struct ky_strbuf *out, const struct ky_event_class *event)
{
	ky_strbuf_adds(out, LTTNG_BEGIN);
	if (event->has_loglevel)
		ky_strbuf_addf(out, "\"log-level\": %lld", (long long)event->loglevel);
	if (!event->emf_uri)
		return;
	ky_strbuf_adds(out, event->has_loglevel ? ", \"emf-uri\": " : "\"emf-uri\": ");
	ky_json_put_text(out, event->emf_uri, strlen(event->emf_uri));
}

void ky_attributes_of_event(struct ky_strbuf *out, const struct ky_event_class *event)
{
	const char *rest = event->attributes;

	if (!event->has_loglevel && !event->emf_uri) {
		ky_strbuf_adds(out, rest);
		return;
	}
	put_lttng(out, event);
	if (rest && strncmp(rest, LTTNG_BEGIN, strlen(LTTNG_BEGIN)) == 0)
		ky_strbuf_addf(out, ", %s", rest + strlen(LTTNG_BEGIN));
	else if (rest)
		ky_strbuf_addf(out, "}, %s", rest + 1);
	else
		ky_strbuf_adds(out, "}}");
}
