/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl-path.h"

#include <string.h>

#include "base/deep.h"
#include "ctf/walk.h"

static const char *child_name(const struct ky_field_class *cls, size_t i)
{
	return cls->kind == KY_FIELD_STRUCT ? cls->st.members[i].name : cls->var.options[i].name;
}

/* Elements of arrays have no names: no path leads through them. */
static bool has_names(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_STRUCT || cls->kind == KY_FIELD_VARIANT;
}

struct ky_field_class *ky_path_follow(const struct ky_field_class *st, size_t n_members,
				      const char *path)
{
	const struct ky_field_class *cls = st;
	size_t n = n_members;

	for (;;) {
		size_t len = strcspn(path, ".");
		struct ky_field_class *found = NULL;

		for (size_t i = 0; i < n && !found; i++) {
			const char *name = child_name(cls, i);

			if (!strncmp(name, path, len) && !name[len])
				found = ky_field_child(cls, i);
		}
		if (!found || !path[len])
			return found;
		if (!has_names(found))
			return NULL;
		cls = found;
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

KY_DEEP4(bool, find, const struct ky_field_class *, size_t, const struct ky_field_class *,
	 struct ky_strbuf *)

static bool find(const struct ky_field_class *st, size_t n_members,
		 const struct ky_field_class *target, struct ky_strbuf *out)
{
	size_t len = out->len;

	for (size_t i = 0; i < n_members; i++) {
		const struct ky_field_class *child = ky_field_child(st, i);

		if (len)
			ky_strbuf_addc(out, '.');
		ky_strbuf_adds(out, child_name(st, i));
		if (ky_strbuf_failed(out))
			return false;
		if (child == target ||
		    (has_names(child) &&
		     find_deep(false, child, ky_field_n_children(child), target, out)))
			return true;
		out->len = len;
		if (out->data)
			out->data[len] = '\0';
	}
	return false;
}

bool ky_path_find(const struct ky_field_class *st, size_t n_members,
		  const struct ky_field_class *target, struct ky_strbuf *out)
{
	return find(st, n_members, target, out);
}
