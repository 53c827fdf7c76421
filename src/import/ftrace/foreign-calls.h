/* SPDX-License-Identifier: MIT */
/*
 * System calls of x86-64 by number. Files that have only raw_syscalls (numbers and six arguments) get an event for
 * each call from this, as tracefs describes it. Threads: any.
 */
#ifndef KY_IMPORT_FOREIGN_CALLS_H
#define KY_IMPORT_FOREIGN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Numbers are below this. */
#define KY_FOREIGN_CALLS 512

/* common_type of the events, which no kernel gives to its own: plus the number. */
#define KY_FOREIGN_ENTRY_ID 0xa000u
#define KY_FOREIGN_EXIT_ID  (KY_FOREIGN_ENTRY_ID + KY_FOREIGN_CALLS)

/* Has call @number a name here? */
bool ky_foreign_call_is_known(uint64_t number);
/* Its name, of static storage; NULL: the call is not known. */
const char *ky_foreign_call_name(uint64_t number);
/* Writes the description of its event to @text. False: the call is not known. */
bool ky_foreign_call_format(uint32_t number, bool is_exit, struct ky_strbuf *text);

#endif
