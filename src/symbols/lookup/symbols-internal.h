/* SPDX-License-Identifier: MIT */
/* The parts of struct ky_symbols, which the files of this folder share. */
#ifndef KY_SYMBOLS_SYMBOLS_INTERNAL_H
#define KY_SYMBOLS_SYMBOLS_INTERNAL_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "symbols/lookup/address-space.h"
#include "symbols/tables/jit-table.h"
#include "symbols/tables/kernel-lookup.h"
#include "symbols/tables/kernel-table.h"
#include "symbols/object/object.h"
#include "symbols/lookup/symbols.h"

#define KY_SYMBOLS_NO_USER UINT32_MAX

struct ky_symbols_process {
	int64_t pid;
	struct ky_address_space space;
	struct ky_jit_table jit;
	struct ky_jit_table told; /* what the trace tells */
	bool is_known;		  /* something was mapped, or /proc has been asked */
	bool has_jit;		  /* the files of compilers have been asked */
	uint32_t user;		  /* KY_SYMBOLS_NO_USER: not known */
};

/* The frames of an address. */
struct ky_symbols_entry {
	uint64_t address;
	uint32_t object;
	uint32_t n;
	struct ky_symbols_frame frames[];
};

struct ky_symbols {
	struct ky_symbols_options options;
	struct ky_object_search search;
	KY_VEC(struct ky_object *) objects;
	struct ky_names by_name; /* of build ID, else path -> its number + 1; keys in the arena */
	struct ky_arena keys;
	struct ky_map processes;
	struct ky_map jit_bytes; /* of a user's processes, or of stored files: symbols-running.c */
	struct ky_kernel_table kernel;
	bool is_kernel_read;
	struct ky_kernel_lookup *lookup; /* instead of the table; NULL: none */
	bool is_lookup_tried;
	struct ky_map cache;
	struct ky_arena cached;
	uint64_t uses; /* counts what is looked up, for ky_object.used */
	struct ky_symbols_frame frames[KY_SYMBOLS_FRAMES_MAX]; /* of the last answer */
};

/* NULL: memory is out. */
struct ky_symbols_process *ky_symbols_process(struct ky_symbols *symbols, int64_t pid);
/* symbols-running.c: what /proc says. 0 or KYMO_E_MEMORY, KYMO_E_NOT_FOUND. */
int ky_symbols_read_maps(struct ky_symbols *symbols, struct ky_symbols_process *process,
			 uint64_t time_ns);
/* Reads the files of compilers at run time, once. */
void ky_symbols_read_jit(struct ky_symbols *symbols, struct ky_symbols_process *process);

#endif
