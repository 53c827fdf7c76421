/* SPDX-License-Identifier: MIT */
/*
 * Notes of a person on times of a trace, in a file that stays when the viewer ends:
 *
 *	TRACE.kymo-notes.json		beside the trace, if only this user or root can write to that directory, and this user can
 *	$XDG_DATA_HOME/kymo/notes/DIGEST.json	else (~/.local/share), also for several traces and for those at relays
 *
 * The file is JSON with the mode 0600, and replaced as a whole. Each change reads it first, so that several viewers of one trace
 * share it. It is untrusted input. A file that is damaged is never written.
 *
 * Threads: any.
 */
#ifndef KY_VIEW_NOTES_H
#define KY_VIEW_NOTES_H

#include "base/strbuf.h"
#include "view/page/request.h"

#define KY_NOTES_MAX	   1000
#define KY_NOTE_TEXT_BYTES 2000
#define KY_NOTES_MAX_BYTES ((size_t)4 << 20)

struct ky_view_notes;

/* @paths: the traces as the user names them, copied. 0 or KYMO_E_MEMORY. */
int ky_view_notes_open(const char *const *paths, size_t n_paths, struct ky_view_notes **notes,
		       struct kymo_error *err);
void ky_view_notes_close(struct ky_view_notes *notes); /* NULL is allowed */

/*
 * Answer KY_VIEW_NOTES, KY_VIEW_NOTE (which adds a note, or changes number ->row if that is not 0) or KY_VIEW_UNNOTE: all notes, and
 * where they are kept. KYMO_E_NOT_FOUND: no such note; KYMO_E_LIMIT: too many, or too long; KYMO_E_FORMAT: the file is damaged;
 * KYMO_E_IO, KYMO_E_PERMISSION, KYMO_E_MEMORY.
 */
int ky_view_notes_answer(struct ky_view_notes *notes, const struct ky_view_request *request,
			 struct ky_strbuf *out, struct kymo_error *err);

#endif
