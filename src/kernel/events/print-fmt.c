/* SPDX-License-Identifier: MIT */
#include "kernel/events/print-fmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_ARGS	32
#define MAX_LABEL_BYTES 256

struct span {
	const char *at, *end;
};

static bool print_fmt_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool print_fmt_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static struct span trimmed(struct span span)
{
	while (span.at < span.end && print_fmt_is_space(*span.at))
		span.at++;
	while (span.at < span.end && print_fmt_is_space(span.end[-1]))
		span.end--;
	return span;
}

/* Behind the text that begins at @at with a quote. */
static const char *skip_quoted(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at < end ? at + 1 : end;
}

/*
 * Behind the piece at @at: it ends at @stop or at the closing bracket of what surrounds it,
 * neither being inside of quotes or brackets.
 */
static const char *skip_piece(const char *at, const char *end, char stop)
{
	int depth = 0;

	while (at < end) {
		if (*at == '"') {
			at = skip_quoted(at, end);
			continue;
		}
		if (depth == 0 && (*at == stop || *at == ')' || *at == '}'))
			break;
		depth += *at == '(' || *at == '{';
		depth -= *at == ')' || *at == '}';
		at++;
	}
	return at;
}

/* The next of the pieces between commas. False: none exists. */
static bool print_fmt_next_piece(struct span *rest, struct span *piece)
{
	if (rest->at >= rest->end || *rest->at == ')' || *rest->at == '}')
		return false;
	piece->at = rest->at;
	piece->end = skip_piece(rest->at, rest->end, ',');
	rest->at = piece->end;
	if (rest->at < rest->end && *rest->at == ',')
		rest->at++;
	*piece = trimmed(*piece);
	return true;
}

/* "(unsigned long)" before something; 0: it is no cast. */
static size_t cast_len(struct span span)
{
	const char *at = span.at + 1;

	while (at < span.end && (print_fmt_is_word(*at) || *at == ' ' || *at == '*'))
		at++;
	return at < span.end && *at == ')' && at + 1 < span.end ? (size_t)(at + 1 - span.at) : 0;
}

/* The length of @span without "[3]" behind it. */
static size_t without_index(struct span span)
{
	const char *at = span.end;

	if (at > span.at && at[-1] == ']')
		while (at > span.at && *--at != '[')
			;
	return (size_t)((at > span.at ? at : span.end) - span.at);
}

/* The field that @span is or is an element of, perhaps cast and in parentheses: "(unsigned long)(REC->flags)". */
static struct ky_format_field *field_of(const struct ky_format *format, struct span span)
{
	size_t len;

	for (;;) {
		span = trimmed(span);
		if (span.at >= span.end || *span.at != '(')
			break;
		if (skip_piece(span.at + 1, span.end, ')') == span.end - 1) {
			span.at++;
			span.end--;
			continue;
		}
		len = cast_len(span);
		if (!len)
			return NULL;
		span.at += len;
	}
	if (span.end - span.at < 6 || memcmp(span.at, "REC->", 5) != 0)
		return NULL;
	span.at += 5;
	len = without_index(span);
	for (size_t i = 0; i < format->n_fields; i++) {
		const char *name = format->fields[i].name;

		if (strlen(name) == len && memcmp(name, span.at, len) == 0)
			return &format->fields[i];
	}
	return NULL;
}

/* ---- conversions ---------------------------------------------------------------------- */

/* Of "%pM", "%pU" and "%ph", which show bytes in hexadecimal. */
#define HEXADECIMAL_BYTES 'M'

/* The conversions of a format text, one character for each argument it takes. */
static size_t conversions(struct span text, char letters[MAX_ARGS])
{
	size_t n = 0;

	for (const char *at = text.at; at < text.end && n < MAX_ARGS; at++) {
		if (*at == '\\') {
			at++;
			continue;
		}
		if (*at != '%')
			continue;
		for (at++; at < text.end && strchr("-+ #0123456789.*hlLjztq", *at); at++)
			if (*at == '*' && n < MAX_ARGS)
				letters[n++] = '*';
		if (at + 1 < text.end && *at == 'p' && strchr("MUh", at[1]) && n < MAX_ARGS)
			letters[n++] = HEXADECIMAL_BYTES;
		else if (at < text.end && *at != '%' && n < MAX_ARGS)
			letters[n++] = *at;
	}
	return n;
}

static bool print_fmt_is_array(const struct ky_format_field *field)
{
	return field->kind == KY_FORMAT_ARRAY || field->kind == KY_FORMAT_LOC_ARRAY;
}

static void print_fmt_set_base(struct ky_format_field *field, char letter)
{
	if (letter == 'x' || letter == 'X' || letter == HEXADECIMAL_BYTES)
		field->base = 16;
	else if (letter == 'p' &&
		 !print_fmt_is_array(field)) /* of an array, it may be an address in decimal */
		field->base = 16;
	else if (letter == 'o')
		field->base = 8;
}

