/* SPDX-License-Identifier: MIT */
/* Functions by address and by name (kdi.h). */
#include "symbols/kdi/kdi.h"

#include <string.h>

#include "symbols/kdi/kdi-internal.h"

/* ---- functions -------------------------------------------------------------------------- */

static uint32_t block_functions(const struct ky_kdi *kdi, uint32_t block)
{
	uint32_t rest = kdi->n_functions - block * KY_KDI_BLOCK;

	return rest < KY_KDI_BLOCK ? rest : KY_KDI_BLOCK;
}

/* The functions of a block. */
struct block {
	uint32_t n;
	uint64_t address[KY_KDI_BLOCK], bytes[KY_KDI_BLOCK];
};

static bool read_block(const struct ky_kdi *kdi, uint32_t number, struct block *block)
{
	const uint8_t *entry = ky_kdi_block_at(kdi, number);
	struct ky_kdi_cursor cursor = ky_kdi_at(kdi, KY_KDI_FUNCTIONS, ky_load32(entry + 8, false));

	block->n = block_functions(kdi, number);
	for (uint32_t i = 0; i < block->n; i++)
		block->bytes[i] = ky_kdi_varint(&cursor);
	block->address[0] = ky_load64(entry, false);
	for (uint32_t i = 1; i < block->n; i++)
		block->address[i] =
			((block->address[i - 1] + block->bytes[i - 1] + 15) & ~(uint64_t)15) +
			(uint64_t)ky_kdi_signed(&cursor);
	return !cursor.failed;
}

/* The names of a block: each one shares its first bytes with the one before. */
struct names {
	struct ky_kdi_cursor cursor;
	const uint8_t *same;
};

static struct names names_at(const struct ky_kdi *kdi, uint32_t block, char *name)
{
	struct names names = {
		.cursor = ky_kdi_at(kdi, KY_KDI_NAMES,
				    ky_load32(ky_kdi_block_at(kdi, block) + 12, false)),
	};
	uint32_t n = block_functions(kdi, block);

	name[0] = '\0';
	names.same = names.cursor.at;
	if ((size_t)(names.cursor.end - names.cursor.at) < n)
		names.same = NULL;
	else if (n)
		names.cursor.at += n;
	return names;
}

static void kdi_next_name(struct names *names, char name[KY_KDI_NAME_BYTES])
{
	const char *rest = names->same ? ky_kdi_text(&names->cursor) : "";
	size_t len = strlen(name), keep, more;

	keep = names->same && *names->same < len ? *names->same : len;
	more = strnlen(rest, KY_KDI_NAME_BYTES - 1 - keep);
	memcpy(name + keep, rest, more);
	name[keep + more] = '\0';
	if (names->same)
		names->same++;
}

static void kdi_read_name(const struct ky_kdi *kdi, uint32_t block, uint32_t i,
			  char name[KY_KDI_NAME_BYTES])
{
	struct names names = names_at(kdi, block, name);

	for (uint32_t k = 0; k <= i; k++)
		kdi_next_name(&names, name);
}

static void set_found(const struct ky_kdi *kdi, uint32_t number, const struct block *block,
		      uint32_t i, struct ky_kdi_found *found)
{
	found->number = number * KY_KDI_BLOCK + i;
	found->address = block->address[i];
	found->bytes = block->bytes[i];
	kdi_read_name(kdi, number, i, found->name);
}

bool ky_kdi_function(const struct ky_kdi *kdi, uint32_t number, struct ky_kdi_found *found)
{
	struct block block;

	if (number >= kdi->n_functions || !read_block(kdi, number / KY_KDI_BLOCK, &block))
		return false;
	set_found(kdi, number / KY_KDI_BLOCK, &block, number % KY_KDI_BLOCK, found);
	return true;
}

/* The last function of a block that begins at or before @address; UINT32_MAX: none. */
static uint32_t last_before(const struct block *block, uint64_t address)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < block->n && block->address[i] <= address; i++)
		found = i;
	return found;
}

bool ky_kdi_find(const struct ky_kdi *kdi, uint64_t address, struct ky_kdi_found *found)
{
	uint32_t low = 0, high = kdi->n_blocks, i;
	struct block block;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ky_load64(ky_kdi_block_at(kdi, middle), false) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !read_block(kdi, low - 1, &block))
		return false;
	i = last_before(&block, address);
	/* A function may lie inside of another one. */
	for (int tries = 0; i != UINT32_MAX && tries < 8; tries++, i--) {
		if (!block.bytes[i] || address - block.address[i] < block.bytes[i]) {
			set_found(kdi, low - 1, &block, i, found);
			return true;
		}
		if (!i)
			break;
	}
	return false;
}

/* ---- by name ---------------------------------------------------------------------------- */

const uint8_t *ky_kdi_groups(const struct ky_kdi *kdi, enum ky_kdi_section section, size_t at,
			     uint32_t n_names, const char *name, uint32_t *n)
{
	const struct ky_kdi_part *part = &kdi->parts[section];
	uint32_t buckets = ky_kdi_buckets(n_names);
	uint32_t bucket = (uint32_t)((uint64_t)ky_kdi_hash(name) * buckets >> 32);
	size_t words = ((size_t)buckets + 63) / 64 * 4, before;
	const uint8_t *counts;

	*n = 0;
	if (at > part->bytes || part->bytes - at < words + buckets)
		return NULL;
	/* The table's words stand between the counts: one for each 64 buckets, at the begin. */
	counts = part->data + at + words;
	before = ky_kdi_u32(kdi, section, at + bucket / 64 * 4);
	for (uint32_t i = bucket / 64 * 64; i < bucket; i++)
		before += counts[i];
	if (part->bytes - at - words - buckets < before + counts[bucket])
		return NULL;
	*n = counts[bucket];
	return counts + buckets + before;
}

/* Function @name in a block, after @skip others, which are counted down. */
static bool find_in_block(const struct ky_kdi *kdi, uint32_t number, const char *name,
			  uint32_t *skip, struct ky_kdi_found *found)
{
	struct names names = names_at(kdi, number, found->name);
	struct block block;
	bool is_read = false;

	for (uint32_t i = 0; i < block_functions(kdi, number); i++) {
		kdi_next_name(&names, found->name);
		if (strcmp(found->name, name) != 0 || (*skip && (*skip)--))
			continue;
		if (!is_read && !read_block(kdi, number, &block))
			return false;
		is_read = true;
		set_found(kdi, number, &block, i, found);
		return true;
	}
	return false;
}

bool ky_kdi_find_name(const struct ky_kdi *kdi, const char *name, uint32_t skip,
		      struct ky_kdi_found *found)
{
	uint32_t n, group = ky_kdi_group(kdi->n_blocks);
	const uint8_t *groups = ky_kdi_groups(kdi, KY_KDI_BY_NAME, 0, kdi->n_functions, name, &n);

	for (uint32_t i = 0; i < n; i++) {
		bool is_again = false;

		for (uint32_t k = 0; k < i; k++)
			is_again |= groups[k] == groups[i];
		for (uint32_t block = groups[i] * group;
		     !is_again && block < (groups[i] + 1u) * group && block < kdi->n_blocks;
		     block++)
			if (find_in_block(kdi, block, name, &skip, found))
				return true;
	}
	return false;
}
