/* SPDX-License-Identifier: MIT */
/* The directory that a recording is written to. */
#ifndef KY_RECORD_COMMON_RECORD_DIR_H
#define KY_RECORD_COMMON_RECORD_DIR_H

#include <stdbool.h>

#include <kymo/error.h>

/*
 * Create directory @path, whose parent must exist. An existing empty directory is fine. *made: the
 * function created it. Returns 0, KYMO_E_INVALID when the directory is not empty, or a status for
 * mkdir()'s error.
 */
int ky_record_dir_make(const char *path, bool *made, struct kymo_error *err);

#endif
