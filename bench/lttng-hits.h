/* SPDX-License-Identifier: MIT */
/* The same events for LTTng-UST: tracer-hits includes it when its headers are installed. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER lttng_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng-hits.h"

#if !defined(LTTNG_HITS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_HITS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(lttng_bench, word, LTTNG_UST_TP_ARGS(uint64_t, value),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, value, value)))

LTTNG_UST_TRACEPOINT_EVENT(lttng_bench, three,
			   LTTNG_UST_TP_ARGS(int, number, uint64_t, value, const char *, text),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, number, number)
						       lttng_ust_field_integer(uint64_t, value,
									       value)
							       lttng_ust_field_string(text, text)))

#endif

#include <lttng/tracepoint-event.h>
