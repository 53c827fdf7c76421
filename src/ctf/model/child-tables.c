/* SPDX-License-Identifier: MIT */
#include "ctf/model/child-tables.h"

#include <string.h>

#include "base/vec.h"
#include "ctf/model/walk.h"

/* Of fewer children, looking at all of them is faster. */
#define CHILDREN_MIN 16

/* The names of a structure's or variant's first children. Values are numbers of children, from 1 on. */
struct table {
	struct ky_names names, displays;
	size_t n_names;
	bool has_displays;
};

/* Several members are displayed so. */
#define SEVERAL ((void *)(uintptr_t)UINTPTR_MAX)

void ky_child_tables_init(struct ky_child_tables *tables)
{
	ky_arena_init(&tables->arena);
	ky_map_init(&tables->tables);
	ky_map_init(&tables->places);
}

static void child_tables_free_table(struct table *table)
{
	ky_names_fini(&table->names);
	ky_names_fini(&table->displays);
}

void ky_child_tables_fini(struct ky_child_tables *tables)
{
	uint64_t key;
	size_t pos = 0;
	void *value;

	while (ky_map_next(&tables->tables, &pos, &key, &value))
		child_tables_free_table(value);
	ky_map_fini(&tables->tables);
	ky_map_fini(&tables->places);
	ky_arena_fini(&tables->arena);
}

static uint64_t child_tables_key_of(const struct ky_field_class *cls)
{
	return (uint64_t)(uintptr_t)cls;
}

static const char *child_tables_name_of(const struct ky_field_class *cls, size_t i)
{
	return cls->kind == KY_FIELD_STRUCT ? cls->st.members[i].name : cls->var.options[i].name;
}

/* NULL: there is no memory; then one looks at all children. */
static struct table *child_tables_table_of(struct ky_child_tables *tables,
					   const struct ky_field_class *cls)
{
	struct table *table = ky_map_get(&tables->tables, child_tables_key_of(cls));

	if (table)
		return table;
	table = ky_arena_new(&tables->arena, struct table);
	if (!table)
		return NULL;
	ky_names_init(&table->names);
	ky_names_init(&table->displays);
	return ky_map_set(&tables->tables, child_tables_key_of(cls), table) < 0 ? NULL : table;
}

static bool child_tables_add_names(struct table *table, const struct ky_field_class *cls, size_t n)
{
	for (; table->n_names < n; table->n_names++) {
		const char *name = child_tables_name_of(cls, table->n_names);
		void *number = (void *)(uintptr_t)(table->n_names + 1);

		if (!ky_names_get(&table->names, name) &&
		    ky_names_set(&table->names, name, number) < 0)
			return false;
	}
	return true;
}

static size_t find_named(const struct ky_field_class *cls, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		const char *here = child_tables_name_of(cls, i);

		if (!strncmp(here, name, len) && !here[len])
			return i;
	}
	return KY_NO_CHILD;
}

size_t ky_child_named(struct ky_child_tables *tables, const struct ky_field_class *cls, size_t n,
		      const char *name, size_t len)
{
	struct table *table = n < CHILDREN_MIN ? NULL : child_tables_table_of(tables, cls);
	size_t number;

	if (!table || !child_tables_add_names(table, cls, n))
		return find_named(cls, n, name, len);
	number = (size_t)(uintptr_t)ky_names_getn(&table->names, name, len);
	return number && number <= n ? number - 1 : KY_NO_CHILD;
}

static bool add_displays(struct table *table, const struct ky_field_class *st)
{
	for (size_t i = 0; i < st->st.n_members && !table->has_displays; i++) {
		const char *display = st->st.members[i].display;
		void *value = ky_names_get(&table->displays, display);

		value = value ? SEVERAL : (void *)(uintptr_t)(i + 1);
		if (ky_names_set(&table->displays, display, value) < 0)
			return false;
	}
	table->has_displays = true;
	return true;
}

bool ky_child_display_is_unique(struct ky_child_tables *tables, const struct ky_field_class *st,
				size_t index)
{
	const char *display = st->st.members[index].display;
	struct table *table =
		st->st.n_members < CHILDREN_MIN ? NULL : child_tables_table_of(tables, st);

	if (table && add_displays(table, st))
		return ky_names_get(&table->displays, display) != SEVERAL;
	for (size_t i = 0; i < st->st.n_members; i++) {
		if (i != index && strcmp(st->st.members[i].display, display) == 0)
			return false;
	}
	return true;
}

/* ---- places ------------------------------------------------------------------------------- */

KY_VEC_TYPE(classes, const struct ky_field_class *);

/* The children of @cls have places; those that have children in turn wait. */
static bool place_children(struct ky_child_tables *tables, const struct ky_field_class *cls,
			   struct classes *waiting)
{
	size_t n = ky_field_n_children(cls);
	struct ky_child_place *places = ky_arena_array(&tables->arena, n, sizeof(*places));

	if (!places)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct ky_field_class *child = ky_field_child(cls, i);

		places[i] = (struct ky_child_place){cls, i};
		if (ky_map_set(&tables->places, child_tables_key_of(child), &places[i]) < 0 ||
		    (ky_field_n_children(child) && ky_vec_push(waiting, child) < 0))
			return false;
	}
	return true;
}

/* Has the first child a place? Then all that lies below @root has one. */
static bool is_placed(const struct ky_child_tables *tables, const struct ky_field_class *root)
{
	return ky_map_get(&tables->places, child_tables_key_of(ky_field_child(root, 0))) != NULL;
}

static bool child_tables_place_all(struct ky_child_tables *tables,
				   const struct ky_field_class *root)
{
	struct classes waiting = KY_VEC_INIT;
	bool done = ky_vec_push(&waiting, root) == 0;

	while (done && waiting.len) {
		const struct ky_field_class *cls = waiting.data[--waiting.len];

		done = is_placed(tables, cls) || place_children(tables, cls, &waiting);
	}
	ky_vec_fini(&waiting);
	return done;
}

const struct ky_child_place *ky_child_place(struct ky_child_tables *tables,
					    const struct ky_field_class *root,
					    const struct ky_field_class *target)
{
	if (!ky_field_n_children(root) || !child_tables_place_all(tables, root))
		return NULL;
	return ky_map_get(&tables->places, child_tables_key_of(target));
}
