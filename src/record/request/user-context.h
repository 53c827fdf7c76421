/* SPDX-License-Identifier: MIT */
/* Context fields of a recording of programs: their names, and their codes in the session file. */
#ifndef KY_RECORD_REQUEST_USER_CONTEXT_H
#define KY_RECORD_REQUEST_USER_CONTEXT_H

#include <stdbool.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/strbuf.h"

/* Whether the name @name in a filter can be a context field. */
bool ky_user_is_context(const char *name);

/* The name of context field @i in options; NULL after the last one (below KY_USER_CONTEXTS_MAX). */
#define KY_USER_CONTEXTS_MAX 32
const char *ky_user_context_name(size_t i);

/*
 * Whether programs on this machine can record the context fields in @list. Returns 0,
 * KYMO_E_UNSUPPORTED or KYMO_E_PERMISSION.
 */
int ky_user_contexts_check(const char *list, struct kymo_error *err);

/*
 * Adds the context fields of @list ("vtid,ip"; NULL: none) to the session file, and to its @head; with
 * @is_shared also those that show which program wrote an event.
 */
int ky_user_contexts_add(struct ky_strbuf *file, const char *list, bool is_shared,
			 struct ky_session_file *head, struct kymo_error *err);

/* Pads the session file to an aligned length. Returns the offset of the next part. */
uint32_t ky_user_file_align(struct ky_strbuf *file);
/* Appends a text. Returns its offset. */
uint32_t ky_user_file_text(struct ky_strbuf *file, const char *text);

#endif
