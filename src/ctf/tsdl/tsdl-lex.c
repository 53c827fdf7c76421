/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-lex.h"

#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"

struct lexer {
	const char *at, *end;
	const char *line_begin;
	uint32_t line;
	struct ky_token token; /* the one being read */
	struct ky_strbuf scratch;
	struct ky_arena *arena;
	struct ky_tokens *tokens;
	struct kymo_error *err;
};

static const char *const keywords[] = {[KY_KEYWORD_NONE] = "",
#define KEYWORD_TEXT(name, text) [KY_KEYWORD_##name] = text,
				       KY_KEYWORD_LIST(KEYWORD_TEXT)
#undef KEYWORD_TEXT
};

enum ky_keyword ky_tsdl_keyword(const char *name)
{
	for (size_t i = 1; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (keywords[i][0] == name[0] && !strcmp(keywords[i], name))
			return (enum ky_keyword)i;
	}
	return KY_KEYWORD_NONE;
}

static bool tsdl_lex_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool tsdl_lex_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || tsdl_lex_is_digit(c) || c == '_';
}

/* Bytes of the universal character name ("\\u00e9") at @text, or 0. */
static size_t universal_name(const char *text, const char *end)
{
	size_t left = (size_t)(end - text), len;

	if (left < 2 || text[0] != '\\' || (text[1] != 'u' && text[1] != 'U'))
		return 0;
	len = text[1] == 'u' ? 6 : 10;
	if (left < len)
		return 0;
	for (size_t i = 2; i < len; i++) {
		if (ky_digit_value(text[i]) >= 16)
			return 0;
	}
	return len;
}

bool ky_tsdl_is_name(const char *name)
{
	const char *end = name + strlen(name);
	size_t len;

	if (!*name || tsdl_lex_is_digit(*name))
		return false;
	for (const char *c = name; c < end; c += len) {
		len = tsdl_lex_is_word(*c) ? 1 : universal_name(c, end);
		if (!len)
			return false;
	}
	return ky_tsdl_keyword(name) == KY_KEYWORD_NONE;
}

/* ---- characters -------------------------------------------------------------------------- */

static uint32_t column_of(const struct lexer *l)
{
	size_t column = (size_t)(l->at - l->line_begin) + 1;

	return column < UINT32_MAX ? (uint32_t)column : UINT32_MAX;
}

static int fail_here(struct lexer *l, const char *what)
{
	ky_error_set(l->err, KYMO_E_FORMAT, "%s", what);
	ky_error_line(l->err, l->line, column_of(l));
	return KYMO_E_FORMAT;
}

/* At the place where the token began. */
static int fail_token(struct lexer *l, const char *what)
{
	ky_error_set(l->err, KYMO_E_FORMAT, "%s", what);
	ky_error_line(l->err, l->token.line, l->token.column);
	return KYMO_E_FORMAT;
}

/* Bytes of a line continuation at the current place, or 0. */
static size_t continuation(const struct lexer *l)
{
	size_t left = (size_t)(l->end - l->at);

	if (left >= 2 && l->at[0] == '\\' && l->at[1] == '\n')
		return 2;
	if (left >= 3 && l->at[0] == '\\' && l->at[1] == '\r' && l->at[2] == '\n')
		return 3;
	return 0;
}

static void tsdl_lex_next_line(struct lexer *l)
{
	l->line++;
	l->line_begin = l->at;
}

static void skip_continuations(struct lexer *l)
{
	size_t n;

	while ((n = continuation(l)) > 0) {
		l->at += n;
		tsdl_lex_next_line(l);
	}
}

/* The character at the current place, past line continuations; -1 at the end. */
static int peek(struct lexer *l)
{
	skip_continuations(l);
	return l->at < l->end ? (unsigned char)*l->at : -1;
}

static void tsdl_lex_step(struct lexer *l)
{
	if (*l->at++ == '\n')
		tsdl_lex_next_line(l);
}

static bool peek_word(struct lexer *l)
{
	int c = peek(l);

	return c >= 0 && tsdl_lex_is_word((char)c);
}

/* Is @c the character after the next one? Continuations in between do not matter in practice. */
static bool tsdl_lex_follows(const struct lexer *l, char c)
{
	return l->end - l->at >= 2 && l->at[1] == c;
}

/* ---- white space and comments ------------------------------------------------------------- */

static int skip_block_comment(struct lexer *l)
{
	l->token.line = l->line;
	l->token.column = column_of(l);
	l->at += 2;
	while (l->at < l->end) {
		if (*l->at == '*' && tsdl_lex_follows(l, '/')) {
			l->at += 2;
			return KYMO_OK;
		}
		if (!*l->at)
			return fail_here(l, "NUL byte in the text");
		tsdl_lex_step(l);
	}
	return fail_token(l, "this comment does not end");
}

static int skip_line_comment(struct lexer *l)
{
	int c;

	while ((c = peek(l)) >= 0 && c != '\n') {
		if (!c)
			return fail_here(l, "NUL byte in the text");
		l->at++;
	}
	return KYMO_OK;
}

