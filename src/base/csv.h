/* SPDX-License-Identifier: MIT */
/* Text as a cell of comma-separated values (RFC 4180, UTF-8). */
#ifndef KY_BASE_CSV_H
#define KY_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/*
 * Add @text as one cell, in quotes where CSV needs them. U+FFFD replaces bytes that are not UTF-8.
 *
 * Spreadsheets treat a cell that begins with = + - @, a tab or a carriage return as a formula. A
 * formula can run programs and send the sheet's data elsewhere, and traced programs control the
 * texts in a trace. So such a text gets an apostrophe in front, unless it is a number, or @raw is
 * set.
 */
void ky_csv_text(struct ky_strbuf *out, const char *text, size_t len, bool raw);

#endif
