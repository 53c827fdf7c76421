/* SPDX-License-Identifier: MIT */
/* Frames of a tree from what is known of an address. Threads: one at a time per tree. */
#ifndef KY_ANALYSIS_STACKS_STACK_NAMES_H
#define KY_ANALYSIS_STACKS_STACK_NAMES_H

#include "analysis/stacks/stack-tree.h"
#include "symbols/lookup/symbols.h"

/* The frame of @found, "[libc.so.6]" where its function is not known; NULL: "[unknown]". KY_STACK_TREE_NONE: out of memory. */
uint32_t ky_stack_tree_symbol(struct ky_stack_tree *tree, const struct ky_symbols_frame *found,
			      bool is_kernel);

#endif
