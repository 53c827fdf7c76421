/* SPDX-License-Identifier: MIT */
/* OpenTelemetry's spans, of the spans of programs (KYMO_SPAN) and, on request, of system calls. */
#ifndef KY_ANALYSIS_EXPORT_OTLP_H
#define KY_ANALYSIS_EXPORT_OTLP_H

#include "analysis/export/tracks.h"

struct ky_otlp_options {
	/*
	 * The field with the trace's id: 32 digits of a hexadecimal number, or another text or number, which becomes one. Spans
	 * without it have the id of the span around them. NULL: none.
	 */
	const char *trace_id;
	bool calls; /* system calls are spans */
};

/* @set and @options must outlive it. @fd is the caller's. */
int ky_otlp_open(const struct ky_trace_set *set, int fd, const struct ky_otlp_options *options,
		 struct ky_sink **sink, struct kymo_error *err);

#endif
