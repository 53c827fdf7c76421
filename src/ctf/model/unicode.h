/* SPDX-License-Identifier: MIT */
/* Text in the encodings that CTF knows, as UTF-8. */
#ifndef KY_CTF_MODEL_UNICODE_H
#define KY_CTF_MODEL_UNICODE_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "ctf/model/model.h"

/*
 * The first character of @text, which is not empty and of any encoding: its code point, U+FFFD for
 * what is malformed. Returns the bytes that it takes; 0 when they are too few for a code unit.
 */
size_t ky_unicode_next(enum ky_encoding encoding, const uint8_t *text, size_t len_bytes,
		       uint32_t *code);

/* The characters of @text, with U+FFFD for each byte that is malformed, as UTF-8. */
void ky_utf8_repair(struct ky_strbuf *out, const char *text);
/* Are two texts the same once they are repaired? */
bool ky_utf8_same(const char *a, const char *b);
/* Less than, equal to, or more than 0: an order of texts in which those are equal. */
int ky_utf8_compare(const char *a, const char *b);

/* Append @text of @encoding (a UTF-16 or UTF-32) as UTF-8; U+FFFD stands for what is malformed. */
void ky_utf8_from(struct ky_strbuf *out, enum ky_encoding encoding, const uint8_t *text,
		  size_t len_bytes);

#endif
