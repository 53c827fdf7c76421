/* SPDX-License-Identifier: MIT */
/*
 * Single calls of functions in the formats of other programs: flame charts.
 *
 *	speedscope	its JSON file format, an evented profile for each thread
 *	chrome		Chrome's trace events, for chrome://tracing and ui.perfetto.dev
 *
 * Threads: any.
 */
#ifndef KY_ANALYSIS_EXPORT_CHART_H
#define KY_ANALYSIS_EXPORT_CHART_H

#include "analysis/stacks/call-chart.h"
#include "base/strbuf.h"

/* @chart is sorted by threads; @tree has the names. @name: of the profile. Times count from the first call's begin. 0 or KYMO_E_MEMORY. */
int ky_chart_speedscope(struct ky_strbuf *out, const struct ky_call_chart *chart,
			const struct ky_stack_tree *tree, const char *name, struct kymo_error *err);
int ky_chart_chrome(struct ky_strbuf *out, const struct ky_call_chart *chart,
		    const struct ky_stack_tree *tree, struct kymo_error *err);

#endif
