/* SPDX-License-Identifier: MIT */
/* Types and signatures (kdi.h). */
#include <inttypes.h>

#include "symbols/kdi/kdi-internal.h"

#define DEPTH_MAX 32

/* ---- records ---------------------------------------------------------------------------- */

static const char *string_at(const struct ky_kdi *kdi, uint64_t number)
{
	uint64_t table = ((uint64_t)kdi->n_strings + KY_KDI_BLOCK - 1) / KY_KDI_BLOCK * 4;
	struct ky_kdi_cursor cursor;
	const char *text = "";

	if (number >= kdi->n_strings)
		return "";
	cursor = ky_kdi_at(kdi, KY_KDI_STRINGS,
			   table + ky_kdi_u32(kdi, KY_KDI_STRINGS, number / KY_KDI_BLOCK * 4));
	for (uint64_t i = 0; i <= number % KY_KDI_BLOCK && !cursor.failed; i++)
		text = ky_kdi_text(&cursor);
	return text;
}

/* 0: the next one that is used once. */
static uint32_t take_use(struct ky_kdi_cursor *cursor, uint32_t *next)
{
	uint64_t use = ky_kdi_varint(cursor);

	if (!use)
		return (*next)++;
	return use - 1 > UINT32_MAX ? 0 : (uint32_t)(use - 1);
}

static bool kdi_types_has_name(uint8_t kind)
{
	return kind == KY_KDI_BASE || kind == KY_KDI_TYPEDEF || kind == KY_KDI_STRUCT ||
	       kind == KY_KDI_UNION || kind == KY_KDI_ENUM || kind == KY_KDI_FORWARD;
}

static bool kdi_types_has_target(uint8_t kind)
{
	return (kind >= KY_KDI_POINTER && kind <= KY_KDI_ARRAY) || kind == KY_KDI_FUNCTION;
}

static void read_sizes(struct ky_kdi_view *view)
{
	uint64_t number = view->kind == KY_KDI_BASE || (view->kind >= KY_KDI_ARRAY &&
							view->kind <= KY_KDI_FUNCTION)
				  ? ky_kdi_varint(&view->cursor)
				  : 0;

	view->bytes = number;
	if (view->kind == KY_KDI_BASE) {
		view->bytes = number >> 3;
		view->encoding = number & 7;
	} else if (view->kind == KY_KDI_ENUM) {
		view->bytes = number >> 1;
		view->encoding = number & 1;
	} else if (view->kind == KY_KDI_FUNCTION) {
		view->bytes = 0;
		view->encoding = number & 1;
		view->n_members = (uint32_t)(number >> 1);
	}
	if (view->kind >= KY_KDI_STRUCT && view->kind <= KY_KDI_ENUM)
		view->n_members = (uint32_t)ky_kdi_varint(&view->cursor);
}

/* @with_name: the name is looked up, too. */
static void read_view(struct ky_kdi_view *view, bool with_name)
{
	uint32_t name;

	view->kind = view->cursor.at < view->cursor.end ? *view->cursor.at++ : KY_KDI_KINDS;
	view->name = "";
	view->target = view->n_members = view->i = 0;
	view->at = 0;
	view->encoding = 0;
	if (view->kind >= KY_KDI_KINDS)
		view->cursor.failed = true;
	if (kdi_types_has_name(view->kind)) {
		name = take_use(&view->cursor, &view->next_text);
		if (with_name)
			view->name = string_at(view->kdi, name);
	}
	if (kdi_types_has_target(view->kind))
		view->target = take_use(&view->cursor, &view->next_type);
	read_sizes(view);
}

