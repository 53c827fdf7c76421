/* SPDX-License-Identifier: MIT */
#include "analysis/scheduling/migrations.h"

enum { MOVED_PROCESS, MOVED_CAUSE, MOVED_BY, MOVED_COUNT };

static const struct ky_column moved_columns[] = {
	[MOVED_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			   "The thread that moved; with --group-by, the process or the name."},
	[MOVED_CAUSE] =
		{"cause", "Cause", KY_CELL_TEXT,
		 "'wake-up': its waker chose another CPU; 'balancer': it could run, and the load "
		 "balancer moved it, or a change of its cpuset; 'affinity': sched_setaffinity(); "
		 "'exec': execve(), at which the kernel looks for an idle CPU; 'unknown': a switch "
		 "shows the move, and no sched_migrate_task."},
	[MOVED_BY] = {"by", "By", KY_CELL_PROCESS,
		      "The waker, or the caller of sched_setaffinity() or execve(); '-' for the "
		      "balancer, a wake-up by an interrupt or an idle CPU, and if it is unknown.",
		      .second = true},
	[MOVED_COUNT] = {"count", "Migrations", KY_CELL_COUNT, "How often that was.",
			 .bar = KY_BAR_ROOM},
};

const struct ky_table_def ky_migrations_table = KY_DETAIL_TABLE_DEF(
	"migrations", "Migrations and their causes",
	"One row for each thread, cause and thread behind it, the most migrations first.",
	moved_columns, KY_TABLE_RANK);

static const char *const causes[KY_MIGRATION_CAUSES] = {
	[KY_MIGRATION_UNKNOWN] = "unknown",   [KY_MIGRATION_WAKEUP] = "wake-up",
	[KY_MIGRATION_BALANCER] = "balancer", [KY_MIGRATION_AFFINITY] = "affinity",
	[KY_MIGRATION_EXEC] = "exec",
};

/* What an entry is of: the cause, and the thread behind it. */
#define CAUSES_MAX 8

int ky_migrations_add(struct ky_aggregation *migrations, const struct ky_migration *migration)
{
	uint64_t by = migration->by ? migration->by->index + UINT64_C(1) : 0;
	struct ky_entry *entry = ky_aggregation_get(
		migrations, migration->thread, (by * CAUSES_MAX + migration->cause) & UINT32_MAX);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[0]++;
	return 0;
}

static void migrations_fill_row(const void *data, struct ky_table *table,
				const struct ky_entry *entry, enum ky_by by)
{
	const struct ky_model *model = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[MOVED_PROCESS], model, entry->thread, by);
	ky_cell_text(table, &row[MOVED_CAUSE], causes[entry->what % CAUSES_MAX]);
	if (entry->what / CAUSES_MAX)
		ky_cell_who(table, &row[MOVED_BY], model,
			    ky_model_thread(model, entry->what / CAUSES_MAX - 1), by);
	ky_cell_u64(&row[MOVED_COUNT], entry->sums[0]);
}

int ky_migrations_fill(struct ky_aggregation *migrations, struct ky_model *model,
		       struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, migrations, by, true, migrations_fill_row, model);

	ky_table_sort(table, MOVED_COUNT, false);
	return status;
}
