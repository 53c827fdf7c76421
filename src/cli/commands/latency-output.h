/* SPDX-License-Identifier: MIT */
/* What kymo latency writes: tables for people, JSON, CSV. */
#ifndef KY_CLI_COMMANDS_LATENCY_OUTPUT_H
#define KY_CLI_COMMANDS_LATENCY_OUTPUT_H

#include "latency/latency.h"
#include "base/strbuf.h"

struct ky_latency_view {
	struct ky_latency *latency;
	enum ky_latency_by by;
	enum ky_past window; /* of text */
	uint64_t limit;	     /* rows of a layer in text; 0: all */
};

/* Percentiles that all outputs have. */
struct ky_latency_part {
	const char *name; /* "p99" */
	double part;
};
#define KY_LATENCY_PARTS 4
extern const struct ky_latency_part ky_latency_parts[KY_LATENCY_PARTS];

/* When CLOCK_MONOTONIC was @ns, in ns since 1970. */
int64_t ky_latency_wall_ns(uint64_t ns);
/* "none", "process", ...; static. */
const char *ky_latency_by_name(enum ky_latency_by by);

/* The tables and notes. 0 or KYMO_E_MEMORY. */
int ky_latency_put_text(struct ky_strbuf *out, const struct ky_latency_view *view,
			struct kymo_error *err);
/* An object on a line of its own; indented: over several. 0 or KYMO_E_MEMORY. */
int ky_latency_put_json(const struct ky_latency_view *view, bool indented, struct kymo_error *err);
/* A line for each series and window; the headings first, if @with_head. */
void ky_latency_put_csv(struct ky_strbuf *out, const struct ky_latency_view *view, bool with_head);

#endif
