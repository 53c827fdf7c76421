/* SPDX-License-Identifier: MIT */
#include "view/session/notes.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "os/file.h"
#include "view/session/notes-place.h"
#include "view/answers/answer-internal.h"

struct note {
	int64_t id, begin_ns, end_ns;
	char *text;
};

KY_VEC_TYPE(note_list, struct note);

struct ky_view_notes {
	struct ky_notes_place places[2]; /* beside the trace; the user's own */
	pthread_mutex_t lock;
};

static void free_notes(struct note_list *list)
{
	ky_vec_foreach(list, note)
		free(note->text);
	ky_vec_fini(list);
}

/* ---- reading ------------------------------------------------------------------------------- */

static int damaged(const char *what, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_FORMAT, "the file of notes is damaged: %s", what);
	ky_error_hint(err, "mend it, or move it away");
	return KYMO_E_FORMAT;
}

static int notes_take_note(const json_t *json, struct note_list *list, struct kymo_error *err)
{
	const json_t *id = json_object_get(json, "id"), *begin = json_object_get(json, "begin");
	const json_t *end = json_object_get(json, "end"), *text = json_object_get(json, "text");
	struct note note;

	if (!json_is_integer(id) || !json_is_integer(begin) || !json_is_integer(end) ||
	    !json_is_string(text) || json_string_length(text) > KY_NOTE_TEXT_BYTES ||
	    json_integer_value(end) < json_integer_value(begin) || json_integer_value(id) <= 0)
		return damaged("one of its notes is malformed", err);
	if (list->len >= KY_NOTES_MAX)
		return damaged("it has too many notes", err);
	note = (struct note){json_integer_value(id), json_integer_value(begin),
			     json_integer_value(end), strdup(json_string_value(text))};
	if (!note.text || ky_vec_push(list, note) < 0) {
		free(note.text);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static int notes_parse(const struct ky_strbuf *text, struct note_list *list, struct kymo_error *err)
{
	json_error_t where;
	json_t *json = json_loadb(ky_strbuf_text(text), text->len, JSON_REJECT_DUPLICATES, &where);
	const json_t *notes = json_object_get(json, "notes"), *note;
	int ret = KYMO_OK;
	size_t i;

	if (!json)
		ret = damaged(where.text, err);
	else if (!json_is_array(notes))
		ret = damaged("it has no list of notes", err);
	else
		json_array_foreach(notes, i, note) if (ret == KYMO_OK) ret =
			notes_take_note(note, list, err);
	json_decref(json);
	return ret;
}

/* 1: read; 0: there is no such file; or a negative status. */
static int read_place(const struct ky_notes_place *place, struct note_list *list,
		      struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int fd, ret;

	if (!place->directory)
		return 0;
	fd = ky_notes_directory(place, false, NULL);
	if (fd < 0)
		return 0;
	ret = ky_read_regular(fd, place->name, KY_NOTES_MAX_BYTES, &text);
	close(fd);
	if (ret == -ENOENT || (ret < 0 && !place->can_write)) {
		ky_strbuf_fini(&text);
		return 0;
	}
	if (ret < 0)
		ret = ky_error_errno(err, -ret, "cannot read the notes");
	else
		ret = notes_parse(&text, list, err);
	if (ret < 0)
		ky_error_path(err, place->name);
	ky_strbuf_fini(&text);
	return ret < 0 ? ret : 1;
}

/* Where a change goes to. */
static const struct ky_notes_place *notes_own_place(const struct ky_view_notes *notes)
{
	return notes->places[0].directory && notes->places[0].can_write ? &notes->places[0]
									: &notes->places[1];
}

/* From where they would be written; else from beside the trace, where somebody else has put them. */
static int notes_read_notes(const struct ky_view_notes *notes, struct note_list *list,
			    struct kymo_error *err)
{
	const struct ky_notes_place *own = notes_own_place(notes);
	int ret = read_place(own, list, err);

	if (ret == 0)
		ret = read_place(&notes->places[own == &notes->places[0]], list, err);
	return ret < 0 ? ret : KYMO_OK;
}

/* ---- changes ------------------------------------------------------------------------------- */

static void put_notes(const struct note_list *list, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, "\"notes\": [");
	ky_vec_foreach(list, note) {
		ky_strbuf_addf(out, "%s\n{\"id\": %lld, \"begin\": %lld, \"end\": %lld, \"text\": ",
			       note == list->data ? "" : ",", (long long)note->id,
			       (long long)note->begin_ns, (long long)note->end_ns);
		ky_view_put_text(out, note->text);
		ky_strbuf_adds(out, "}");
	}
	ky_strbuf_adds(out, "]");
}

static int write_notes(const struct ky_view_notes *notes, const struct note_list *list,
		       struct kymo_error *err)
{
	const struct ky_notes_place *own = notes_own_place(notes);
	struct ky_strbuf text = KY_STRBUF_INIT;
	int fd, ret;

	if (!own->directory)
		return ky_error_set(err, KYMO_E_PERMISSION,
				    "cannot keep notes: neither the directory of the trace nor "
				    "HOME is a place for them");
	fd = ky_notes_directory(own, own == &notes->places[1], err);
	if (fd < 0)
		return fd;
	ky_strbuf_adds(&text, "{\"kymo_notes\": 1, ");
	put_notes(list, &text);
	ky_strbuf_adds(&text, "}\n");
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_file_replace(fd, own->name, ky_strbuf_text(&text), text.len);
	if (ret < 0 && !ky_strbuf_failed(&text)) {
		ret = ky_error_errno(err, -ret, "cannot write the notes");
		ky_error_path(err, own->directory);
	}
	close(fd);
	ky_strbuf_fini(&text);
	return ret;
}

static struct note *notes_find(struct note_list *list, uint64_t id)
{
	ky_vec_foreach(list, note)
		if ((uint64_t)note->id == id)
			return note;
	return NULL;
}

static int set_note(struct note_list *list, const struct ky_view_request *request,
		    struct kymo_error *err)
{
	struct note fresh = {1, request->begin_ns, request->end_ns, NULL}, *old = NULL;

	if (strlen(request->filter) > KY_NOTE_TEXT_BYTES)
		return ky_error_set(err, KYMO_E_LIMIT, "the note is longer than %d bytes",
				    KY_NOTE_TEXT_BYTES);
	if (request->row)
		old = notes_find(list, request->row);
	if (request->row && !old)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such note");
	if (!old && list->len >= KY_NOTES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "there are %d notes; remove some",
				    KY_NOTES_MAX);
	fresh.text = strdup(request->filter);
	if (!fresh.text)
		return ky_error_nomem(err);
	ky_vec_foreach(list, note)
		fresh.id = note->id >= fresh.id && note->id < INT64_MAX ? note->id + 1 : fresh.id;
	if (old) {
		fresh.id = old->id;
		free(old->text);
		*old = fresh;
	} else if (ky_vec_push(list, fresh) < 0) {
		free(fresh.text);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static int remove_note(struct note_list *list, uint64_t id, struct kymo_error *err)
{
	struct note *note = notes_find(list, id);

	if (!note)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such note");
	free(note->text);
	memmove(note, note + 1, (size_t)(list->data + list->len - note - 1) * sizeof(*note));
	list->len--;
	return KYMO_OK;
}

static int notes_by_time(const void *a, const void *b)
{
	const struct note *one = a, *other = b;

	if (one->begin_ns != other->begin_ns)
		return one->begin_ns < other->begin_ns ? -1 : 1;
	return one->id < other->id ? -1 : one->id > other->id;
}

static int change(struct ky_view_notes *notes, const struct ky_view_request *request,
		  struct note_list *list, struct kymo_error *err)
{
	int ret = request->what == KY_VIEW_NOTE ? set_note(list, request, err)
						: remove_note(list, request->row, err);

	if (ret < 0)
		return ret;
	if (list->len)
		qsort(list->data, list->len, sizeof(*list->data), notes_by_time);
	return write_notes(notes, list, err);
}

/* ---- the whole ----------------------------------------------------------------------------- */

int ky_view_notes_answer(struct ky_view_notes *notes, const struct ky_view_request *request,
			 struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_notes_place *own = notes_own_place(notes);
	struct note_list list = KY_VEC_INIT;
	int ret;

	pthread_mutex_lock(&notes->lock);
	ret = notes_read_notes(notes, &list, err);
	if (ret == KYMO_OK && request->what != KY_VIEW_NOTES)
		ret = change(notes, request, &list, err);
	pthread_mutex_unlock(&notes->lock);
	if (ret == KYMO_OK) {
		ky_strbuf_adds(out, "{\"file\": ");
		ky_view_put_text(out, own->name);
		ky_strbuf_adds(out, ", \"directory\": ");
		ky_view_put_text(out, own->directory ? own->directory : "");
		ky_strbuf_adds(out, ", ");
		put_notes(&list, out);
		ky_strbuf_adds(out, "}\n");
	}
	free_notes(&list);
	if (ret == KYMO_OK && ky_strbuf_failed(out))
		ret = ky_error_nomem(err);
	return ret;
}

int ky_view_notes_open(const char *const *paths, size_t n_paths, struct ky_view_notes **made,
		       struct kymo_error *err)
{
	struct ky_view_notes *notes = calloc(1, sizeof(*notes));

	if (!notes)
		return ky_error_nomem(err);
	ky_notes_places(paths, n_paths, notes->places);
	pthread_mutex_init(&notes->lock, NULL);
	*made = notes;
	return KYMO_OK;
}

void ky_view_notes_close(struct ky_view_notes *notes)
{
	if (!notes)
		return;
	pthread_mutex_destroy(&notes->lock);
	free(notes->places[0].directory);
	free(notes->places[1].directory);
	free(notes);
}
