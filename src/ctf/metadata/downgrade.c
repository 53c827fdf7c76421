/* SPDX-License-Identifier: MIT */
#include "ctf/metadata/downgrade.h"

#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/metadata/downgrade-internal.h"
#include "ctf/tsdl/tsdl.h"
#include "ctf/model/walk.h"

void ky_downgrade_notes_fini(struct ky_downgrade_notes *notes)
{
	ky_strbuf_fini(&notes->renamed);
	ky_strbuf_fini(&notes->added);
	ky_strbuf_fini(&notes->unused);
}

/* ---- leaves ------------------------------------------------------------------------------- */

/* Bytes: those of a BLOB, a UUID among them. */
static int lower_blob(struct ky_downgrade *l, struct ky_field_class *cls)
{
	struct ky_field_class *byte = ky_field_class_new(l->trace, KY_FIELD_UINT);
	struct ky_field_ref *length_ref = cls->text.length_ref;
	uint64_t length = cls->text.length_bytes;

	if (!byte)
		return ky_error_nomem(l->err);
	if (ky_downgrade_length(l, cls) < 0)
		return KYMO_E_MEMORY;
	byte->align_bits = 8;
	byte->num.length_bits = 8;
	byte->num.base = cls->role == KY_ROLE_TRACE_UUID ? 10 : 16;
	byte->num.big_endian = l->trace->big_endian;
	byte->fixed_bits = 8;
	memset(&cls->array, 0, sizeof(cls->array));
	cls->kind = KY_FIELD_ARRAY;
	cls->array.element = byte;
	cls->array.length = length;
	cls->array.length_ref = length_ref;
	return KYMO_OK;
}

/* In UTF-8 a text ends where it ends, whatever its length was. */
static int lower_text(struct ky_downgrade *l, struct ky_field_class *cls)
{
	if (cls->text.encoding <= KY_ENCODING_ASCII)
		return ky_downgrade_length(l, cls);
	cls->kind = KY_FIELD_STRING;
	cls->text.encoding = KY_ENCODING_UTF8;
	cls->text.length_ref = NULL;
	return KYMO_OK;
}

/* ---- what contains others ----------------------------------------------------------------- */

KY_DEEP2(int, lower_class, struct ky_downgrade *, struct ky_field_class *)

/* @member of @st is done. */
static int add_done(struct ky_downgrade *l, const struct ky_field_class *st,
		    const struct ky_member *member, struct ky_downgrade_members *done)
{
	if (ky_vec_push(done, *member) < 0 ||
	    ky_map_set(&l->done, (uint64_t)(uintptr_t)member->cls, (void *)(uintptr_t)st) < 0)
		return ky_error_nomem(l->err);
	return KYMO_OK;
}

/* @member of @st, and before it the copies from @first on. */
static int add_with_copies(struct ky_downgrade *l, const struct ky_field_class *st,
			   const struct ky_member *member, size_t first,
			   struct ky_downgrade_members *done, struct ky_downgrade_names *names)
{
	size_t n = l->copies.len - first, at = done->len;
	const struct ky_downgrade_copy *copies = n ? l->copies.data + first : NULL;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = add_done(l, st, &(struct ky_member){.cls = copies[i].cls}, done);
	if (ret == KYMO_OK && n)
		ret = ky_downgrade_copy_names(l, st, member->display, done->data + at, at, copies,
					      n, names);
	l->copies.len = first;
	return ret < 0 ? ret : add_done(l, st, member, done);
}

/* The path leads to what is lowered, for notes. */
static void shorten_path(struct ky_downgrade *l, size_t len)
{
	l->path.len = len;
	if (l->path.data)
		l->path.data[len] = '\0';
}

static int lower_member(struct ky_downgrade *l, struct ky_field_class *st, size_t index,
			struct ky_downgrade_members *done, struct ky_downgrade_names *names)
{
	struct ky_member *member = &st->st.members[index];
	size_t first = l->copies.len, len = l->path.len;
	int ret;

	ky_strbuf_addf(&l->path, ".%s", member->display);
	ret = ky_downgrade_member_name(l, st, index, names);
	if (ret == KYMO_OK)
		ret = lower_class_deep(KYMO_E_MEMORY, l, member->cls);
	shorten_path(l, len);
	return ret < 0 ? ret : add_with_copies(l, st, member, first, done, names);
}

