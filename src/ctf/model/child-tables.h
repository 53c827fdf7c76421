/* SPDX-License-Identifier: MIT */
/*
 * Finding children of field classes, by their names, and the way to a field class: for readers and writers of
 * metadata, who ask for each field, in time that does not depend on how many there are.
 *
 * Tables are made when they are first asked for, of structures and variants of more than a few children.
 * Threads: one at a time per set of tables.
 */
#ifndef KY_CTF_MODEL_CHILD_TABLES_H
#define KY_CTF_MODEL_CHILD_TABLES_H

#include "base/arena.h"
#include "base/hash.h"
#include "ctf/model/model.h"

#define KY_NO_CHILD SIZE_MAX

struct ky_child_tables {
	struct ky_arena arena;
	struct ky_map tables; /* structure or variant -> its names */
	struct ky_map places; /* field class -> struct ky_child_place */
};

/* Where a field class stands. */
struct ky_child_place {
	const struct ky_field_class *parent;
	size_t index; /* among its children */
};

void ky_child_tables_init(struct ky_child_tables *tables);
void ky_child_tables_fini(struct ky_child_tables *tables);

/*
 * The first of the first @n children of @cls, a structure or variant, whose name as written is @name, of @len bytes; or
 * KY_NO_CHILD. Children may be added between two calls, not changed.
 */
size_t ky_child_named(struct ky_child_tables *tables, const struct ky_field_class *cls, size_t n,
		      const char *name, size_t len);

/* Is no other member of @st, which is complete, displayed as member @index is? */
bool ky_child_display_is_unique(struct ky_child_tables *tables, const struct ky_field_class *st,
				size_t index);

/*
 * Where @target stands, which lies somewhere below @root, a complete tree; NULL: it does not, or there is no
 * memory. Valid as long as the tables.
 */
const struct ky_child_place *ky_child_place(struct ky_child_tables *tables,
					    const struct ky_field_class *root,
					    const struct ky_field_class *target);

#endif
