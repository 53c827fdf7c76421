/* SPDX-License-Identifier: MIT */
/*
 * Periods that the user defines: from an event that one expression picks to an event that another
 * one picks, where both have the same keys. This is their definition; model-periods.c follows them.
 *
 *	NAME[(PARENT)] : BEGIN : END [: by KEY,...] [: CAPTURE,... [: CAPTURE,...]]
 *
 * BEGIN, END, KEY and CAPTURE are expressions of the filter language (query/filter.h). KEY is
 * $thread (what the event happened in), EXPR, or EXPR=EXPR: of the begin and of the end. CAPTURE is
 * [NAME=]EXPR; the first list is of the begin, the second one of the end.
 *
 * Threads: immutable once made.
 */
#ifndef KY_ANALYSIS_STATE_PERIODS_H
#define KY_ANALYSIS_STATE_PERIODS_H

#include "base/arena.h"
#include "flow/graph/flow.h"
#include "query/filter.h"

#define KY_PERIOD_KEYS_MAX 4
#define KY_PERIODS_MAX	   64

struct ky_period_key {
	struct ky_filter *begin,
		*end; /* NULL: the thread; both are the same one when the user gave one */
};

struct ky_capture {
	const char *name;
	struct ky_filter *value;
	bool at_end;
};

struct ky_period_def {
	uint32_t index;
	const char *name;
	const struct ky_period_def *parent; /* it counts only while one of these is open; NULL */
	struct ky_filter *begin, *end;
	struct ky_period_key keys[KY_PERIOD_KEYS_MAX];
	size_t n_keys;
	KY_VEC(struct ky_capture) captures;
};

struct ky_periods {
	struct ky_arena arena;
	KY_VEC(struct ky_period_def *) defs; /* parents before children */
	KY_VEC(struct ky_filter *) filters;  /* all that were compiled */
};

/*
 * The definitions @texts, for the traces of @set, which must outlive them. KYMO_E_INVALID with a
 * message that names the definition, or KYMO_E_MEMORY; then *@periods is NULL.
 */
int ky_periods_new(const char *const *texts, size_t n_texts, const struct ky_trace_set *set,
		   struct ky_periods **periods, struct kymo_error *err);
void ky_periods_free(struct ky_periods *periods); /* NULL is fine */

#endif
