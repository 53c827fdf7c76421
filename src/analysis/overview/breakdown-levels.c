/* SPDX-License-Identifier: MIT */
/* Report breakdown: the time of system calls at each level, from the call to the device. */
#include "analysis/overview/breakdown.h"

#include <stdlib.h>
#include <string.h>

enum {
	LEVEL_NAME,
	LEVEL_WHAT,
	LEVEL_BY,
	LEVEL_DISK,
	LEVEL_COUNT,
	LEVEL_TIME,
	LEVEL_SHARE,
	LEVEL_MEAN,
	LEVEL_LONGEST
};

static const struct ky_column level_columns[] = {
	[LEVEL_NAME] =
		{"level", "Level", KY_CELL_TEXT,
		 "'system call'; 'file system': between two events of it, or a single event; "
		 "'block layer': the thread waited, and its request was in the queue; 'driver': "
		 "the driver and the device had the request; 'cache flush': the device emptied "
		 "its cache."},
	[LEVEL_WHAT] = {"what", "What", KY_CELL_TEXT,
			"The call, or the step of the file system, by the name of its events."},
	[LEVEL_BY] = {"process", "Thread", KY_CELL_PROCESS,
		      "The thread that the call waited for, and that went through this level; '-': "
		      "the thread of the call.",
		      .second = true},
	[LEVEL_DISK] = {"disk", "Device", KY_CELL_DISK, "The block device."},
	[LEVEL_COUNT] = {"count", "Count", KY_CELL_COUNT, "How often.", .spare = 1},
	[LEVEL_TIME] = {"time", "Time", KY_CELL_DURATION,
			"The sum of these times. Steps of a file system may lie in each other."},
	[LEVEL_SHARE] = {"share", "Share", KY_CELL_RATIO, "Of the time of the calls.",
			 .bar = KY_BAR_WHOLE},
	[LEVEL_MEAN] = {"mean", "Mean", KY_CELL_DURATION, "The mean.", .spare = 2},
	[LEVEL_LONGEST] = {"longest", "Longest", KY_CELL_DURATION, "The longest.", .spare = 3},
};

const struct ky_table_def ky_breakdown_levels = KY_TABLE_DEF(
	"levels", "From system call to device",
	"Of system calls that came to a file system or a block device: one row for each level and "
	"step. Time of a level is part of the time of the levels above it.",
	level_columns, KY_TABLE_FIXED);

enum level { LEVEL_CALL, LEVEL_FS, LEVEL_QUEUE, LEVEL_DRIVER, LEVEL_FLUSH };

struct level_sum {
	enum level level;
	const char *what; /* borrowed from the model */
	const struct ky_thread *by;
	const struct ky_disk *disk;
	uint64_t n, ns, longest_ns;
};

struct levels {
	struct ky_breakdown *run;
	KY_VEC(struct level_sum) list;
	const struct ky_thread *own, *by; /* of the member; whose level it is, NULL: its own */
};

/* So many rows are distinguished. */
#define LEVELS_MAX 200

static int breakdown_levels_add(struct levels *levels, const struct level_sum *like, int64_t begin,
				int64_t end)
{
	uint64_t ns = ky_ns_between(begin, end);
	struct level_sum *sum = NULL;

	ky_vec_foreach(&levels->list, it) {
		if (it->level == like->level && it->what == like->what && it->by == like->by &&
		    it->disk == like->disk)
			sum = it;
	}
	if (!sum && levels->list.len == LEVELS_MAX)
		return 0;
	if (!sum && ky_vec_push(&levels->list, *like) < 0)
		return KYMO_E_MEMORY;
	if (!sum)
		sum = ky_vec_last(&levels->list);
	sum->n++;
	sum->ns += ns;
	if (sum->longest_ns < ns)
		sum->longest_ns = ns;
	return 0;
}

static int breakdown_levels_step(void *data, const struct ky_fs_seen *step)
{
	struct levels *levels = data;
	struct level_sum like = {.level = LEVEL_FS, .what = step->step->name, .by = levels->by};

	return breakdown_levels_add(levels, &like, step->begin_ns, step->end_ns);
}

static int breakdown_levels_block(struct levels *levels, const struct ky_part *part)
{
	struct level_sum like = {.what = "", .by = levels->by, .disk = part->disk};

	if (part->cause == KY_CAUSE_DISK_QUEUE)
		like.level = LEVEL_QUEUE;
	else if (part->cause == KY_CAUSE_DISK_DEVICE)
		like.level = LEVEL_DRIVER;
	else if (part->cause == KY_CAUSE_DISK_FLUSH)
		like.level = LEVEL_FLUSH;
	else
		return 0;
	return breakdown_levels_add(levels, &like, part->begin_ns, part->end_ns);
}

static int breakdown_levels_other(void *data, const struct ky_part *part)
{
	return breakdown_levels_block(data, part);
}

