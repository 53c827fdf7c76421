/* SPDX-License-Identifier: MIT */
/*
 * Debug information in memory, from which kdi-write.h makes a file: functions, lines, inlined functions, types.
 *
 * Threads: one at a time per struct ky_kdi_info.
 */
#ifndef KY_SYMBOLS_KDI_INFO_H
#define KY_SYMBOLS_KDI_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "os/elf-file.h"

#define KY_KDI_TYPES_MAX   (4u << 20)
#define KY_KDI_MEMBERS_MAX (16u << 20)

enum ky_kdi_kind {
	KY_KDI_VOID, /* number 0 only */
	KY_KDI_BASE,
	KY_KDI_POINTER,
	KY_KDI_CONST,
	KY_KDI_VOLATILE,
	KY_KDI_RESTRICT,
	KY_KDI_TYPEDEF,
	KY_KDI_ARRAY,
	KY_KDI_STRUCT,
	KY_KDI_UNION,
	KY_KDI_ENUM,
	KY_KDI_FUNCTION, /* a signature */
	KY_KDI_FORWARD,	 /* a struct of which only the name is known */
	KY_KDI_KINDS,
};

enum ky_kdi_encoding {
	KY_KDI_UNSIGNED,
	KY_KDI_SIGNED,
	KY_KDI_BOOL,
	KY_KDI_CHAR,
	KY_KDI_FLOAT,
};

/* A member, an argument, or a value of an enumeration. */
struct ky_kdi_member {
	const char *name; /* "" where it has none */
	uint32_t type;
	uint32_t bits; /* of a bit field; 0: an ordinary member */
	int64_t at;    /* a member's offset in bits; an enumeration's value */
};

struct ky_kdi_type {
	uint8_t kind;
	uint8_t encoding; /* of BASE; ENUM: 1 where values are signed; FUNCTION: 1 where more arguments may follow */
	const char *name;
	uint32_t target; /* what is pointed to, repeated, named, returned */
	uint64_t bytes;	 /* ARRAY: elements */
	uint32_t first_member, n_members;
};

struct ky_kdi_line {
	uint64_t address;
	uint32_t file, line;
};

struct ky_kdi_inlined {
	uint64_t begin, end;
	const char *name;
	uint32_t depth;	     /* 1: directly in the function */
	uint32_t file, line; /* of the call */
};

struct ky_kdi_function {
	uint64_t address, bytes;
	const char *name;
	uint32_t signature; /* a type; 0: not known */
	uint32_t first_line, n_lines, first_inlined, n_inlined;
};

struct ky_kdi_segment {
	uint64_t offset, address, bytes;
};

struct ky_kdi_info {
	uint8_t build_id[KY_ELF_BUILD_ID_MAX];
	uint32_t build_id_bytes;
	bool is_kernel;		 /* addresses count from _text, or from the module's begin */
	bool is_signatures_only; /* of types only what functions take and return, without members */
	KY_VEC(struct ky_kdi_segment) segments;
	KY_VEC(struct ky_kdi_function) functions; /* by address */
	KY_VEC(struct ky_kdi_line) lines;
	KY_VEC(struct ky_kdi_inlined) inlined;
	KY_VEC(const char *) files;
	KY_VEC(struct ky_kdi_type) types; /* 0 is void */
	KY_VEC(struct ky_kdi_member) members;
	struct ky_names names;	    /* texts, once each -> 1 */
	struct ky_names file_names; /* -> number + 1 */
	struct ky_arena arena;
};

/* 0 or KYMO_E_MEMORY. */
int ky_kdi_info_init(struct ky_kdi_info *info);
void ky_kdi_info_fini(struct ky_kdi_info *info);
/* The copy of a text in @info; NULL: memory is out. */
const char *ky_kdi_info_text(struct ky_kdi_info *info, const char *text);
/* The number of a source file. UINT32_MAX: memory is out. */
uint32_t ky_kdi_info_file(struct ky_kdi_info *info, const char *path);
/* Adds a type, with no members yet. Its number; 0: memory is out, or there are too many. */
uint32_t ky_kdi_info_type(struct ky_kdi_info *info, const struct ky_kdi_type *type);
/* Appends a member to the list of all; those of one type stand together. 0, KYMO_E_LIMIT or KYMO_E_MEMORY. */
int ky_kdi_info_member(struct ky_kdi_info *info, const struct ky_kdi_member *member);

#endif
