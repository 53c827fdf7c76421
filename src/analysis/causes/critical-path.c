/* SPDX-License-Identifier: MIT */
/*
 * Causes: the critical path. The path of a time is its parts, but for waits that another thread ended: of these, it is
 * the waker's path over the time of the wait. So each moment of the window belongs to exactly one thread.
 */
#include "analysis/causes/causes-internal.h"

#include <stdlib.h>

/* Longer chains of wakers end here: the path then stays at the waiter. */
#define CRITICAL_PATH_DEPTH 64

struct walk {
	const struct ky_causes *causes;
	struct ky_path *path;
	unsigned int depth;
};

static bool critical_path_continues(const struct ky_part *last, const struct ky_part *part)
{
	return last->end_ns == part->begin_ns && last->cause == part->cause &&
	       last->thread == part->thread && last->who == part->who && last->line == part->line &&
	       last->disk == part->disk && last->syscall == part->syscall &&
	       last->file == part->file && last->cpu == part->cpu && last->idle == part->idle &&
	       last->waker == part->waker && last->woken_ns == part->woken_ns &&
	       last->address == part->address && last->in_fault == part->in_fault &&
	       last->doubtful == part->doubtful && last->shared == part->shared;
}

static int critical_path_add(struct ky_path *path, const struct ky_part *part)
{
	struct ky_part *last = path->parts.len ? ky_vec_last(&path->parts) : NULL;

	if (last && critical_path_continues(last, part)) {
		last->end_ns = part->end_ns;
		return 0;
	}
	return ky_vec_push(&path->parts, *part);
}

static int critical_path_part(void *data, const struct ky_part *part)
{
	struct walk *walk = data;
	struct ky_path *path = walk->path;
	int status;

	if (!part->waker || part->waker == part->thread)
		return critical_path_add(path, part);
	if (walk->depth == CRITICAL_PATH_DEPTH) {
		path->cut = true;
		return critical_path_add(path, part);
	}
	path->n_doubtful += part->doubtful && part->woken_ns == part->end_ns;
	walk->depth++;
	status = ky_causes_explain(walk->causes, part->waker, part->begin_ns, part->end_ns,
				   critical_path_part, walk);
	walk->depth--;
	if (status < 0 || part->woken_ns != part->end_ns)
		return status;
	return ky_vec_push(&path->arrows,
			   (struct ky_path_arrow){part->waker, part->thread, part->end_ns});
}

int ky_causes_path(const struct ky_causes *causes, const struct ky_thread *thread, int64_t begin_ns,
		   int64_t end_ns, struct ky_path *path)
{
	struct walk walk = {.causes = causes, .path = path};

	*path = (struct ky_path){.cut = false};
	return ky_causes_explain(causes, thread, begin_ns, end_ns, critical_path_part, &walk);
}

void ky_path_fini(struct ky_path *path)
{
	ky_vec_fini(&path->parts);
	ky_vec_fini(&path->arrows);
}
