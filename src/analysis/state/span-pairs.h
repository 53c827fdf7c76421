/* SPDX-License-Identifier: MIT */
/* Which events begin and end spans: two whose names end in _begin and _end, or _entry and _exit, where a trace has both. */
#ifndef KY_ANALYSIS_STATE_SPAN_PAIRS_H
#define KY_ANALYSIS_STATE_SPAN_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"

/*
 * The length of the span's name in @name, which is that of an event, if @known has the other event of the pair. *@begins: it is the first
 * one. 0: it is of no span.
 */
size_t ky_span_pair(const struct ky_names *known, const char *name, bool *begins);

#endif
