/* SPDX-License-Identifier: MIT */
/*
 * The state model's files: names that a state dump tells after its descriptor was used. A recording begins with a dump, which
 * is the state before nearly all of its events. Later ones (a snapshot of a flight recorder ends with one) tell what was
 * opened by a call that is not in the trace, or whose path is not: it has been that since the descriptor was first used, or since
 * it was closed last. What they tell is kept for a second model that goes over the same events, as model-hindsight.c does.
 */
#include "analysis/state/model-internal.h"

#include <stdio.h>
#include <string.h>

/* Of a descriptor of which nothing is known: which one it was, of those that had the number one after the other. */
#define KEY_BYTES 64

static void model_files_late_make_key(char key[KEY_BYTES], const struct ky_file *file)
{
	snprintf(key, KEY_BYTES, "%u:%d:%d:%u", file->host->index, (int)file->pid, (int)file->fd,
		 file->n_uses);
}

int ky_on_dump_start(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	(void)event;
	(void)info;
	feed->host->state->n_dumps++;
	return 0;
}

bool ky_files_dump_is_late(const struct ky_host *host)
{
	return host->state->n_dumps > 1;
}

int ky_file_found(struct ky_model *model, const struct ky_file *unknown, int32_t pid,
		  const struct ky_file *known)
{
	char key[KEY_BYTES];
	const char *copy;

	/* A process that has it from its parent tells of it, too; the parent may have another one by now. */
	if (!unknown || !unknown->n_uses || unknown->pid != pid || known->n_uses ||
	    !ky_files_dump_is_late(unknown->host))
		return 0;
	model_files_late_make_key(key, unknown);
	if (ky_names_get(&model->late_files, key))
		return 0;
	copy = ky_arena_strdup(&model->arena, key);
	if (!copy || ky_names_set(&model->late_files, copy, (void *)known->name) < 0)
		return KYMO_E_MEMORY;
	return 0;
}

const char *ky_file_foreseen(const struct ky_model *model, const struct ky_file *unknown)
{
	char key[KEY_BYTES];

	if (!model->foreseen_files.len)
		return NULL;
	model_files_late_make_key(key, unknown);
	return ky_names_get(&model->foreseen_files, key);
}

int ky_files_foresee(struct ky_model *model, const struct ky_model *before)
{
	const char *key;
	void *name;
	size_t pos = 0;

	while (ky_names_next(&before->late_files, &pos, &key, &name)) {
		const char *key_copy = ky_arena_strdup(&model->arena, key);
		char *name_copy = ky_arena_strdup(&model->arena, name);

		if (!key_copy || !name_copy ||
		    ky_names_set(&model->foreseen_files, key_copy, name_copy) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}
