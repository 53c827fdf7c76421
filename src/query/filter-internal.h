/* SPDX-License-Identifier: MIT */
/* What filter.c and filter-bind.c share. */
#ifndef KY_QUERY_FILTER_INTERNAL_H
#define KY_QUERY_FILTER_INTERNAL_H

#include "query/program.h"

/*
 * The code of the tree @root for events of @cls, in @arena. Nodes count with which types they work (n_good, n_bad), for messages.
 * NULL: out of memory.
 */
struct ky_code *ky_filter_bind(struct ky_arena *arena, const struct ky_event_class *cls,
			       struct ky_node *root);
/* The handle of the field that @node names in events of @cls; false: they have none. */
bool ky_filter_find_handle(const struct ky_event_class *cls, const struct ky_node *node,
			   struct ky_handle *handle);

#endif