/* A number's base is what it is printed in. */
static void apply_bases(struct ky_format *format, struct span text, struct span args)
{
	char letters[MAX_ARGS];
	size_t n = conversions(text, letters), i = 0;
	struct span arg;

	for (; i < n && print_fmt_next_piece(&args, &arg); i++) {
		struct ky_format_field *field = field_of(format, arg);

		if (field && (field->kind == KY_FORMAT_INT || field->kind == KY_FORMAT_POINTER ||
			      print_fmt_is_array(field)))
			print_fmt_set_base(field, letters[i]);
	}
}

/* "__get_dynamic_array(addrs)" -> what stands in parentheses; else @span. */
static struct span dynamic_name(struct span span)
{
	static const char call[] = "__get_dynamic_array(";
	size_t len = sizeof(call) - 1;

	if ((size_t)(span.end - span.at) > len && memcmp(span.at, call, len) == 0 &&
	    span.end[-1] == ')') {
		span.at += len;
		span.end--;
	}
	return trimmed(span);
}

/* Arrays whose elements these functions show are shown in hexadecimal. */
static void apply_array_base(struct ky_format *format, struct span call)
{
	struct ky_format_field *field;
	struct span piece, name;

	if (!print_fmt_next_piece(&call, &piece))
		return;
	field = field_of(format, piece);
	name = dynamic_name(piece);
	for (size_t i = 0; i < format->n_fields && !field; i++)
		if (strlen(format->fields[i].name) == (size_t)(name.end - name.at) &&
		    memcmp(format->fields[i].name, name.at, (size_t)(name.end - name.at)) == 0)
			field = &format->fields[i];
	if (field && print_fmt_is_array(field))
		field->base = 16;
}

/* ---- labels --------------------------------------------------------------------------- */

struct table {
	struct ky_format_label labels[KY_FORMAT_MAX_LABELS];
	size_t n;
};

/* "text", or several side by side, without quotes and escapes; NULL: not a text, or not a readable one. */
static const char *label_text(struct ky_arena *arena, struct span span)
{
	char text[MAX_LABEL_BYTES];
	bool quoted = false;
	size_t len = 0;

	for (const char *at = span.at; at < span.end; at++) {
		if (*at == '"') {
			quoted = !quoted;
			continue;
		}
		if (!quoted && print_fmt_is_space(*at))
			continue;
		/* Texts of trace_printk() end a line. */
		if (quoted && span.end - at == 3 && memcmp(at, "\\n\"", 3) == 0) {
			at++;
			continue;
		}
		if (!quoted || *at == '\\' || (unsigned char)*at < ' ' ||
		    (unsigned char)*at > '~' || len == sizeof(text))
			return NULL;
		text[len++] = *at;
	}
	return len && !quoted ? ky_arena_strndup(arena, text, len) : NULL;
}

/* Cut @value to @field's size. False: the field cannot hold it. */
static bool fit(const struct ky_format_field *field, int64_t *value)
{
	unsigned int spare = 64 - field->size * 8u;
	uint64_t bits = (uint64_t)*value << spare;

	if (!spare)
		return true;
	if (*value > 0 && (uint64_t)*value >> (field->size * 8u))
		return false;
	*value = field->is_signed ? (int64_t)bits >> spare : (int64_t)(bits >> spare);
	return true;
}

static void print_fmt_add_label(struct table *table, const char *text, int64_t value)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->labels[i].value == value)
			return;
	if (table->n < KY_FORMAT_MAX_LABELS)
		table->labels[table->n++] = (struct ky_format_label){text, value};
}

/* "{ VALUE, "LABEL" }, ..." */
static void read_table(struct ky_arena *arena, struct span rest, struct ky_btf *btf,
		       const struct ky_format_field *field, struct table *table)
{
	struct span piece, value, text;
	const char *label;
	int64_t number;

	while (print_fmt_next_piece(&rest, &piece)) {
		if (piece.at >= piece.end || *piece.at != '{')
			continue;
		piece.at++;
		if (!print_fmt_next_piece(&piece, &value) || !print_fmt_next_piece(&piece, &text))
			continue;
		if (!ky_constant_value(value.at, (size_t)(value.end - value.at), btf, &number) ||
		    !fit(field, &number))
			continue;
		label = label_text(arena, text);
		if (label)
			print_fmt_add_label(table, label, number);
	}
}

static int keep_table(struct ky_arena *arena, const struct table *table,
		      struct ky_format_field *field, struct kymo_error *err)
{
	if (!table->n)
		return KYMO_OK;
	field->labels = ky_arena_memdup(arena, table->labels, table->n * sizeof(table->labels[0]));
	if (!field->labels)
		return ky_error_nomem(err);
	field->n_labels = (uint16_t)table->n;
	return KYMO_OK;
}

/* The next line of @rest. False: none exists. */
static bool print_fmt_next_line(struct span *rest, struct span *line)
{
	if (rest->at >= rest->end)
		return false;
	line->at = rest->at;
	line->end = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	if (!line->end)
		line->end = rest->end;
	rest->at = line->end < rest->end ? line->end + 1 : rest->end;
	return true;
}

