/* SPDX-License-Identifier: MIT */
/* Report signals: senders and receivers of signals, and their rates. */
#include "analysis/reports/report-list.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- documentation --------------------------------------------------------------------- */

#define TO_HELP "The thread that gets the signal, or the first thread of the process."
#define BY_HELP                                                                                 \
	"The thread that ran at that moment: for 'kill', 'tgkill' and 'queue' the sender; for " \
	"'timer' and 'kernel' it may be any thread, which the kernel interrupted; '-' on an "   \
	"idle CPU."
#define PAIR_BY_HELP                                                                           \
	"The sender: the thread that ran at that moment. '-' for 'timer' and 'kernel', whose " \
	"signals interrupt any thread, and on an idle CPU."
#define CAUSE_HELP                                                                                 \
	"'kill', 'tgkill', 'queue' (sigqueue()), 'timer' (timer_create(); the receiver owns "      \
	"it), 'message', 'async I/O', 'kernel' (itimers and alarms, terminals), "                  \
	"'child' (it ended, was stopped or went on), 'trap', 'input' (SIGIO), 'seccomp', 'fault' " \
	"(what the receiver did itself), or the number."

enum { PAIR_TO, PAIR_BY, PAIR_SIGNAL, PAIR_CAUSE, PAIR_COUNT, PAIR_RATE, PAIR_IGNORED };

static const struct ky_column pair_columns[] = {
	[PAIR_TO] = {"receiver", "To", KY_CELL_PROCESS, TO_HELP, .second = true},
	[PAIR_BY] = {"by", "By", KY_CELL_PROCESS, PAIR_BY_HELP, .second = true},
	[PAIR_SIGNAL] = {"signal", "Signal", KY_CELL_TEXT,
			 "Its name; real-time signals are SIGRTMIN and a number, by the kernel's "
			 "count."},
	[PAIR_CAUSE] = {"cause", "Cause", KY_CELL_TEXT, CAUSE_HELP},
	[PAIR_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many signals."},
	[PAIR_RATE] = {"rate", "Per second", KY_CELL_RATE, "Signals per second of the range.",
		       .bar = KY_BAR_MOST},
	[PAIR_IGNORED] = {"ignored", "Ignored", KY_CELL_COUNT,
			  "How many of them the receiver ignores, or had not yet taken.",
			  .spare = 1},
};

static const struct ky_table_def pair_table =
	KY_TABLE_DEF("signals", "Signals by receiver and sender",
		     "One row for each receiver, sender, signal and cause, the most signals first.",
		     pair_columns, KY_TABLE_RANK);

enum { TO_PROCESS, TO_COUNT, TO_RATE };

static const struct ky_column to_columns[] = {
	[TO_PROCESS] = {"receiver", "To", KY_CELL_PROCESS, TO_HELP},
	[TO_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many signals."},
	[TO_RATE] = {"rate", "Per second", KY_CELL_RATE, "Signals per second of the range.",
		     .bar = KY_BAR_MOST},
};

static const struct ky_table_def to_table = KY_TABLE_DEF(
	"receivers", "Signals by receiver", "One row for each receiver, the most signals first.",
	to_columns, KY_TABLE_RANK);

enum { LOG_TIME, LOG_TO, LOG_BY, LOG_SIGNAL, LOG_CAUSE, LOG_IGNORED };

static const struct ky_column log_columns[] = {
	[LOG_TIME] = {"time", "Time", KY_CELL_TIMESTAMP, "When it was sent."},
	[LOG_TO] = {"receiver", "To", KY_CELL_PROCESS, TO_HELP, .second = true},
	[LOG_BY] = {"by", "By", KY_CELL_PROCESS, BY_HELP, .second = true},
	[LOG_SIGNAL] = {"signal", "Signal", KY_CELL_TEXT, "Its name."},
	[LOG_CAUSE] = {"cause", "Cause", KY_CELL_TEXT, CAUSE_HELP},
	[LOG_IGNORED] = {"ignored", "Ignored", KY_CELL_TEXT,
			 "'yes' if the receiver ignores it, or had not yet taken the last one."},
};

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "Signals", "One row for each signal, in the order of time.",
		     log_columns, KY_TABLE_LOG);

static const struct ky_table_def *const tables[] = {&pair_table, &to_table, &log_table, NULL};

enum { TABLE_PAIRS, TABLE_TO, TABLE_LOG };

/* ---- the run --------------------------------------------------------------------------- */

struct kind {
	const struct ky_thread *sender;
	int32_t nr, code;
};

struct run {
	struct ky_model *model;
	struct ky_aggregation pairs, receivers; /* what: the kind's index; 0 */
	struct ky_map by_key;			/* -> index + 1 */
	KY_VEC(struct kind) kinds;
	struct ky_records log;
	bool wants_log;
};

enum { SUM_COUNT, SUM_IGNORED };

/* The thread that sent it; NULL: none, for a timer or the kernel interrupts any thread, or it is unknown. */
static const struct ky_thread *report_signals_sender(const struct ky_signal *signal)
{
	return signal->code == SI_KERNEL || signal->code == SI_TIMER ? NULL : signal->sender;
}

static int report_signals_find_kind(struct run *run, const struct ky_signal *signal,
				    uint64_t *index)
{
	const struct ky_thread *by = report_signals_sender(signal);
	uint64_t sender = by ? by->index + UINT64_C(1) : 0;
	uint64_t key = sender << 24 | ((uint64_t)signal->nr & 0xff) << 16 |
		       ((uint64_t)signal->code & 0xffff);
	uintptr_t found = (uintptr_t)ky_map_get(&run->by_key, key);

	*index = found - 1;
	if (found)
		return 0;
	*index = run->kinds.len;
	if (ky_vec_push(&run->kinds, (struct kind){by, signal->nr, signal->code}) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&run->by_key, key, (void *)(uintptr_t)(*index + 1));
}

static int report_signals_on_signal(void *data, const struct ky_signal *signal)
{
	struct run *run = data;
	struct ky_entry *pair, *receiver;
	uint64_t kind;

	if (report_signals_find_kind(run, signal, &kind) < 0)
		return KYMO_E_MEMORY;
	pair = ky_aggregation_get(&run->pairs, signal->receiver, kind);
	receiver = ky_aggregation_get(&run->receivers, signal->receiver, 0);
	if (!pair || !receiver)
		return KYMO_E_MEMORY;
	pair->sums[SUM_COUNT]++;
	pair->sums[SUM_IGNORED] += signal->ignored;
	receiver->sums[SUM_COUNT]++;
	return run->wants_log ? ky_records_add(&run->log, 0, signal) : 0;
}

static void report_signals_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->pairs);
	ky_aggregation_fini(&run->receivers);
	ky_map_fini(&run->by_key);
	ky_vec_fini(&run->kinds);
	ky_records_fini(&run->log);
	free(run);
}

