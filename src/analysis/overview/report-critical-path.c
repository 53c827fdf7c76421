/* SPDX-License-Identifier: MIT */
/* Report critical-path: over which threads and causes the time of a thread went. */
#include "analysis/reports/report-list.h"

#include <stdlib.h>

#include "analysis/reports/report-parts.h"

/* ---- documentation --------------------------------------------------------------------- */

enum {
	THREAD_PROCESS,
	THREAD_TIME,
	THREAD_SHARE,
	THREAD_RUNNING,
	THREAD_CPU,
	THREAD_BLOCKED,
	THREAD_UNKNOWN
};

static const struct ky_column thread_columns[] = {
	[THREAD_PROCESS] =
		{"process", "Thread", KY_CELL_PROCESS,
		 "A thread that the path goes over; with --group-by, the process or the name."},
	[THREAD_TIME] = {"time", "Time", KY_CELL_DURATION, "The time of the path at this thread."},
	[THREAD_SHARE] = {"share", "Share", KY_CELL_RATIO, "Of the whole.", .bar = KY_BAR_WHOLE},
	[THREAD_RUNNING] = {"running", "Running", KY_CELL_DURATION,
			    "The part in which this thread ran, with the interrupts on top of it."},
	[THREAD_CPU] = {"cpu_wait", "Waited for a CPU", KY_CELL_DURATION,
			"The part in which it was preempted or waited for a CPU."},
	[THREAD_BLOCKED] = {"blocked", "Blocked", KY_CELL_DURATION,
			    "The part in which it was blocked and no other thread ended that: a "
			    "disk, a timer, the network, or an unknown reason."},
	[THREAD_UNKNOWN] = {"unknown", "Unknown", KY_CELL_DURATION, "The rest.", .spare = 1},
};

static const struct ky_table_def thread_table =
	KY_TABLE_DEF("threads", "The path by thread",
		     "One row for each thread, the largest time first. The last row is the whole.",
		     thread_columns, KY_TABLE_FIXED);

enum {
	PART_PROCESS,
	PART_PARTS,
	PART_TIME = PART_PARTS + KY_PART_COLUMNS,
	PART_SHARE,
	PART_COUNT,
	PART_LONGEST
};

static const struct ky_column part_columns[] = {
	[PART_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			  "The thread that the path goes over.", .second = true},
	KY_PART_COLUMN_DEFS(PART_PARTS),
	[PART_TIME] = {"time", "Time", KY_CELL_DURATION, "The sum of these parts."},
	[PART_SHARE] = {"share", "Share", KY_CELL_RATIO, "Of the whole.", .bar = KY_BAR_ROOM,
			.spare = 6},
	[PART_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many such parts there are.",
			.spare = 7},
	[PART_LONGEST] = {"longest", "Longest", KY_CELL_DURATION, "The longest one.", .spare = 8},
};

static const struct ky_table_def part_table = KY_TABLE_DEF(
	"parts", "The path by thread and cause",
	"One row for each thread, cause, author and system call, the largest sum first.",
	part_columns, KY_TABLE_RANK);

static const struct ky_column log_columns[] = {
	KY_PART_LOG_COLUMN_DEFS("The number of the member whose path it is, from 1.",
				"The thread that the path goes over.", 0),
};

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "The path in its order", "One row for each part of each path.",
		     log_columns, KY_TABLE_LOG);

enum { ARROW_NUMBER, ARROW_TIME, ARROW_FROM, ARROW_TO };

static const struct ky_column arrow_columns[] = {
	[ARROW_NUMBER] = {"member", "No.", KY_CELL_COUNT,
			  "The number of the member whose path it is, from 1.", .spare = 1},
	[ARROW_TIME] = {"time", "Time", KY_CELL_TIMESTAMP, "When the wake-up was."},
	[ARROW_FROM] = {"waker", "Waker", KY_CELL_PROCESS,
			"The thread that the path goes over before."},
	[ARROW_TO] = {"process", "Woken", KY_CELL_PROCESS,
		      "The thread that the path goes over from there on."},
};

static const struct ky_table_def arrow_table =
	KY_TABLE_DEF("arrows", "Wake-ups on the path",
		     "One row for each wake-up that takes the path from one thread to another.",
		     arrow_columns, KY_TABLE_LOG);

static const struct ky_table_def *const tables[] = {&thread_table, &part_table, &log_table,
						    &arrow_table, NULL};

enum { TABLE_THREADS, TABLE_PARTS, TABLE_LOG, TABLE_ARROWS };

/* ---- the run --------------------------------------------------------------------------- */

