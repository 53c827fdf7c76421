/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-path.h"

#include <string.h>

#include "ctf/model/walk.h"

/* Longer ways are not found. */
#define KY_PATH_STEPS_MAX 4096

static const char *tsdl_path_name_of(const struct ky_field_class *cls, size_t i)
{
	return cls->kind == KY_FIELD_STRUCT ? cls->st.members[i].name : cls->var.options[i].name;
}

/* Elements of arrays have no names: no path leads through them. */
static bool has_names(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_STRUCT || cls->kind == KY_FIELD_VARIANT;
}

struct ky_field_class *ky_path_follow(struct ky_child_tables *tables,
				      const struct ky_field_class *st, size_t n_members,
				      const char *path)
{
	const struct ky_field_class *cls = st;
	size_t n = n_members;

	for (;;) {
		size_t len = strcspn(path, ".");
		size_t i = ky_child_named(tables, cls, n, path, len);

		if (i == KY_NO_CHILD)
			return NULL;
		if (!path[len])
			return ky_field_child(cls, i);
		cls = ky_field_child(cls, i);
		if (!has_names(cls))
			return NULL;
		n = ky_field_n_children(cls);
		path += len + 1;
	}
}

int ky_path_scope(const char *path, const char **rest)
{
	for (int scope = 0; scope < KY_SCOPE_COUNT; scope++) {
		const char *name = ky_scope_name((enum ky_scope)scope);
		size_t len = strlen(name);

		if (!strncmp(path, name, len) && path[len] == '.') {
			*rest = path + len + 1;
			return scope;
		}
	}
	return -1;
}

/* The names on the way down to @at, which stands below @st; false: not all on the way have one. */
static bool put_way(struct ky_child_tables *tables, const struct ky_field_class *st,
		    size_t n_members, const struct ky_child_place *at, struct ky_strbuf *out)
{
	const struct ky_child_place *way[KY_PATH_STEPS_MAX];
	size_t n = 0;

	for (; at; at = ky_child_place(tables, st, at->parent)) {
		if (n == KY_PATH_STEPS_MAX || !has_names(at->parent))
			return false;
		way[n++] = at;
		if (at->parent == st)
			break;
	}
	if (!at || at->index >= n_members)
		return false;
	while (n-- > 0) {
		ky_strbuf_adds(out, tsdl_path_name_of(way[n]->parent, way[n]->index));
		if (n)
			ky_strbuf_addc(out, '.');
	}
	return !ky_strbuf_failed(out);
}

bool ky_path_find(struct ky_child_tables *tables, const struct ky_field_class *st, size_t n_members,
		  const struct ky_field_class *target, struct ky_strbuf *out)
{
	return put_way(tables, st, n_members, ky_child_place(tables, st, target), out);
}
