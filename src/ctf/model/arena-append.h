/* SPDX-License-Identifier: MIT */
/* Growing the arrays of a trace model, which lie in its arena. */
#ifndef KY_CTF_MODEL_ARENA_APPEND_H
#define KY_CTF_MODEL_ARENA_APPEND_H

#include <string.h>

#include "ctf/model/model.h"

/*
 * Append @item of @size bytes to the array *items of *n items. The capacity follows from *n
 * (4, 8, 16 ...), so the array must have been built by this function alone.
 * 0 or KYMO_E_MEMORY.
 */
static inline int ky_arena_append(struct ky_arena *arena, void **items, size_t *n, const void *item,
				  size_t size)
{
	if (*n == 0 || (*n >= 4 && !(*n & (*n - 1)))) {
		void *grown = ky_arena_array(arena, *n ? *n * 2 : 4, size);

		if (!grown)
			return KYMO_E_MEMORY;
		if (*n)
			memcpy(grown, *items, *n * size);
		*items = grown;
	}
	memcpy((char *)*items + *n * size, item, size);
	(*n)++;
	return KYMO_OK;
}

/* Copy @name; *display is what people see of it: one leading '_' removed. 0 or KYMO_E_MEMORY. */
static inline int ky_name_copy(struct ky_trace_class *trace, const char *name, const char **copy,
			       const char **display)
{
	*copy = ky_arena_strdup(&trace->arena, name);
	if (!*copy)
		return KYMO_E_MEMORY;
	*display = **copy == '_' ? *copy + 1 : *copy;
	return KYMO_OK;
}

#endif