struct run {
	struct ky_model *model;
	struct ky_cause_members *members;
	struct ky_part_sums threads, parts;
	const struct ky_thread **groups;
	uint64_t n;		    /* members */
	uint64_t n_parts, left_out; /* members after KY_PARTS_MAX parts */
	uint64_t n_doubtful;
	bool cut;
};

static void report_path_free(void *data)
{
	struct run *run = data;

	ky_cause_members_free(run->members);
	ky_part_sums_fini(&run->threads);
	ky_part_sums_fini(&run->parts);
	free(run->groups);
	free(run);
}

static void *report_path_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->model = model;
	run->members = ky_report_members_new(model, options);
	if (run->members)
		return run;
	report_path_free(run);
	return NULL;
}

/* ---- the tables ---------------------------------------------------------------------------- */

/* Rows beyond @limit (0: none) are counted. */
static bool report_path_is_full(struct ky_table *table, uint64_t limit)
{
	if (table->hidden || !limit || ky_table_n_rows(table) < limit)
		return table->hidden;
	table->n_omitted++;
	return true;
}

static void report_path_log(const struct run *run, struct ky_report_result *result, size_t number,
			    const struct ky_path *path, uint64_t limit)
{
	struct ky_table *log = &result->tables[TABLE_LOG], *arrows = &result->tables[TABLE_ARROWS];

	ky_vec_foreach(&path->parts, part) {
		if (!report_path_is_full(log, limit))
			ky_fill_part_log(log, run->model, number, part);
	}
	ky_vec_foreach(&path->arrows, arrow) {
		struct ky_cell *row;

		if (report_path_is_full(arrows, limit))
			continue;
		row = ky_table_row(arrows);
		ky_cell_u64(&row[ARROW_NUMBER], number + 1);
		ky_cell_i64(&row[ARROW_TIME], arrow->ns);
		ky_cell_thread(arrows, &row[ARROW_FROM], run->model, arrow->from);
		ky_cell_thread(arrows, &row[ARROW_TO], run->model, arrow->to);
	}
}

static int report_path_add(struct run *run, struct ky_report_result *result, size_t number,
			   uint64_t limit)
{
	const struct ky_cause_member *member = &run->members->list.data[number];
	struct ky_path path;
	int status = member->thread ? ky_causes_path(run->members->causes, member->thread,
						     member->begin_ns, member->end_ns, &path)
				    : 1;

	if (status > 0)
		return 0;
	run->n++;
	run->n_parts += path.parts.len;
	run->cut |= path.cut;
	run->n_doubtful += path.n_doubtful;
	for (size_t i = 0; i < path.parts.len && status >= 0; i++) {
		status = ky_part_sums_add(&run->threads, &path.parts.data[i], number, false);
		if (status >= 0)
			status = ky_part_sums_add(&run->parts, &path.parts.data[i], number, false);
	}
	if (status >= 0)
		report_path_log(run, result, number, &path, limit);
	ky_path_fini(&path);
	return status;
}

static int report_path_column(enum ky_cause cause)
{
	if (cause <= KY_CAUSE_IRQ)
		return THREAD_RUNNING;
	if (cause <= KY_CAUSE_CPU_WAIT)
		return THREAD_CPU;
	return ky_cause_is_blocked(cause) ? THREAD_BLOCKED : THREAD_UNKNOWN;
}

struct thread_sum {
	const struct ky_thread *thread;
	uint64_t total_ns, ns[THREAD_UNKNOWN + 1];
};

static int report_path_compare_threads(const void *a, const void *b)
{
	const struct thread_sum *left = a, *right = b;

	if (left->total_ns != right->total_ns)
		return left->total_ns < right->total_ns ? 1 : -1;
	return left->thread->index < right->thread->index ? -1 : 1;
}

static void report_path_fill_thread(const struct run *run, struct ky_table *table,
				    const struct thread_sum *sum, enum ky_by by)
{
	struct ky_cell *row = ky_table_row(table);

	if (sum->thread)
		ky_cell_who(table, &row[THREAD_PROCESS], run->model, sum->thread, by);
	else
		ky_cell_process(table, &row[THREAD_PROCESS], -1, -1, "(the whole)", NULL);
	ky_cell_u64(&row[THREAD_TIME], sum->total_ns);
	ky_cell_f64(&row[THREAD_SHARE], ky_part(sum->total_ns, run->threads.total_ns));
	for (int i = THREAD_RUNNING; i <= THREAD_UNKNOWN; i++)
		ky_cell_u64(&row[i], sum->ns[i]);
}

