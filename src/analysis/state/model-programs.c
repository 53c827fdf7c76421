/* SPDX-License-Identifier: MIT */
/* Programs' events beside the kernel's: which of the kernel's threads an event of a program happened in. */
#include "analysis/state/model-internal.h"

#include <string.h>

/* How many bytes of directories two paths have in common. */
static size_t model_programs_common(const char *a, const char *b)
{
	size_t common = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		common = a[i] == '/' ? i + 1 : common;
	return common;
}

void ky_programs_pair(struct ky_model *model)
{
	ky_vec_foreach(&model->hosts, host) {
		size_t most = 0;

		(*host)->kernel = NULL;
		if (!(*host)->of_programs || !(*host)->name[0])
			continue;
		ky_vec_foreach(&model->hosts, other) {
			size_t common =
				model_programs_common((*host)->trace->path, (*other)->trace->path);

			if ((*other)->of_programs || !((*other)->abilities & KY_CAN_SWITCH) ||
			    strcmp((*other)->name, (*host)->name) != 0 ||
			    ((*host)->kernel && common <= most))
				continue;
			(*host)->kernel = *other;
			most = common;
		}
	}
}

struct ky_thread *ky_programs_thread(struct ky_feed *feed, const struct ky_event *event,
				     const struct ky_class_info *info)
{
	const struct ky_host *kernel = feed->host->kernel;
	const struct ky_cpu *cpu = kernel ? ky_map_get(&kernel->cpus, event->cpu_id) : NULL;
	struct ky_thread *current = cpu && cpu->state == KY_CPU_BUSY ? cpu->current : NULL;
	int32_t tid = (int32_t)ky_get_i64(event, &info->tid, KY_UNKNOWN);
	struct ky_thread *known;

	if (!kernel)
		return ky_feed_thread(feed, event, info);
	if (current && (tid <= 0 || current->tid == tid))
		return current;
	known = tid > 0 ? ky_map_get(&kernel->threads, (uint32_t)tid) : NULL;
	/* It has just come to another CPU; else its ID may be that of a PID namespace. */
	if (known && (known->running || !current))
		return known;
	return current;
}
