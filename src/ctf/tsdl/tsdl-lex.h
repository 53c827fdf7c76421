/* SPDX-License-Identifier: MIT */
/*
 * TSDL text -> tokens. Comments, white space and line continuations (backslash, line end) are
 * gone afterwards; string escapes are decoded; CRLF and LF end a line alike.
 */
#ifndef KY_CTF_TSDL_TSDL_LEX_H
#define KY_CTF_TSDL_TSDL_LEX_H

#include "base/arena.h"
#include "base/vec.h"
#include "ctf/model/model.h"

enum ky_token_kind {
	KY_TOKEN_END,	 /* the last token of every list */
	KY_TOKEN_WORD,	 /* an identifier, or a keyword when ->keyword says so */
	KY_TOKEN_NUMBER, /* an integer or character constant, without sign */
	KY_TOKEN_TEXT,	 /* a string literal */
	KY_TOKEN_PUNCT,
};

/* X(name, text) */
#define KY_KEYWORD_LIST(X)                  \
	X(ALIGN, "align")                   \
	X(CALLSITE, "callsite")             \
	X(CONST, "const")                   \
	X(CHAR, "char")                     \
	X(CLOCK, "clock")                   \
	X(DOUBLE, "double")                 \
	X(ENUM, "enum")                     \
	X(ENV, "env")                       \
	X(EVENT, "event")                   \
	X(FLOATING_POINT, "floating_point") \
	X(FLOAT, "float")                   \
	X(INTEGER, "integer")               \
	X(INT, "int")                       \
	X(LONG, "long")                     \
	X(SHORT, "short")                   \
	X(SIGNED, "signed")                 \
	X(STREAM, "stream")                 \
	X(STRING, "string")                 \
	X(STRUCT, "struct")                 \
	X(TRACE, "trace")                   \
	X(TYPEALIAS, "typealias")           \
	X(TYPEDEF, "typedef")               \
	X(UNSIGNED, "unsigned")             \
	X(VARIANT, "variant")               \
	X(VOID, "void")                     \
	X(BOOL, "_Bool")                    \
	X(COMPLEX, "_Complex")              \
	X(IMAGINARY, "_Imaginary")

enum ky_keyword {
	KY_KEYWORD_NONE,
#define KY_KEYWORD_ENUM(name, text) KY_KEYWORD_##name,
	KY_KEYWORD_LIST(KY_KEYWORD_ENUM)
#undef KY_KEYWORD_ENUM
};

/* Punctuators of one character are their character; these are the others. */
#define KY_PUNCT_ASSIGN_TYPE 128 /* := */
#define KY_PUNCT_ELLIPSIS    129 /* ... */
#define KY_PUNCT_ARROW	     130 /* -> */

struct ky_token {
	uint8_t kind;	 /* enum ky_token_kind */
	uint8_t keyword; /* enum ky_keyword, of a WORD */
	uint8_t punct;
	uint32_t line, column; /* from 1; columns count bytes */
	const char *text;      /* WORD; TEXT decoded, and cut at the first NUL */
	uint64_t value;	       /* NUMBER */
};

KY_VEC_TYPE(ky_tokens, struct ky_token);

/*
 * Split @text into tokens, the last one KY_TOKEN_END. Their texts live in @arena; the list is the
 * caller's to free (also after a failure).
 * Returns 0, KYMO_E_FORMAT (line and column) or KYMO_E_MEMORY.
 */
int ky_tsdl_lex(const char *text, size_t len_bytes, struct ky_arena *arena,
		struct ky_tokens *tokens, struct kymo_error *err);

/* The keyword that @name is, or KY_KEYWORD_NONE. */
enum ky_keyword ky_tsdl_keyword(const char *name);

/* Can @name be a field or type name: an identifier that is no keyword? */
bool ky_tsdl_is_name(const char *name);

#endif