static int report_path_fill_threads(struct run *run, struct ky_table *table,
				    const struct ky_report_options *options, enum ky_by by)
{
	size_t n_threads = ky_model_n_threads(run->model), n = 0;
	uint64_t limit = ky_report_limit(options, KY_TABLE_RANK);
	struct thread_sum *sums = calloc(n_threads + 1, sizeof(*sums)), whole = {0};

	if (!sums)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&run->threads.list, part) {
		struct thread_sum *sum = &sums[part->like.thread->index];
		int column = report_path_column(part->like.cause);

		sum->thread = part->like.thread;
		sum->total_ns += part->total_ns;
		sum->ns[column] += part->total_ns;
		whole.total_ns += part->total_ns;
		whole.ns[column] += part->total_ns;
	}
	for (size_t i = 0; i < n_threads; i++) {
		if (sums[i].thread)
			sums[n++] = sums[i];
	}
	qsort(sums, n, sizeof(*sums), report_path_compare_threads);
	for (size_t i = 0; i < n && (!limit || i < limit); i++)
		report_path_fill_thread(run, table, &sums[i], by);
	if (limit && n > limit)
		table->n_omitted = n - limit;
	if (run->n)
		report_path_fill_thread(run, table, &whole, by);
	free(sums);
	return 0;
}

static void report_path_fill_part(struct run *run, struct ky_table *table, enum ky_by by,
				  struct ky_part_sum *sum)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[PART_PROCESS], run->model, sum->like.thread, by);
	ky_fill_part(table, &row[PART_PARTS], run->model, &sum->like, by);
	ky_cell_u64(&row[PART_TIME], sum->total_ns);
	ky_cell_f64(&row[PART_SHARE], ky_part(sum->total_ns, run->parts.total_ns));
	ky_cell_u64(&row[PART_COUNT], sum->count);
	ky_cell_u64(&row[PART_LONGEST], sum->longest_ns);
}

static void report_path_fill_parts(struct run *run, struct ky_table *table, enum ky_by by)
{
	ky_part_sums_sort(&run->parts);
	ky_vec_foreach(&run->parts.list, sum)
		report_path_fill_part(run, table, by, sum);
}

static int report_path_note(struct run *run, struct ky_report_result *result)
{
	int status = ky_report_note_causes(result, run->members->causes);

	if (status >= 0)
		status = ky_report_note_members(result, run->members);
	if (status >= 0 && run->left_out)
		status = ky_report_note(
			result,
			"%llu are left out, as all paths together have too many parts; "
			"choose some with --min, --tid, --begin and --end",
			(unsigned long long)run->left_out);
	if (status >= 0 && run->cut)
		status =
			ky_report_note(result, "some chains of wakers are too long: the path stays "
					       "at the thread that they begin at");
	if (status >= 0 && run->n_doubtful)
		status = ky_report_note(
			result,
			"%llu wake-up%s on the path may not be of the thread that is named: the "
			"trace has no events of the local timer (irq_vectors), so an interrupt on "
			"its CPU may have woken",
			(unsigned long long)run->n_doubtful, run->n_doubtful == 1 ? "" : "s");
	if (status >= 0 && !run->n)
		status = ky_report_note_nothing(result, run->members);
	return status;
}

static int report_path_finish(void *data, const struct ky_report_options *options,
			      struct ky_report_result *result)
{
	struct run *run = data;
	enum ky_by by = ky_report_by(options, KY_BY_THREAD);
	bool one = options->member || options->at_ns != INT64_MIN;
	uint64_t limit = one && options->limit == KY_LIMIT_DEFAULT
				 ? 0
				 : ky_report_limit(options, KY_TABLE_LOG);
	int status = ky_cause_members_end(run->members);

	run->groups = ky_part_groups(run->model, by);
	run->threads.groups = run->parts.groups = run->groups;
	run->threads.details = KY_PART_WHOSE;
	run->parts.details = KY_PART_WHOSE | KY_PART_WHO | KY_PART_CALL;
	if (one && !options->n_tables)
		result->tables[TABLE_LOG].hidden = false;
	for (size_t i = 0; i < run->members->list.len && status >= 0; i++) {
		if (!ky_report_wants_member(options, result, &run->members->list.data[i], i))
			continue;
		if (run->n_parts > KY_PARTS_MAX)
			run->left_out++;
		else
			status = report_path_add(run, result, i, limit);
	}
	if (status >= 0)
		status = report_path_fill_threads(run, &result->tables[TABLE_THREADS], options, by);
	report_path_fill_parts(run, &result->tables[TABLE_PARTS], by);
	return status < 0 ? status : report_path_note(run, result);
}

