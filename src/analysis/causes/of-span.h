/* SPDX-License-Identifier: MIT */
/* Spans by their names, for reports that explain times. */
#ifndef KY_ANALYSIS_CAUSES_OF_SPAN_H
#define KY_ANALYSIS_CAUSES_OF_SPAN_H

#include "base/strbuf.h"

/* Adds the definition of the period that a span of @name is: from its begin to its end, in a thread. */
void ky_of_define_span(struct ky_strbuf *text, const char *name);

#endif
