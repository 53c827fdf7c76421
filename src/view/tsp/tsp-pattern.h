/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions for the search in tables: characters, '.', [classes], ( ), |, *, +, ?, ^, $, and
 * \d \w \s \D \W \S \. \\ and so on. No backtracking: the time of a match grows with the length of text times pattern,
 * whatever the pattern is. The C library's regcomp() has no such bound, and patterns are untrusted.
 *
 * Bytes are compared; a character of UTF-8 is its bytes. Threads: one at a time per pattern.
 */
#ifndef KY_VIEW_TSP_PATTERN_H
#define KY_VIEW_TSP_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

struct ky_tsp_pattern;

/* Returns 0; KYMO_E_INVALID: malformed, too long, or with something else, such as {2,3}; KYMO_E_MEMORY. */
int ky_tsp_pattern_new(const char *text, struct ky_tsp_pattern **pattern, struct kymo_error *err);
void ky_tsp_pattern_free(struct ky_tsp_pattern *pattern); /* NULL is allowed */
/* Is a part of @text like @pattern? */
bool ky_tsp_pattern_finds(struct ky_tsp_pattern *pattern, const char *text, size_t len);

#endif
