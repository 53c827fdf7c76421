/* SPDX-License-Identifier: MIT */
#include "analysis/resources/locks-kernel.h"

#include <stdlib.h>

enum {
	KERNEL_KIND,
	KERNEL_ADDRESS,
	KERNEL_WAITERS,
	KERNEL_FAILED,
	KERNEL_STATS,
	KERNEL_WAITER = KERNEL_STATS + KY_STATS_COLUMNS,
	KERNEL_HOLDER,
	KERNEL_DELAY
};

static const struct ky_column kernel_columns[] = {
	[KERNEL_KIND] =
		{"kind", "Kind", KY_CELL_TEXT,
		 "As perf lock contention calls it: mutex, rwsem, spinlock, rwlock, pcpu-sem; R waits "
		 "to read, W to write."},
	[KERNEL_ADDRESS] = {"address", "Lock", KY_CELL_ADDRESS, "The lock's address in the kernel.",
			    .spare = 4},
	[KERNEL_WAITERS] = {"waiters", "Threads", KY_CELL_COUNT, "How many threads waited there."},
	[KERNEL_FAILED] = {"failed", "Failed", KY_CELL_COUNT, "Waits that a signal ended.",
			   .spare = 9},
	KY_STATS_COLUMN_DEFS(KERNEL_STATS, "waits"),
	[KERNEL_WAITER] = {"waiter", "Most waited", KY_CELL_PROCESS,
			   "The thread that waited longest, in sum.", .second = true},
	[KERNEL_HOLDER] =
		{"holder", "Held by", KY_CELL_PROCESS,
		 "The thread that got the lock while others waited for it, and made them wait "
		 "longest. '-': each wait was for a thread that had not waited itself, which no "
		 "event names.",
		 .second = true},
	[KERNEL_DELAY] = {"delay", "Its part", KY_CELL_DURATION,
			  "How long others waited for that thread, summed over them.", .spare = 2},
};

const struct ky_table_def ky_kernel_locks_table =
	KY_SHORT_TABLE_DEF("kernel", "Waits for locks of the kernel",
			   "One row for each lock of the kernel and each kind of wait there, the "
			   "largest sum of waits first.",
			   kernel_columns, KY_TABLE_RANK);

struct ky_kernel_lock {
	const struct ky_host *host;
	uint64_t address;
	const char *kind;
	/* What the table shows. */
	struct ky_stats stats;
	uint64_t waiters, failed;
	const struct ky_thread *waiter, *holder;
	uint64_t waiter_ns, delay_ns;
};

enum { SUM_DELAY, SUM_FAILED };

/* Two kinds of wait at an address are two rows. */
static uint64_t kernel_locks_hash(const struct ky_contention *wait, const char *kind)
{
	return ky_hash_u64(wait->address ^ (uint64_t)(uintptr_t)kind << 1 ^
			   ky_hash_u64((uintptr_t)wait->thread->host));
}

static int kernel_locks_find(struct ky_kernel_locks *locks, const struct ky_contention *wait,
			     size_t *index)
{
	const char *kind = ky_contention_kind(wait->flags);
	uint64_t hash = kernel_locks_hash(wait, kind);
	uintptr_t found = (uintptr_t)ky_map_get(&locks->by_lock, hash);

	*index = found - 1;
	if (found)
		return 0;
	*index = locks->list.len;
	if (ky_vec_push(&locks->list, (struct ky_kernel_lock){.host = wait->thread->host,
							      .address = wait->address,
							      .kind = kind}) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&locks->by_lock, hash, (void *)(uintptr_t)(*index + 1));
}

int ky_kernel_locks_add(struct ky_kernel_locks *locks, const struct ky_contention *wait)
{
	struct ky_entry *entry;
	size_t lock;

	if (kernel_locks_find(locks, wait, &lock) < 0)
		return KYMO_E_MEMORY;
	if (wait->holder) {
		entry = ky_aggregation_get(&locks->holders, wait->holder, lock);
		if (!entry)
			return KYMO_E_MEMORY;
		entry->sums[SUM_DELAY] += wait->held_ns;
	}
	entry = ky_aggregation_get(&locks->waits, wait->thread, lock);
	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[SUM_FAILED] += wait->failed;
	return ky_stats_add(&entry->stats, ky_ns_between(wait->begin_ns, wait->end_ns));
}

/* Of the threads of each lock, the sum and the first. */
static int kernel_locks_sum(struct ky_kernel_locks *locks)
{
	ky_vec_foreach(&locks->waits.entries, it) {
		struct ky_kernel_lock *lock = &locks->list.data[(*it)->what];
		uint64_t ns = (uint64_t)ky_stats_moments(&(*it)->stats).sum;

		lock->waiters++;
		lock->failed += (*it)->sums[SUM_FAILED];
		if (!lock->waiter || ns > lock->waiter_ns) {
			lock->waiter = (*it)->thread;
			lock->waiter_ns = ns;
		}
		if (ky_stats_merge(&lock->stats, &(*it)->stats) < 0)
			return KYMO_E_MEMORY;
	}
	ky_vec_foreach(&locks->holders.entries, it) {
		struct ky_kernel_lock *lock = &locks->list.data[(*it)->what];

		if (!lock->holder || (*it)->sums[SUM_DELAY] > lock->delay_ns) {
			lock->holder = (*it)->thread;
			lock->delay_ns = (*it)->sums[SUM_DELAY];
		}
	}
	return 0;
}

int ky_kernel_locks_fill(struct ky_kernel_locks *locks, const struct ky_model *model,
			 struct ky_table *table)
{
	int status = kernel_locks_sum(locks);

	ky_vec_foreach(&locks->list, lock) {
		struct ky_cell *row = ky_table_row(table);

		ky_cell_text(table, &row[KERNEL_KIND], lock->kind);
		ky_cell_u64(&row[KERNEL_ADDRESS], lock->address);
		ky_cell_u64(&row[KERNEL_WAITERS], lock->waiters);
		ky_cell_u64(&row[KERNEL_FAILED], lock->failed);
		ky_fill_stats(&row[KERNEL_STATS], &lock->stats);
		ky_cell_thread(table, &row[KERNEL_WAITER], model, lock->waiter);
		if (!lock->holder)
			continue;
		ky_cell_thread(table, &row[KERNEL_HOLDER], model, lock->holder);
		ky_cell_u64(&row[KERNEL_DELAY], lock->delay_ns);
	}
	ky_table_sort(table, KERNEL_STATS + KY_STATS_TOTAL, false);
	return status;
}

void ky_kernel_locks_fini(struct ky_kernel_locks *locks)
{
	ky_vec_foreach(&locks->list, lock)
		ky_stats_fini(&lock->stats);
	ky_vec_fini(&locks->list);
	ky_map_fini(&locks->by_lock);
	ky_aggregation_fini(&locks->waits);
	ky_aggregation_fini(&locks->holders);
}
