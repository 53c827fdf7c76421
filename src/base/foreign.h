/* SPDX-License-Identifier: MIT */
/*
 * Foreign text for people: what traces, the kernel, other processes and names of files say.
 *
 * A terminal obeys some characters instead of showing them, and others make a line read as what it is
 * not. Whatever writes foreign text for people writes an escape for each of these:
 *
 *   \x1b     control characters up to U+001F, DEL, and each byte that is no UTF-8
 *   \u009b   control characters from U+0080 to U+009F
 *   \u202e   characters that change the direction of text (U+202A to U+202E, U+2066 to U+2069), or end a
 *            line or paragraph (U+2028, U+2029)
 *
 * Everything else stays as it is, a backslash too. `make lint` (tools/check-foreign) looks for what
 * writes text for people and goes around this.
 */
#ifndef KY_BASE_FOREIGN_H
#define KY_BASE_FOREIGN_H

#include "base/strbuf.h"

#define KY_FOREIGN_ESCAPE_BYTES 8

/* How many of the first bytes of @text may be shown as they are. */
size_t ky_foreign_plain(const char *text, size_t len);

/*
 * The first character of @text, which is not empty: how many bytes it has. @escape becomes what is to be
 * shown for it, or "" when it may be shown as it is.
 */
size_t ky_foreign_next(const char *text, size_t len, char escape[KY_FOREIGN_ESCAPE_BYTES]);

/* Add @text as people are to see it. */
void ky_foreign_add(struct ky_strbuf *out, const char *text, size_t len);
/* The same up to the NUL. */
void ky_foreign_adds(struct ky_strbuf *out, const char *text);

#endif
