/* SPDX-License-Identifier: MIT */
#include "analysis/reports/aggregation.h"

#include <stdio.h>
#include <string.h>

#include "analysis/reports/report.h"

void ky_aggregation_fini(struct ky_aggregation *aggregation)
{
	ky_vec_foreach(&aggregation->entries, entry)
		ky_stats_fini(&(*entry)->stats);
	ky_vec_fini(&aggregation->entries);
	ky_arena_fini(&aggregation->arena);
	ky_map_fini(&aggregation->by_key);
}

static struct ky_entry *aggregation_make(struct ky_aggregation *aggregation, uint64_t key,
					 const struct ky_thread *thread, uint64_t what)
{
	struct ky_entry *entry = ky_arena_new(&aggregation->arena, struct ky_entry);

	if (!entry || ky_vec_push(&aggregation->entries, entry) < 0)
		return NULL;
	entry->thread = thread;
	entry->what = what;
	entry->n_threads = thread != NULL;
	return ky_map_set(&aggregation->by_key, key, entry) < 0 ? NULL : entry;
}

struct ky_entry *ky_aggregation_find(struct ky_aggregation *aggregation,
				     const struct ky_thread *thread, uint64_t what)
{
	uint32_t who = thread ? thread->index + 1 : 0;
	uint64_t key = (uint64_t)who << 32 | (uint32_t)what;
	struct ky_entry *entry = ky_map_get(&aggregation->by_key, key);

	if (!entry)
		entry = aggregation_make(aggregation, key, thread, what);
	aggregation->recent[(who ^ what) % KY_AGGREGATION_RECENT] = entry;
	return entry;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Its process' first thread, where that is known. */
static const struct ky_thread *leader_of(const struct ky_thread *thread)
{
	const struct ky_thread *leader;

	if (thread->pid < 0 || thread->pid == thread->tid)
		return thread;
	leader = ky_map_get(&thread->host->threads, (uint32_t)thread->pid);
	return leader ? leader : thread;
}

static int compare_hosts(const struct ky_thread *a, const struct ky_thread *b)
{
	return a->host->index < b->host->index ? -1 : a->host->index > b->host->index;
}

/* Threads of one group compare as equal. */
int ky_threads_compare(const struct ky_thread *a, const struct ky_thread *b, enum ky_by by)
{
	int order;

	if (!a || !b || a == b || by == KY_BY_NOTHING)
		return by == KY_BY_NOTHING ? 0 : (a != NULL) - (b != NULL);
	order = compare_hosts(a, b);
	if (order)
		return order;
	if (by == KY_BY_NAME) {
		order = strcmp(a->comm, b->comm);
		if (order || a->comm[0])
			return order;
	}
	if (by == KY_BY_CGROUP)
		return a->cgroup < b->cgroup ? -1 : a->cgroup > b->cgroup;
	if (by == KY_BY_PROCESS && a->pid >= 0 && b->pid >= 0)
		return a->pid < b->pid ? -1 : a->pid > b->pid;
	if (by == KY_BY_PROCESS && a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

int ky_threads_compare_what(const struct ky_thread *a, uint64_t what_a, const struct ky_thread *b,
			    uint64_t what_b, enum ky_by by)
{
	int order = ky_threads_compare(a, b, by);

	if (order)
		return order;
	if (what_a != what_b)
		return what_a < what_b ? -1 : 1;
	return ky_threads_compare(a, b, KY_BY_THREAD);
}

struct order {
	enum ky_by by;
	bool keep_what;
};

static int aggregation_compare_entries(const void *a, const void *b, void *data)
{
	const struct ky_entry *left = *(struct ky_entry *const *)a;
	const struct ky_entry *right = *(struct ky_entry *const *)b;
	const struct order *by = data;
	int order = ky_threads_compare(left->thread, right->thread, by->by);

	if (order)
		return order;
	if (by->keep_what && left->what != right->what)
		return left->what < right->what ? -1 : 1;
	order = ky_threads_compare(left->thread, right->thread, KY_BY_THREAD);
	if (order)
		return order;
	return left->what < right->what ? -1 : left->what > right->what;
}

static int aggregation_add_entry(struct ky_entry *to, const struct ky_entry *from)
{
	for (int i = 0; i < KY_ENTRY_SUMS; i++)
		to->sums[i] += from->sums[i];
	return ky_stats_merge(&to->stats, &from->stats);
}

int ky_aggregation_group(struct ky_aggregation *to, struct ky_aggregation *from, enum ky_by by,
			 bool keep_what)
{
	struct order order = {by, keep_what};
	const struct ky_entry *before = NULL;
	struct ky_entry *group = NULL;

	if (from->entries.len)
		qsort_r(from->entries.data, from->entries.len, sizeof(*from->entries.data),
			aggregation_compare_entries, &order);
	ky_vec_foreach(&from->entries, it) {
		const struct ky_entry *entry = *it;

		if (!group || ky_threads_compare(entry->thread, before->thread, by) ||
		    (keep_what && entry->what != before->what)) {
			group = ky_arena_new(&to->arena, struct ky_entry);
			if (!group || ky_vec_push(&to->entries, group) < 0)
				return KYMO_E_MEMORY;
			group->thread = by == KY_BY_NOTHING ? NULL : entry->thread;
			group->what = keep_what ? entry->what : 0;
			before = NULL;
		}
		group->n_threads += entry->thread && (!before || before->thread != entry->thread);
		if (aggregation_add_entry(group, entry) < 0)
			return KYMO_E_MEMORY;
		before = entry;
	}
	return 0;
}

/* By its path, or its number where the trace has no path for it. */
static void cell_cgroup(struct ky_table *table, struct ky_cell *cell,
			const struct ky_thread *thread, const char *host)
{
	const char *path = ky_model_cgroup_path(thread);
	char number[32];

	snprintf(number, sizeof(number), "cgroup %llu", (unsigned long long)thread->cgroup);
	ky_cell_process(table, cell, -1, -1,
			!thread->cgroup ? "(unknown)"
			: path		? path
					: number,
			host);
}

void ky_cell_who(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		 const struct ky_thread *thread, enum ky_by by)
{
	const char *host;

	if (!thread)
		return;
	host = ky_report_host(model, thread->host);
	if (by == KY_BY_PROCESS && thread->pid >= 0)
		ky_cell_process(table, cell, -1, thread->pid,
				leader_of(thread)->comm[0] ? leader_of(thread)->comm : thread->comm,
				host);
	else if (by == KY_BY_CGROUP)
		cell_cgroup(table, cell, thread, host);
	else if (by == KY_BY_NAME && thread->comm[0])
		ky_cell_process(table, cell, -1, -1, thread->comm, host);
	else
		ky_cell_thread(table, cell, model, thread);
}

struct seconds {
	const struct ky_model *model;
	enum ky_by by;
};

static int compare_seconds(const void *a, const void *b, void *data)
{
	const struct ky_entry *left = *(struct ky_entry *const *)a;
	const struct ky_entry *right = *(struct ky_entry *const *)b;
	const struct seconds *seconds = data;

	return ky_threads_compare(ky_model_thread(seconds->model, left->what),
				  ky_model_thread(seconds->model, right->what), seconds->by);
}

void ky_aggregation_unite(struct ky_aggregation *aggregation, const struct ky_model *model,
			  enum ky_by by)
{
	struct seconds seconds = {model, by};
	struct ky_entry **pairs = aggregation->entries.data;
	size_t n = aggregation->entries.len;

	if (n)
		qsort_r(pairs, n, sizeof(*pairs), compare_seconds, &seconds);
	for (size_t i = 1; i < n; i++)
		if (compare_seconds(&pairs[i - 1], &pairs[i], &seconds) == 0)
			pairs[i]->what = pairs[i - 1]->what;
}