static int lower_struct(struct ky_downgrade *l, struct ky_field_class *st)
{
	struct ky_downgrade_names names = {.known = false};
	struct ky_downgrade_members done = KY_VEC_INIT;
	size_t i = 0;
	int ret = ky_downgrade_roles(l, st);

	if (ret < 0 || ky_vec_push(&l->open, (struct ky_downgrade_open){st, &i, &done}) < 0)
		return ky_error_nomem(l->err);
	ky_names_init(&names.given);
	for (; i < st->st.n_members && ret == KYMO_OK; i++)
		ret = lower_member(l, st, i, &done, &names);
	ky_names_fini(&names.given);
	l->open.len--;
	if (ret == KYMO_OK && done.len > st->st.n_members) {
		st->st.members =
			ky_arena_memdup(&l->trace->arena, done.data, done.len * sizeof(*done.data));
		st->st.n_members = st->st.members ? done.len : 0;
		ret = st->st.members ? KYMO_OK : ky_error_nomem(l->err);
	}
	ky_vec_fini(&done);
	return ret;
}

static int lower_choice(struct ky_downgrade *l, struct ky_field_class *cls)
{
	size_t len = l->path.len;
	int ret = cls->kind == KY_FIELD_OPTIONAL ? ky_downgrade_optional(l, cls)
						 : ky_downgrade_variant(l, cls);

	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		ky_strbuf_addf(&l->path, ".%s", cls->var.options[i].display);
		ret = lower_class_deep(KYMO_E_MEMORY, l, cls->var.options[i].cls);
		shorten_path(l, len);
	}
	return ret;
}

static int lower_array(struct ky_downgrade *l, struct ky_field_class *cls)
{
	int ret = ky_downgrade_length(l, cls);

	cls->array.min_align_bits = 0;
	return ret < 0 ? ret : lower_class_deep(KYMO_E_MEMORY, l, cls->array.element);
}

static int lower_class(struct ky_downgrade *l, struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		return lower_text(l, cls);
	case KY_FIELD_BLOB:
		return lower_blob(l, cls);
	case KY_FIELD_ARRAY:
		return lower_array(l, cls);
	case KY_FIELD_STRUCT:
		return lower_struct(l, cls);
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return lower_choice(l, cls);
	default:
		return ky_downgrade_number(l, cls);
	}
}

/* ---- scopes --------------------------------------------------------------------------------- */

static int lower_scope(struct ky_downgrade *l, enum ky_scope scope, struct ky_field_class *root)
{
	if (!root)
		return KYMO_OK;
	l->scope = scope;
	ky_strbuf_clear(&l->path);
	ky_strbuf_adds(&l->path, ky_scope_name(scope));
	return lower_class(l, root);
}

static int lower_stream(struct ky_downgrade *l, struct ky_stream_class *stream)
{
	int ret = lower_scope(l, KY_SCOPE_PACKET_CONTEXT, stream->packet_context);

	if (ret == KYMO_OK)
		ret = lower_scope(l, KY_SCOPE_EVENT_HEADER, stream->event_header);
	if (ret == KYMO_OK)
		ret = lower_scope(l, KY_SCOPE_STREAM_CONTEXT, stream->event_context);
	for (size_t i = 0; i < stream->events.len && ret == KYMO_OK; i++) {
		ret = lower_scope(l, KY_SCOPE_EVENT_CONTEXT, stream->events.data[i]->context);
		if (ret == KYMO_OK)
			ret = lower_scope(l, KY_SCOPE_PAYLOAD, stream->events.data[i]->payload);
	}
	return ret;
}

KY_DEEP1(const struct ky_field_class *, first_number, const struct ky_field_class *)

/* The first number of at least two bytes. */
static const struct ky_field_class *first_number(const struct ky_field_class *cls)
{
	const struct ky_field_class *found = NULL;

	if (!cls)
		return NULL;
	if (ky_field_is_num(cls))
		return cls->num.length_bits > 8 ? cls : NULL;
	for (size_t i = 0; i < ky_field_n_children(cls) && !found; i++)
		found = first_number_deep(NULL, ky_field_child(cls, i));
	return found;
}

