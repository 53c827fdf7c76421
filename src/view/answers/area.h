/* SPDX-License-Identifier: MIT */
/* What is in a range of a view. Threads: as answer.h. */
#ifndef KY_VIEW_AREA_H
#define KY_VIEW_AREA_H

#include "view/answers/answer-internal.h"

/* A range with packets of more bits is not read for the names of its events: some ten seconds. */
#define KY_AREA_MAX_BITS 8e9

/*
 * The answer to KY_VIEW_AREA; see ky_view_answer(). Events are those of the filter; states, calls, spans, interrupts, requests
 * and counters are those of the history. Lists are sorted, and have a limit.
 */
int ky_view_area(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);

#endif