static int skip_blank(struct lexer *l)
{
	int c, ret = KYMO_OK;

	while (ret == KYMO_OK && (c = peek(l)) >= 0) {
		if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f')
			tsdl_lex_step(l);
		else if (c == '/' && tsdl_lex_follows(l, '*'))
			ret = skip_block_comment(l);
		else if (c == '/' && tsdl_lex_follows(l, '/'))
			ret = skip_line_comment(l);
		else
			break;
	}
	return ret;
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* u, l, ll and their combinations, in either order and case. */
static bool is_suffix(const char *text)
{
	static const char *const suffixes[] = {"", "u", "l", "ll", "ul", "ull", "lu", "llu"};
	char lower[4] = "";

	for (size_t i = 0; text[i]; i++) {
		if (i == 3)
			return false;
		lower[i] = text[i] == 'U' ? 'u' : text[i] == 'L' ? 'l' : text[i];
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (!strcmp(suffixes[i], lower))
			return true;
	}
	return false;
}

static int tsdl_lex_number(struct lexer *l, const char *text)
{
	const char *digits = text;
	uint64_t value = 0;
	int base = 10, digit;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		digits += 2;
	} else if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
		base = 2; /* not in the specification, but in compilers and in other readers */
		digits += 2;
	} else if (text[0] == '0') {
		base = 8;
	}
	text = digits;
	for (; (digit = ky_digit_value(*text)) < base; text++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return fail_token(l, "this number does not fit in 64 bits");
	}
	if (text == digits || !is_suffix(text))
		return fail_token(l, "this is no integer constant");
	l->token.kind = KY_TOKEN_NUMBER;
	l->token.value = value;
	return KYMO_OK;
}

/* ---- words ------------------------------------------------------------------------------- */

/* A run of letters, digits and underscores, behind what the scratch buffer has. */
static void read_run(struct lexer *l)
{
	while (peek_word(l))
		ky_strbuf_addc(&l->scratch, *l->at++);
}

static int tsdl_lex_read_number(struct lexer *l)
{
	ky_strbuf_clear(&l->scratch);
	read_run(l);
	if (ky_strbuf_failed(&l->scratch))
		return ky_error_nomem(l->err);
	return tsdl_lex_number(l, ky_strbuf_text(&l->scratch));
}

static int keep_scratch(struct lexer *l, enum ky_token_kind kind)
{
	if (ky_strbuf_failed(&l->scratch))
		return ky_error_nomem(l->err);
	l->token.kind = (uint8_t)kind;
	l->token.text = ky_arena_strdup(l->arena, ky_strbuf_text(&l->scratch));
	return l->token.text ? KYMO_OK : ky_error_nomem(l->err);
}

/* Universal character names stay as they are written: so they are shown, and so written again. */
static int tsdl_lex_read_word(struct lexer *l)
{
	size_t len;
	int ret;

	ky_strbuf_clear(&l->scratch);
	read_run(l);
	while ((len = universal_name(l->at, l->end)) > 0) {
		ky_strbuf_add(&l->scratch, l->at, len);
		l->at += len;
		read_run(l);
	}
	ret = keep_scratch(l, KY_TOKEN_WORD);
	if (ret == KYMO_OK)
		l->token.keyword = (uint8_t)ky_tsdl_keyword(l->token.text);
	return ret;
}

/* ---- strings and characters --------------------------------------------------------------- */