/* A trace of CTF 1.8 has a byte order of its own: the one that its packets begin with. */
static void choose_byte_order(struct ky_trace_class *trace)
{
	const struct ky_field_class *first = first_number(trace->packet_header);

	for (size_t i = 0; i < trace->streams.len && !first; i++) {
		first = first_number(trace->streams.data[i]->packet_context);
		if (!first)
			first = first_number(trace->streams.data[i]->event_header);
	}
	for (size_t i = 0; i < trace->events.len && !first; i++)
		first = first_number(trace->events.data[i]->payload);
	if (first)
		trace->big_endian = first->num.big_endian;
}

static int lower_trace(struct ky_downgrade *l)
{
	int ret = ky_downgrade_clock_names(l);

	choose_byte_order(l->trace);
	if (ret == KYMO_OK)
		ret = ky_downgrade_env_names(l);
	if (ret == KYMO_OK)
		ret = lower_scope(l, KY_SCOPE_PACKET_HEADER, l->trace->packet_header);
	for (size_t i = 0; i < l->trace->streams.len && ret == KYMO_OK; i++)
		ret = lower_stream(l, l->trace->streams.data[i]);
	return ret;
}

static struct ky_strbuf *note_unused(struct ky_downgrade *l)
{
	struct ky_strbuf *out = &l->notes->unused;

	if (out->len)
		ky_strbuf_adds(out, ", ");
	return out;
}

static void drop_unused_events(struct ky_stream_class *stream)
{
	size_t n = 0;

	ky_vec_foreach(&stream->events, event) {
		if (ky_event_class_is_used(*event))
			stream->events.data[n++] = *event;
	}
	stream->events.len = n;
}

/*
 * Classes that no packet and no event can be of. In CTF 1.8 there is one of each where no header tells
 * which.
 */
static void drop_unused(struct ky_downgrade *l)
{
	struct ky_trace_class *trace = l->trace;
	size_t n = 0;

	ky_vec_foreach(&trace->events, event) {
		if (ky_event_class_is_used(*event))
			trace->events.data[n++] = *event;
		else
			ky_strbuf_addf(note_unused(l), "event %s", (*event)->name);
	}
	trace->events.len = n;
	n = 0;
	ky_vec_foreach(&trace->streams, stream) {
		drop_unused_events(*stream);
		if (ky_stream_class_is_used(*stream)) {
			trace->streams.data[n++] = *stream;
			continue;
		}
		ky_strbuf_addf(note_unused(l), "stream %llu", (unsigned long long)(*stream)->id);
		ky_stream_class_fini(*stream);
	}
	trace->streams.len = n;
}

/* Writing and reading is the copy that can be changed. */
static int downgrade_copy_of(const struct ky_trace_class *trace, struct ky_trace_class **copy,
			     struct kymo_error *err)
{
	size_t len_bytes;
	char *text;
	int ret = ky_ctf2_write(trace, &text, &len_bytes, err);

	if (ret < 0)
		return ret;
	ret = ky_metadata_read(text, len_bytes, copy, err);
	free(text);
	return ret;
}

int ky_downgrade_to_ctf1(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
			 struct ky_downgrade_notes *notes, struct kymo_error *err)
{
	struct ky_downgrade l = {.notes = notes, .err = err};
	int ret = downgrade_copy_of(trace, &l.trace, err);

	if (ret < 0)
		return ret;
	drop_unused(&l);
	ret = lower_trace(&l);
	if (ret == KYMO_E_MEMORY || ky_strbuf_failed(&notes->renamed) ||
	    ky_strbuf_failed(&notes->added) || ky_strbuf_failed(&notes->unused) ||
	    ky_strbuf_failed(&l.path))
		ret = ky_error_nomem(err);
	ky_strbuf_fini(&l.path);
	ky_vec_fini(&l.copies);
	ky_vec_fini(&l.open);
	ky_map_fini(&l.done);
	if (ret == KYMO_OK)
		ret = ky_tsdl_write(l.trace, text, len_bytes, err);
	ky_trace_class_free(l.trace);
	return ret;
}