static void *report_signals_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.signal = report_signals_on_signal};
	struct run *run = ky_report_run(model, sizeof(*run), &listener);

	if (!run)
		return NULL;
	run->wants_log = ky_report_wants(options, &ky_report_signals, TABLE_LOG);
	ky_records_init(&run->log, sizeof(struct ky_signal),
			ky_report_keep(options, &ky_report_signals, TABLE_LOG), false);
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

#define SIGNAL_RT 32

static void cell_signal(struct ky_table *table, struct ky_cell *cell, int32_t nr)
{
	const char *name = nr > 0 && nr < SIGNAL_RT ? sigabbrev_np(nr) : NULL;
	char text[32];

	if (name)
		snprintf(text, sizeof(text), "SIG%s", name);
	else if (nr >= SIGNAL_RT)
		snprintf(text, sizeof(text), "SIGRTMIN+%d", (int)nr - SIGNAL_RT);
	else
		snprintf(text, sizeof(text), "%d", (int)nr);
	ky_cell_text(table, cell, text);
}

/* Of a positive code, which means something else with each signal. */
static const char *cause_of_signal(int32_t nr)
{
	switch (nr) {
	case SIGCHLD:
		return "child";
	case SIGTRAP:
		return "trap";
	case SIGIO:
		return "input";
	case SIGSYS:
		return "seccomp";
	default:
		return "fault";
	}
}

static void cell_cause(struct ky_table *table, struct ky_cell *cell, int32_t nr, int32_t code)
{
	static const char *const causes[] = {"kill",	  "queue", "timer", "message",
					     "async I/O", "poll",  "tgkill"};
	char text[16];

	if (code <= 0 && code > -(int32_t)(sizeof(causes) / sizeof(*causes)))
		ky_cell_text(table, cell, causes[-code]);
	else if (code == 0x80)
		ky_cell_text(table, cell, "kernel");
	else if (code > 0 && code < 0x80)
		ky_cell_text(table, cell, cause_of_signal(nr));
	else {
		snprintf(text, sizeof(text), "%d", (int)code);
		ky_cell_text(table, cell, text);
	}
}

