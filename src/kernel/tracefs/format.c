/* SPDX-License-Identifier: MIT */
/*
 * One line per field:
 *
 *	field:unsigned long args[6];	offset:16;	size:48;	signed:0;
 *
 * The declaration is C as the kernel's sources spell it, after __stringify(): any type text, then
 * the name, then an optional array part. Dynamic fields are written `__data_loc char[] name`.
 */
#include "kernel/tracefs/format.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct line {
	const char *text;
	size_t len;
	uint32_t number;
};

struct declaration {
	const char *type;
	size_t type_len;
	const char *name;
	size_t name_len;
	bool is_array, is_loc, is_relative;
	uint64_t array_len; /* 0: not a plain number */
};

struct numbers {
	uint64_t offset, size, is_signed;
};

static bool format_next_line(const char **at, const char *end, struct line *line)
{
	const char *stop;

	if (*at >= end)
		return false;
	stop = memchr(*at, '\n', (size_t)(end - *at));
	if (!stop)
		stop = end;
	line->text = *at;
	line->len = (size_t)(stop - *at);
	line->number++;
	*at = stop + 1;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool format_is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static void format_trim(const char **text, size_t *len)
{
	while (*len && is_blank(**text)) {
		(*text)++;
		(*len)--;
	}
	while (*len && is_blank((*text)[*len - 1]))
		(*len)--;
}

static bool starts_with(const char *text, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(text, prefix, n) == 0;
}

/* The number behind @key ("offset:") in a line; false when it is not there or not a number. */
static bool format_find_number(const char *text, size_t len, const char *key, uint64_t *value)
{
	size_t n = strlen(key);

	for (size_t i = 0; i + n < len; i++) {
		size_t at = i + n;

		if (memcmp(text + i, key, n) != 0 || text[at] < '0' || text[at] > '9')
			continue;
		*value = 0;
		for (; at < len && text[at] >= '0' && text[at] <= '9'; at++) {
			if (*value > UINT32_MAX)
				return false;
			*value = *value * 10 + (uint64_t)(text[at] - '0');
		}
		return true;
	}
	return false;
}

/* "char comm[16]" -> type "char", name "comm", array of 16. */
static bool split_declaration(const char *text, size_t len, struct declaration *decl)
{
	const char *bracket;

	memset(decl, 0, sizeof(*decl));
	format_trim(&text, &len);
	if (starts_with(text, len, "__data_loc ") || starts_with(text, len, "__rel_loc ")) {
		const char *blank = memchr(text, ' ', len);

		decl->is_loc = true;
		decl->is_relative = text[2] == 'r';
		len -= (size_t)(blank - text);
		text = blank;
		format_trim(&text, &len);
	}
	if (len && text[len - 1] == ']') {
		bracket = memrchr(text, '[', len);
		if (!bracket)
			return false;
		decl->is_array = true;
		format_find_number(bracket, (size_t)(text + len - bracket), "[", &decl->array_len);
		len = (size_t)(bracket - text);
		format_trim(&text, &len);
	}
	decl->name = text + len;
	while (decl->name > text && format_is_name(decl->name[-1]))
		decl->name--;
	decl->name_len = (size_t)(text + len - decl->name);
	len = (size_t)(decl->name - text);
	/* A name needs a type before it. */
	if (!decl->name_len || !len || decl->name_len > 255)
		return false;
	format_trim(&text, &len);
	/* "__data_loc char[] name": the brackets belong to the type. */
	if (len > 2 && text[len - 1] == ']') {
		bracket = memrchr(text, '[', len);
		if (!bracket)
			return false;
		decl->is_array = true;
		len = (size_t)(bracket - text);
		format_trim(&text, &len);
	}
	decl->type = text;
	decl->type_len = len;
	return len > 0;
}

static bool type_is(const struct declaration *decl, const char *type)
{
	return decl->type_len == strlen(type) && memcmp(decl->type, type, decl->type_len) == 0;
}

/* The size of one element of a dynamic array, which the kernel does not say. */
static uint8_t element_size(const struct declaration *decl)
{
	static const struct {
		const char *type;
		uint8_t size;
	} known[] = {
		{"u8", 1},
		{"__u8", 1},
		{"s8", 1},
		{"unsigned char", 1},
		{"bool", 1},
		{"u16", 2},
		{"__u16", 2},
		{"s16", 2},
		{"unsigned short", 2},
		{"short", 2},
		{"u32", 4},
		{"__u32", 4},
		{"s32", 4},
		{"int", 4},
		{"unsigned int", 4},
		{"u64", 8},
		{"__u64", 8},
		{"s64", 8},
		{"long long", 8},
		{"unsigned long long", 8},
		{"long", sizeof(long)},
		{"unsigned long", sizeof(long)},
		{"cpumask_t", sizeof(long)},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (type_is(decl, known[i].type))
			return known[i].size;
	return 1;
}

static bool is_char(const struct declaration *decl)
{
	return type_is(decl, "char") || type_is(decl, "const char") || type_is(decl, "signed char");
}

static bool is_plain_size(uint64_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static void classify_array(const struct declaration *decl, const struct numbers *numbers,
			   struct ky_format_field *field)
{
	uint64_t each = decl->array_len ? numbers->size / decl->array_len : 0;

	if (is_char(decl)) {
		field->kind = field->size ? KY_FORMAT_TEXT : KY_FORMAT_REST_TEXT;
		field->elements = field->size;
		return;
	}
	field->kind = KY_FORMAT_ARRAY;
	if (!is_plain_size(each) || each * decl->array_len != numbers->size)
		each = 1;
	field->element_bytes = (uint8_t)each;
	field->elements = (uint16_t)(numbers->size / each);
}

static void classify(const struct declaration *decl, const struct numbers *numbers,
		     struct ky_format_field *field)
{
	bool pointer = decl->type[decl->type_len - 1] == '*';

	field->is_relative = decl->is_relative;
	if (decl->is_loc) {
		field->kind = is_char(decl) ? KY_FORMAT_LOC_TEXT : KY_FORMAT_LOC_ARRAY;
		field->element_bytes = element_size(decl);
	} else if (decl->is_array || (!numbers->size && is_char(decl))) {
		/* Older kernels write "char buf" of size 0 for "char buf[]". */
		classify_array(decl, numbers, field);
	} else if (pointer && (numbers->size == 4 || numbers->size == 8)) {
		field->kind = KY_FORMAT_POINTER;
		field->is_signed = false;
	} else if (is_plain_size(numbers->size)) {
		field->kind = KY_FORMAT_INT;
	} else {
		field->kind = KY_FORMAT_ARRAY;
		field->element_bytes = 1;
		field->elements = field->size;
		field->is_signed = false;
	}
}

static int bad_line(const struct line *line, const char *what, struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_FORMAT, "%s", what);

	ky_error_line(err, line->number, 1);
	return code;
}

/* Take a "field:...;offset:..;size:..;signed:..;" line apart. */
static int split_field(const struct line *line, const char *at, struct declaration *decl,
		       struct numbers *numbers, struct kymo_error *err)
{
	size_t len = (size_t)(line->text + line->len - at);
	const char *semicolon = memchr(at, ';', len);

	if (!semicolon || !split_declaration(at, (size_t)(semicolon - at), decl))
		return bad_line(line, "a field without type and name", err);
	len = (size_t)(line->text + line->len - semicolon);
	numbers->is_signed = 0;
	if (!format_find_number(semicolon, len, "offset:", &numbers->offset) ||
	    !format_find_number(semicolon, len, "size:", &numbers->size))
		return bad_line(line, "a field without offset and size", err);
	format_find_number(semicolon, len, "signed:", &numbers->is_signed);
	if (numbers->offset > KY_FORMAT_MAX_BYTES || numbers->size > KY_FORMAT_MAX_BYTES ||
	    numbers->offset + numbers->size > KY_FORMAT_MAX_BYTES)
		return bad_line(line, "a field beyond the end of a record", err);
	if (decl->is_loc && numbers->size != 4)
		return bad_line(line, "a dynamic field must have 4 bytes", err);
	return KYMO_OK;
}

static int format_add_field(struct ky_arena *arena, const struct declaration *decl,
			    const struct numbers *numbers, struct ky_format *format,
			    struct kymo_error *err)
{
	struct ky_format_field *field = &format->fields[format->n_fields];

	field->offset = (uint16_t)numbers->offset;
	field->size = (uint16_t)numbers->size;
	field->is_signed = numbers->is_signed != 0;
	field->name = ky_arena_strndup(arena, decl->name, decl->name_len);
	field->type = ky_arena_strndup(arena, decl->type, decl->type_len);
	if (!field->name || !field->type)
		return ky_error_nomem(err);
	classify(decl, numbers, field);
	if (field->offset + field->size > format->fixed_bytes)
		format->fixed_bytes = (uint16_t)(field->offset + field->size);
	/* Of other types, "buf[]" of size 0 only marks the record's end. */
	if (field->size || field->kind == KY_FORMAT_REST_TEXT)
		format->n_fields++;
	return KYMO_OK;
}

static bool name_is(const struct declaration *decl, const char *name)
{
	return decl->name_len == strlen(name) && memcmp(decl->name, name, decl->name_len) == 0;
}

static int take_field(struct ky_arena *arena, const struct line *line, const char *at,
		      struct ky_format *format, struct kymo_error *err)
{
	struct declaration decl;
	struct numbers numbers;
	int ret = split_field(line, at, &decl, &numbers, err);

	if (ret < 0)
		return ret;
	if (name_is(&decl, "common_type")) {
		format->type_offset = (uint16_t)numbers.offset;
		format->type_size = (uint16_t)numbers.size;
	} else if (name_is(&decl, "common_pid")) {
		if (numbers.size != 4)
			return bad_line(line, "common_pid must have 4 bytes", err);
		format->pid_offset = (uint16_t)numbers.offset;
	}
	if (starts_with(decl.name, decl.name_len, "common_")) {
		if (numbers.offset + numbers.size > format->fixed_bytes)
			format->fixed_bytes = (uint16_t)(numbers.offset + numbers.size);
		return KYMO_OK;
	}
	if (format->n_fields == KY_FORMAT_MAX_FIELDS)
		return bad_line(line, "too many fields", err);
	return format_add_field(arena, &decl, &numbers, format, err);
}

static int format_take_head(struct ky_arena *arena, const struct line *line,
			    struct ky_format *format, bool *has_id, struct kymo_error *err)
{
	const char *text = line->text;
	size_t len = line->len;
	uint64_t id;

	format_trim(&text, &len);
	if (starts_with(text, len, "name:") && !format->name) {
		text += 5;
		len -= 5;
		format_trim(&text, &len);
		format->name = ky_arena_strndup(arena, text, len);
		return format->name ? KYMO_OK : ky_error_nomem(err);
	}
	if (starts_with(text, len, "ID:")) {
		text += 3;
		len -= 3;
		format_trim(&text, &len);
		if (!format_find_number(text - 1, len + 1, " ", &id) &&
		    !format_find_number(text - 1, len + 1, ":", &id))
			return bad_line(line, "ID is not a number", err);
		if (id > UINT16_MAX)
			return bad_line(line, "ID does not fit 16 bits", err);
		format->id = (uint16_t)id;
		*has_id = true;
	}
	return KYMO_OK;
}

int ky_format_parse(struct ky_arena *arena, const char *text, size_t len, struct ky_format *format,
		    struct kymo_error *err)
{
	struct ky_format_field fields[KY_FORMAT_MAX_FIELDS + 1] = {0};
	const char *at = text, *end = text + len;
	struct line line = {0};
	bool has_id = false;
	int ret = KYMO_OK;

	memset(format, 0, sizeof(*format));
	format->fields = fields;
	while (!ret && format_next_line(&at, end, &line)) {
		const char *field = line.text;
		size_t field_len = line.len;

		format_trim(&field, &field_len);
		if (starts_with(field, field_len, "print fmt:"))
			break;
		if (starts_with(field, field_len, "field:"))
			ret = take_field(arena, &line, field + 6, format, err);
		else
			ret = format_take_head(arena, &line, format, &has_id, err);
	}
	format->fields = NULL;
	if (ret < 0)
		return ret;
	if (!format->name || !has_id)
		return ky_error_set(err, KYMO_E_FORMAT, "an event format without name and ID");
	if (format->type_size != 2 || !format->pid_offset)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "an event format without common_type and common_pid");
	if (!format->n_fields)
		return KYMO_OK;
	format->fields = ky_arena_memdup(arena, fields, format->n_fields * sizeof(fields[0]));
	return format->fields ? KYMO_OK : ky_error_nomem(err);
}

int ky_page_layout_parse(const char *text, size_t len, struct ky_page_layout *layout,
			 struct kymo_error *err)
{
	const char *at = text, *end = text + len;
	bool has_time = false, has_commit = false, has_data = false;
	struct line line = {0};

	memset(layout, 0, sizeof(*layout));
	while (format_next_line(&at, end, &line)) {
		const char *field = line.text;
		size_t field_len = line.len;
		struct declaration decl;
		struct numbers numbers;
		int ret;

		format_trim(&field, &field_len);
		if (!starts_with(field, field_len, "field:"))
			continue;
		ret = split_field(&line, field + 6, &decl, &numbers, err);
		if (ret < 0)
			return ret;
		if (name_is(&decl, "timestamp") && numbers.size == 8) {
			layout->time_offset = (uint16_t)numbers.offset;
			has_time = true;
		} else if (name_is(&decl, "commit") && (numbers.size == 4 || numbers.size == 8)) {
			layout->commit_offset = (uint16_t)numbers.offset;
			layout->commit_bytes = (uint16_t)numbers.size;
			has_commit = true;
		} else if (name_is(&decl, "data")) {
			layout->data_offset = (uint16_t)numbers.offset;
			has_data = true;
		}
	}
	if (!has_time || !has_commit || !has_data || layout->data_offset < 12)
		return ky_error_set(err, KYMO_E_FORMAT, "a page layout that is not known");
	return KYMO_OK;
}
