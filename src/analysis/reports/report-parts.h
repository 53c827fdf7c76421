/* SPDX-License-Identifier: MIT */
/* What reports on causes share: columns of parts of times, and threads by groups. */
#ifndef KY_ANALYSIS_REPORTS_REPORT_PARTS_H
#define KY_ANALYSIS_REPORTS_REPORT_PARTS_H

#include "analysis/causes/members.h"
#include "analysis/causes/part-sums.h"
#include "analysis/reports/report.h"

/* Columns from column @at on, KY_PART_COLUMNS of them. */
enum {
	KY_PART_CAUSE,
	KY_PART_WHO_COLUMN,
	KY_PART_IRQ,
	KY_PART_DISK,
	KY_PART_SYSCALL,
	KY_PART_FILE,
	KY_PART_FUTEX,
	KY_PART_COLUMNS
};

#define KY_PART_CAUSE_HELP                                                                        \
	"What the thread did, or waited for: 'running in user space', 'running in the kernel', "  \
	"'running' (the trace does not tell which of the two), 'interrupted', 'preempted', "      \
	"'waiting for a CPU' (after a wake-up), 'blocked' with the reason, or 'unknown' (events " \
	"do not tell, or are lost)."

/* clang-format off */
#define KY_PART_COLUMN_DEFS(at)                                                                  \
	[(at) + KY_PART_CAUSE] = {"cause", "Part", KY_CELL_TEXT, KY_PART_CAUSE_HELP},            \
	[(at) + KY_PART_WHO_COLUMN] = {"who", "By", KY_CELL_PROCESS,                             \
		"Who caused it: the thread that ran meanwhile on the CPU ('preempted', 'waiting "  \
		"for a CPU'; '(idle CPU)': the CPU was on its way out of sleep), the interrupt " \
		"that ran on top ('interrupted'), the thread that held the "                       \
		"lock, whose requests the device had meanwhile, or that ended the wait.",         \
		.second = true},                                                                 \
	[(at) + KY_PART_IRQ] = {"irq", "Interrupt", KY_CELL_IRQ,                                 \
		"The interrupt that ran on top of the thread, or that ended the wait.", .spare = 3}, \
	[(at) + KY_PART_DISK] = {"disk", "Device", KY_CELL_DISK,                                 \
		"The block device of the request.", .spare = 1},                                 \
	[(at) + KY_PART_SYSCALL] = {"syscall", "In call", KY_CELL_SYSCALL,                       \
		"The system call that the thread was in; '(page fault)': a page fault outside of calls.", .spare = 2},                          \
	[(at) + KY_PART_FILE] = {"file", "File", KY_CELL_PATH,                                   \
		"The file, pipe or socket of the call.", .spare = 5},                            \
	[(at) + KY_PART_FUTEX] = {"futex", "Futex", KY_CELL_ADDRESS,                             \
		"The address of the lock word.", .spare = 4}
/* clang-format on */

/* A log of parts: one row for each. */
enum {
	KY_PART_LOG_NUMBER,
	KY_PART_LOG_BEGIN,
	KY_PART_LOG_END,
	KY_PART_LOG_DURATION,
	KY_PART_LOG_THREAD,
	KY_PART_LOG_PARTS,
	KY_PART_LOG_CPU = KY_PART_LOG_PARTS + KY_PART_COLUMNS
};

/* clang-format off */
#define KY_PART_LOG_COLUMN_DEFS(number_help, thread_help, rest)                                        \
	[KY_PART_LOG_NUMBER] = {"member", "No.", KY_CELL_COUNT, number_help, .spare = 8},        \
	[KY_PART_LOG_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the part began."},     \
	[KY_PART_LOG_END] = {"end", "End", KY_CELL_TIMESTAMP,                                    \
		"When it ended: the next part begins there.", .spare = 9},                       \
	[KY_PART_LOG_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "How long it took."}, \
	[KY_PART_LOG_THREAD] = {"process", "Thread", KY_CELL_PROCESS, thread_help, .spare = rest},  \
	KY_PART_COLUMN_DEFS(KY_PART_LOG_PARTS),                                                  \
	[KY_PART_LOG_CPU] = {"cpu", "CPU", KY_CELL_CPU, "Where the thread ran, or waited.", .spare = 6}
/* clang-format on */

/* Of a report on causes. */
#define KY_CAUSES_NEEDS_HINT \
	"record them with: kymo record -k 'sched_*' -k 'irq_*' -k 'block_*' -k syscalls"
#define KY_CAUSES_NEEDS                                              \
	.needs = KY_CAN_SWITCH, .needs_text = "sched_switch events", \
	.needs_hint = KY_CAUSES_NEEDS_HINT

/* What the options choose, of a pass over the events of @model. NULL: out of memory. */
struct ky_cause_members *ky_report_members_new(struct ky_model *model,
					       const struct ky_report_options *options);

/* A row of a log for a part of member @number, from 0. */
void ky_fill_part_log(struct ky_table *table, const struct ky_model *model, uint64_t number,
		      const struct ky_part *part);

/* The cells of a part; @row is the cell of KY_PART_CAUSE. */
void ky_fill_part(struct ky_table *table, struct ky_cell *row, const struct ky_model *model,
		  const struct ky_part *part, enum ky_by by);

/* The first thread of each thread's group, by the threads' indices; to be freed. NULL: out of memory, or @by threads. */
const struct ky_thread **ky_part_groups(const struct ky_model *model, enum ky_by by);

/* Is member number @i wanted? Without --member, --at and --cell, all are. */
bool ky_report_wants_member(const struct ky_report_options *options,
			    const struct ky_report_result *result,
			    const struct ky_cause_member *member, size_t i);

/* Columns of report heatmap, which divide the range of the result, and the one of a time, from 0. */
#define KY_HEATMAP_COLUMNS 48
size_t ky_heatmap_column(const struct ky_report_result *result, int64_t ns);

/* So many parts take about half a minute: a report leaves out the members after them, with a note. */
#define KY_PARTS_MAX 100000000

/* Notes on what limits a report on causes: losses, memory, events that the trace lacks. 0 or a negative status. */
int ky_report_note_causes(struct ky_report_result *result, const struct ky_causes *causes);
/* "no thread matches", and what may be the reason; and as a note. 0 or KYMO_E_MEMORY. */
void ky_report_add_nothing(struct ky_strbuf *out, const struct ky_cause_members *members);
int ky_report_note_nothing(struct ky_report_result *result, const struct ky_cause_members *members);
/* The same of members: calls without an end, and too many. */
int ky_report_note_members(struct ky_report_result *result, const struct ky_cause_members *members);

#endif
