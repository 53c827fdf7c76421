/* SPDX-License-Identifier: MIT */
/* What lengths and tags refer to, as paths. */
#include <string.h>

#include "base/error.h"
#include "ctf/tsdl/tsdl-path.h"
#include "ctf/tsdl/tsdl-write.h"

/* ---- references -------------------------------------------------------------------------- */

/* What the relative @path leads to at this place: the innermost struct that has it counts. */
static const struct ky_field_class *tsdl_write_refs_look_up(struct ky_tsdl_writer *w,
							    const char *path)
{
	for (size_t i = w->open.len; i-- > 0;) {
		const struct ky_tsdl_open *open = &w->open.data[i];
		const struct ky_field_class *cls =
			ky_path_follow(&w->tables, open->st, open->n_written, path);

		if (cls)
			return cls;
	}
	return NULL;
}

/* A relative path that leads to @target from here. */
static bool relative_path(struct ky_tsdl_writer *w, const struct ky_field_class *target,
			  struct ky_strbuf *path)
{
	for (size_t i = w->open.len; i-- > 0;) {
		const struct ky_tsdl_open *open = &w->open.data[i];

		if (ky_path_find(&w->tables, open->st, open->n_written, target, path)) {
			if (tsdl_write_refs_look_up(w, ky_strbuf_text(path)) == target)
				return true;
			ky_strbuf_clear(path);
		}
	}
	return false;
}

static const struct ky_field_class *tsdl_write_refs_scope_root(const struct ky_tsdl_writer *w,
							       enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_PACKET_HEADER:
		return w->trace->packet_header;
	case KY_SCOPE_PACKET_CONTEXT:
		return w->stream ? w->stream->packet_context : NULL;
	case KY_SCOPE_EVENT_HEADER:
		return w->stream ? w->stream->event_header : NULL;
	case KY_SCOPE_STREAM_CONTEXT:
		return w->stream ? w->stream->event_context : NULL;
	case KY_SCOPE_EVENT_CONTEXT:
		return w->event ? w->event->context : NULL;
	default:
		return w->event ? w->event->payload : NULL;
	}
}

static bool absolute_path(struct ky_tsdl_writer *w, const struct ky_field_class *target,
			  struct ky_strbuf *path)
{
	for (int scope = w->scope; scope >= 0; scope--) {
		const struct ky_field_class *root =
			tsdl_write_refs_scope_root(w, (enum ky_scope)scope);
		struct ky_strbuf rest = KY_STRBUF_INIT;
		bool found =
			root && ky_path_find(&w->tables, root, root->st.n_members, target, &rest);

		if (found)
			ky_strbuf_addf(path, "%s.%s", ky_scope_name((enum ky_scope)scope),
				       ky_strbuf_text(&rest));
		ky_strbuf_fini(&rest);
		if (found)
			return true;
	}
	return false;
}

/* Is @target a member of the struct that is being written? */
static bool is_near(struct ky_tsdl_writer *w, const struct ky_field_class *target)
{
	const struct ky_tsdl_open *open = ky_vec_last(&w->open);
	const struct ky_child_place *place = ky_child_place(&w->tables, open->st, target);

	return place && place->parent == open->st && place->index < open->n_written;
}

/*
 * A length further away gets an absolute path: Babeltrace 1 looks for a relative one among the same
 * struct's members only. Tags cannot be: neither Babeltrace has paths in its grammar of variants, so
 * downgrade-choice.c copies them.
 */
static bool far_length(struct ky_tsdl_writer *w, const struct ky_field_class *target,
		       struct ky_strbuf *path)
{
	if (w->scope < KY_SCOPE_STREAM_CONTEXT || w->is_naming || is_near(w, target))
		return false;
	if (absolute_path(w, target, path))
		return true;
	ky_strbuf_clear(path);
	return false;
}

int ky_tsdl_put_ref(struct ky_tsdl_writer *w, const struct ky_field_ref *ref, bool is_length)
{
	struct ky_strbuf path = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	if (!ref || !ref->target)
		return ky_tsdl_cannot_say(w, "a reference that leads nowhere");
	if (ref->n_more)
		return ky_tsdl_cannot_say(w, "a reference to whichever option a variant has");
	if (is_length && far_length(w, ref->target, &path))
		ky_strbuf_adds(w->out, ky_strbuf_text(&path));
	else if (ref->text && tsdl_write_refs_look_up(w, ref->text) == ref->target)
		ky_strbuf_adds(w->out, ref->text);
	else if (relative_path(w, ref->target, &path) || absolute_path(w, ref->target, &path))
		ky_strbuf_adds(w->out, ky_strbuf_text(&path));
	else
		ret = ky_tsdl_cannot_say(w, "a reference into the elements of an array");
	ky_strbuf_fini(&path);
	return ret;
}
