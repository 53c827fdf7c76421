/* SPDX-License-Identifier: MIT */
/*
 * Which events begin and end spans: two whose names differ in their last word, where a trace has both: X_begin and X_end; entry and exit,
 * start and end, stop, finish or done, enter and exit or leave; behind '_', '-', '.' or ':', or with a capital letter (XBegin).
 */
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
