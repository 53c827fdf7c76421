/* SPDX-License-Identifier: MIT */
/* Foreign text (base/foreign.h) through jansson, which takes and writes UTF-8 only. */
#ifndef KY_ANALYSIS_TABLES_JANSSON_TEXT_H
#define KY_ANALYSIS_TABLES_JANSSON_TEXT_H

#include <jansson.h>

#include <kymo/error.h>

#include "base/strbuf.h"

/* @text as a string, with U+FFFD for each byte that is no UTF-8. NULL: out of memory. */
json_t *ky_jansson_text(const char *text);

/*
 * Add @root, written with jansson's @flags, and a line feed. What a terminal would obey is escaped: the
 * text is for programs, but people look at it. Takes @root over; NULL is out of memory.
 * 0 or KYMO_E_MEMORY.
 */
int ky_jansson_add(struct ky_strbuf *out, json_t *root, size_t flags, struct kymo_error *err);

#endif