/* Of the call's own thread; and of a thread that it waits for, such as the one of a journal, over that time. */
static int breakdown_levels_own(void *data, const struct ky_part *part)
{
	struct levels *levels = data;
	const struct ky_causes *causes = levels->run->members->causes;
	int status = breakdown_levels_block(levels, part);

	if (status < 0 || part->cause != KY_CAUSE_THREAD || !part->who || part->who == levels->own)
		return status;
	levels->by = part->who;
	status = ky_causes_explain(causes, part->who, part->begin_ns, part->end_ns,
				   breakdown_levels_other, levels);
	if (status >= 0)
		status = ky_causes_steps(causes, part->who, part->begin_ns, part->end_ns,
					 breakdown_levels_step, levels);
	levels->by = NULL;
	return status;
}

static int breakdown_levels_member(struct levels *levels, const struct ky_cause_member *member)
{
	const struct ky_cause_members *members = levels->run->members;
	struct level_sum like = {
		.level = LEVEL_CALL,
		.what = ky_model_syscall_name(members->model, member->syscall),
	};
	int status = breakdown_levels_add(levels, &like, member->begin_ns, member->end_ns);

	levels->own = member->thread;
	if (status >= 0)
		status = ky_causes_steps(members->causes, member->thread, member->begin_ns,
					 member->end_ns, breakdown_levels_step, levels);
	if (status >= 0)
		status = ky_causes_explain(members->causes, member->thread, member->begin_ns,
					   member->end_ns, breakdown_levels_own, levels);
	return status;
}

static int breakdown_levels_compare(const void *a, const void *b)
{
	const struct level_sum *left = a, *right = b;

	if (left->level != right->level)
		return left->level < right->level ? -1 : 1;
	if (left->ns != right->ns)
		return left->ns < right->ns ? 1 : -1;
	if (left->n != right->n)
		return left->n < right->n ? 1 : -1;
	return strcmp(left->what, right->what);
}

/* Is there room for it? With a limit, single events of file systems have none. */
static bool breakdown_levels_fits(const struct level_sum *sum, struct ky_table *table,
				  uint64_t limit, uint64_t *n)
{
	if (sum->level != LEVEL_FS || !limit || (sum->ns && ++*n <= limit))
		return true;
	table->n_omitted++;
	return false;
}

static void breakdown_levels_fill(const struct levels *levels, struct ky_table *table,
				  uint64_t limit)
{
	static const char *const names[] = {
		[LEVEL_CALL] = "system call",  [LEVEL_FS] = "file system",
		[LEVEL_QUEUE] = "block layer", [LEVEL_DRIVER] = "driver",
		[LEVEL_FLUSH] = "cache flush",
	};
	uint64_t n = 0;

	ky_vec_foreach(&levels->list, sum) {
		struct ky_cell *row;

		if (!breakdown_levels_fits(sum, table, limit, &n))
			continue;
		row = ky_table_row(table);
		ky_cell_text(table, &row[LEVEL_NAME], names[sum->level]);
		ky_cell_text(table, &row[LEVEL_WHAT], sum->what);
		if (sum->by)
			ky_cell_thread(table, &row[LEVEL_BY], levels->run->model, sum->by);
		if (sum->disk)
			ky_cell_text(table, &row[LEVEL_DISK], sum->disk->name);
		ky_cell_u64(&row[LEVEL_COUNT], sum->n);
		if (!sum->ns)
			continue;
		ky_cell_u64(&row[LEVEL_TIME], sum->ns);
		ky_cell_f64(&row[LEVEL_SHARE], ky_part(sum->ns, levels->run->causes.total_ns));
		ky_cell_f64(&row[LEVEL_MEAN], (double)sum->ns / (double)sum->n);
		ky_cell_u64(&row[LEVEL_LONGEST], sum->longest_ns);
	}
}

/* Levels below the call: has any of them been seen, and is the one of file systems among them? */
static bool breakdown_levels_has(const struct levels *levels, enum level least)
{
	ky_vec_foreach(&levels->list, sum) {
		if (sum->level >= least)
			return true;
	}
	return false;
}

int ky_breakdown_fill_levels(struct ky_breakdown *run, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	struct levels levels = {.run = run};
	int status = 0;

	for (size_t i = 0; i < run->members->list.len && status >= 0; i++) {
		const struct ky_cause_member *member = &run->members->list.data[i];

		if (run->members->of.kind == KY_OF_SYSCALL && member->thread &&
		    ky_report_wants_member(options, result, member, i))
			status = breakdown_levels_member(&levels, member);
	}
	if (levels.list.len)
		qsort(levels.list.data, levels.list.len, sizeof(*levels.list.data),
		      breakdown_levels_compare);
	if (status >= 0 && breakdown_levels_has(&levels, LEVEL_FS))
		breakdown_levels_fill(&levels, &result->tables[TABLE_LEVELS],
				      ky_report_limit(options, KY_TABLE_RANK));
	if (status >= 0 && breakdown_levels_has(&levels, LEVEL_QUEUE) &&
	    !(ky_model_abilities(run->model) & KY_CAN_FS))
		status = ky_report_note(
			result, "the trace has no events of file systems, so table levels goes "
				"from the system call to the block layer; record them with: "
				"kymo record -k 'default,ext4_*,jbd2_*' (or xfs_*, btrfs_*, "
				"f2fs_*, nfs*)");
	ky_vec_fini(&levels.list);
	return status;
}
