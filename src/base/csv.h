/* SPDX-License-Identifier: MIT */
/* Text as a cell of comma-separated values (RFC 4180, UTF-8). */
#ifndef KY_BASE_CSV_H
#define KY_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/*
 * Add @text as one cell, in quotes where it must be; bytes that are no UTF-8 become U+FFFD.
 *
 * Spreadsheets take a cell that begins with = + - @, a tab or a carriage return for a formula, which can run programs and
 * send what is in the sheet elsewhere; and traced programs say what texts a trace has. Such a text gets an apostrophe in
 * front, unless it is a number, or @raw wants it as it is.
 */
void ky_csv_text(struct ky_strbuf *out, const char *text, size_t len, bool raw);

#endif
