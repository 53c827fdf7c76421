/* SPDX-License-Identifier: MIT */
/* What `kymo info` collects, between collecting it and its two ways to show it. */
#ifndef KY_CLI_TRACES_INFO_H
#define KY_CLI_TRACES_INFO_H

#include "flow/graph/summary.h"

struct info_trace {
	const struct ky_trace *trace;
	struct ky_stream_summary *streams;     /* as trace->streams */
	uint64_t *counts;		       /* by event class index */
	const struct ky_event_class **classes; /* those with events, the most frequent first */
	size_t n_classes;
};

struct info_totals {
	uint64_t events, packets, bytes, streams, lost_events, lost_packets;
	int64_t begin_ns, end_ns; /* INT64_MAX and INT64_MIN when there is no event with a time */
};

struct info {
	struct info_trace *traces;
	size_t n_traces;
	bool counted; /* events were; else their numbers are not known */
	struct info_totals totals;
};

/* Has the range a time in it? */
static inline bool info_has_range(int64_t begin_ns, int64_t end_ns)
{
	return begin_ns <= end_ns && begin_ns != INT64_MIN;
}

/* "CTF 1.8" or "CTF 2". */
static inline const char *info_format(const struct ky_trace_class *cls)
{
	return cls->major >= 2 ? "CTF 2" : "CTF 1.8";
}

/* File @part of @stream, as seen from its trace's directory when it lies there. */
const char *info_file_name(const struct ky_stream *stream, size_t part);
/* Bytes of all files of @stream. */
uint64_t info_stream_bytes(const struct ky_stream *stream);

/* One JSON object to stdout. 0 or KYMO_E_MEMORY. */
int ky_info_json(const struct info *info, struct kymo_error *err);

#endif
