/* SPDX-License-Identifier: MIT */
/* The parts of the reader: kdi.c has functions, kdi-types.c types. */
#ifndef KY_SYMBOLS_KDI_INTERNAL_H
#define KY_SYMBOLS_KDI_INTERNAL_H

#include "symbols/kdi/kdi.h"

struct ky_kdi_part {
	const uint8_t *data;
	size_t bytes;
};

struct ky_kdi {
	struct ky_kdi_part whole;
	bool is_mapped;
	uint32_t n_functions, n_types, n_strings, n_blocks;
	struct ky_kdi_part parts[KY_KDI_SECTIONS]; /* by enum ky_kdi_section */
};

/* A cursor at byte @at of a section. */
static inline struct ky_kdi_cursor ky_kdi_at(const struct ky_kdi *kdi, enum ky_kdi_section section,
					     uint64_t at)
{
	const struct ky_kdi_part *part = &kdi->parts[section];
	struct ky_kdi_cursor cursor = {part->data, part->data ? part->data + part->bytes : NULL,
				       false};

	if (at > part->bytes) {
		cursor.at = cursor.end;
		cursor.failed = true;
	} else if (part->data) {
		cursor.at += at;
	}
	return cursor;
}

/* Word @i of the section; 0 beyond its end. */
static inline uint32_t ky_kdi_u32(const struct ky_kdi *kdi, enum ky_kdi_section section,
				  uint64_t at_bytes)
{
	const struct ky_kdi_part *part = &kdi->parts[section];

	return part->bytes >= 4 && at_bytes <= part->bytes - 4
		       ? ky_load32(part->data + at_bytes, false)
		       : 0;
}

/* Its entry in the index. */
static inline const uint8_t *ky_kdi_block_at(const struct ky_kdi *kdi, uint32_t block)
{
	return kdi->parts[KY_KDI_INDEX].data + (size_t)block * KY_KDI_BLOCK_BYTES;
}

/* The groups of blocks where @name may be, in the table by name at byte @at of @section; sets *n. */
const uint8_t *ky_kdi_groups(const struct ky_kdi *kdi, enum ky_kdi_section section, size_t at,
			     uint32_t n_names, const char *name, uint32_t *n);

#endif
