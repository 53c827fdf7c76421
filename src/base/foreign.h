/* SPDX-License-Identifier: MIT */
/*
 * Foreign text in output for people: text from traces, the kernel, other processes and file names.
 *
 * A terminal obeys some characters instead of showing them, and other characters make a line look
 * different from its contents. Code that writes foreign text for people must replace each of these
 * by an escape:
 *
 *   \x1b     control characters up to U+001F, DEL, and each byte that is not UTF-8
 *   \u009b   control characters from U+0080 to U+009F
 *   \u202e   characters that change the direction of text (U+202A to U+202E, U+2066 to U+2069), or end a
 *            line or paragraph (U+2028, U+2029)
 *
 * Other characters stay unchanged, a backslash too. `make lint` (tools/check-foreign) finds code
 * that writes text for people without these functions.
 */
#ifndef KY_BASE_FOREIGN_H
#define KY_BASE_FOREIGN_H

#include "base/strbuf.h"

#define KY_FOREIGN_ESCAPE_BYTES 8

/* Returns how many of the first bytes of @text need no escape. */
size_t ky_foreign_plain(const char *text, size_t len);

/*
 * Looks at the first character of @text, which must not be empty. Returns its length in bytes. Sets
 * @escape to its escape, or to "" when the character needs none.
 */
size_t ky_foreign_next(const char *text, size_t len, char escape[KY_FOREIGN_ESCAPE_BYTES]);

/* Add @text to @out with escapes. */
void ky_foreign_add(struct ky_strbuf *out, const char *text, size_t len);
/* The same for a text that ends with a NUL. */
void ky_foreign_adds(struct ky_strbuf *out, const char *text);

#endif
