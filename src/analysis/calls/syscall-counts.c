/* SPDX-License-Identifier: MIT */
#include "analysis/calls/syscall-counts.h"

#include <stdio.h>
#include <stdlib.h>

#include <kymo/error.h>

#include "analysis/state/errno-name.h"

/* ---- counting -------------------------------------------------------------------------- */

static struct ky_syscall_count *add_usage(struct ky_syscall_counts *usages,
					  const struct ky_thread *thread, uint32_t syscall)
{
	struct ky_syscall_count *usage = ky_arena_new(&usages->arena, struct ky_syscall_count);

	if (!usage || ky_vec_push(&usages->list, usage) < 0)
		return NULL;
	usage->thread = thread;
	usage->syscall = syscall;
	return usage;
}

void ky_syscall_counts_fini(struct ky_syscall_counts *usages)
{
	ky_vec_foreach(&usages->list, usage) {
		ky_stats_fini(&(*usage)->stats);
		ky_vec_fini(&(*usage)->errors);
	}
	ky_vec_fini(&usages->list);
	ky_arena_fini(&usages->arena);
	ky_map_fini(&usages->by_key);
}

static int add_error(struct ky_syscall_count *usage, int number, uint64_t count)
{
	ky_vec_foreach(&usage->errors, error) {
		if (error->number == number) {
			error->count += count;
			return 0;
		}
	}
	return ky_vec_push(&usage->errors, (struct ky_error_count){number, count});
}

static struct ky_syscall_count *syscall_counts_find_or_make(struct ky_syscall_counts *usages,
							    const struct ky_call *call)
{
	uint64_t key = (uint64_t)call->thread->index << 32 | call->syscall;
	struct ky_syscall_count *usage = ky_map_get(&usages->by_key, key);

	if (usage)
		return usage;
	usage = add_usage(usages, call->thread, call->syscall);
	return usage && ky_map_set(&usages->by_key, key, usage) == 0 ? usage : NULL;
}

static struct ky_syscall_count *find_usage(struct ky_syscall_counts *usages,
					   const struct ky_call *call)
{
	struct ky_syscall_count **recent =
		&usages->recent[(call->syscall ^ call->thread->index) % KY_AGGREGATION_RECENT];

	if (!*recent || (*recent)->thread != call->thread || (*recent)->syscall != call->syscall)
		*recent = syscall_counts_find_or_make(usages, call);
	return *recent;
}

int ky_syscall_counts_add(struct ky_syscall_counts *usages, const struct ky_call *call)
{
	struct ky_syscall_count *usage = find_usage(usages, call);

	if (!usage)
		return KYMO_E_MEMORY;
	if (call->has_ret && ky_is_error(call->ret)) {
		usage->failed++;
		if (add_error(usage, (int)-call->ret, 1) < 0)
			return KYMO_E_MEMORY;
	}
	return ky_stats_add(&usage->stats,
			    call->end_ns > call->begin_ns
				    ? (uint64_t)call->end_ns - (uint64_t)call->begin_ns
				    : 0);
}

/* ---- groups ---------------------------------------------------------------------------- */

static int compare_usages(const void *a, const void *b, void *data)
{
	const struct ky_syscall_count *left = *(struct ky_syscall_count *const *)a;
	const struct ky_syscall_count *right = *(struct ky_syscall_count *const *)b;
	const enum ky_by *by = data;

	return ky_threads_compare_what(left->thread, left->syscall, right->thread, right->syscall,
				       *by);
}

/* The histograms' cells are the same everywhere, so sums come from merging. */
static int merge(struct ky_syscall_count *into, const struct ky_syscall_count *from)
{
	into->failed += from->failed;
	ky_vec_foreach(&from->errors, error) {
		if (add_error(into, error->number, error->count) < 0)
			return KYMO_E_MEMORY;
	}
	return ky_stats_merge(&into->stats, &from->stats);
}

/* Usages from @first on are of one group: they have one thread to name it by. */
static void close_group(struct ky_syscall_counts *groups, size_t first)
{
	const struct ky_thread *thread = NULL;
	uint64_t calls = 0;

	for (size_t i = first; i < groups->list.len; i++) {
		const struct ky_syscall_count *usage = groups->list.data[i];

		calls += usage->stats.count;
		if (!thread || (usage->thread && usage->thread->index < thread->index))
			thread = usage->thread;
	}
	for (size_t i = first; i < groups->list.len; i++) {
		groups->list.data[i]->thread = thread;
		groups->list.data[i]->group_calls = calls;
	}
}

int ky_syscall_counts_group(struct ky_syscall_counts *to, struct ky_syscall_counts *from,
			    enum ky_by by)
{
	const struct ky_syscall_count *before = NULL;
	struct ky_syscall_count *group = NULL;
	size_t first = 0;

	if (from->list.len) /* no null pointer for no bytes */
		qsort_r(from->list.data, from->list.len, sizeof(*from->list.data), compare_usages,
			&by);
	ky_vec_foreach(&from->list, it) {
		const struct ky_syscall_count *usage = *it;
		bool same = before && !ky_threads_compare(before->thread, usage->thread, by);

		if (!same) {
			close_group(to, first);
			first = to->list.len;
		}
		if (!same || usage->syscall != before->syscall)
			group = add_usage(to, usage->thread, usage->syscall);
		if (!group || merge(group, usage) < 0)
			return KYMO_E_MEMORY;
		before = usage;
	}
	close_group(to, first);
	return 0;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct ky_syscall_count *left = *(struct ky_syscall_count *const *)a;
	const struct ky_syscall_count *right = *(struct ky_syscall_count *const *)b;
	const struct ky_thread *l = left->thread, *r = right->thread;

	if (left->group_calls != right->group_calls)
		return left->group_calls > right->group_calls ? -1 : 1;
	if (l->tid != r->tid)
		return l->tid < r->tid ? -1 : 1;
	if (l != r)
		return l->index < r->index ? -1 : 1; /* two lives of one id, or two hosts */
	if (left->stats.count != right->stats.count)
		return left->stats.count > right->stats.count ? -1 : 1;
	return left->syscall < right->syscall ? -1 : left->syscall > right->syscall;
}

void ky_syscall_counts_rank(struct ky_syscall_counts *groups)
{
	if (groups->list.len)
		qsort(groups->list.data, groups->list.len, sizeof(*groups->list.data),
		      compare_ranks);
}

/* ---- errors ---------------------------------------------------------------------------- */

static int compare_errors(const void *a, const void *b)
{
	const struct ky_error_count *left = a, *right = b;

	if (left->count != right->count)
		return left->count > right->count ? -1 : 1;
	return left->number - right->number;
}

int ky_cell_errors(struct ky_table *table, struct ky_cell *cell,
		   const struct ky_syscall_count *usage)
{
	size_t n = usage->errors.len;
	struct ky_tally_item *items;
	char(*numbers)[16];

	if (!n)
		return 0;
	items = calloc(n, sizeof(*items));
	numbers = calloc(n, sizeof(*numbers));
	if (!items || !numbers) {
		free(items);
		free(numbers);
		return KYMO_E_MEMORY;
	}
	qsort(usage->errors.data, n, sizeof(*usage->errors.data), compare_errors);
	for (size_t i = 0; i < n; i++) {
		int number = usage->errors.data[i].number;
		const char *name = ky_errno_name(number);

		snprintf(numbers[i], sizeof(numbers[i]), "errno %d", number);
		items[i] = (struct ky_tally_item){name ? name : numbers[i],
						  usage->errors.data[i].count};
	}
	ky_cell_tally(table, cell, items, n);
	free(items);
	free(numbers);
	return 0;
}
