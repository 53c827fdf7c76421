/* SPDX-License-Identifier: MIT */
/*
 * The answers of the viewer: what the page asks of a set of traces.
 *
 * No answer needs a pass over the whole trace. Counting goes on behind them, in threads of its own
 * (view/traces/counts.h): an answer has exact numbers as far as counting has come, and estimates from the
 * packets' headers beyond it.
 *
 * Times are integers of ns from the clock's origin; they exceed what a double can hold, so the page
 * parses them with care. Text of the traces is foreign: it is data in strings, never markup.
 *
 * Threads: any number of answers at the same time.
 */
#ifndef KY_VIEW_ANSWER_H
#define KY_VIEW_ANSWER_H

#include "base/strbuf.h"
#include "store/read/trace.h"
#include "view/page/request.h"
#include "view/traces/view.h"

/*
 * Add the answer to @request to @out: columns (view/answers/columns.h) if it grows with pixels, rows or events, else one JSON value.
 * @request->what is not KY_VIEW_ASSET.
 *
 * Returns 0; KYMO_E_INVALID for a malformed filter; KYMO_E_NOT_FOUND for a row or a report that does
 * not exist; KYMO_E_UNSUPPORTED for a report without its events; KYMO_E_LIMIT for an answer that is
 * too large; KYMO_E_INTERRUPTED; KYMO_E_MEMORY; or the error of the reader. @out is then undefined.
 */
int ky_view_answer(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
/* Whether the answer to such a request is columns. */
bool ky_view_is_columns(enum ky_view_what what);

/* Two sets of traces beside each other. */
struct ky_view_pair {
	const char *paths
		[2]; /* as the user names them; of several: the first; NULL: there is no pair */
	/* Open the traces of both as one set. Any number of threads at the same time. */
	int (*open)(void *data, struct ky_trace_set *set, struct kymo_error *err);
	void *data;
};

/* The answer to a report that compares the two; @view is that of the side of @request. As ky_view_answer(). */
int ky_view_compare(const struct ky_view_pair *pair, struct ky_view *view,
		    const struct ky_view_request *request, const struct ky_view_stop *stop,
		    struct ky_strbuf *out, struct kymo_error *err);

#endif
