/* SPDX-License-Identifier: MIT */
#include "analysis/calls/stack-groups.h"

#include <stdio.h>

void ky_stack_group_name(const struct ky_thread *thread, enum ky_by by,
			 char name[KY_STACK_GROUP_BYTES])
{
	const char *path = thread ? ky_model_cgroup_path(thread) : NULL;
	char comm[KY_COMM_SIZE + 1];

	snprintf(comm, sizeof(comm), "%s", thread && thread->comm[0] ? thread->comm : "(unknown)");
	switch (by) {
	case KY_BY_THREAD:
		snprintf(name, KY_STACK_GROUP_BYTES, "%s (%d)", comm, thread ? thread->tid : 0);
		break;
	case KY_BY_PROCESS:
		snprintf(name, KY_STACK_GROUP_BYTES, "%s (%d)", comm,
			 thread && thread->pid != KY_UNKNOWN ? thread->pid : 0);
		break;
	case KY_BY_CGROUP:
		snprintf(name, KY_STACK_GROUP_BYTES, "%s", path ? path : "(unknown)");
		break;
	default:
		snprintf(name, KY_STACK_GROUP_BYTES, "%s", comm);
		break;
	}
}

uint32_t ky_stack_group_frame(struct ky_stack_tree *tree, const struct ky_thread *thread,
			      enum ky_by by)
{
	char name[KY_STACK_GROUP_BYTES];

	ky_stack_group_name(thread, by, name);
	return ky_stack_tree_frame(tree, KY_STACK_FRAME_GROUP, name, "");
}
