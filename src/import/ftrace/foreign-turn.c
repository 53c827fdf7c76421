/* SPDX-License-Identifier: MIT */
/* Records of a machine with the other byte order. */
#include "import/ftrace/foreign-kernel-internal.h"
#include "kernel/tracefs/page.h"

static void foreign_turn_one(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes / 2; i++) {
		uint8_t byte = at[i];

		at[i] = at[bytes - 1 - i];
		at[bytes - 1 - i] = byte;
	}
}

static void foreign_turn_all(uint8_t *record, uint32_t len, uint32_t at, uint32_t bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n && bytes && at <= len && bytes <= len - at; i++, at += bytes)
		foreign_turn_one(record + at, bytes);
}

static void foreign_turn_field(const struct ky_format_field *field, uint8_t *record, uint32_t len)
{
	uint32_t word, at;

	if (field->kind == KY_FORMAT_INT || field->kind == KY_FORMAT_POINTER) {
		foreign_turn_all(record, len, field->offset, field->size, 1);
	} else if (field->kind == KY_FORMAT_ARRAY) {
		foreign_turn_all(record, len, field->offset, field->element_bytes, field->elements);
	} else if (field->kind == KY_FORMAT_LOC_TEXT || field->kind == KY_FORMAT_LOC_ARRAY) {
		foreign_turn_all(record, len, field->offset, 4, 1);
		if (field->kind != KY_FORMAT_LOC_ARRAY || field->element_bytes < 2 ||
		    field->offset + 4u > len)
			return;
		word = ky_record_word(record + field->offset);
		at = (word & 0xffff) + (field->is_relative ? field->offset + 4u : 0);
		foreign_turn_all(record, len, at, field->element_bytes,
				 (word >> 16) / field->element_bytes);
	}
}

void ky_foreign_turn(const struct ky_format *format, uint8_t *record, uint32_t len)
{
	foreign_turn_all(record, len, format->type_offset, format->type_size, 1);
	foreign_turn_all(record, len, format->pid_offset, 4, 1);
	for (size_t i = 0; i < format->n_fields; i++)
		foreign_turn_field(&format->fields[i], record, len);
}
