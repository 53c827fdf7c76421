/* SPDX-License-Identifier: MIT */
/*
 * Comparing the metadata of two traces, to decide whether they are parts of one trace. Threads:
 * any.
 */
#ifndef KY_STORE_JOIN_CLASSES_H
#define KY_STORE_JOIN_CLASSES_H

#include "ctf/model/model.h"

/* Whether @large describes everything that @small describes, judged by ids, names and sizes. */
bool ky_join_covers(const struct ky_trace_class *large, const struct ky_trace_class *small);

/* Whether the trace has a UUID that is not zero. */
bool ky_join_has_identity(const struct ky_trace_class *cls);

/*
 * An order by UUID and environment, for qsort(). Chunks and snapshots of one trace compare as
 * equal, because one session on one machine made them.
 */
int ky_join_compare(const struct ky_trace_class *a, const struct ky_trace_class *b);

/* Whether two traces with equal order can be one: one of them must cover the other. */
bool ky_join_is_possible(const struct ky_trace_class *a, const struct ky_trace_class *b);

#endif
