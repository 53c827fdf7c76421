/* SPDX-License-Identifier: MIT */
/* Report breakdown: of which parts times consist. */
#include "analysis/overview/breakdown.h"
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

#define SLOW_HELP                                                                                \
	"The mean of the slowest 1 % (at least one), for comparison with the mean of all: what " \
	"grows most makes the slow ones slow."

static const struct ky_column cause_columns[] = {
	[CAUSE_TEXT] = {"cause", "Part", KY_CELL_TEXT, KY_PART_CAUSE_HELP},
	[CAUSE_TIME] = {"time", "Time", KY_CELL_DURATION,
			"The sum of these parts. All sums together are the whole, exactly."},
	[CAUSE_SHARE] = {"share", "Share", KY_CELL_RATIO, "Of the whole.", .bar = KY_BAR_WHOLE},
	[CAUSE_MEMBERS] = {"members", "In", KY_CELL_COUNT, "How many have such a part."},
	[CAUSE_EACH] = {"each", "Mean", KY_CELL_DURATION,
			"The mean of all, also of those without such a part."},
	[CAUSE_SLOW] = {"slow", "Slowest 1 %", KY_CELL_DURATION, SLOW_HELP},
	[CAUSE_LONGEST] = {"longest", "Longest", KY_CELL_DURATION, "The longest single part.",
			   .spare = 1},
};

static const struct ky_table_def cause_table =
	KY_TABLE_DEF("causes", "Time by cause",
		     "One row for each kind of part, the largest sum first. The last row is the "
		     "whole.",
		     cause_columns, KY_TABLE_FIXED);

static const struct ky_column who_columns[] = {
	KY_PART_COLUMN_DEFS(0),
	[WHO_TIME] = {"time", "Time", KY_CELL_DURATION, "The sum of these parts."},
	[WHO_SHARE] = {"share", "Share", KY_CELL_RATIO, "Of the whole.", .bar = KY_BAR_ROOM},
	[WHO_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many such parts there are.",
		       .spare = 6},
	[WHO_LONGEST] = {"longest", "Longest", KY_CELL_DURATION, "The longest one.", .spare = 7},
	[WHO_SLOW] = {"slow", "Slowest 1 %", KY_CELL_DURATION, SLOW_HELP, .spare = 8},
};

static const struct ky_table_def who_table = KY_SHORT_TABLE_DEF(
	"parts", "Parts, with authors and calls",
	"One row for each cause, its author and the system call, the largest sum first.",
	who_columns, KY_TABLE_RANK);

static const struct ky_column meanwhile_columns[] = {
	[MEAN_CAUSE] = {"waits_for", "Waits for", KY_CELL_TEXT, "What the members waited for.",
			.spare = 9},
	[MEAN_BY] = {"process", "Thread", KY_CELL_PROCESS,
		     "The thread that they waited for: the holder of the lock, or the waker.",
		     .second = true},
	[MEAN_PARTS + KY_PART_CAUSE] = {"cause", "Did meanwhile", KY_CELL_TEXT,
					"What that thread did meanwhile, as in table causes."},
	[MEAN_PARTS + KY_PART_WHO_COLUMN] = {"who", "By", KY_CELL_PROCESS,
					     "Who made that thread wait, as in table parts.",
					     .second = true, .spare = 3},
	[MEAN_PARTS + KY_PART_IRQ] = {"irq", "Interrupt", KY_CELL_IRQ,
				      "The interrupt of that thread, as in table parts.",
				      .spare = 5},
	[MEAN_PARTS + KY_PART_DISK] = {"disk", "Device", KY_CELL_DISK,
				       "The block device that it waited for.", .spare = 2},
	[MEAN_PARTS + KY_PART_SYSCALL] = {"syscall", "In call", KY_CELL_SYSCALL,
					  "The system call that it was in.", .spare = 1},
	[MEAN_PARTS + KY_PART_FILE] = {"file", "File", KY_CELL_PATH, "The file of this call.",
				       .spare = 6},
	[MEAN_PARTS + KY_PART_FUTEX] = {"futex", "Futex", KY_CELL_ADDRESS,
					"The lock word that it waited at itself.", .spare = 7},
	[MEAN_TIME] = {"time", "Time", KY_CELL_DURATION, "The sum of these parts."},
	[MEAN_SHARE] = {"share", "Share", KY_CELL_RATIO, "Of the whole time of the members.",
			.bar = KY_BAR_ROOM},
};

