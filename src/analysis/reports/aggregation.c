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

static struct ky_entry *make(struct ky_aggregation *aggregation, uint64_t key,
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
		entry = make(aggregation, key, thread, what);
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

static int compare_entries(const void *a, const void *b, void *data)
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

static int add_entry(struct ky_entry *to, const struct ky_entry *from)
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
			compare_entries, &order);
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
		if (add_entry(group, entry) < 0)
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

/* ---- statistics ---------------------------------------------------------------------------- */

void ky_cell_sum(struct ky_cell *cell, unsigned __int128 sum)
{
	if (sum <= UINT64_MAX)
		ky_cell_u64(cell, (uint64_t)sum);
	else
		ky_cell_f64(cell, (double)sum);
}

void ky_fill_times(struct ky_cell *row, const struct ky_stats *stats)
{
	static const double percents[] = {50, 90, 99, 99.9};
	const struct ky_moments moments = ky_stats_moments(stats);
	struct ky_cell *cell = row - KY_STATS_TOTAL;
	uint64_t values[4];

	if (!moments.count)
		return;
	ky_cell_sum(&cell[KY_STATS_TOTAL], moments.sum);
	ky_cell_u64(&cell[KY_STATS_MIN], moments.min);
	ky_cell_f64(&cell[KY_STATS_AVG], ky_moments_mean(&moments));
	ky_cell_u64(&cell[KY_STATS_MAX], moments.max);
	if (moments.count > 1)
		ky_cell_f64(&cell[KY_STATS_STDEV], ky_moments_stdev(&moments));
	ky_stats_percentiles(stats, percents, 4, values);
	for (int i = 0; i < 4; i++)
		ky_cell_u64(&cell[KY_STATS_P50 + i], values[i]);
}

void ky_fill_stats(struct ky_cell *row, const struct ky_stats *stats)
{
	ky_cell_u64(&row[KY_STATS_COUNT], stats->count);
	ky_fill_times(&row[KY_STATS_TOTAL], stats);
}

/* ---- distributions --------------------------------------------------------------------------- */

#define DECADE(power) power, 2 * (power), 5 * (power)

/* Where each step begins; 64 bits do not reach the last two. */
static const uint64_t step_begins[KY_FREQ_STEPS] = {
	0,
	DECADE(UINT64_C(1)),
	DECADE(UINT64_C(10)),
	DECADE(UINT64_C(100)),
	DECADE(UINT64_C(1000)),
	DECADE(UINT64_C(10000)),
	DECADE(UINT64_C(100000)),
	DECADE(UINT64_C(1000000)),
	DECADE(UINT64_C(10000000)),
	DECADE(UINT64_C(100000000)),
	DECADE(UINT64_C(1000000000)),
	DECADE(UINT64_C(10000000000)),
	DECADE(UINT64_C(100000000000)),
	DECADE(UINT64_C(1000000000000)),
	DECADE(UINT64_C(10000000000000)),
	DECADE(UINT64_C(100000000000000)),
	DECADE(UINT64_C(1000000000000000)),
	DECADE(UINT64_C(10000000000000000)),
	DECADE(UINT64_C(100000000000000000)),
	DECADE(UINT64_C(1000000000000000000)),
	UINT64_C(10000000000000000000),
	UINT64_MAX,
	UINT64_MAX,
};

void ky_freq_add(struct ky_freq *freq, uint64_t ns)
{
	unsigned int step = 0;

	if (ns) {
		/* From the place of the highest bit: the step, or the one before. */
		step = ((63 - (unsigned int)__builtin_clzll(ns)) * 923 + 1072) >> 10;
		step += ns >= step_begins[step + 1];
	}
	freq->counts[step]++;
	freq->n++;
}

