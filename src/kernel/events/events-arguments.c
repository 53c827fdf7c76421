/* SPDX-License-Identifier: MIT */
/* Arguments of system calls: what their types say of the registers they came in. */
#include <stdio.h>
#include <string.h>

#include "kernel/events/events-internal.h"

static bool type_has_word(const char *type, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = type; (at = strstr(at, word)); at += len)
		if ((at == type || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
			return true;
	return false;
}

/*
 * The kernel keeps every argument as a register, 8 bytes; the type says how much of it counts:
 * the upper half of an int's register is not defined.
 */
static void argument_type(const struct ky_format_field *from, struct ky_event_field *to)
{
	static const struct {
		const char *word;
		uint8_t bytes;
		bool is_signed;
	} types[] = {
		{"umode_t", 2, false}, {"loff_t", 8, true},	    {"off_t", 8, true},
		{"size_t", 8, false},  {"aio_context_t", 8, false}, {"u64", 8, false},
		{"__u64", 8, false},   {"uid_t", 4, false},	    {"gid_t", 4, false},
		{"u32", 4, false},     {"__u32", 4, false},	    {"qid_t", 4, false},
		{"pid_t", 4, true},    {"clockid_t", 4, true},	    {"timer_t", 4, true},
		{"mqd_t", 4, true},    {"key_t", 4, true},	    {"key_serial_t", 4, true},
		{"rwf_t", 4, true},    {"__s32", 4, true},	    {"s32", 4, true},
		{"enum", 4, true},
	};
	bool is_unsigned = type_has_word(from->type, "unsigned");

	to->base = 10;
	if (from->size != 8)
		return;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!type_has_word(from->type, types[i].word))
			continue;
		to->bytes = types[i].bytes;
		to->is_signed = types[i].is_signed;
		return;
	}
	if (type_has_word(from->type, "long"))
		to->is_signed = !is_unsigned;
	else if (is_unsigned || type_has_word(from->type, "int")) {
		to->bytes = 4;
		to->is_signed = !is_unsigned;
	} else {
		to->base = 16; /* a typedef that we do not know: often a pointer */
		to->is_signed = false;
	}
}

/* Is this argument the address of a text, such as a path, rather than of a buffer? */
static bool is_user_text(const struct ky_format_field *from)
{
	static const char *const buffers[] = {"buf", "u_msg_ptr", "ubuf"};

	if (strcmp(from->type, "const char *") != 0 || from->size != 8)
		return false;
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		if (strcmp(from->name, buffers[i]) == 0)
			return false;
	return true;
}

/* Newer kernels (6.19) copy the text of argument NAME into the record, as __NAME_val. */
static const struct ky_format_field *find_text(const struct ky_format *format, const char *name)
{
	const struct ky_format_field *field;
	char text[300];

	snprintf(text, sizeof(text), "__%s_val", name);
	field = ky_event_source(format, text);
	return field && field->kind == KY_FORMAT_LOC_TEXT ? field : NULL;
}

bool ky_event_is_text_of_another(const struct ky_format *format,
				 const struct ky_format_field *field)
{
	size_t len = strlen(field->name);
	char name[300];

	if (field->kind != KY_FORMAT_LOC_TEXT || len < 7 || len > 260 ||
	    strncmp(field->name, "__", 2) != 0 || strcmp(field->name + len - 4, "_val") != 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(len - 6), field->name + 2);
	return ky_event_source(format, name) != NULL;
}

void ky_event_argument(const struct ky_format *format, const struct ky_format_field *from,
		       struct ky_event_field *to)
{
	const struct ky_format_field *text = find_text(format, from->name);

	if (from->kind == KY_FORMAT_INT)
		argument_type(from, to);
	else if (text)
		ky_event_as_format_says(text, to);
	else if (from->kind == KY_FORMAT_POINTER && is_user_text(from))
		to->how = KY_HOW_ADDRESS;
}
