/* SPDX-License-Identifier: MIT */
/*
 * The line of kymo mark: "kymo-mark 1795728572757736107 some text". The number is the wall time in nanoseconds, so that a file with the
 * line tells how its clock relates to it.
 */
#ifndef KY_BASE_MARK_H
#define KY_BASE_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_MARK_BYTES 40 /* of the line without the text */

/* @out gets the line, cut where it is too long. */
void ky_mark_put(char *out, size_t size, int64_t ns, const char *text);

/* The time of the first mark in @text. False: it has none. */
bool ky_mark_find(const char *text, size_t len, int64_t *ns);

#endif