static const struct ky_table_def meanwhile_table = KY_SHORT_TABLE_DEF(
	"meanwhile", "What the threads did that were waited for",
	"One row for each thread that others waited for, and each of its parts in that time, the "
	"largest sum first.",
	meanwhile_columns, KY_TABLE_RANK);

static const struct ky_column top_columns[] = {
	[TOP_NUMBER] = {"member", "No.", KY_CELL_COUNT,
			"Its number, for --member: in the order of the ends, from 1."},
	[TOP_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When it began.", .spare = 2},
	[TOP_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended.", .spare = 3},
	[TOP_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "How long it took."},
	[TOP_THREAD] = {"process", "Thread", KY_CELL_PROCESS,
			"Its thread; of a request or interrupt the thread that it belongs to."},
	[TOP_WHAT] = {"what", "What", KY_CELL_TEXT,
		      "The system call, the device, the interrupt or the period.", .spare = 1},
	[TOP_CAUSE] = {"cause", "Mostly", KY_CELL_TEXT, "Its largest part, as in table causes."},
	[TOP_WHO] = {"who", "By", KY_CELL_PROCESS, "Who caused the largest part.", .second = true},
	[TOP_PART] = {"part", "Part", KY_CELL_RATIO, "The share of the largest part.", .spare = 4},
};

const struct ky_table_def ky_breakdown_top =
	KY_SHORT_TABLE_DEF("top", "The longest", "One row for each member, the longest first.",
			   top_columns, KY_TABLE_TOP);
const struct ky_table_def ky_breakdown_members =
	KY_TABLE_DEF("members", "All", "One row for each member, in the order of their ends.",
		     top_columns, KY_TABLE_LOG);

static const struct ky_column log_columns[] = {
	KY_PART_LOG_COLUMN_DEFS("The member's number.", "The thread of the member.", 7),
};

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "Parts in their order", "One row for each part of each member.",
		     log_columns, KY_TABLE_LOG);

static const struct ky_table_def *const tables[] = {&cause_table,	  &who_table,
						    &ky_breakdown_levels, &meanwhile_table,
						    &ky_breakdown_top,	  &ky_breakdown_members,
						    &log_table,		  NULL};

const struct ky_report ky_report_breakdown = {
	.name = "breakdown",
	.summary = "parts of times: running, preempted, blocked, with authors",
	.description =
		"Explains times: all calls of a system call, all waits for a CPU, requests, interrupts "
		"or periods (--of), or without --of the time of the selected threads, from their first event on, or from the last "
		"execve on (what was before is another program). Each such "
		"time is a member. The report divides each member into parts: running in user space "
		"or in the kernel, interrupted by an interrupt, preempted (by the thread that ran "
		"meanwhile), waiting for a CPU after a wake-up, blocked by a lock, a disk, the network, a "
		"timer, a pipe, a page fault or another thread, ended by a signal (the call failed with EINTR), stopped by a signal or a debugger, and unknown. The parts of a member lie "
		"one after the other, without gap, so that they add up to the whole, exactly.\n"
		"\n"
		"--of takes syscall:NAME (with wildcards), wakeup, preemption, block[:DEVICE], "
		"irq[:NAME], softirq[:NAME], period:NAME (with --period), and span:NAME: from the "
		"event NAME_begin to the event NAME_end of the same thread, as KYMO_SPAN() makes them (kymo "
		"record -k default --user 'shop:*', then --of span:shop:checkout). --tid, --pid, --comm, --cpu, "
		"--min, --max, --begin and --end choose members; their parts show all threads. --at TIME "
		"chooses the members that contain this time, --member N the member with number N of "
		"table top; both show the parts in their order.\n"
		"\n"
		"Reasons come from evidence, in this order: the system call that the thread is in, the "
		"interrupt that woke it, its requests at block devices, the thread that woke it. "
		"The holder of a lock is the thread that released it next: while threads wait, each "
		"release is a futex call. A lock is a futex with the lock word of a mutex "
		"(2: contended, as glibc, musl and Rust have it) or a futex with priority inheritance; "
		"other futexes are condition variables, semaphores and joins, and show the thread that woke.\n"
		"\n"
		"Of system calls that came to a file system or a block device, table levels has the way down: "
		"the call, the steps of the file system, the queue of the block layer, driver and device, the "
		"flush of its cache; also of a thread that the call waited for, such as the journal's.",
	.events =
		"sched_switch; for waits sched_waking, sched_wakeup and sched_migrate_task; "
		"irq_handler_*, softirq_* (or irq_softirq_*) and irq_vectors for interrupts; "
		"system calls with their arguments; block_rq_* for disks; exceptions_page_fault_* for page "
		"faults; for table levels the events of file systems (ext4_*, jbd2_*, xfs_*, btrfs_*, f2fs_*, nfs*): "
		"pairs such as ext4_sync_file_enter and _exit are a step with a time, others count. What an event would show that the trace lacks is 'running', 'blocked, "
		"reason unknown' or 'unknown'. Lost events make all states unknown until an "
		"event shows them again.",
	.reading =
		"Compare the mean of all with the slowest 1 %: the part that grows is what makes the "
		"slow members slow. Then look for this part in table parts: it has the culprit in "
		"column By. If it waited for another thread, table meanwhile shows what that "
		"thread did in this time.\n"
		"\n"
		"A thread that waits for a CPU on '(idle CPU)' waits for the CPU to leave its sleep. "
		"'preempted' also has the time after a call of sched_yield. Blocked outside of a system call is a page fault; if the "
		"trace has no events of page faults, that is a conclusion.",
	.example =
		"$ kymo report breakdown --of syscall:futex --comm 'worker*' --min 10ms -n 2 my-trace\n"
		"Trace  my-trace\n"
		"Range  2026-11-26 14:45:17.155467638 to 2026-11-26 14:45:17.709708589\n"
		"       554.2 ms, 977380 events\n"
		"\n"
		"Time by cause\n"
		"  Part                       Time     Share  In      Mean  Slowest 1 %   Longest\n"
		"  blocked: lock          517.9 ms   96.53 %  22  23.54 ms     94.49 ms  94.49 ms\n"
		"  waiting for a CPU      18.51 ms    3.45 %  22  841.3 us     5.318 us  2.934 ms\n"
		"  running in the kernel  87.29 us    0.02 %  22  3.968 us     3.986 us  5.338 us\n"
		"  the whole              536.5 ms  100.00 %  22  24.38 ms     94.50 ms  94.50 ms\n"
		"\n"
		"Parts, with authors and calls\n"
		"  Part             TID  By        In call           Futex      Time    Share\n"
		"  blocked: lock  27672  holder    futex    0x5596759ea080  477.9 ms  89.08 %\n"
		"  blocked: lock  27675  worker-3  futex    0x5596759ea080  23.47 ms   4.37 %\n"
		"  41 more rows: --limit 0 shows all\n"
		"  columns that do not fit: Slowest 1 %, Longest, Count\n"
		"\n"
		"What the threads did that were waited for\n"
		"    TID  Thread  Did meanwhile     TID  By    In call              Time    Share\n"
		"  27672  holder  blocked: timer      -        clock_nanosleep  178.1 ms  33.20 %\n"
		"  27672  holder  preempted       27715  load                   115.0 ms  21.43 %\n"
		"  111 more rows: --limit 0 shows all\n"
		"  columns that do not fit: Waits for\n"
		"\n"
		"The longest\n"
		"  No.  Duration    TID    PID  Name      What   Mostly           TID  By\n"
		"   20  94.50 ms  27673  27653  worker-1  futex  blocked: lock  27672  holder\n"
		"   21  94.49 ms  27674  27653  worker-2  futex  blocked: lock  27672  holder\n"
		"  20 more rows: --limit 0 shows all\n"
		"  columns that do not fit: Part, End, Begin\n",
	.next = "report critical-path --tid TID|the threads that a thread waited for, one by one\n"
		"report why|what stands out in the whole trace",
	.tables = tables,
	KY_CAUSES_NEEDS,
	.whole = true,
	.begin = ky_breakdown_begin,
	.finish = ky_breakdown_finish,
	.free = ky_breakdown_free,
};