const struct ky_report ky_report_critical_path = {
	.name = "critical-path",
	.summary = "the threads and causes that a thread's time goes to",
	.description =
		"Follows the critical path of a thread (--tid, --comm) over the range (--begin, "
		"--end), or of each call, wait or span that --of selects. While the thread runs, the "
		"path is at the thread. Where another thread ended a wait of it, the path of this "
		"time is the waker's, back to the begin of the wait, and so on for waits of the "
		"waker. A wait that an interrupt ended stays at the waiter, with its cause: a timer, "
		"the network (softirq NET_RX), a disk (softirq BLOCK, or the interrupt that completed a "
		"request), another device. A packet to the same machine leads to its sender. With events "
		"of TCP, data from any host of the traces leads to the thread that sent it, up to the end of "
		"that call; from there on it is 'blocked: network' at the receiver. Each "
		"moment belongs to one thread, so the parts add up to the range, exactly.\n"
		"\n"
		"Options are those of report breakdown: --of, --at, --member. Tables log and "
		"arrows (-t log -t arrows) have the path in its order, and the wake-ups.\n"
		"\n"
		"Several hosts: record each of them (clocks synchronised, as by chrony or PTP) with "
		"-k default,tcp_probe,sock_send_length,inet_sock_set_state, and give all the traces.",
	.events =
		"As report breakdown. Without events of interrupts (irq_handler_entry, "
		"softirq_entry, irq_vectors), a wait that an interrupt ended seems to be ended "
		"by the thread that it interrupted; if that thread was in user space, the "
		"report does not believe it, and the wait is 'blocked, reason unknown'. Without "
		"irq_vectors, a timer's wake-up can name such a thread where the wait can time "
		"out or a signal ended it: a note counts these wake-ups. TCP: tcp_probe names the "
		"connection that data came for, inet_sock_set_state, tcp_rcv_space_adjust and "
		"tcp_probe the one of a socket, and sock_send_length (Linux 6.3) the thread that sent. "
		"Events of TCP do not number its bytes, so the sender is who sent last on the "
		"connection before the data came.",
	.reading =
		"A large share of another thread means that this thread is what the first one waits "
		"for: make that one faster, or do not wait for it. 'Waited for a CPU' means that "
		"more CPUs or priority would help, not faster code. 'Blocked' has its cause "
		"in table parts.\n"
		"\n"
		"The path goes back along wake-ups. After a wait of a waker, it goes on with what this "
		"waker did before, as the critical path of Trace Compass does; Perfetto's goes on with "
		"the waker's waker. Perfetto also follows the interrupted thread where an interrupt "
		"woke. In a lock convoy, report breakdown names the holder of each moment.",
	.example =
		"$ kymo report critical-path --comm worker-1 -n 4 my-trace\n"
		"Trace  my-trace\n"
		"Range  2026-11-26 14:45:17.155467638 to 2026-11-26 14:45:17.709708589\n"
		"       554.2 ms, 977380 events\n"
		"\n"
		"The path by thread\n"
		"    TID    PID  Name             Time     Share   Running  Waited for a CPU   Blocked\n"
		"  27672  27653  holder       270.9 ms   57.75 %  18.65 ms          94.87 ms  157.4 ms\n"
		"  27673  27653  worker-1     184.4 ms   39.31 %  29.90 ms          48.55 ms  105.9 ms\n"
		"  27675  27653  worker-3     9.768 ms    2.08 %  4.360 ms          5.408 ms      0 ns\n"
		"  27674  27653  worker-2     4.050 ms    0.86 %  2.573 ms          1.478 ms      0 ns\n"
		"      ?      ?  (the whole)  469.1 ms  100.00 %  55.48 ms          150.3 ms  263.3 ms\n"
		"  columns that do not fit: Unknown\n"
		"\n"
		"The path by thread and cause\n"
		"    TID  Thread    Part              TID  By        Time    Share\n"
		"  27672  holder    blocked: timer      -        157.4 ms  33.55 %\n"
		"  27673  worker-1  blocked: timer      -        105.9 ms  22.58 %\n"
		"  27672  holder    preempted       27715  load  38.32 ms   8.17 %\n"
		"  27672  holder    preempted       27716  load  37.69 ms   8.03 %\n"
		"  187 more rows: --limit 0 shows all\n"
		"  columns that do not fit: Longest, Count, In call\n",
	.next = "report breakdown --tid TID|what one of these threads waited for",
	.tables = tables,
	.needs = KY_CAN_SWITCH | KY_CAN_WAKE,
	.needs_text = "sched_switch and sched_waking events",
	.needs_hint = KY_CAUSES_NEEDS_HINT,
	.ignores = 0,
	.whole = true,
	.wants_choice = true,
	.begin = report_path_begin,
	.finish = report_path_finish,
	.free = report_path_free,
};
