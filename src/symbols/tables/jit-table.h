/* SPDX-License-Identifier: MIT */
/*
 * Functions that a process has compiled at run time, from the files that compilers write for perf: /tmp/perf-PID.map ("START SIZE
 * name" in each line) and jitdump (jit-PID.dump).
 *
 * Memory is used again for other functions: a later one covers earlier ones.
 * Threads: one at a time per struct.
 */
#ifndef KY_SYMBOLS_JIT_TABLE_H
#define KY_SYMBOLS_JIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"

#define KY_JIT_FILE_MAX_BYTES (256u << 20)

struct ky_jit_function {
	uint64_t begin, bytes;
	uint64_t time_ns; /* since when; 0: since ever */
	uint32_t order;
	const char *name;
};

struct ky_jit_table {
	KY_VEC(struct ky_jit_function) functions;
	struct ky_arena names;
	bool is_sorted;
};

void ky_jit_table_init(struct ky_jit_table *table);
void ky_jit_table_fini(struct ky_jit_table *table);
/* Copies @name. 0, KYMO_E_LIMIT or KYMO_E_MEMORY. */
int ky_jit_table_add(struct ky_jit_table *table, const struct ky_jit_function *function,
		     const char *name, size_t len);
/* Adds the functions of a map file's text, or of a jitdump's bytes, whose times are @offset_ns before the table's. Skips what is malformed. */
void ky_jit_table_read_map(struct ky_jit_table *table, const char *text, size_t len);
void ky_jit_table_read_dump(struct ky_jit_table *table, const char *data, size_t len,
			    uint64_t offset_ns);
/* The function that was at @address at @time_ns, or NULL. */
const struct ky_jit_function *ky_jit_table_find(struct ky_jit_table *table, uint64_t address,
						uint64_t time_ns);

#endif
