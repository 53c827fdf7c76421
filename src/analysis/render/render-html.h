/* SPDX-License-Identifier: MIT */
/* What the parts of the HTML renderer share. */
#ifndef KY_ANALYSIS_RENDER_RENDER_HTML_H
#define KY_ANALYSIS_RENDER_RENDER_HTML_H

#include "analysis/render/render.h"

/* @text as text or as an attribute's value: nothing in it is markup, bad UTF-8 is '?'. */
void ky_html_text(struct ky_strbuf *out, const char *text);
/* What names a cell or a row: a process with its ids, an interrupt, a text. Not escaped. */
void ky_html_label(struct ky_strbuf *out, const struct ky_column *column,
		   const struct ky_cell *cell);
/* The column that a chart shows, or -1. */
int ky_html_bar_column(const struct ky_table_def *def);

/* A histogram for each heading of a table of distributions. */
void ky_html_histograms(struct ky_strbuf *out, const struct ky_table *table);
/* A table whose rows are steps of time. */
bool ky_html_is_steps(const struct ky_table_def *def);
void ky_html_steps(struct ky_strbuf *out, const struct ky_table *table);
/* How the largest rows of a report's table changed over the intervals; @report_at is the first one's place. */
void ky_html_intervals(struct ky_strbuf *out, const struct ky_report_results *results,
		       size_t report_at, size_t table_at);

/* render-html-flame.c: a flame graph, and what the page needs for it. */
void ky_html_flame(struct ky_strbuf *out, const struct ky_stack_tree *tree);
const char *ky_html_flame_style(void);
const char *ky_html_flame_script(void);
const char *ky_html_flame_hash(void); /* of the script */

#endif
