/* SPDX-License-Identifier: MIT */
/*
 * The answers of the Trace Server Protocol 0.6: traces, experiments and their outputs, as JSON. The
 * same engine (answer.h) answers the viewer's page.
 *
 * The protocol has no secret. So this server opens only traces below the paths of the command line
 * or, if there are none, traces whose files belong to the user who runs it. It never writes to a
 * trace.
 *
 * Threads: any number of answers at the same time.
 */
#ifndef KY_VIEW_TSP_H
#define KY_VIEW_TSP_H

#include "view/tsp/tsp-request.h"
#include "view/session/live.h"
#include "view/traces/view.h"

struct ky_tsp;

/* What the command line names; all is borrowed. */
struct ky_tsp_source {
	const char *const *paths;
	size_t n_paths;
	struct ky_view *view; /* of the traces at ->paths, or: */
	struct ky_view_live *live;
	/* Does a recording at one of @paths go on? NULL: nobody knows. Any number of threads. */
	bool (*is_recorded)(const char *const *paths, size_t n_paths);
};

/* The traces of @source are there as traces and as one experiment. Returns 0 or KYMO_E_MEMORY. */
int ky_tsp_new(const struct ky_tsp_source *source, struct ky_tsp **tsp, struct kymo_error *err);
/* No answer may be in progress. NULL is allowed. */
void ky_tsp_free(struct ky_tsp *tsp);

/*
 * Put the answer to @request, a JSON value or an object with the error, to @out, which is empty. Returns the
 * status of HTTP.
 */
unsigned int ky_tsp_answer(struct ky_tsp *tsp, const struct ky_tsp_request *request,
			   const struct ky_view_stop *stop, struct ky_strbuf *out);

/* {"title": ..., "detail": ...} in place of the content of @out. Returns the status of HTTP. */
unsigned int ky_tsp_put_error(struct ky_strbuf *out, const struct kymo_error *err);

#endif
