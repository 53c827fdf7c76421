/* SPDX-License-Identifier: MIT */
/*
 * The filter of a recording of user space: the expression language of docs/filter.md, compiled for
 * the stack machine of abi/control.h, with fields by name. Each program binds it to its own events.
 */
#ifndef KY_RECORD_REQUEST_USER_FILTER_H
#define KY_RECORD_REQUEST_USER_FILTER_H

#include <stdbool.h>

#include <kymo/error.h>

#include "abi/control.h"
#include "base/strbuf.h"
#include "base/vec.h"

/* A name in the expression. */
struct ky_user_name {
	char text[KY_NAME_MAX + 1];
	uint32_t column; /* its place, from 1 */
	bool is_context; /* $ctx.NAME: a context only */
	bool is_asked;	 /* has(NAME): the name need not exist */
};

struct ky_user_filter {
	KY_VEC(struct ky_filter_op) ops; /* texts: offsets in @texts */
	struct ky_strbuf texts;		 /* each ends with NUL */
	KY_VEC(struct ky_user_name) names;
};

/*
 * Compile @text into @filter, which must be zeroed. The caller must call fini in any case. Returns
 * 0; KYMO_E_INVALID with the column: wrong syntax, a text that is too long, or a value that is not
 * available during a recording ($event, $time, $packet, $stream); KYMO_E_MEMORY.
 */
int ky_user_filter_compile(const char *text, struct ky_user_filter *filter, struct kymo_error *err);
void ky_user_filter_fini(struct ky_user_filter *filter);

/* Whether @code is an operation whose argument is a text. */
bool ky_user_filter_has_text(uint32_t code);

#endif
