/* SPDX-License-Identifier: MIT */
/* What people write to choose processes, threads and users. Threads: any. */
#ifndef KY_RECORD_COMMON_CHOICE_H
#define KY_RECORD_COMMON_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define KY_CHOICE_IDS_MAX 1024

/*
 * Add the ids of @text ("12,34") to the @n of @ids. @users: 0 is one, and so are those beyond INT32_MAX (as negative
 * numbers). How many there are then; -1: that is no list of ids, or there are too many.
 */
int ky_choice_ids(const char *text, bool users, int32_t ids[KY_CHOICE_IDS_MAX], int n);

/* Can a thread be called so, as far as the kernel's filters can say it? */
bool ky_choice_is_comm(const char *comm);

#endif
