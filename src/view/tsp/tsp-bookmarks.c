/* SPDX-License-Identifier: MIT */
/* Bookmarks of experiments: the notes of their traces, which the page shows, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

struct bookmarks {
	struct ky_tsp_answer *answer;
	struct ky_view_request *ask;
	struct ky_arena arena;
	const struct ky_json *first; /* of the notes */
};

static uint64_t tsp_bookmarks_number_of(const struct ky_json *note)
{
	const struct ky_json *id = ky_json_get(note, "id");

	return id && id->kind == KY_JSON_INTEGER ? id->integer.u : 0;
}

/* The same for the same note, in each run. */
static void uuid_of(const struct bookmarks *bookmarks, const struct ky_json *note,
		    char uuid[KY_TSP_UUID_BYTES])
{
	char number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)tsp_bookmarks_number_of(note));
	ky_tsp_make_uuid(uuid, "bookmark", bookmarks->answer->experiment->uuid, number);
}

static void tsp_bookmarks_put_time(struct ky_strbuf *out, const char *name,
				   const struct ky_json *value)
{
	ky_strbuf_addf(out, ", \"%s\": ", name);
	ky_strbuf_addi(out,
		       value && value->kind == KY_JSON_INTEGER ? (int64_t)value->integer.u : 0);
}

static void put_bookmark(const struct bookmarks *bookmarks, const struct ky_json *note)
{
	const struct ky_json *text = ky_json_get(note, "text");
	struct ky_strbuf *out = bookmarks->answer->out;
	char uuid[KY_TSP_UUID_BYTES];

	uuid_of(bookmarks, note, uuid);
	ky_strbuf_addf(out, "{\"uuid\": \"%s\", \"name\": ", uuid);
	ky_view_put_text(out, text && text->kind == KY_JSON_STRING ? text->string.data : "");
	tsp_bookmarks_put_time(out, "start", ky_json_get(note, "begin"));
	tsp_bookmarks_put_time(out, "end", ky_json_get(note, "end"));
	ky_strbuf_adds(out, "}");
}

/* Ask for all notes, or for a change: then bookmarks->first is what is there afterwards. */
static int tsp_bookmarks_ask(struct bookmarks *bookmarks, enum ky_view_what what, uint64_t number,
			     struct kymo_error *err)
{
	const struct ky_tsp_request *request = bookmarks->answer->request;
	struct ky_strbuf text = KY_STRBUF_INIT;
	const struct ky_json *root = NULL, *notes;
	int ret;

	bookmarks->ask->what = what;
	bookmarks->ask->row = number;
	bookmarks->ask->begin_ns = request->begin_ns;
	bookmarks->ask->end_ns = request->end_ns;
	snprintf(bookmarks->ask->filter, sizeof(bookmarks->ask->filter), "%s",
		 request->name ? request->name : "");
	ret = ky_view_notes_answer(bookmarks->answer->experiment->engine->notes, bookmarks->ask,
				   &text, err);
	if (ret == KYMO_OK)
		ret = ky_tsp_parse(&text, &bookmarks->arena, &root, err);
	notes = root ? ky_json_get(root, "notes") : NULL;
	bookmarks->first = notes && notes->kind == KY_JSON_ARRAY ? notes->list.first : NULL;
	ky_strbuf_fini(&text);
	return ret;
}

static const struct ky_json *tsp_bookmarks_find_number(const struct bookmarks *bookmarks,
						       uint64_t number)
{
	const struct ky_json *note = bookmarks->first;

	while (note && tsp_bookmarks_number_of(note) != number)
		note = note->next;
	return note;
}

static const struct ky_json *find_uuid(const struct bookmarks *bookmarks, const char *uuid)
{
	char own[KY_TSP_UUID_BYTES];

	for (const struct ky_json *note = bookmarks->first; note; note = note->next) {
		uuid_of(bookmarks, note, own);
		if (strcmp(own, uuid) == 0)
			return note;
	}
	return NULL;
}

/* The new one has the greatest number. */
static int tsp_bookmarks_create(struct bookmarks *bookmarks, struct kymo_error *err)
{
	const struct ky_json *newest;
	int ret = tsp_bookmarks_ask(bookmarks, KY_VIEW_NOTE, 0, err);

	newest = bookmarks->first;
	for (const struct ky_json *note = newest; ret == KYMO_OK && note; note = note->next)
		newest = tsp_bookmarks_number_of(note) > tsp_bookmarks_number_of(newest) ? note
											 : newest;
	if (ret == KYMO_OK && newest)
		put_bookmark(bookmarks, newest);
	return ret;
}

static void tsp_bookmarks_put_all(const struct bookmarks *bookmarks)
{
	ky_strbuf_adds(bookmarks->answer->out, "[");
	for (const struct ky_json *note = bookmarks->first; note; note = note->next) {
		ky_strbuf_adds(bookmarks->answer->out, note == bookmarks->first ? "" : ", ");
		put_bookmark(bookmarks, note);
	}
	ky_strbuf_adds(bookmarks->answer->out, "]");
}

static int answer_one(struct bookmarks *bookmarks, struct kymo_error *err)
{
	const struct ky_tsp_request *request = bookmarks->answer->request;
	const struct ky_json *note = find_uuid(bookmarks, request->uuid[1]);
	uint64_t number;
	int ret = KYMO_OK;

	if (!note)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such bookmark");
	number = tsp_bookmarks_number_of(note);
	if (request->what == KY_TSP_BOOKMARK_UPDATE)
		ret = tsp_bookmarks_ask(bookmarks, KY_VIEW_NOTE, number, err);
	else if (request->what == KY_TSP_BOOKMARK_DELETE)
		ret = tsp_bookmarks_ask(bookmarks, KY_VIEW_UNNOTE, number, err);
	if (request->what == KY_TSP_BOOKMARK_UPDATE && ret == KYMO_OK)
		note = tsp_bookmarks_find_number(bookmarks, number);
	if (ret == KYMO_OK && note)
		put_bookmark(bookmarks, note);
	return ret;
}

int ky_tsp_bookmarks(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct bookmarks bookmarks = {.answer = answer, .ask = calloc(1, sizeof(*bookmarks.ask))};
	int ret;

	if (!bookmarks.ask)
		return ky_error_nomem(err);
	ky_arena_init(&bookmarks.arena);
	if (answer->request->what == KY_TSP_BOOKMARK_CREATE) {
		ret = tsp_bookmarks_create(&bookmarks, err);
	} else {
		ret = tsp_bookmarks_ask(&bookmarks, KY_VIEW_NOTES, 0, err);
		if (ret == KYMO_OK && answer->request->what == KY_TSP_BOOKMARKS)
			tsp_bookmarks_put_all(&bookmarks);
		else if (ret == KYMO_OK)
			ret = answer_one(&bookmarks, err);
	}
	ky_arena_fini(&bookmarks.arena);
	free(bookmarks.ask);
	return ret;
}