static bool next_member(struct ky_kdi_view *view, struct ky_kdi_member *member, bool with_name)
{
	bool is_value = view->kind == KY_KDI_ENUM;
	uint32_t name;

	if (view->i >= view->n_members || view->cursor.failed)
		return false;
	view->i++;
	*member = (struct ky_kdi_member){.name = ""};
	if (view->kind == KY_KDI_ENUM) {
		member->at = (int64_t)((uint64_t)view->at + (uint64_t)ky_kdi_signed(&view->cursor));
		view->at = (int64_t)((uint64_t)member->at + 1);
	} else if (view->kind != KY_KDI_FUNCTION) {
		int64_t step = ky_kdi_signed(&view->cursor);

		if (step & 1)
			member->bits = (uint32_t)ky_kdi_varint(&view->cursor);
		member->at = (int64_t)((uint64_t)view->at + (step & 1 ? (uint64_t)(step >> 1)
								      : (uint64_t)(step >> 1) * 8));
		view->at = member->at;
	}
	name = take_use(&view->cursor, &view->next_text);
	if (with_name)
		member->name = string_at(view->kdi, name);
	if (!is_value)
		member->type = take_use(&view->cursor, &view->next_type);
	return !view->cursor.failed;
}

bool ky_kdi_next_member(struct ky_kdi_view *view, struct ky_kdi_member *member)
{
	return next_member(view, member, true);
}

/* The first type of a block. */
static void kdi_types_begin_block(const struct ky_kdi *kdi, uint32_t block,
				  struct ky_kdi_view *view)
{
	uint64_t table = ((uint64_t)kdi->n_types + KY_KDI_BLOCK - 1) / KY_KDI_BLOCK * 12;

	*view = (struct ky_kdi_view){.kdi = kdi};
	view->cursor = ky_kdi_at(kdi, KY_KDI_TYPES,
				 table + ky_kdi_u32(kdi, KY_KDI_TYPES, (uint64_t)block * 12));
	view->next_type = ky_kdi_u32(kdi, KY_KDI_TYPES, (uint64_t)block * 12 + 4);
	view->next_text = ky_kdi_u32(kdi, KY_KDI_TYPES, (uint64_t)block * 12 + 8);
}

static void skip_members(struct ky_kdi_view *view)
{
	struct ky_kdi_member member;

	while (next_member(view, &member, false))
		;
}

bool ky_kdi_type(const struct ky_kdi *kdi, uint32_t number, struct ky_kdi_view *view)
{
	if (number >= kdi->n_types)
		return false;
	kdi_types_begin_block(kdi, number / KY_KDI_BLOCK, view);
	for (uint32_t i = 0; i < number % KY_KDI_BLOCK && !view->cursor.failed; i++) {
		read_view(view, false);
		skip_members(view);
	}
	read_view(view, true);
	return !view->cursor.failed;
}

uint32_t ky_kdi_signature(const struct ky_kdi *kdi, uint32_t function)
{
	uint64_t block = function / KY_KDI_BLOCK, table = (uint64_t)kdi->n_blocks * 8;
	struct ky_kdi_cursor cursor = ky_kdi_at(
		kdi, KY_KDI_SIGNATURES, table + ky_kdi_u32(kdi, KY_KDI_SIGNATURES, block * 8));
	uint32_t next = ky_kdi_u32(kdi, KY_KDI_SIGNATURES, block * 8 + 4), type = 0;

	if (function >= kdi->n_functions)
		return 0;
	for (uint32_t i = 0; i <= function % KY_KDI_BLOCK; i++)
		type = take_use(&cursor, &next);
	return cursor.failed || type >= kdi->n_types ? 0 : type;
}

/* ---- by name ---------------------------------------------------------------------------- */

/* Of the types of a block, one that is called so; a typedef's number is put to *second. */
static uint32_t find_in_types(const struct ky_kdi *kdi, uint32_t block, const char *name,
			      uint32_t *second)
{
	struct ky_kdi_view view;

	kdi_types_begin_block(kdi, block, &view);
	for (uint32_t i = 0; i < KY_KDI_BLOCK && !view.cursor.failed; i++) {
		uint32_t number = block * KY_KDI_BLOCK + i;

		if (number >= kdi->n_types)
			break;
		read_view(&view, true);
		if (kdi_types_has_name(view.kind) && strcmp(view.name, name) == 0) {
			if (view.kind >= KY_KDI_STRUCT && view.kind <= KY_KDI_ENUM)
				return number;
			*second = number;
		}
		skip_members(&view);
	}
	return 0;
}