static double report_signals_rate_of(const struct run *run, uint64_t count)
{
	uint64_t range_ns = ky_report_range_ns(run->model);

	return range_ns ? (double)count * 1e9 / (double)range_ns : 0;
}

static void report_signals_fill_pair(const void *data, struct ky_table *table,
				     const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	const struct kind *kind = &run->kinds.data[entry->what];
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[PAIR_TO], run->model, entry->thread, by);
	if (kind->sender)
		ky_cell_who(table, &row[PAIR_BY], run->model, kind->sender, by);
	cell_signal(table, &row[PAIR_SIGNAL], kind->nr);
	cell_cause(table, &row[PAIR_CAUSE], kind->nr, kind->code);
	ky_cell_u64(&row[PAIR_COUNT], entry->sums[SUM_COUNT]);
	ky_cell_f64(&row[PAIR_RATE], report_signals_rate_of(run, entry->sums[SUM_COUNT]));
	ky_cell_u64(&row[PAIR_IGNORED], entry->sums[SUM_IGNORED]);
}

static void fill_receiver(const void *data, struct ky_table *table, const struct ky_entry *entry,
			  enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[TO_PROCESS], run->model, entry->thread, by);
	ky_cell_u64(&row[TO_COUNT], entry->sums[SUM_COUNT]);
	ky_cell_f64(&row[TO_RATE], report_signals_rate_of(run, entry->sums[SUM_COUNT]));
}

static void report_signals_fill_log(const void *data, struct ky_table *table, struct ky_cell *row,
				    const void *record)
{
	const struct run *run = data;
	const struct ky_signal *signal = record;

	ky_cell_i64(&row[LOG_TIME], signal->ns);
	ky_cell_thread(table, &row[LOG_TO], run->model, signal->receiver);
	if (signal->sender)
		ky_cell_thread(table, &row[LOG_BY], run->model, signal->sender);
	cell_signal(table, &row[LOG_SIGNAL], signal->nr);
	cell_cause(table, &row[LOG_CAUSE], signal->nr, signal->code);
	if (signal->ignored)
		ky_cell_text(table, &row[LOG_IGNORED], "yes");
}

static int report_signals_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	struct run *run = data;
	enum ky_by by = ky_report_by(options, KY_BY_THREAD);
	int status = ky_fill_groups(&result->tables[TABLE_PAIRS], &run->pairs, by, true,
				    report_signals_fill_pair, run);

	if (status >= 0)
		status = ky_fill_groups(&result->tables[TABLE_TO], &run->receivers, by, false,
					fill_receiver, run);
	ky_table_sort(&result->tables[TABLE_PAIRS], PAIR_COUNT, false);
	ky_table_sort(&result->tables[TABLE_TO], TO_COUNT, false);
	ky_fill_records(&result->tables[TABLE_LOG], &run->log, report_signals_fill_log, run);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_signals = {
	.name = "signals",
	.summary = "signals: senders, receivers, rates, timers",
	.description =
		"Counts signals when they are sent. The sender is the thread that runs at that "
		"moment. A timer's signal is sent from the interrupt of a timer: the receiver "
		"owns the timer, and the thread in column 'By' of the log is the one that was interrupted.",
	.events = "signal_generate; sched_switch for the thread that runs, in traces without "
		  "context fields.",
	.reading =
		"A thread with hundreds of signals per second loses time in handlers, and its "
		"system calls return EINTR (report syscalls). Cause 'timer' or 'kernel' at a fixed "
		"rate is a profiler or an interval timer: its period is the inverse of the rate.",
	.example = "$ kymo report signals -n 2 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-26 14:56:17.174681131 to 2026-11-26 14:56:20.295121568\n"
		   "       3.120 s, 2138210 events\n"
		   "\n"
		   "Signals by receiver and sender\n"
		   "    TID  To      TID  By  Signal   Cause   Count  Per second\n"
		   "  20501  render    -      SIGALRM  kernel   1591      509.94\n",
	.next = "report syscalls -t processes|calls that signals interrupted (EINTR)\n"
		"report cpu|what the handlers cost",
	.tables = tables,
	.needs = KY_CAN_SIGNALS,
	.needs_text = "signal_generate events",
	.needs_hint = "record them with: kymo record -k 'signal_*'",
	.ignores = KY_IGNORES_DURATION,
	.begin = report_signals_begin,
	.finish = report_signals_finish,
	.free = report_signals_free_run,
};
