/* SPDX-License-Identifier: MIT */
/* Paths such as "stream.event.header.id" or "len": from a name to a field and back. */
#ifndef KY_CTF_TSDL_TSDL_PATH_H
#define KY_CTF_TSDL_TSDL_PATH_H

#include "base/strbuf.h"
#include "ctf/model/child-tables.h"
#include "ctf/model/model.h"

/*
 * Follow @path (names as written, with dots between them) from the first @n_members members of
 * @st, through structs and the options of variants. NULL when it leads nowhere.
 */
struct ky_field_class *ky_path_follow(struct ky_child_tables *tables,
				      const struct ky_field_class *st, size_t n_members,
				      const char *path);

/*
 * The dynamic scope that an absolute path begins with, or -1. *rest is what follows it.
 */
int ky_path_scope(const char *path, const char **rest);

/*
 * Append the path that leads from the first @n_members members of @st to @target.
 * Returns false, with @out unchanged, when none exists.
 */
bool ky_path_find(struct ky_child_tables *tables, const struct ky_field_class *st, size_t n_members,
		  const struct ky_field_class *target, struct ky_strbuf *out);

#endif
