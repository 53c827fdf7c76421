/* SPDX-License-Identifier: MIT */
/*
 * An arena: many small allocations, which the caller frees all at once.
 *
 * An allocation lives until ky_arena_fini(), and its address never changes. Memory is zeroed and
 * aligned to 16 bytes. Threads: one at a time per arena.
 */
#ifndef KY_BASE_ARENA_H
#define KY_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct ky_arena_block;

struct ky_arena {
	struct ky_arena_block *blocks;
	size_t used;
	size_t size;
	size_t total; /* number of allocated bytes so far */
};

void ky_arena_init(struct ky_arena *arena);
void ky_arena_fini(struct ky_arena *arena);

/* Returns @size zeroed bytes, or NULL when memory is out. */
void *ky_arena_alloc(struct ky_arena *arena, size_t size);
/* An array of @count elements of @size bytes; NULL on overflow too. */
void *ky_arena_array(struct ky_arena *arena, size_t count, size_t size);
void *ky_arena_memdup(struct ky_arena *arena, const void *data, size_t size);
char *ky_arena_strdup(struct ky_arena *arena, const char *text);
char *ky_arena_strndup(struct ky_arena *arena, const char *text, size_t len);
char *ky_arena_printf(struct ky_arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define ky_arena_new(arena, type) ((type *)ky_arena_alloc((arena), sizeof(type)))

#endif
