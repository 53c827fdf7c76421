/* SPDX-License-Identifier: MIT */
/* Names of functions as JSON. Threads: any. */
#ifndef KY_ANALYSIS_STACKS_STACK_JSON_H
#define KY_ANALYSIS_STACKS_STACK_JSON_H

#include "base/strbuf.h"

/* @text between quotes; bad UTF-8 is U+FFFD. Nothing in it ends a script of HTML. */
void ky_stacks_json_text(struct ky_strbuf *out, const char *text);

#endif
