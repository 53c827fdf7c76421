/* SPDX-License-Identifier: MIT */
/* Durations of what ended in a range of a view. Threads: as answer.h. */
#ifndef KY_VIEW_LATENCY_H
#define KY_VIEW_LATENCY_H

#include "view/answers/answer-internal.h"

/*
 * The answers to KY_VIEW_LATENCY and KY_VIEW_MEMBERS; see ky_view_answer(). ->name is calls, waits, ready, irqs, requests or
 * spans; ->filter a name, or "" for all. ->count is the number of columns, or of members, of which ->least_ns and ->most_ns (exclusive) bound
 * the duration.
 */
int ky_view_latency(struct ky_view *view, const struct ky_view_request *request,
		    const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);

#endif
