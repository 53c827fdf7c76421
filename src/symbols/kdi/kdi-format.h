/* SPDX-License-Identifier: MIT */
/*
 * The format of Kymo's debug information, FILE.kdi: what its writer and its reader share. docs/debug-info.md describes it.
 *
 * All numbers are little-endian. A varint has 7 bits in each byte, the lowest first; the highest bit of a byte says that
 * another byte follows. A signed varint is zigzag: 0, -1, 1, -2, ...
 */
#ifndef KY_SYMBOLS_KDI_FORMAT_H
#define KY_SYMBOLS_KDI_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"

#define KY_KDI_MAGIC	 "KYMOKDI\n"
#define KY_KDI_VERSION	 1
#define KY_KDI_BLOCK	 64	    /* functions, strings or types of a block */
#define KY_KDI_SECTIONS	 32	    /* the most that a file has */
#define KY_KDI_BYTES_MAX (1u << 31) /* longer files are rejected */

enum ky_kdi_section {
	KY_KDI_IDENTITY = 1,  /* the build ID */
	KY_KDI_SEGMENTS = 2,  /* where the file's parts are in memory: 3 u64 for each */
	KY_KDI_INDEX = 3,     /* of blocks of functions: struct ky_kdi_block */
	KY_KDI_FUNCTIONS = 4, /* sizes, gaps */
	KY_KDI_NAMES = 5,
	KY_KDI_LINES = 6,
	KY_KDI_INLINED = 7,
	KY_KDI_FILES = 8,
	KY_KDI_BY_NAME = 9,
	KY_KDI_STRINGS = 10,
	KY_KDI_TYPES = 11,
	KY_KDI_SIGNATURES = 12,
	KY_KDI_TYPE_NAMES = 13,
};

/* Offset 0: 8 bytes of magic, u32 version, u32 sections, u64 bytes of the file, u32 functions, u32 types, u32 strings, u32 0 */
#define KY_KDI_HEADER_BYTES  40
#define KY_KDI_SECTION_BYTES 24 /* u32 id, u32 0, u64 offset, u64 bytes */
#define KY_KDI_BLOCK_BYTES   24 /* u64 address, u32 offsets in functions, names, lines, inlined */

/* Reads within [at, end); beyond, everything is 0 and the cursor has failed. */
struct ky_kdi_cursor {
	const uint8_t *at, *end;
	bool failed;
};

static inline uint64_t ky_kdi_varint(struct ky_kdi_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
		uint8_t byte = *cursor->at++;

		value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
	cursor->failed = true;
	cursor->at = cursor->end;
	return 0;
}

static inline int64_t ky_kdi_signed(struct ky_kdi_cursor *cursor)
{
	uint64_t value = ky_kdi_varint(cursor);

	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* A text with its NUL. "" beyond the end. */
static inline const char *ky_kdi_text(struct ky_kdi_cursor *cursor)
{
	const uint8_t *from = cursor->at;
	const uint8_t *nul =
		from < cursor->end ? (const uint8_t *)memchr(from, 0, (size_t)(cursor->end - from))
				   : NULL;

	if (!nul) {
		cursor->failed = true;
		cursor->at = cursor->end;
		return "";
	}
	cursor->at = nul + 1;
	return (const char *)from;
}

/*
 * By name: the blocks of the names, sorted by hash. Buckets, a power of two, have about two names each; the file has the number
 * of names of each bucket, and the sum of all before each 64th. Blocks form at most 64 groups, whose number is a byte.
 */
static inline uint32_t ky_kdi_hash(const char *name)
{
	return (uint32_t)ky_hash_bytes(name, strlen(name));
}

static inline uint32_t ky_kdi_buckets(uint32_t n_names)
{
	uint32_t n = 1;

	while (n < n_names / 2 && n < 1u << 30)
		n *= 2;
	return n;
}

/* The number of blocks in a group. */
static inline uint32_t ky_kdi_group(uint32_t n_blocks)
{
	return n_blocks / 64 + 1;
}

#endif
