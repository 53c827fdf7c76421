/* SPDX-License-Identifier: MIT */
#include "analysis/stacks/stack-names.h"

#include <stdio.h>
#include <string.h>

static const char *stack_names_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

uint32_t ky_stack_tree_symbol(struct ky_stack_tree *tree, const struct ky_symbols_frame *found,
			      bool is_kernel)
{
	enum ky_stack_frame_kind kind = is_kernel ? KY_STACK_FRAME_KERNEL : KY_STACK_FRAME_USER;
	const char *object = found && found->object ? found->object : "";
	char name[160];

	if (found && found->function)
		return ky_stack_tree_frame(tree, kind, found->function, object);
	snprintf(name, sizeof(name), "[%s]",
		 *object     ? stack_names_base(object)
		 : is_kernel ? "kernel"
			     : "unknown");
	return ky_stack_tree_frame(tree, kind, name, object);
}