/* `0xffffffff8281a585 : "rcu_preempt"` */
static void read_texts(struct ky_arena *arena, struct span rest, struct table *table)
{
	struct span line;

	while (print_fmt_next_line(&rest, &line)) {
		char *end;
		uint64_t address = strtoull(line.at, &end, 16);
		struct span text = {end, line.end};
		const char *label;

		if (!address || end >= line.end)
			continue;
		text.at += strspn(text.at, " :");
		label = text.at < text.end ? label_text(arena, text) : NULL;
		if (label)
			print_fmt_add_label(table, label, (int64_t)address);
	}
}

/* The texts that fields are which are printed as such. */
static int apply_texts(struct ky_arena *arena, struct ky_format *format, struct span texts,
		       struct span text, struct span args, struct kymo_error *err)
{
	struct table table = {.n = 0};
	char letters[MAX_ARGS];
	size_t n = conversions(text, letters);
	int ret = KYMO_OK;
	struct span arg;

	for (size_t i = 0; i < n && !ret && print_fmt_next_piece(&args, &arg); i++) {
		struct ky_format_field *field = letters[i] == 's' ? field_of(format, arg) : NULL;

		if (!field || field->kind != KY_FORMAT_POINTER || !strstr(field->type, "char") ||
		    field->labels)
			continue;
		if (!table.n)
			read_texts(arena, texts, &table);
		ret = keep_table(arena, &table, field, err);
	}
	return ret;
}

/* The first table that speaks of a field counts. */
static int take_table(struct ky_arena *arena, struct span call, bool is_flags, struct ky_btf *btf,
		      struct ky_format *format, struct kymo_error *err)
{
	struct ky_format_field *field;
	struct table table;
	struct span piece;

	if (!print_fmt_next_piece(&call, &piece))
		return KYMO_OK;
	field = field_of(format, piece);
	if (!field || field->kind != KY_FORMAT_INT || field->labels)
		return KYMO_OK;
	/* Between the flags stands a delimiter. */
	if (is_flags && !print_fmt_next_piece(&call, &piece))
		return KYMO_OK;
	table.n = 0;
	read_table(arena, call, btf, field, &table);
	return keep_table(arena, &table, field, err);
}

/* What the functions say that show a field in their own way. */
static int apply_calls(struct ky_arena *arena, struct span args, struct ky_btf *btf,
		       struct ky_format *format, struct kymo_error *err)
{
	static const struct {
		const char *text;
		enum { SYMBOLS, FLAGS, HEXADECIMAL } what;
	} calls[] = {
		{"__print_symbolic(", SYMBOLS},	    {"__print_flags(", FLAGS},
		{"__print_symbolic_u64(", SYMBOLS}, {"__print_flags_u64(", FLAGS},
		{"__print_array(", HEXADECIMAL},    {"__print_hex(", HEXADECIMAL},
		{"__print_hex_str(", HEXADECIMAL},
	};
	int ret = KYMO_OK;

	for (const char *at = args.at; at < args.end && !ret; at++) {
		if (*at == '"') {
			at = skip_quoted(at, args.end) - 1;
			continue;
		}
		for (size_t i = 0; *at == '_' && i < sizeof(calls) / sizeof(calls[0]); i++) {
			size_t len = strlen(calls[i].text);
			struct span call = {at + len, args.end};

			if ((size_t)(args.end - at) <= len || memcmp(at, calls[i].text, len) != 0 ||
			    ret)
				continue;
			if (calls[i].what == HEXADECIMAL)
				apply_array_base(format, call);
			else
				ret = take_table(arena, call, calls[i].what == FLAGS, btf, format,
						 err);
		}
	}
	return ret;
}

int ky_print_fmt_apply(struct ky_arena *arena, const char *text, size_t len, struct ky_btf *btf,
		       struct ky_format *format, struct kymo_error *err)
{
	static const char key[] = "\nprint fmt:";
	const char *at = memmem(text, len, key, sizeof(key) - 1), *end = text + len;
	struct span line, quoted, args, texts;
	int ret = KYMO_OK;

	if (!at)
		return KYMO_OK;
	/* It is the last line, and some have a line's end within a text. */
	line.at = at + sizeof(key) - 1;
	line.end = end;
	line = trimmed(line);
	if (line.at >= line.end || *line.at != '"')
		return KYMO_OK;
	/* Texts that stand side by side are one. */
	quoted.at = line.at;
	quoted.end = skip_piece(line.at, line.end, ',');
	args.at = quoted.end < line.end ? quoted.end + 1 : line.end;
	args.end = line.end;
	apply_bases(format, quoted, args);
	texts.at = memmem(text, (size_t)(at - text), KY_FORMAT_TEXTS, sizeof(KY_FORMAT_TEXTS) - 1);
	texts.end = at;
	if (texts.at) {
		texts.at += sizeof(KY_FORMAT_TEXTS) - 1;
		ret = apply_texts(arena, format, texts, quoted, args, err);
	}
	return ret < 0 ? ret : apply_calls(arena, args, btf, format, err);
}
