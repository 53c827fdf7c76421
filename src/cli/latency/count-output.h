/* SPDX-License-Identifier: MIT */
/* What kymo count prints of a period. */
#ifndef KY_CLI_LATENCY_COUNT_OUTPUT_H
#define KY_CLI_LATENCY_COUNT_OUTPUT_H

#include "base/strbuf.h"
#include "kernel/count/count.h"

struct ky_count_view {
	struct ky_count *count;
	const char *rule, *sum;	  /* sum: NULL: none */
	uint64_t limit;		  /* rows; 0: all */
	int64_t begin_ns, end_ns; /* of the period, since 1970 */
};

/* A table for people. 0 or KYMO_E_MEMORY. */
int ky_count_put_text(struct ky_strbuf *out, const struct ky_count_view *view,
		      struct kymo_error *err);
/* One object on a line, to the standard output. 0 or KYMO_E_MEMORY. */
int ky_count_put_json(const struct ky_count_view *view, struct kymo_error *err);
void ky_count_put_csv(struct ky_strbuf *out, const struct ky_count_view *view, bool has_titles);

#endif