static void put_utf8(struct ky_strbuf *out, uint32_t code)
{
	if (code < 0x80) {
		ky_strbuf_addc(out, (char)code);
	} else if (code < 0x800) {
		ky_strbuf_addc(out, (char)(0xc0 | code >> 6));
		ky_strbuf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		ky_strbuf_addc(out, (char)(0xe0 | code >> 12));
		ky_strbuf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		ky_strbuf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else {
		ky_strbuf_addc(out, (char)(0xf0 | code >> 18));
		ky_strbuf_addc(out, (char)(0x80 | (code >> 12 & 0x3f)));
		ky_strbuf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		ky_strbuf_addc(out, (char)(0x80 | (code & 0x3f)));
	}
}

/* Up to @max digits of @base; returns how many there were. */
static int read_digits(struct lexer *l, int base, int max, uint32_t *value)
{
	int n = 0, c;

	*value = 0;
	while (n < max && (c = peek(l)) >= 0 && ky_digit_value(c) < base) {
		*value = *value * (uint32_t)base + (uint32_t)ky_digit_value(c);
		l->at++;
		n++;
	}
	return n;
}

static int read_universal(struct lexer *l, int digits)
{
	uint32_t code;

	if (read_digits(l, 16, digits, &code) != digits)
		return fail_here(l, "this universal character name lacks digits");
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return fail_here(l, "there is no such Unicode character");
	put_utf8(&l->scratch, code);
	return KYMO_OK;
}

/* Hexadecimal escapes end after two digits, not counting one leading zero: "\x0231" is "#1". */
static int read_hex(struct lexer *l)
{
	uint32_t value;
	int n = read_digits(l, 16, 2, &value);

	if (!n)
		return fail_here(l, "this hexadecimal escape has no digits");
	if (n == 2 && value < 16 && ky_digit_value(peek(l)) < 16) {
		value = value * 16 + (uint32_t)ky_digit_value(peek(l));
		l->at++;
	}
	ky_strbuf_addc(&l->scratch, (char)value);
	return KYMO_OK;
}

static int tsdl_lex_read_escape(struct lexer *l)
{
	static const char names[] = "'\"?\\abfnrtv", values[] = "'\"?\\\a\b\f\n\r\t\v";
	const char *name;
	uint32_t value;
	int c = peek(l);

	if (c >= '0' && c <= '7') {
		read_digits(l, 8, 3, &value);
		ky_strbuf_addc(&l->scratch, (char)value);
		return KYMO_OK;
	}
	name = c > 0 ? strchr(names, c) : NULL;
	if (!name && c != 'x' && c != 'u' && c != 'U')
		return fail_here(l, "there is no such escape sequence");
	l->at++;
	if (name) {
		ky_strbuf_addc(&l->scratch, values[name - names]);
		return KYMO_OK;
	}
	if (c == 'x')
		return read_hex(l);
	return read_universal(l, c == 'u' ? 4 : 8);
}

/* From the opening quote to the closing one, decoded into the scratch buffer. */
static int read_quoted(struct lexer *l, char quote)
{
	int c, ret = KYMO_OK;

	l->at++;
	ky_strbuf_clear(&l->scratch);
	while (ret == KYMO_OK && (c = peek(l)) != quote) {
		if (c < 0 || c == '\n')
			return fail_token(l, "the closing quote is missing");
		if (!c)
			return fail_here(l, "NUL byte in the text");
		l->at++;
		if (c == '\\')
			ret = tsdl_lex_read_escape(l);
		else
			ky_strbuf_addc(&l->scratch, (char)c);
	}
	if (ret == KYMO_OK)
		l->at++;
	return ret;
}

static int tsdl_lex_read_text(struct lexer *l)
{
	int ret = read_quoted(l, '"');

	return ret < 0 ? ret : keep_scratch(l, KY_TOKEN_TEXT);
}

static int read_character(struct lexer *l)
{
	int ret = read_quoted(l, '\'');

	if (ret < 0)
		return ret;
	if (ky_strbuf_failed(&l->scratch))
		return ky_error_nomem(l->err);
	if (l->scratch.len != 1)
		return fail_token(l, "a character constant holds exactly one character");
	l->token.kind = KY_TOKEN_NUMBER;
	l->token.value = (unsigned char)l->scratch.data[0];
	return KYMO_OK;
}

/* ---- the rest ---------------------------------------------------------------------------- */

static int read_punct(struct lexer *l)
{
	char c = *l->at;

	l->token.kind = KY_TOKEN_PUNCT;
	l->token.punct = (uint8_t)c;
	if (c == ':' && tsdl_lex_follows(l, '=')) {
		l->token.punct = KY_PUNCT_ASSIGN_TYPE;
		l->at++;
	} else if (c == '-' && tsdl_lex_follows(l, '>')) {
		l->token.punct = KY_PUNCT_ARROW;
		l->at++;
	} else if (c == '.' && l->end - l->at >= 3 && l->at[1] == '.' && l->at[2] == '.') {
		l->token.punct = KY_PUNCT_ELLIPSIS;
		l->at += 2;
	} else if (!c) {
		return fail_here(l, "NUL byte in the text");
	} else if (!strchr("[](){}.*+-<>:;=,", c)) {
		return fail_here(l, "this character has no meaning here");
	}
	l->at++;
	return KYMO_OK;
}

static int read_token(struct lexer *l)
{
	int c = peek(l);

	if (c == 'L' && (tsdl_lex_follows(l, '"') || tsdl_lex_follows(l, '\'')))
		c = (unsigned char)*++l->at;
	if (tsdl_lex_is_digit((char)c))
		return tsdl_lex_read_number(l);
	if (tsdl_lex_is_word((char)c) || universal_name(l->at, l->end))
		return tsdl_lex_read_word(l);
	if (c == '"')
		return tsdl_lex_read_text(l);
	if (c == '\'')
		return read_character(l);
	return read_punct(l);
}

static int lex(struct lexer *l)
{
	int ret;

	do {
		ret = skip_blank(l);
		if (ret < 0)
			return ret;
		l->token = (struct ky_token){.line = l->line, .column = column_of(l)};
		if (l->at < l->end) {
			ret = read_token(l);
			if (ret < 0)
				return ret;
		}
		if (ky_vec_push(l->tokens, l->token) < 0)
			return ky_error_nomem(l->err);
	} while (l->token.kind != KY_TOKEN_END);
	return KYMO_OK;
}

int ky_tsdl_lex(const char *text, size_t len_bytes, struct ky_arena *arena,
		struct ky_tokens *tokens, struct kymo_error *err)
{
	struct lexer l = {
		.at = text,
		.end = text + len_bytes,
		.line_begin = text,
		.line = 1,
		.arena = arena,
		.tokens = tokens,
		.err = err,
	};
	int ret;

	ky_strbuf_init(&l.scratch);
	ret = lex(&l);
	ky_strbuf_fini(&l.scratch);
	return ret;
}
