/* SPDX-License-Identifier: MIT */
/* The state model's steps of file systems: pairs of events of a thread, or single events. */
#include "analysis/state/model-internal.h"

#include <string.h>

/* How names of the two events of a step differ from the step's. */
static const struct {
	const char *text;
	uint8_t kind;
} model_fs_ends[] = {
	{"_enter", KY_FS_BEGIN}, {"_exit", KY_FS_END},	  {"_begin", KY_FS_BEGIN},
	{"_end", KY_FS_END},	 {"_start", KY_FS_BEGIN}, {"_stop", KY_FS_END},
};

/* What @name is without its end: so many bytes of it. */
static size_t model_fs_stem(struct ky_class_info *info, const char *name)
{
	size_t len = strlen(name);

	info->step_kind = KY_FS_SINGLE;
	for (size_t i = 0; i < sizeof(model_fs_ends) / sizeof(*model_fs_ends); i++) {
		size_t n = strlen(model_fs_ends[i].text);

		if (len > n && strcmp(name + len - n, model_fs_ends[i].text) == 0) {
			info->step_kind = model_fs_ends[i].kind;
			return len - n;
		}
	}
	return len;
}

static const struct ky_fs_step *model_fs_step(struct ky_model *model, const char *name, size_t len)
{
	struct ky_fs_step *step = ky_names_getn(&model->fs_steps, name, len);
	const char *copy;

	if (step)
		return step;
	step = ky_arena_new(&model->arena, struct ky_fs_step);
	copy = ky_arena_strndup(&model->arena, name, len);
	if (!step || !copy)
		return NULL;
	*step = (struct ky_fs_step){(uint32_t)model->fs_steps.len, copy};
	return ky_names_set(&model->fs_steps, copy, step) < 0 ? NULL : step;
}

int ky_fs_resolve(struct ky_model *model, struct ky_class_info *info, const char *name)
{
	size_t len = model_fs_stem(info, name);

	/* Names that follow no rule. */
	if (strcmp(name, "jbd2_start_commit") == 0 || strcmp(name, "jbd2_end_commit") == 0) {
		info->step_kind = name[5] == 's' ? KY_FS_BEGIN : KY_FS_END;
		name = "jbd2_commit";
		len = strlen(name);
	} else if (strcmp(name, "ext4_writepages") == 0) {
		info->step_kind = KY_FS_BEGIN;
	} else if (strcmp(name, "ext4_writepages_result") == 0) {
		info->step_kind = KY_FS_END;
		len = strlen("ext4_writepages");
	}
	info->step = model_fs_step(model, name, len);
	return info->step ? 0 : KYMO_E_MEMORY;
}

void ky_fs_fini(struct ky_model *model)
{
	ky_names_fini(&model->fs_steps);
	ky_map_fini(&model->fs_begins);
}

int ky_on_fs(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info)
{
	struct ky_model *model = feed->model;
	const struct ky_thread *thread = ky_feed_thread(feed, event, info);
	struct ky_fs_seen seen = {info->step, thread, event->ns, event->ns};
	uint64_t key;
	int64_t begin;

	if (!thread)
		return 0;
	key = (uint64_t)thread->index << 20 | (info->step->index & 0xfffff);
	if (info->step_kind == KY_FS_BEGIN)
		return ky_map_set(&model->fs_begins, key, (void *)(uintptr_t)(event->ns + 1));
	if (info->step_kind == KY_FS_END) {
		begin = (int64_t)(uintptr_t)ky_map_get(&model->fs_begins, key) - 1;
		if (begin < 0 || begin > event->ns || begin < feed->host->torn_until_ns)
			return 0;
		ky_map_del(&model->fs_begins, key);
		seen.begin_ns = begin;
	}
	return ky_model_notify(model, fs, &seen);
}
