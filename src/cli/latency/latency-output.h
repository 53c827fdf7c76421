/* SPDX-License-Identifier: MIT */
/* What kymo latency writes: tables for people, JSON, CSV. */
#ifndef KY_CLI_LATENCY_LATENCY_OUTPUT_H
#define KY_CLI_LATENCY_LATENCY_OUTPUT_H

#include "base/strbuf.h"
#include "latency/layers/latency.h"

struct ky_latency_view {
	struct ky_latency *latency;
	enum ky_latency_by by;
	enum ky_past window;		   /* of text */
	uint64_t limit;			   /* rows of a layer in text; 0: all */
	bool wide;			   /* text has all columns */
	const struct ky_latency_key *kept; /* has a row even without durations; NULL: none */
};

/* What a table shows of a series. */
struct ky_latency_row {
	const struct ky_series *series;
	struct ky_histogram histogram; /* of the view's window */
};

struct ky_latency_rows {
	struct ky_latency_row *data;
	size_t len;
};

/* All with something in the window, by layers; in a layer, calls of --syscalls come first, then what took most time. 0 or KYMO_E_MEMORY. */
int ky_latency_rows_find(const struct ky_latency_view *view, struct ky_latency_rows *rows);
void ky_latency_rows_fini(struct ky_latency_rows *rows);
/* Are these keys of the same series? */
bool ky_latency_rows_is_key(const struct ky_latency_key *a, const struct ky_latency_key *b);

/* The distribution in 22 characters, for each power of two from 512 ns (and less) to 1 s (and more). */
#define KY_LATENCY_SHAPE_TITLE "1us       1ms       1s"
void ky_latency_put_shape(struct ky_strbuf *out, const struct ky_histogram *histogram, bool utf8);

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
