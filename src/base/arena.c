/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN	 16
#define ARENA_BLOCK_SIZE ((size_t)64 * 1024)

struct ky_arena_block {
	struct ky_arena_block *next;
	char pad[ARENA_ALIGN - sizeof(void *)];
	unsigned char data[];
};

void ky_arena_init(struct ky_arena *arena)
{
	memset(arena, 0, sizeof(*arena));
}

void ky_arena_fini(struct ky_arena *arena)
{
	struct ky_arena_block *block = arena->blocks;

	while (block) {
		struct ky_arena_block *next = block->next;

		free(block);
		block = next;
	}
	memset(arena, 0, sizeof(*arena));
}

void *ky_arena_alloc(struct ky_arena *arena, size_t size)
{
	struct ky_arena_block *block;
	size_t block_size;
	void *result;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (!arena->blocks || size > arena->size - arena->used) {
		/* A large request gets a block of its own size; small ones share. */
		block_size = size > ARENA_BLOCK_SIZE ? size : ARENA_BLOCK_SIZE;
		block = calloc(1, sizeof(*block) + block_size);
		if (!block)
			return NULL;
		block->next = arena->blocks;
		arena->blocks = block;
		arena->size = block_size;
		arena->used = 0;
	}
	result = arena->blocks->data + arena->used;
	arena->used += size;
	arena->total += size;
	return result;
}

void *ky_arena_array(struct ky_arena *arena, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / 2 / size)
		return NULL;
	return ky_arena_alloc(arena, count * size);
}

void *ky_arena_memdup(struct ky_arena *arena, const void *data, size_t size)
{
	void *copy = ky_arena_alloc(arena, size);

	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}

char *ky_arena_strndup(struct ky_arena *arena, const char *text, size_t len)
{
	char *copy = ky_arena_alloc(arena, len + 1);

	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

char *ky_arena_strdup(struct ky_arena *arena, const char *text)
{
	return ky_arena_strndup(arena, text, strlen(text));
}

char *ky_arena_printf(struct ky_arena *arena, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		return NULL;
	text = ky_arena_alloc(arena, (size_t)len + 1);
	if (!text)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(text, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return text;
}
