/* SPDX-License-Identifier: MIT */
/* See log-regex.c. Threads: one at a time per object. */
#ifndef KY_IMPORT_LOG_REGEX_H
#define KY_IMPORT_LOG_REGEX_H

#include <kymo/error.h>

struct ky_log_regex;

/* KYMO_E_INVALID: @expression makes no sense, with its column. The caller closes it after failure too. */
int ky_log_regex_open(const char *expression, struct ky_log_regex **regex, struct kymo_error *err);
/* NULL is allowed. */
void ky_log_regex_close(struct ky_log_regex *regex);

#endif
