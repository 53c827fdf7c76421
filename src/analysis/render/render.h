/* SPDX-License-Identifier: MIT */
/*
 * Results to text: for people, and as JSON. Renderers go by columns' classes alone and know
 * nothing of any report.
 */
#ifndef KY_ANALYSIS_RENDER_RENDER_H
#define KY_ANALYSIS_RENDER_RENDER_H

#include "analysis/tables/render-cell.h"
#include "analysis/reports/report.h"

struct ky_render_options {
	int columns; /* width to keep to: columns that can be spared go; 0: as wide as it takes */
	bool colour; /* with terminal escapes */
	bool utf8;   /* bars of block characters, else of '#' */
	bool hints;  /* what else there is, and what to look at next */
	bool is_temporary; /* the trace is gone afterwards */
	const char *trace; /* that commands name; NULL: none. ky_render_text() sets it */
};

/* Aligned columns, units, bars. Memory running out shows in @out. */
void ky_render_text(struct ky_strbuf *out, const struct ky_report_results *results,
		    const struct ky_render_options *options);

/* One table of them: its title, headings and rows, after an empty line. */
void ky_render_table(struct ky_strbuf *out, const struct ky_table *table,
		     const struct ky_render_options *options);

/* The rows of a table of sentences, as paragraphs. */
void ky_render_prose(struct ky_strbuf *out, const struct ky_table *table,
		     const struct ky_render_options *options);

/*
 * One JSON object and a line feed; docs/reports/README.md describes it. Durations and times are
 * integers of ns (means are real numbers), ratios are 0 to 1, empty cells are null.
 * 0 or KYMO_E_MEMORY.
 */
int ky_render_json(struct ky_strbuf *out, const struct ky_report_results *results,
		   struct kymo_error *err);

/*
 * RFC 4180: every table one line of column names, then its rows; an empty line between tables. The first
 * columns are "report", and of intervals their "begin_ns" and "end_ns"; a process is its tid, pid, name and,
 * where there are several, host. Values are as in JSON; a tally is "EAGAIN 2, EINTR 1".
 */
void ky_render_csv(struct ky_strbuf *out, const struct ky_report_results *results, bool raw);

/*
 * One HTML page that needs nothing else, with charts. Whatever a trace says is text in it. Memory
 * running out shows in @out.
 */
void ky_render_html(struct ky_strbuf *out, const struct ky_report_results *results);

#endif
