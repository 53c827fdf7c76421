/* SPDX-License-Identifier: MIT */
#include "analysis/stacks/stack-tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

int ky_stack_tree_init(struct ky_stack_tree *tree)
{
	*tree = (struct ky_stack_tree){.what = ""};
	ky_arena_init(&tree->arena);
	ky_names_init(&tree->names);
	ky_map_init(&tree->children);
	if (ky_stack_tree_frame(tree, KY_STACK_FRAME_GROUP, "all", "") == KY_STACK_TREE_NONE ||
	    ky_vec_push(&tree->nodes, (struct ky_stack_node){.parent = KY_STACK_TREE_NONE,
							     .first = KY_STACK_TREE_NONE,
							     .next = KY_STACK_TREE_NONE}) < 0) {
		ky_stack_tree_fini(tree);
		return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

void ky_stack_tree_fini(struct ky_stack_tree *tree)
{
	ky_vec_fini(&tree->frames);
	ky_vec_fini(&tree->nodes);
	ky_map_fini(&tree->children);
	ky_names_fini(&tree->names);
	ky_arena_fini(&tree->arena);
}

static uint32_t stack_tree_add_frame(struct ky_stack_tree *tree, const char *key,
				     const struct ky_stack_frame *frame)
{
	struct ky_stack_frame copy = {
		.kind = frame->kind,
		.function = ky_arena_strdup(&tree->arena, frame->function),
		.object = ky_arena_strdup(&tree->arena, frame->object),
	};
	char *own = ky_arena_strdup(&tree->arena, key);

	if (!copy.function || !copy.object || !own || tree->frames.len >= UINT32_MAX - 1 ||
	    ky_vec_push(&tree->frames, copy) < 0 ||
	    ky_names_set(&tree->names, own, (void *)(uintptr_t)tree->frames.len) < 0)
		return KY_STACK_TREE_NONE;
	return (uint32_t)tree->frames.len - 1;
}

uint32_t ky_stack_tree_frame(struct ky_stack_tree *tree, enum ky_stack_frame_kind kind,
			     const char *function, const char *object)
{
	const struct ky_stack_frame frame = {function, object, kind};
	struct ky_strbuf key = KY_STRBUF_INIT;
	uint32_t found = KY_STACK_TREE_NONE;
	void *known;

	ky_strbuf_addf(&key, "%d%s\n%s", (int)kind, object, function);
	if (!ky_strbuf_failed(&key)) {
		known = ky_names_get(&tree->names, ky_strbuf_text(&key));
		found = known ? (uint32_t)(uintptr_t)known - 1
			      : stack_tree_add_frame(tree, ky_strbuf_text(&key), &frame);
	}
	ky_strbuf_fini(&key);
	return found;
}

/* One frame of their own for the stacks that no longer fit. */
static uint32_t stack_tree_others(struct ky_stack_tree *tree)
{
	uint32_t frame = ky_stack_tree_frame(tree, KY_STACK_FRAME_STATE, "(other stacks)", "");
	void *known = ky_map_get(&tree->children, frame);

	return known ? (uint32_t)(uintptr_t)known - 1 : KY_STACK_TREE_ROOT;
}

uint32_t ky_stack_tree_child(struct ky_stack_tree *tree, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	void *known = ky_map_get(&tree->children, key);

	if (known)
		return (uint32_t)(uintptr_t)known - 1;
	if (tree->nodes.len >= KY_STACK_TREE_NODES)
		return stack_tree_others(tree);
	if (ky_vec_push(&tree->nodes, (struct ky_stack_node){.frame = frame,
							     .parent = parent,
							     .first = KY_STACK_TREE_NONE,
							     .next = KY_STACK_TREE_NONE}) < 0 ||
	    ky_map_set(&tree->children, key, (void *)(uintptr_t)tree->nodes.len) < 0)
		return KY_STACK_TREE_NONE;
	return (uint32_t)tree->nodes.len - 1;
}

void ky_stack_tree_add(struct ky_stack_tree *tree, uint32_t node, uint64_t weight,
		       unsigned int side)
{
	tree->nodes.data[node].self[side] += weight;
	tree->nodes.data[node].count++;
}

/* ---- the end ------------------------------------------------------------------------------ */

static uint64_t stack_tree_total(const struct ky_stack_node *node)
{
	return node->total[0] + node->total[1];
}

/* Does @a stand before @b? */
static bool stack_tree_is_first(const struct ky_stack_tree *tree, uint32_t a, uint32_t b)
{
	const struct ky_stack_node *x = &tree->nodes.data[a], *y = &tree->nodes.data[b];

	if (stack_tree_total(x) != stack_tree_total(y))
		return stack_tree_total(x) > stack_tree_total(y);
	return a < b;
}

static uint32_t stack_tree_merge(struct ky_stack_tree *tree, uint32_t a, uint32_t b)
{
	uint32_t first = KY_STACK_TREE_NONE, *end = &first;

	while (a != KY_STACK_TREE_NONE && b != KY_STACK_TREE_NONE) {
		uint32_t *from = stack_tree_is_first(tree, a, b) ? &a : &b;

		*end = *from;
		end = &tree->nodes.data[*from].next;
		*from = *end;
	}
	*end = a != KY_STACK_TREE_NONE ? a : b;
	return first;
}

/* Merge sort of a list of siblings: lists of 1, 2, 4, ... wait for one of the same length. */
static uint32_t stack_tree_sort(struct ky_stack_tree *tree, uint32_t list)
{
	uint32_t waiting[32], all = KY_STACK_TREE_NONE;

	memset(waiting, 0xff, sizeof(waiting));
	while (list != KY_STACK_TREE_NONE) {
		uint32_t one = list;
		size_t i = 0;

		list = tree->nodes.data[one].next;
		tree->nodes.data[one].next = KY_STACK_TREE_NONE;
		for (; i < 31 && waiting[i] != KY_STACK_TREE_NONE; i++) {
			one = stack_tree_merge(tree, waiting[i], one);
			waiting[i] = KY_STACK_TREE_NONE;
		}
		waiting[i] = one;
	}
	for (size_t i = 0; i < 32; i++)
		all = stack_tree_merge(tree, waiting[i], all);
	return all;
}

void ky_stack_tree_sum(struct ky_stack_tree *tree)
{
	for (uint32_t i = (uint32_t)tree->nodes.len; i-- > 0;) {
		struct ky_stack_node *node = &tree->nodes.data[i], *parent;

		for (int side = 0; side < 2; side++)
			node->total[side] += node->self[side];
		if (node->parent == KY_STACK_TREE_NONE)
			continue;
		parent = &tree->nodes.data[node->parent];
		for (int side = 0; side < 2; side++)
			parent->total[side] += node->total[side];
		node->next = parent->first;
		parent->first = i;
	}
	ky_vec_foreach(&tree->nodes, node)
		node->first = stack_tree_sort(tree, node->first);
}

uint32_t ky_stack_tree_next(const struct ky_stack_tree *tree, uint32_t at, bool down,
			    uint32_t *depth)
{
	const struct ky_stack_node *nodes = tree->nodes.data;

	if (down && nodes[at].first != KY_STACK_TREE_NONE) {
		++*depth;
		return nodes[at].first;
	}
	while (at != KY_STACK_TREE_ROOT && nodes[at].next == KY_STACK_TREE_NONE) {
		at = nodes[at].parent;
		--*depth;
	}
	return at == KY_STACK_TREE_ROOT ? KY_STACK_TREE_NONE : nodes[at].next;
}
