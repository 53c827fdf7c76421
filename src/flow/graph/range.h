/* SPDX-License-Identifier: MIT */
/* The time range of a trace set, and the parsing of times. */
#ifndef KY_FLOW_GRAPH_RANGE_H
#define KY_FLOW_GRAPH_RANGE_H

#include "flow/graph/flow.h"

/*
 * Whether @cls is an event that perf writes in addition to its samples (perf_fork, perf_comm,
 * perf_mmap2, ...). Such events before the first sample describe the earlier state, mostly at time
 * zero of the clock.
 */
bool ky_is_of_before(const struct ky_trace_class *trace, const struct ky_event_class *cls);

/*
 * The times of the first and the last event of @set, in ns from the origin. An event for which
 * ky_is_of_before() is true is the first one only when there are no others. The function reads only
 * the first and the last packet of each stream that have such events. Both times are INT64_MIN when
 * no event has a time. Damage gives no error here: the readable events count. Returns 0 or
 * KYMO_E_MEMORY.
 */
int ky_set_range(const struct ky_trace_set *set, int64_t *begin_ns, int64_t *end_ns,
		 struct kymo_error *err);

/*
 * The times of the first and the last event of @packets, all packets of @stream. The function reads
 * events only in the packets at both ends. INT64_MAX and INT64_MIN: no event has a time. Returns 0
 * or KYMO_E_MEMORY.
 */
int ky_packets_range(const struct ky_stream *stream, const struct ky_packet_list *packets,
		     int64_t *begin_ns, int64_t *end_ns);

/* The same for one stream that is not empty. Returns 0 or KYMO_E_MEMORY. */
int ky_stream_range(const struct ky_stream *stream, int64_t *begin_ns, int64_t *end_ns);

/*
 * The common range of all streams with events (--stream-intersection). Returns false when there is
 * none.
 */
bool ky_set_intersection(const struct ky_trace_set *set, int64_t *begin_ns, int64_t *end_ns);

/*
 * A point in time:
 *	1795239038.865245630	seconds from the origin, also negative
 *	2026-11-21 05:30:38.865	a date and time; the seconds' fraction, the seconds and the time
 *				may be missing ("2026-11-21 05:30", "2026-11-21"); 'T' for ' '
 *	05:30:38.865		a time of the day on which the trace begins
 *	+2s, -500ms		after the trace's begin, before its end; units as ky_parse_duration()
 *	50%			of the way from its begin to its end
 * Dates and times are local (TZ), or UTC with @gmt.
 * 0 or KYMO_E_INVALID.
 */
int ky_parse_time(const char *text, int64_t begin_ns, int64_t end_ns, bool gmt, int64_t *ns);

#endif
