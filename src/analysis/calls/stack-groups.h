/* SPDX-License-Identifier: MIT */
/* The outermost frames of trees of stacks: whose stacks they are. */
#ifndef KY_ANALYSIS_CALLS_STACK_GROUPS_H
#define KY_ANALYSIS_CALLS_STACK_GROUPS_H

#include "analysis/reports/report.h"
#include "analysis/stacks/stack-tree.h"

#define KY_STACK_GROUP_BYTES 128

/* "sh (4711)": what stacks of @thread (NULL: unknown) are added up by. */
void ky_stack_group_name(const struct ky_thread *thread, enum ky_by by,
			 char name[KY_STACK_GROUP_BYTES]);
/* The frame of that. KY_STACK_TREE_NONE: out of memory. */
uint32_t ky_stack_group_frame(struct ky_stack_tree *tree, const struct ky_thread *thread,
			      enum ky_by by);

#endif