uint32_t ky_kdi_find_type(const struct ky_kdi *kdi, const char *name)
{
	uint32_t names = ky_kdi_u32(kdi, KY_KDI_TYPE_NAMES, 0), n, second = 0, found = 0;
	uint32_t blocks = kdi->n_types / KY_KDI_BLOCK + (kdi->n_types % KY_KDI_BLOCK > 0);
	uint32_t group = ky_kdi_group(blocks);
	const uint8_t *groups = ky_kdi_groups(kdi, KY_KDI_TYPE_NAMES, 4, names, name, &n);

	for (uint32_t i = 0; i < n && !found; i++)
		for (uint32_t block = groups[i] * group;
		     !found && block < (groups[i] + 1u) * group && block < blocks; block++)
			found = find_in_types(kdi, block, name, &second);
	return found ? found : second;
}

/* ---- text ------------------------------------------------------------------------------- */

static void put_type_at(const struct ky_kdi *kdi, uint32_t number, struct ky_strbuf *out,
			int depth);

static void put_signature(struct ky_kdi_view *view, struct ky_strbuf *out, int depth)
{
	struct ky_kdi_member argument;
	bool any = false;

	put_type_at(view->kdi, view->target, out, depth);
	ky_strbuf_adds(out, " (");
	while (out->len < 65536 && ky_kdi_next_member(view, &argument)) {
		ky_strbuf_adds(out, any ? ", " : "");
		put_type_at(view->kdi, argument.type, out, depth);
		if (*argument.name) {
			if (out->len && out->data[out->len - 1] != '*')
				ky_strbuf_addc(out, ' ');
			ky_strbuf_adds(out, argument.name);
		}
		any = true;
	}
	if (view->encoding)
		ky_strbuf_adds(out, any ? ", ..." : "...");
	ky_strbuf_adds(out, any || view->encoding ? ")" : "void)");
}

static const char *kind_word(const struct ky_kdi_view *view)
{
	switch (view->kind) {
	case KY_KDI_STRUCT:
	case KY_KDI_FORWARD:
		return "struct ";
	case KY_KDI_UNION:
		return "union ";
	case KY_KDI_ENUM:
		return "enum ";
	default:
		return "";
	}
}

static void kdi_types_put_named(const struct ky_kdi_view *view, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, kind_word(view));
	ky_strbuf_adds(out, *view->name ? view->name : "{...}");
}

static void put_modified(const struct ky_kdi_view *view, struct ky_strbuf *out, int depth)
{
	static const char *const words[] = {
		[KY_KDI_CONST] = "const ",
		[KY_KDI_VOLATILE] = "volatile ",
		[KY_KDI_RESTRICT] = "restrict ",
	};

	if (view->kind != KY_KDI_POINTER && view->kind != KY_KDI_ARRAY)
		ky_strbuf_adds(out, words[view->kind]);
	put_type_at(view->kdi, view->target, out, depth);
	if (view->kind == KY_KDI_POINTER) {
		if (out->len && out->data[out->len - 1] != '*')
			ky_strbuf_addc(out, ' ');
		ky_strbuf_addc(out, '*');
	} else if (view->kind == KY_KDI_ARRAY) {
		ky_strbuf_addf(out, "[%" PRIu64 "]", view->bytes);
	}
}

static void put_type_at(const struct ky_kdi *kdi, uint32_t number, struct ky_strbuf *out, int depth)
{
	struct ky_kdi_view view;

	if (!number) {
		ky_strbuf_adds(out, "void");
		return;
	}
	if (depth > DEPTH_MAX || out->len > 65536 || !ky_kdi_type(kdi, number, &view)) {
		ky_strbuf_adds(out, "?");
		return;
	}
	if (view.kind == KY_KDI_FUNCTION)
		put_signature(&view, out, depth + 1);
	else if (kdi_types_has_target(view.kind) && view.kind != KY_KDI_TYPEDEF)
		put_modified(&view, out, depth + 1);
	else
		kdi_types_put_named(&view, out);
}

void ky_kdi_put_type(const struct ky_kdi *kdi, uint32_t number, struct ky_strbuf *out)
{
	put_type_at(kdi, number, out, 0);
}