void ky_fill_freq(struct ky_table *table, const struct ky_freq *freq, const struct ky_cell *what)
{
	int first = 0, last = KY_FREQ_STEPS - 1;

	while (first < KY_FREQ_STEPS && !freq->counts[first])
		first++;
	while (last > first && !freq->counts[last])
		last--;
	for (int i = first; i <= last && i < KY_FREQ_STEPS; i++) {
		struct ky_cell *row = ky_table_row(table);

		row[KY_FREQ_WHAT] = *what;
		ky_cell_u64(&row[KY_FREQ_FROM], step_begins[i]);
		if (i + 1 < KY_FREQ_STEPS)
			ky_cell_u64(&row[KY_FREQ_TO], step_begins[i + 1]);
		ky_cell_u64(&row[KY_FREQ_COUNT], freq->counts[i]);
		ky_cell_f64(&row[KY_FREQ_SHARE], (double)freq->counts[i] / (double)freq->n);
	}
}

/* ---- records --------------------------------------------------------------------------------- */

/* Stands before each record. */
struct head {
	uint64_t key, order;
};

static size_t stride(const struct ky_records *records)
{
	return sizeof(struct head) + ((records->size + 15) & ~(size_t)15);
}

static struct head *head_at(const struct ky_records *records, size_t i)
{
	return (struct head *)(void *)(records->data + i * stride(records));
}

void ky_records_init(struct ky_records *records, size_t size, uint64_t limit, bool longest)
{
	*records = (struct ky_records){.size = size, .limit = limit, .longest = longest};
}

void ky_records_fini(struct ky_records *records)
{
	free(records->data);
	records->data = NULL;
}

/* Is @a to be kept rather than @b? Of equal keys the earlier. */
static bool is_better(const struct head *a, const struct head *b)
{
	return a->key != b->key ? a->key > b->key : a->order < b->order;
}

static void swap(struct ky_records *records, size_t a, size_t b)
{
	char *left = records->data + a * stride(records),
	     *right = records->data + b * stride(records);

	for (size_t i = 0; i < stride(records); i++) {
		char c = left[i];

		left[i] = right[i];
		right[i] = c;
	}
}

/* A heap whose root is the worst. */
static void sink(struct ky_records *records, size_t i)
{
	for (;;) {
		size_t worst = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < records->len;
		     child++) {
			if (is_better(head_at(records, worst), head_at(records, child)))
				worst = child;
		}
		if (worst == i)
			return;
		swap(records, i, worst);
		i = worst;
	}
}

static void rise(struct ky_records *records, size_t i)
{
	while (i && is_better(head_at(records, (i - 1) / 2), head_at(records, i))) {
		swap(records, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static int make_room(struct ky_records *records)
{
	size_t cap = records->cap ? 2 * records->cap : 16;
	char *data;

	if (records->len < records->cap)
		return 0;
	data = reallocarray(records->data, cap, stride(records));
	if (!data)
		return KYMO_E_MEMORY;
	records->data = data;
	records->cap = cap;
	return 0;
}

static void put(struct ky_records *records, size_t i, const struct head *head, const void *record)
{
	*head_at(records, i) = *head;
	memcpy(head_at(records, i) + 1, record, records->size);
}

int ky_records_keep(struct ky_records *records, uint64_t key, const void *record)
{
	struct head head = {key, records->seen++};

	if (!records->limit || records->len < records->limit) {
		if (make_room(records) < 0)
			return KYMO_E_MEMORY;
		put(records, records->len++, &head, record);
		if (records->longest)
			rise(records, records->len - 1);
	} else if (records->longest && is_better(&head, head_at(records, 0))) {
		put(records, 0, &head, record);
		sink(records, 0);
	}
	records->full = records->limit && records->len == records->limit;
	records->least = records->full && records->longest ? head_at(records, 0)->key : UINT64_MAX;
	return 0;
}

static int compare_heads(const void *a, const void *b)
{
	return is_better(a, b) ? -1 : 1;
}

void ky_records_sort(struct ky_records *records)
{
	if (records->longest && records->len)
		qsort(records->data, records->len, stride(records), compare_heads);
}

const void *ky_records_at(const struct ky_records *records, size_t i)
{
	return head_at(records, i) + 1;
}
