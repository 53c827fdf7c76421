/* SPDX-License-Identifier: MIT */
/*
 * The state model's control groups, of version 2. A thread is in the group of its parent, until the state
 * dump, cgroup_attach_task, or the context of one of its events has another group. The number of a group is
 * its directory's inode; an event may add the group's path.
 */
#include "analysis/state/model-internal.h"

#include "base/text.h"

int ky_cgroup_see(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	int32_t tid = (int32_t)ky_get_i64(event, &info->tid, KY_UNKNOWN);
	struct ky_thread *thread;

	/* The recorder writes the state dump, possibly with another thread's context. */
	if (tid <= 0 || !info->cgroup.cls || info->no_sign)
		return 0;
	thread = ky_model_context_thread(feed, event, info, tid);
	if (!thread)
		return KYMO_E_MEMORY;
	thread->cgroup = ky_get_u64(event, &info->cgroup, 0);
	return 0;
}

/* The thread that the event tells of is in the group that it tells of. */
static int model_cgroups_enter(struct ky_feed *feed, const struct ky_event *event,
			       const struct ky_class_info *info, struct ky_thread **thread)
{
	int32_t tid = (int32_t)ky_get_i64(event, &info->fields[KY_CGROUP_TID], KY_UNKNOWN);
	uint64_t number = ky_get_u64(event, &info->fields[KY_CGROUP_ID], 0);
	struct ky_map *paths = &feed->host->state->cgroups;
	const char *path;
	char *copy;
	size_t len;

	*thread = NULL;
	if (tid <= 0 || !number)
		return 0;
	*thread = ky_model_thread_get(feed->model, feed->host, tid);
	if (!*thread)
		return KYMO_E_MEMORY;
	(*thread)->cgroup = number;
	path = ky_get_text(event, &info->fields[KY_CGROUP_PATH], &len);
	if (!len || ky_map_get(paths, number))
		return 0;
	copy = ky_arena_strndup(&feed->model->arena, path, len);
	return copy ? ky_map_set(paths, number, copy) : KYMO_E_MEMORY;
}

int ky_on_dump_cgroup(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	struct ky_thread *thread;

	return model_cgroups_enter(feed, event, info, &thread);
}

int ky_on_attach_cgroup(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	struct ky_thread *thread;
	int status;

	/* To go through all threads is not for nothing. Version 2's hierarchy is number 0. */
	if (!feed->model->follows_cgroups ||
	    ky_get_i64(event, &info->fields[KY_CGROUP_ROOT], 0) != 0)
		return 0;
	status = model_cgroups_enter(feed, event, info, &thread);
	if (status < 0 || !thread || thread->tid != thread->pid)
		return status;
	/* A process' first thread moves with all of them, but for threaded groups, which are rare. */
	ky_vec_foreach(&feed->model->threads, other) {
		if ((*other)->host == feed->host && (*other)->pid == thread->pid && !(*other)->dead)
			(*other)->cgroup = thread->cgroup;
	}
	return 0;
}

const char *ky_model_cgroup_path(const struct ky_thread *thread)
{
	return thread->cgroup ? ky_map_get(&thread->host->state->cgroups, thread->cgroup) : NULL;
}

bool ky_focus_holds_cgroup(const struct ky_focus *focus, const struct ky_thread *thread)
{
	const char *path;

	if (!thread->cgroup)
		return false;
	ky_vec_foreach(&focus->cgroups, cgroup) {
		if (*cgroup == thread->cgroup)
			return true;
	}
	if (!focus->cgroup_paths.len)
		return false;
	path = ky_model_cgroup_path(thread);
	ky_vec_foreach(&focus->cgroup_paths, glob) {
		if (path && ky_glob_match(*glob, path))
			return true;
	}
	return false;
}
