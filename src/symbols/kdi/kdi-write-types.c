/* SPDX-License-Identifier: MIT */
/*
 * Types and signatures of a file of debug information.
 *
 * Most texts and many types are used once. These have numbers in the order of their use, and a use is one zero byte: the next one.
 * The others have small numbers if they are used often.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/kdi/kdi-write-internal.h"

#define NONE UINT32_MAX

/* ---- numbers ---------------------------------------------------------------------------- */

static int ranks_init(struct ky_kdi_ranks *ranks, size_t n)
{
	ranks->number = malloc((n + 1) * sizeof(*ranks->number));
	ranks->uses = calloc(n + 1, sizeof(*ranks->uses));
	ranks->order = calloc(n + 1, sizeof(*ranks->order));
	if (!ranks->number || !ranks->uses || !ranks->order)
		return KYMO_E_MEMORY;
	memset(ranks->number, 0xff, (n + 1) * sizeof(*ranks->number));
	ranks->number[0] = 0;
	ranks->n = 1;
	return KYMO_OK;
}

static int by_uses(const void *a, const void *b, void *data)
{
	const uint32_t *uses = data, x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (uses[x] != uses[y])
		return uses[x] > uses[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void give_number(struct ky_kdi_ranks *ranks, uint32_t item)
{
	ranks->order[ranks->n] = item;
	ranks->number[item] = ranks->n++;
}

/* Numbers those that are not used exactly once, the most used first; those that nothing uses only where @unused. */
static int number_shared(struct ky_kdi_ranks *ranks, uint32_t n, bool unused)
{
	uint32_t *list = malloc(((size_t)n + 1) * sizeof(*list)), found = 0;

	if (!list)
		return KYMO_E_MEMORY;
	for (uint32_t i = 1; i < n; i++)
		if (ranks->uses[i] > 1 || (unused && !ranks->uses[i]))
			list[found++] = i;
	qsort_r(list, found, sizeof(*list), by_uses, ranks->uses);
	for (uint32_t i = 0; i < found; i++)
		give_number(ranks, list[i]);
	ranks->shared = ranks->n;
	free(list);
	return KYMO_OK;
}

/* 0: the next one that is used once; else the number + 1. */
static void put_use(struct ky_strbuf *out, struct ky_kdi_ranks *ranks, uint32_t item)
{
	if (ranks->number[item] == NONE)
		give_number(ranks, item);
	ky_kdi_put_varint(
		out, ranks->number[item] >= ranks->shared ? 0 : (uint64_t)ranks->number[item] + 1);
}

/* ---- texts ------------------------------------------------------------------------------ */

/* The texts are those of @info, so equal texts have equal addresses. */
static uint32_t text_id(struct ky_kdi_writer *writer, const char *text)
{
	uintptr_t id = *text ? (uintptr_t)ky_map_get(&writer->string_ids, (uintptr_t)text) : 1;

	return id ? (uint32_t)(id - 1) : 0;
}

static int collect_text(struct ky_kdi_writer *writer, const char *text)
{
	if (!*text || ky_map_get(&writer->string_ids, (uintptr_t)text))
		return KYMO_OK;
	if (ky_vec_push(&writer->all_strings, text) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&writer->string_ids, (uintptr_t)text,
			  (void *)(uintptr_t)writer->all_strings.len);
}

static bool kdi_write_types_has_name(uint8_t kind)
{
	return kind == KY_KDI_BASE || kind == KY_KDI_TYPEDEF || kind == KY_KDI_STRUCT ||
	       kind == KY_KDI_UNION || kind == KY_KDI_ENUM || kind == KY_KDI_FORWARD;
}

static bool kdi_write_types_has_target(uint8_t kind)
{
	return (kind >= KY_KDI_POINTER && kind <= KY_KDI_ARRAY) || kind == KY_KDI_FUNCTION;
}

static int collect_texts(struct ky_kdi_writer *writer)
{
	const struct ky_kdi_info *info = writer->info;
	int ret = ky_vec_push(&writer->all_strings, "");

	ky_vec_foreach(&info->types, type)
		if (!ret && kdi_write_types_has_name(type->kind))
			ret = collect_text(writer, type->name);
	ky_vec_foreach(&info->members, member)
		if (!ret)
			ret = collect_text(writer, member->name);
	return ret ? ret : ranks_init(&writer->texts, writer->all_strings.len);
}

static const struct ky_kdi_member *kdi_write_types_members(const struct ky_kdi_writer *writer,
							   const struct ky_kdi_type *type)
{
	return type->n_members ? &writer->info->members.data[type->first_member] : NULL;
}

static void count_uses_of(struct ky_kdi_writer *writer, const struct ky_kdi_type *type)
{
	const struct ky_kdi_member *members = kdi_write_types_members(writer, type);

	if (kdi_write_types_has_name(type->kind))
		writer->texts.uses[text_id(writer, type->name)]++;
	if (kdi_write_types_has_target(type->kind))
		writer->types.uses[type->target]++;
	for (uint32_t i = 0; i < type->n_members; i++) {
		writer->texts.uses[text_id(writer, members[i].name)]++;
		if (type->kind != KY_KDI_ENUM)
			writer->types.uses[members[i].type]++;
	}
}

/* @is_reached: by type; others are not in the file. */
static void count_uses(struct ky_kdi_writer *writer, const bool *is_reached)
{
	const struct ky_kdi_info *info = writer->info;

	for (size_t i = 0; i < info->types.len; i++)
		if (is_reached[i])
			count_uses_of(writer, &info->types.data[i]);
	ky_vec_foreach(&info->functions, function)
		if (function->signature)
			writer->types.uses[function->signature]++;
}

/* ---- records ---------------------------------------------------------------------------- */

static void kdi_write_types_put_text(struct ky_kdi_writer *writer, struct ky_strbuf *out,
				     const char *text)
{
	put_use(out, &writer->texts, text_id(writer, text));
}

static void kdi_write_types_put_members(struct ky_kdi_writer *writer, struct ky_strbuf *out,
					const struct ky_kdi_type *type)
{
	const struct ky_kdi_member *members = kdi_write_types_members(writer, type);
	int64_t before = 0;

	for (uint32_t i = 0; i < type->n_members; i++) {
		int64_t step = members[i].at - before;
		bool is_odd = members[i].bits || step % 8;

		ky_kdi_put_signed(out, is_odd ? step * 2 + 1 : step / 8 * 2);
		if (is_odd)
			ky_kdi_put_varint(out, members[i].bits);
		kdi_write_types_put_text(writer, out, members[i].name);
		put_use(out, &writer->types, members[i].type);
		before = members[i].at;
	}
}

static void put_values(struct ky_kdi_writer *writer, struct ky_strbuf *out,
		       const struct ky_kdi_type *type)
{
	const struct ky_kdi_member *members = kdi_write_types_members(writer, type);
	uint64_t next = 0;

	for (uint32_t i = 0; i < type->n_members; i++) {
		ky_kdi_put_signed(out, (int64_t)((uint64_t)members[i].at - next));
		kdi_write_types_put_text(writer, out, members[i].name);
		next = (uint64_t)members[i].at + 1;
	}
}

static void put_arguments(struct ky_kdi_writer *writer, struct ky_strbuf *out,
			  const struct ky_kdi_type *type)
{
	const struct ky_kdi_member *members = kdi_write_types_members(writer, type);

	for (uint32_t i = 0; i < type->n_members; i++) {
		kdi_write_types_put_text(writer, out, members[i].name);
		put_use(out, &writer->types, members[i].type);
	}
}

static void kdi_write_types_put_type(struct ky_kdi_writer *writer, struct ky_strbuf *out,
				     const struct ky_kdi_type *type)
{
	ky_strbuf_addc(out, (char)type->kind);
	if (kdi_write_types_has_name(type->kind))
		kdi_write_types_put_text(writer, out, type->name);
	if (kdi_write_types_has_target(type->kind))
		put_use(out, &writer->types, type->target);
	switch (type->kind) {
	case KY_KDI_BASE:
		ky_kdi_put_varint(out, type->bytes << 3 | type->encoding);
		break;
	case KY_KDI_ARRAY:
		ky_kdi_put_varint(out, type->bytes);
		break;
	case KY_KDI_STRUCT:
	case KY_KDI_UNION:
		ky_kdi_put_varint(out, type->bytes);
		ky_kdi_put_varint(out, type->n_members);
		kdi_write_types_put_members(writer, out, type);
		break;
	case KY_KDI_ENUM:
		ky_kdi_put_varint(out, type->bytes << 1 | type->encoding);
		ky_kdi_put_varint(out, type->n_members);
		put_values(writer, out, type);
		break;
	case KY_KDI_FUNCTION:
		ky_kdi_put_varint(out, (uint64_t)type->n_members << 1 | type->encoding);
		put_arguments(writer, out, type);
		break;
	default:
		break;
	}
}

/* ---- sections --------------------------------------------------------------------------- */

/* A table, then bytes: offset of each block, and what was used once before it. */
struct blocks {
	struct ky_strbuf table, bytes;
};

static void blocks_join(struct blocks *blocks, struct ky_strbuf *out)
{
	ky_strbuf_add(out, ky_strbuf_text(&blocks->table), blocks->table.len);
	ky_strbuf_add(out, ky_strbuf_text(&blocks->bytes), blocks->bytes.len);
	out->failed |= blocks->table.failed || blocks->bytes.failed;
	ky_strbuf_fini(&blocks->table);
	ky_strbuf_fini(&blocks->bytes);
}

static void put_signatures(struct ky_kdi_writer *writer)
{
	struct blocks blocks = {KY_STRBUF_INIT, KY_STRBUF_INIT};
	size_t i = 0;

	ky_vec_foreach(&writer->info->functions, function) {
		if (i++ % KY_KDI_BLOCK == 0) {
			ky_kdi_put_u32(&blocks.table, (uint32_t)blocks.bytes.len);
			ky_kdi_put_u32(&blocks.table, writer->types.n);
		}
		put_use(&blocks.bytes, &writer->types, function->signature);
	}
	blocks_join(&blocks, &writer->sections[KY_KDI_SIGNATURES]);
}

static void put_types(struct ky_kdi_writer *writer)
{
	const struct ky_kdi_info *info = writer->info;
	struct blocks blocks = {KY_STRBUF_INIT, KY_STRBUF_INIT};

	/* Their number grows while they use further ones. */
	for (uint32_t i = 0; i < writer->types.n; i++) {
		if (i % KY_KDI_BLOCK == 0) {
			ky_kdi_put_u32(&blocks.table, (uint32_t)blocks.bytes.len);
			ky_kdi_put_u32(&blocks.table, writer->types.n);
			ky_kdi_put_u32(&blocks.table, writer->texts.n);
		}
		kdi_write_types_put_type(writer, &blocks.bytes,
					 &info->types.data[writer->types.order[i]]);
	}
	blocks_join(&blocks, &writer->sections[KY_KDI_TYPES]);
}

static void put_strings(struct ky_kdi_writer *writer)
{
	struct blocks blocks = {KY_STRBUF_INIT, KY_STRBUF_INIT};

	for (uint32_t i = 0; i < writer->texts.n; i++) {
		const char *text = writer->all_strings.data[writer->texts.order[i]];

		if (i % KY_KDI_BLOCK == 0)
			ky_kdi_put_u32(&blocks.table, (uint32_t)blocks.bytes.len);
		ky_strbuf_add(&blocks.bytes, text, strlen(text) + 1);
	}
	blocks_join(&blocks, &writer->sections[KY_KDI_STRINGS]);
}

static bool is_found_by_name(const struct ky_kdi_type *type)
{
	return kdi_write_types_has_name(type->kind) && *type->name;
}

static int put_type_names(struct ky_kdi_writer *writer)
{
	const struct ky_kdi_info *info = writer->info;
	uint32_t total = writer->types.n, n = 0;
	uint32_t *hashes = calloc((size_t)total * 2 + 1, sizeof(*hashes)), *blocks = hashes + total;
	int ret;

	if (!hashes)
		return KYMO_E_MEMORY;
	for (uint32_t i = 0; i < total; i++) {
		const struct ky_kdi_type *type = &info->types.data[writer->types.order[i]];

		if (!is_found_by_name(type))
			continue;
		hashes[n] = ky_kdi_hash(type->name);
		blocks[n++] = i / KY_KDI_BLOCK;
	}
	ky_kdi_put_u32(&writer->sections[KY_KDI_TYPE_NAMES], n);
	ret = ky_kdi_put_by_name(&writer->sections[KY_KDI_TYPE_NAMES], hashes, blocks, n,
				 (total + KY_KDI_BLOCK - 1) / KY_KDI_BLOCK);
	free(hashes);
	return ret;
}

/* ---- what functions lead to ------------------------------------------------------------- */

KY_VEC_TYPE(list, uint32_t);

static int reach(bool *is_reached, struct list *list, uint32_t type)
{
	if (is_reached[type])
		return KYMO_OK;
	is_reached[type] = true;
	return ky_vec_push(list, type);
}

static int reach_below(const struct ky_kdi_writer *writer, bool *is_reached, struct list *list)
{
	const struct ky_kdi_info *info = writer->info;
	int ret = KYMO_OK;

	while (!ret && list->len) {
		const struct ky_kdi_type *type = &info->types.data[list->data[--list->len]];

		if (kdi_write_types_has_target(type->kind))
			ret = reach(is_reached, list, type->target);
		for (uint32_t i = 0; !ret && type->kind != KY_KDI_ENUM && i < type->n_members; i++)
			ret = reach(is_reached, list,
				    info->members.data[type->first_member + i].type);
	}
	return ret;
}

static int reach_from_functions(const struct ky_kdi_writer *writer, bool *is_reached)
{
	struct list list = KY_VEC_INIT;
	int ret = KYMO_OK;

	ky_vec_foreach(&writer->info->functions, function)
		if (!ret && function->signature)
			ret = reach(is_reached, &list, function->signature);
	if (!ret)
		ret = reach_below(writer, is_reached, &list);
	ky_vec_fini(&list);
	return ret;
}

/* Types that nothing else leads to, but each other in a circle, get numbers as if they were used more often. */
static int free_circles(struct ky_kdi_writer *writer)
{
	size_t n = writer->info->types.len;
	bool *is_reached = calloc(n + 1, 1);
	struct list list = KY_VEC_INIT;
	int ret = is_reached ? reach_from_functions(writer, is_reached) : KYMO_E_MEMORY;

	for (uint32_t i = 1; !ret && i < n; i++)
		if (writer->types.uses[i] != 1)
			ret = reach(is_reached, &list, i);
	if (!ret)
		ret = reach_below(writer, is_reached, &list);
	for (uint32_t i = 1; !ret && i < n; i++) {
		if (is_reached[i])
			continue;
		writer->types.uses[i] = 2;
		ret = reach(is_reached, &list, i);
		if (!ret)
			ret = reach_below(writer, is_reached, &list);
	}
	ky_vec_fini(&list);
	free(is_reached);
	return ret;
}

/* Numbers types and texts. */
static int kdi_write_types_number_all(struct ky_kdi_writer *writer)
{
	size_t n = writer->info->types.len;
	bool is_part = writer->info->is_signatures_only;
	bool *is_reached = calloc(n + 1, 1);
	int ret = is_reached ? KYMO_OK : KYMO_E_MEMORY;

	if (!ret && is_part)
		ret = reach_from_functions(writer, is_reached);
	else if (!ret)
		memset(is_reached, 1, n);
	if (!ret)
		count_uses(writer, is_reached);
	free(is_reached);
	if (!ret && !is_part)
		ret = free_circles(writer);
	if (!ret)
		ret = number_shared(&writer->types, (uint32_t)n, !is_part);
	return ret ? ret : number_shared(&writer->texts, (uint32_t)writer->all_strings.len, false);
}

int ky_kdi_write_types(struct ky_kdi_writer *writer)
{
	size_t n = writer->info->types.len;
	int ret = collect_texts(writer);

	if (n <= 1)
		return ret;
	if (!ret)
		ret = ranks_init(&writer->types, n);
	if (!ret)
		ret = kdi_write_types_number_all(writer);
	if (ret)
		return ret;
	put_signatures(writer);
	put_types(writer);
	put_strings(writer);
	return put_type_names(writer);
}
