/* SPDX-License-Identifier: MIT */
/*
 * A tree of call stacks: each way from the root is a stack, the outermost frame first, and each node has what the stacks
 * weigh that end there. Two trees that are compared are one tree with two weights at each node.
 *
 *	ky_stack_tree_init()
 *	frame = ky_stack_tree_frame(), node = ky_stack_tree_child(), ky_stack_tree_add()	for each stack
 *	ky_stack_tree_sum()
 *
 * Frames are functions, not addresses. Memory: at most KY_STACK_TREE_NODES nodes; stacks beyond end in a frame of their own.
 * Threads: one at a time per tree.
 */
#ifndef KY_ANALYSIS_STACKS_STACK_TREE_H
#define KY_ANALYSIS_STACKS_STACK_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"

#define KY_STACK_TREE_NODES (1u << 22)
#define KY_STACK_TREE_ROOT  0u
#define KY_STACK_TREE_NONE  UINT32_MAX

enum ky_stack_frame_kind {
	KY_STACK_FRAME_GROUP, /* a thread or process: the outermost */
	KY_STACK_FRAME_USER,
	KY_STACK_FRAME_KERNEL,
	KY_STACK_FRAME_STATE, /* what no function is: "waits for a CPU" */
};

struct ky_stack_frame {
	const char *function; /* foreign text */
	const char *object;   /* a path, "[kernel]"; "" where it says nothing */
	enum ky_stack_frame_kind kind;
};

struct ky_stack_node {
	uint32_t frame, parent;
	uint32_t first,
		next; /* child, and sibling: the heaviest first; KY_STACK_TREE_NONE. After ky_stack_tree_sum() */
	uint64_t self[2], total[2];
	uint64_t count; /* stacks that end here */
};

struct ky_stack_tree {
	struct ky_arena arena;
	struct ky_names names; /* "KIND object\nfunction" -> its frame + 1 */
	struct ky_map children;
	KY_VEC(struct ky_stack_frame) frames;
	KY_VEC(struct ky_stack_node) nodes; /* the root first; a parent comes before its children */
	bool is_time;			    /* weights are ns; else a number of events */
	bool has_two;			    /* weights of two traces */
	const char *what;		    /* "cpu-clock"; borrowed */
};

/* 0 or KYMO_E_MEMORY. */
int ky_stack_tree_init(struct ky_stack_tree *tree);
void ky_stack_tree_fini(struct ky_stack_tree *tree);

/* The number of a frame; texts are copied. KY_STACK_TREE_NONE: out of memory. */
uint32_t ky_stack_tree_frame(struct ky_stack_tree *tree, enum ky_stack_frame_kind kind,
			     const char *function, const char *object);
/* The node of @frame below @parent, made when it is new. KY_STACK_TREE_NONE: out of memory. */
uint32_t ky_stack_tree_child(struct ky_stack_tree *tree, uint32_t parent, uint32_t frame);
/* A stack of trace @side (0 or 1) ends at @node. */
void ky_stack_tree_add(struct ky_stack_tree *tree, uint32_t node, uint64_t weight,
		       unsigned int side);
/* Sums up, and puts children into order. */
void ky_stack_tree_sum(struct ky_stack_tree *tree);
/*
 * The node after @at, callers before what they called; @down: with those below @at. *depth changes with it. After the last one:
 * KY_STACK_TREE_NONE.
 */
uint32_t ky_stack_tree_next(const struct ky_stack_tree *tree, uint32_t at, bool down,
			    uint32_t *depth);

static inline const struct ky_stack_frame *ky_stack_node_frame(const struct ky_stack_tree *tree,
							       const struct ky_stack_node *node)
{
	return &tree->frames.data[node->frame];
}

#endif
