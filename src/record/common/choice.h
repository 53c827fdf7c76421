/* SPDX-License-Identifier: MIT */
/* Parsers of options that select processes, threads and users. Threads: any. */
#ifndef KY_RECORD_COMMON_CHOICE_H
#define KY_RECORD_COMMON_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define KY_CHOICE_IDS_MAX 1024

/*
 * Append the ids of @text ("12,34") to @ids, which has @n. @users: 0 is a valid id, and ids above
 * INT32_MAX become negative numbers. Returns the new number of ids, or -1 when @text is not a list
 * of ids, or has too many.
 */
int ky_choice_ids(const char *text, bool users, int32_t ids[KY_CHOICE_IDS_MAX], int n);

/* Whether the kernel's filters can express the thread name @comm. */
bool ky_choice_is_comm(const char *comm);

#endif
