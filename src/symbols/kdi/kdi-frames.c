/* SPDX-License-Identifier: MIT */
/* Lines and inlined functions (kdi.h). */
#include "symbols/kdi/kdi-internal.h"

/* ---- lines ------------------------------------------------------------------------------ */

static const char *file_name(const struct ky_kdi *kdi, uint64_t number)
{
	uint64_t n = ky_kdi_u32(kdi, KY_KDI_FILES, 0);
	struct ky_kdi_cursor cursor;
	const char *name;

	if (number >= n)
		return NULL;
	cursor = ky_kdi_at(kdi, KY_KDI_FILES,
			   4 + n * 4 + ky_kdi_u32(kdi, KY_KDI_FILES, 4 + number * 4));
	name = ky_kdi_text(&cursor);
	return cursor.failed ? NULL : name;
}

/* Reads the lines of a function; sets the one at @address. */
static void take_lines(const struct ky_kdi *kdi, struct ky_kdi_cursor *cursor, uint64_t begin,
		       uint64_t address, struct ky_kdi_frame *frame)
{
	uint64_t n = ky_kdi_varint(cursor), file = 0;
	int64_t line = 0;
	bool is_found = false;

	for (uint64_t i = 0; i < n && !cursor->failed; i++) {
		uint64_t step = ky_kdi_varint(cursor);

		begin += step >> 1;
		is_found |= begin <= address && frame;
		if (frame && begin > address)
			break;
		file = step & 1 ? ky_kdi_varint(cursor) : file;
		line = (int64_t)((uint64_t)line + (uint64_t)ky_kdi_signed(cursor));
	}
	if (is_found && !cursor->failed) {
		frame->file = file_name(kdi, file);
		frame->line = (uint32_t)line;
	}
}

struct inlined {
	uint64_t depth, begin, bytes, file, line;
	const char *name;
};

static void read_inlined(struct ky_kdi_cursor *cursor, uint64_t function, struct inlined *inlined)
{
	inlined->depth = ky_kdi_varint(cursor);
	inlined->begin = function + (uint64_t)ky_kdi_signed(cursor);
	inlined->bytes = ky_kdi_varint(cursor);
	inlined->file = ky_kdi_varint(cursor);
	inlined->line = ky_kdi_varint(cursor);
	inlined->name = ky_kdi_text(cursor);
}

/* The inlined functions of a function with @address, by depth. Returns their number. */
static size_t take_inlined(struct ky_kdi_cursor *cursor, uint64_t function, uint64_t address,
			   struct inlined *found, size_t max)
{
	uint64_t n = ky_kdi_varint(cursor);
	size_t depth = 0;

	for (uint64_t i = 0; i < n && !cursor->failed; i++) {
		struct inlined inlined;

		read_inlined(cursor, function, &inlined);
		if (found && inlined.depth == depth + 1 && depth < max &&
		    address - inlined.begin < inlined.bytes)
			found[depth++] = inlined;
	}
	return cursor->failed ? 0 : depth;
}

size_t ky_kdi_frames(const struct ky_kdi *kdi, const struct ky_kdi_found *found, uint64_t address,
		     struct ky_kdi_frame *frames, size_t max)
{
	const uint8_t *entry = ky_kdi_block_at(kdi, found->number / KY_KDI_BLOCK);
	struct ky_kdi_cursor lines = ky_kdi_at(kdi, KY_KDI_LINES, ky_load32(entry + 16, false));
	struct ky_kdi_cursor inlined = ky_kdi_at(kdi, KY_KDI_INLINED, ky_load32(entry + 20, false));
	struct inlined chain[64];
	struct ky_kdi_frame innermost = {0};
	size_t n;

	if (!max || !kdi->parts[KY_KDI_LINES].bytes)
		return 0;
	for (uint32_t i = 0; i < found->number % KY_KDI_BLOCK; i++) {
		take_lines(kdi, &lines, 0, 0, NULL);
		take_inlined(&inlined, 0, 0, NULL, 0);
	}
	take_lines(kdi, &lines, found->address, address, &innermost);
	n = kdi->parts[KY_KDI_INLINED].bytes ? take_inlined(&inlined, found->address, address,
							    chain, max - 1 < 64 ? max - 1 : 64)
					     : 0;
	for (size_t i = 0; i <= n; i++) {
		frames[i] = innermost;
		frames[i].name = i < n ? chain[n - 1 - i].name : NULL;
		if (i == n)
			break;
		innermost.file = file_name(kdi, chain[n - 1 - i].file);
		innermost.line = (uint32_t)chain[n - 1 - i].line;
	}
	return n + 1;
}
