/* SPDX-License-Identifier: MIT */
/* Context fields of a recording of programs: what people call them, and the session file's words. */
#ifndef KY_RECORD_USER_USER_CONTEXT_H
#define KY_RECORD_USER_USER_CONTEXT_H

#include <stdbool.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/strbuf.h"

/* Whether @name, in a filter, may be a context's. */
bool ky_user_is_context(const char *name);

/* The @i-th context field's name as it is asked for; NULL: there are not so many (fewer than KY_USER_CONTEXTS_MAX). */
#define KY_USER_CONTEXTS_MAX 32
const char *ky_user_context_name(size_t i);

/* Whether programs can count what @list asks for here. 0; KYMO_E_UNSUPPORTED, KYMO_E_PERMISSION. */
int ky_user_contexts_check(const char *list, struct kymo_error *err);

/* Add the contexts of @list ("vtid,ip"; NULL: none) to the session file, and to its @head. */
int ky_user_contexts_add(struct ky_strbuf *file, const char *list, struct ky_session_file *head,
			 struct kymo_error *err);

/* Where the next thing of the session file goes that wants to be aligned. */
uint32_t ky_user_file_align(struct ky_strbuf *file);
/* Add a text; where it stands. */
uint32_t ky_user_file_text(struct ky_strbuf *file, const char *text);

#endif
