/* SPDX-License-Identifier: MIT */
/* What the metadata of two traces says about whether they are one. Threads: any. */
#ifndef KY_STORE_JOIN_CLASSES_H
#define KY_STORE_JOIN_CLASSES_H

#include "ctf/model/model.h"

/* Does @large describe all that @small does, as far as ids, names and sizes tell? */
bool ky_join_covers(const struct ky_trace_class *large, const struct ky_trace_class *small);

/* Has the trace a UUID that was filled in? */
bool ky_join_has_identity(const struct ky_trace_class *cls);

/*
 * Order by UUID and environment, as qsort() wants it. Chunks and snapshots of one trace compare as
 * equal: they were made on one machine, in one session.
 */
int ky_join_compare(const struct ky_trace_class *a, const struct ky_trace_class *b);

/* May two traces with one identity be one? They may when one of them covers the other. */
bool ky_join_is_possible(const struct ky_trace_class *a, const struct ky_trace_class *b);

#endif
