/* SPDX-License-Identifier: MIT */
/* The directory that a recording is written to. */
#ifndef KY_RECORD_COMMON_OUTPUT_H
#define KY_RECORD_COMMON_OUTPUT_H

#include <stdbool.h>

#include <kymo/error.h>

/*
 * Create directory @path, whose parent exists; an empty one that is there already will do.
 * *made: it was created. KYMO_E_INVALID: there is something in it; others as mkdir() says.
 */
int ky_output_make(const char *path, bool *made, struct kymo_error *err);

#endif
