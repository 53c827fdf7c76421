/* SPDX-License-Identifier: MIT */
/*
 * Lines from a terminal, by libedit, which is loaded with the first line. Without the library, lines have no history and no completion.
 * One thread.
 */
#ifndef KY_CLI_QUERY_QUERY_LINES_H
#define KY_CLI_QUERY_QUERY_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* The @i-th word that may stand where one begins with @text; NULL: there are no more. @before: the line up to there. */
typedef const char *(*ky_query_words)(void *data, const char *before, const char *text, size_t i);

void ky_query_lines_begin(ky_query_words words, void *data);
/* A line without its end, to be freed. NULL: the end of the input. */
char *ky_query_line(const char *prompt);
void ky_query_lines_remember(const char *statement);
/* Writes the history. */
void ky_query_lines_end(void);

#endif
