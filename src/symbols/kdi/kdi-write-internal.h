/* SPDX-License-Identifier: MIT */
/* The parts of the writer: kdi-write.c has functions, kdi-write-types.c types and signatures. */
#ifndef KY_SYMBOLS_KDI_WRITE_INTERNAL_H
#define KY_SYMBOLS_KDI_WRITE_INTERNAL_H

#include "symbols/kdi/kdi-format.h"
#include "symbols/kdi/kdi-write.h"

/* Numbers of types or texts in the file: what is used several times by frequency, the rest in the order of its use. */
struct ky_kdi_ranks {
	uint32_t *number; /* by number in the debug information; UINT32_MAX: none yet */
	uint32_t *uses;
	uint32_t *order; /* what has each number */
	uint32_t n;	 /* in the file */
	uint32_t shared; /* numbers below are used several times */
};

struct ky_kdi_writer {
	struct ky_kdi_info *info;
	struct ky_strbuf sections[KY_KDI_SECTIONS]; /* by enum ky_kdi_section */
	/* Types: */
	struct ky_kdi_ranks types, texts;
	struct ky_map string_ids; /* text -> number in the debug information + 1 */
	KY_VEC(const char *) all_strings;
};

void ky_kdi_put_varint(struct ky_strbuf *out, uint64_t value);
void ky_kdi_put_signed(struct ky_strbuf *out, int64_t value);
void ky_kdi_put_u32(struct ky_strbuf *out, uint32_t value);
void ky_kdi_put_u64(struct ky_strbuf *out, uint64_t value);
/* Appends the table that finds @blocks of @n names (kdi-format.h) by @hashes. 0 or KYMO_E_MEMORY. */
int ky_kdi_put_by_name(struct ky_strbuf *out, const uint32_t *hashes, const uint32_t *blocks,
		       uint32_t n, uint32_t n_blocks);
/* kdi-write-types.c: fills the sections of types. 0 or KYMO_E_MEMORY. */
int ky_kdi_write_types(struct ky_kdi_writer *writer);

#endif
