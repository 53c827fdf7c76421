/* SPDX-License-Identifier: MIT */
/* What the metadata of two traces says about whether they are one. Threads: any. */
#ifndef KY_STORE_JOIN_CLASSES_H
#define KY_STORE_JOIN_CLASSES_H

#include "ctf/model.h"

/* Does @large describe all that @small does, as far as ids, names and sizes tell? */
bool ky_join_covers(const struct ky_trace_class *large, const struct ky_trace_class *small);

/* May they be one: same identity and environment, and one of them covers the other? */
bool ky_join_is_possible(const struct ky_trace_class *a, const struct ky_trace_class *b);

#endif
