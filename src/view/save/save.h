/* SPDX-License-Identifier: MIT */
/*
 * A range of traces as one HTML file, which needs no server and no other file: the viewer's page with the data in it.
 *
 * The data are sections of bytes, after each other:
 *
 *	u32 (little-endian) length of the head
 *	head, JSON: {"version", "info", "lost": [[begin, end, events] ...], "begin", "end", "n", "block", "damage", "notes", "sections": {NAME: [offset, length]}}
 *	times	n offsets of events from the begin, u64 little-endian
 *	events	blocks of KY_SAVED_BLOCK events (sections "events/0", "events/1", ...): JSON lists
 *	rows	JSON: rows of the state history with all their states, in nanoseconds after the begin; a thread's states go back to
 *		its last wait and the begin of its call. And lost events and damage, by stream, with their rows.
 *	fields	JSON: names of numeric fields
 *	reports	JSON as of kymo report
 *	causes	the same of reports on causes, of each for what it can be about; a report's "--of" is in the list "ofs", in the same
 *		order, which ends with that of "path": the report critical-path of all threads that the page has paths of
 *
 * compressed (gzip) and in base64, so that no text of a trace is ever markup. web/src/saved.ts reads them.
 */
#ifndef KY_VIEW_SAVE_H
#define KY_VIEW_SAVE_H

#include "view/session/notes.h"
#include "view/traces/view.h"

#define KY_SAVED_BLOCK	    512
#define KY_SAVED_MAX_BYTES  ((size_t)256 << 20) /* before compression */
#define KY_SAVED_MAX_EVENTS 1000000u
#define KY_SAVED_MAX_STATES 2000000u

/*
 * Write the page with the events, states and reports from @begin_ns to @end_ns, both inclusive, to @fd; and with @notes.
 *
 * KYMO_E_LIMIT: there is more than a page can have; KYMO_E_NOT_FOUND: no event is in the range; KYMO_E_UNSUPPORTED: the build has
 * no page; KYMO_E_IO, KYMO_E_MEMORY, or the error of the reader.
 */
int ky_view_save(struct ky_view *view, struct ky_view_notes *notes, int64_t begin_ns,
		 int64_t end_ns, int fd, struct kymo_error *err);

#endif
