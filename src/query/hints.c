/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "query/ast.h"
#include "query/filter.h"

static bool has_wildcard(const struct ky_node *node)
{
	return node->op == KY_OP_TEXT && strpbrk(node->text, "*?");
}

/* The first text with a wildcard that something is compared with byte by byte; NULL: none exists. */
static const struct ky_node *literal_glob(const struct ky_node *node)
{
	bool compares =
		node && (node->op == KY_OP_EQ || node->op == KY_OP_NE || node->op == KY_OP_IN);
	const struct ky_node *found;

	if (!node || node->op == KY_OP_NAME || node->op == KY_OP_HAS)
		return NULL;
	if (compares && has_wildcard(node->left))
		return node->left;
	found = literal_glob(node->left);
	for (const struct ky_node *item = node->right; item && !found; item = item->next)
		found = compares && has_wildcard(item) ? item : literal_glob(item);
	return found;
}

bool ky_filter_literal_glob(const char *text, char *pattern, size_t size, uint32_t *column)
{
	struct ky_arena arena;
	const struct ky_node *root, *found;

	ky_arena_init(&arena);
	root = ky_query_parse(text, &arena, NULL);
	found = root ? literal_glob(root) : NULL;
	if (found) {
		snprintf(pattern, size, "%s", found->text);
		*column = found->column;
	}
	ky_arena_fini(&arena);
	return found != NULL;
}
