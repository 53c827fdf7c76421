/* SPDX-License-Identifier: MIT */
/* Report why: what stands out, in sentences. */
#include "analysis/reports/report-list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causes/call-tails.h"
#include "analysis/reports/report-parts.h"
#include "analysis/overview/why-habits.h"
#include "analysis/overview/why.h"
#include "analysis/tables/render-cell.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { FINDING_TEXT, FINDING_SURE, FINDING_MORE, FINDING_TIME, FINDING_SHARE };

static const struct ky_column finding_columns[] = {
	[FINDING_TEXT] = {"finding", "Finding", KY_CELL_TEXT,
			  "What stands out, and who causes it, with figures."},
	[FINDING_SURE] = {"sure", "How sure", KY_CELL_TEXT,
			  "What supports it: 'certain' names the events, 'likely' the conclusion, "
			  "'possible' what the trace lacks."},
	[FINDING_MORE] =
		{"more", "More", KY_CELL_TEXT,
		 "The command that shows more. Text has it with the trace; elsewhere, append the trace.",
		 .command = true},
	[FINDING_TIME] = {"time", "Time lost", KY_CELL_DURATION,
			  "The sum over all threads of the finding."},
	[FINDING_SHARE] =
		{"share", "Share", KY_CELL_RATIO,
		 "Of the time of the selected threads, or members; without a selection, of the "
		 "time in which threads ran or lost time."},
};

static const struct ky_table_def finding_table =
	KY_TABLE_DEF("findings", "What stands out",
		     "One paragraph for each finding, the most time lost first; facts on the "
		     "selection and the machine come last.",
		     finding_columns, KY_TABLE_PROSE);

static const struct ky_table_def *const tables[] = {&finding_table, NULL};

/* ---- findings ------------------------------------------------------------------------------ */

#define FINDINGS_DEFAULT 5
#define TAIL_LEAST	 0.001

/* The members and their parts, and what threads do too often. */
struct run {
	struct ky_breakdown *members;
	struct ky_habits_watch *watch;
};

struct why {
	struct ky_breakdown *run;
	const struct ky_habits_watch *watch;
	struct ky_table *table;
	const struct ky_report_options *options;
	const struct ky_report_result *result;
	struct ky_why_losses losses;
	bool chosen;
	uint64_t n_all, n_slow;
};

static struct ky_cell *report_why_row(struct why *why, struct ky_strbuf *text, const char *sure)
{
	struct ky_cell *row = ky_table_row(why->table);

	ky_cell_text(why->table, &row[FINDING_TEXT], ky_strbuf_text(text));
	if (sure)
		ky_cell_text(why->table, &row[FINDING_SURE], sure);
	why->table->failed |= ky_strbuf_failed(text);
	ky_strbuf_clear(text);
	return row;
}

static void report_why_more(struct why *why, struct ky_cell *row, struct ky_strbuf *text)
{
	ky_cell_text(why->table, &row[FINDING_MORE], ky_strbuf_text(text));
	ky_strbuf_clear(text);
}

/* So many findings of a kind; 0: all. */
static uint64_t report_why_limit(const struct why *why)
{
	return why->options->limit == KY_LIMIT_DEFAULT ? FINDINGS_DEFAULT : why->options->limit;
}

static void report_why_losses(struct why *why, struct ky_strbuf *text)
{
	uint64_t limit = report_why_limit(why);
	size_t n = 0;

	ky_vec_foreach(&why->losses.list, loss) {
		struct ky_cell *row;

		if (!ky_why_matters(&why->losses, loss))
			continue;
		if (limit && n++ >= limit) {
			why->table->n_omitted++;
			continue;
		}
		ky_why_say(text, why->run, &why->losses, loss);
		row = report_why_row(why, text, ky_why_sure(why->run, loss));
		ky_cell_u64(&row[FINDING_TIME], loss->ns);
		ky_cell_f64(&row[FINDING_SHARE], ky_part(loss->ns, why->losses.total_ns));
		ky_why_more(text, loss, why->options->of);
		report_why_more(why, row, text);
	}
}

static void report_why_add_ns(struct ky_strbuf *text, const char *before, uint64_t ns)
{
	ky_strbuf_adds(text, before);
	ky_render_duration(text, (double)ns);
}

/* The two largest parts of slow members. */
static void report_why_add_slow(struct ky_strbuf *text, const struct ky_part_sums *slow)
{
	for (size_t i = 0; i < 2 && i < slow->list.len; i++) {
		const struct ky_part_sum *sum = &slow->list.data[i];

		if (i && sum->total_ns < slow->total_ns / 20)
			break;
		ky_strbuf_addf(text, "%s%s ", i ? ", " : "", ky_cause_text(sum->like.cause));
		if (sum->like.who) {
			ky_strbuf_adds(text, "(");
			ky_why_add_thread(text, sum->like.who);
			ky_strbuf_adds(text, ") ");
		}
		ky_why_add_share(text, sum->total_ns, slow->total_ns);
	}
}

static void report_why_tail(struct why *why, const struct ky_call_tail *tail,
			    struct ky_strbuf *text)
{
	const char *name = ky_model_syscall_name(why->run->model, tail->syscall);
	struct ky_cell *row;

	ky_strbuf_addf(text, "Some calls of %s of ", name);
	ky_why_add_thread(text, tail->thread);
	ky_strbuf_addf(text, "'s process are slow: half of %" PRIu64 " take at most ", tail->n);
	ky_render_duration(text, (double)tail->p50_ns);
	if (tail->n >= 200)
		report_why_add_ns(text, ", but the slowest 1 % take at least ", tail->p99_ns);
	report_why_add_ns(text, tail->n >= 200 ? ", and the longest " : ", but the longest ",
			  tail->max_ns);
	ky_strbuf_adds(text, ". The time of the slow ones goes to: ");
	report_why_add_slow(text, &tail->slow);
	ky_strbuf_addc(text, '.');
	row = report_why_row(why, text, "certain: entries, exits and switches show it");
	ky_cell_u64(&row[FINDING_TIME], tail->excess_ns);
	ky_strbuf_addf(text, "kymo report breakdown --of syscall:%s", name);
	if (tail->thread->pid >= 0)
		ky_strbuf_addf(text, " --pid %d", (int)tail->thread->pid);
	report_why_more(why, row, text);
}

/* Processes of the same name have the same problem: the worst one is enough. */
static bool report_why_is_told(const struct ky_call_tails *tails, const struct ky_call_tail *tail)
{
	for (const struct ky_call_tail *it = tails->list.data; it < tail; it++) {
		if (it->syscall == tail->syscall &&
		    strcmp(it->thread->comm, tail->thread->comm) == 0)
			return true;
	}
	return false;
}

static int report_why_tails(struct why *why, struct ky_strbuf *text)
{
	struct ky_call_tails tails;
	int status = ky_call_tails_find(why->run->members->causes, &why->options->focus,
					why->chosen, 3, &tails);

	ky_vec_foreach(&tails.list, tail) {
		if (report_why_is_told(&tails, tail))
			continue;
		if (ky_part(tail->excess_ns, why->losses.total_ns) >= TAIL_LEAST)
			report_why_tail(why, tail, text);
	}
	ky_call_tails_fini(&tails);
	return status;
}

static void report_why_habit(struct why *why, const struct ky_why_habit *it, struct ky_strbuf *text)
{
	struct ky_cell *row;

	ky_why_habit_say(text, why->run->model, &why->losses, it);
	row = report_why_row(why, text, ky_why_habit_sure(why->run->model, &why->losses, it));
	if (it->habit.ns) {
		ky_cell_u64(&row[FINDING_TIME], it->habit.ns);
		ky_cell_f64(&row[FINDING_SHARE], ky_part(it->habit.ns, why->losses.total_ns));
	}
	ky_why_habit_more(text, it);
	report_why_more(why, row, text);
}

static int report_why_habits(struct why *why, struct ky_strbuf *text)
{
	double seconds = (double)ky_ns_between(why->result->begin_ns, why->result->end_ns) / 1e9;
	uint64_t limit = report_why_limit(why);
	struct ky_why_habits found = {.list = KY_VEC_INIT};
	struct ky_habits habits;
	int status = ky_habits_collect(&habits, why->watch, why->run->members->causes);

	if (status >= 0)
		status = ky_why_habits_find(&found, &habits, &why->losses, seconds, why->chosen);
	for (size_t i = 0; i < found.list.len; i++) {
		if (limit && i >= limit)
			why->table->n_omitted++;
		else
			report_why_habit(why, &found.list.data[i], text);
	}
	ky_why_habits_fini(&found);
	ky_habits_fini(&habits);
	return status;
}

/* Of members: what grows most in the slowest 1 %. */
static void report_why_members(struct why *why, struct ky_strbuf *text)
{
	const struct ky_part_sum *most = NULL;
	double most_ns = 0, growth;
	uint64_t slow_ns = 0;
	struct ky_cell *row;

	ky_vec_foreach(&why->run->causes.list, sum) {
		slow_ns += sum->slow_ns;
		growth = (double)sum->slow_ns / (double)why->n_slow -
			 (double)sum->total_ns / (double)why->n_all;
		if (!most || growth > most_ns) {
			most = sum;
			most_ns = growth;
		}
	}
	if (!most)
		return;
	ky_strbuf_addf(text, "%" PRIu64 " times (%s) take ", why->n_all, why->options->of);
	ky_render_duration(text, (double)why->run->causes.total_ns / (double)why->n_all);
	report_why_add_ns(text, " in the mean, and the slowest 1 % ", slow_ns / why->n_slow);
	ky_strbuf_addf(text, ". What grows most in the slow ones is '%s': from ",
		       ky_cause_text(most->like.cause));
	ky_render_duration(text, (double)most->total_ns / (double)why->n_all);
	report_why_add_ns(text, " to ", most->slow_ns / why->n_slow);
	ky_strbuf_addc(text, '.');
	row = report_why_row(why, text, "certain: it compares sums of parts");
	ky_strbuf_addf(text, "kymo report heatmap --of '%s'", why->options->of);
	report_why_more(why, row, text);
}

/* In which calls the threads ran most. */
static void report_why_add_running(struct why *why, struct ky_strbuf *text)
{
	const struct ky_why_losses *losses = &why->losses;
	uint64_t in_calls_ns = 0;

	ky_vec_foreach(&losses->calls, ns)
		in_calls_ns += *ns;
	if (ky_part(losses->running_ns, losses->total_ns) < 0.01 || !losses->calls.len)
		return;
	ky_strbuf_adds(text, why->options->of  ? " Threads ran "
			     : why->n_all == 1 ? " It ran "
					       : " They ran ");
	ky_why_add_share(text, losses->running_ns - in_calls_ns, losses->running_ns);
	ky_strbuf_adds(text, " of it outside of system calls");
	for (uint64_t bound = UINT64_MAX, n = 0; n < 3; n++) {
		size_t most = losses->calls.len;

		for (size_t i = 0; i < losses->calls.len; i++) {
			if (losses->calls.data[i] < bound &&
			    (most == losses->calls.len ||
			     losses->calls.data[i] > losses->calls.data[most]))
				most = i;
		}
		if (most == losses->calls.len ||
		    ky_part(losses->calls.data[most], losses->running_ns) < 0.02)
			break;
		bound = losses->calls.data[most];
		ky_strbuf_adds(text, ", ");
		ky_why_add_share(text, bound, losses->running_ns);
		ky_strbuf_addf(text, " in %s",
			       ky_model_syscall_name(why->run->model, (uint32_t)most));
	}
	ky_strbuf_addc(text, '.');
	if (losses->running_ns - in_calls_ns > losses->total_ns / 2)
		ky_strbuf_adds(text,
			       " What the code did there, events of the kernel do not tell: it may "
			       "compute, spin, or wait for memory that other CPUs write.");
}

/* Facts on the selection: never in one sentence with those on the machine. */
static void report_why_selection(struct why *why, struct ky_strbuf *text)
{
	struct ky_cell *row;

	ky_strbuf_addf(text, "Of %" PRIu64 " selected %s%s, ", why->n_all,
		       why->options->of ? "time" : "thread", why->n_all == 1 ? "" : "s");
	ky_why_add_share(text, why->losses.running_ns, why->losses.total_ns);
	ky_strbuf_adds(text, " of the time was running");
	if (why->losses.unknown_ns) {
		ky_strbuf_adds(text, ", and ");
		ky_why_add_share(text, why->losses.unknown_ns, why->losses.total_ns);
		ky_strbuf_adds(text, " is unknown");
	}
	ky_strbuf_addc(text, '.');
	report_why_add_running(why, text);
	row = report_why_row(why, text, NULL);
	if (why->losses.runners.list.len && !why->options->of) {
		ky_strbuf_addf(text, "kymo report syscalls --tid %d",
			       (int)why->losses.runners.list.data[0].thread->tid);
		report_why_more(why, row, text);
	}
}

static void report_why_machine(struct why *why, struct ky_strbuf *text)
{
	uint64_t busy_ns = 0, idle_ns = 0;
	struct ky_cell *row;
	size_t n_cpus = 0;

	ky_causes_load(why->run->members->causes, why->result->begin_ns, why->result->end_ns,
		       &busy_ns, &idle_ns);
	if (!busy_ns && !idle_ns)
		return;
	/* Programs' events name CPUs, too. */
	for (size_t i = 0; i < ky_model_n_cpus(why->run->model); i++)
		n_cpus += !ky_model_cpu(why->run->model, i)->host->of_programs;
	ky_strbuf_addf(text, "The machine: %zu CPU%s, busy in ", n_cpus, n_cpus == 1 ? "" : "s");
	ky_why_add_share(text, busy_ns, busy_ns + idle_ns);
	ky_strbuf_adds(text, " of the time that is known.");
	for (size_t i = 0; i < 3 && i < why->losses.runners.list.len && !why->chosen; i++) {
		const struct ky_why_sum *sum = &why->losses.runners.list.data[i];

		ky_strbuf_adds(text, i ? ", " : " Most CPU time had ");
		ky_why_add_thread(text, sum->thread);
		ky_strbuf_addc(text, ' ');
		ky_why_add_share(text, sum->ns, busy_ns);
	}
	ky_strbuf_adds(text, why->losses.runners.list.len && !why->chosen ? "." : "");
	row = report_why_row(why, text, NULL);
	if (why->chosen)
		return;
	/* Who only waits for others is not among the findings. */
	ky_strbuf_adds(text, "name the thread that is slow: kymo report why --comm NAME");
	report_why_more(why, row, text);
}

static int report_why_fill(struct why *why)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int status = 0;

	if (!why->n_all) {
		ky_strbuf_adds(&text, "Nothing is selected: ");
		ky_report_add_nothing(&text, why->run->members);
		ky_strbuf_addc(&text, '.');
		report_why_row(why, &text, NULL);
		ky_strbuf_fini(&text);
		return 0;
	}
	if (why->options->of && why->n_slow)
		report_why_members(why, &text);
	report_why_losses(why, &text);
	if (!why->options->of)
		status = report_why_habits(why, &text);
	if (!why->options->of && status >= 0)
		status = report_why_tails(why, &text);
	if (status >= 0 && !ky_table_n_rows(why->table)) {
		ky_strbuf_adds(&text,
			       "Nothing stands out: no thread lost a notable part of its time.");
		report_why_row(why, &text, NULL);
	}
	if (why->chosen)
		report_why_selection(why, &text);
	report_why_machine(why, &text);
	ky_strbuf_fini(&text);
	return status;
}

static void report_why_free(void *data)
{
	struct run *run = data;

	if (run->members)
		ky_breakdown_free(run->members);
	ky_habits_watch_free(run->watch);
	free(run);
}

static void *report_why_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->members = ky_breakdown_begin(model, options);
	run->watch = ky_habits_watch_new(model, &options->focus);
	if (run->members && run->watch)
		return run;
	report_why_free(run);
	return NULL;
}

static int report_why_finish(void *data, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	const struct run *run = data;
	struct why why = {.run = run->members,
			  .watch = run->watch,
			  .table = &result->tables[0],
			  .options = options,
			  .result = result,
			  .chosen = options->of || ky_focus_names_threads(&options->focus)};
	int status = ky_cause_members_end(why.run->members);

	if (result->begin_ns == INT64_MIN)
		return status;
	why.run->parts.details = KY_PART_WHOSE | KY_PART_WHO | KY_PART_CALL;
	for (int i = 0; i < KY_CAUSES; i++)
		why.run->meanwhile[i].details = KY_PART_WHOSE | KY_PART_WHO | KY_PART_CALL;
	if (status >= 0)
		status = ky_breakdown_sum(why.run, options, result, &why.n_slow, &why.n_all);
	if (status >= 0)
		status = ky_why_find(&why.losses, why.run, why.chosen);
	if (status >= 0)
		status = report_why_fill(&why);
	ky_why_fini(&why.losses);
	if (status >= 0)
		status = ky_breakdown_note(why.run, result);
	return status;
}

const struct ky_report ky_report_why = {
	.name = "why",
	.summary = "the first one to try: what stands out, and who causes it",
	.description =
		"Says in sentences what slows threads down, who causes it, how sure that is, and which "
		"command shows more. The findings are times that threads lost: waiting for a CPU while "
		"others ran (or none did: a limit of a control group), for locks and their holders, for block "
		"devices, in page faults, for the address space of a process, to interrupts. A finding loses at least 0.5 % of the whole, or 20 % of the time of its victims. Then come system calls with a tail: most are fast, and the slowest 1 % at "
		"least 10 times slower, for a reason that is not waiting for data. Habits are findings, too: "
		"calls that fail, ask without waiting, end at their timeout or move a few bytes; processes that "
		"start, moves to other CPUs, signals, memory that comes and goes, syncs and sleeps again and again.\n"
		"\n"
		"--tid, --pid, --comm and --span select; with a selection, waits for other threads, sleeps "
		"and events count as well, and the last sentences tell in which calls the threads ran. --of selects system calls, wake-ups, requests or spans "
		"(see report breakdown), and tells what the slow ones have more of than all.",
	.events =
		"As report breakdown; signal_generate, sched_migrate_task, sched_process_fork and kmem_mm_page_* for habits. A finding says what events show it; what events do not show, "
		"the report does not say. Without irq_vectors, who ended a wait that can time out, or "
		"that a signal ended, is likely and not certain: an interrupt may have. Lost events and missing switches make times "
		"unknown, and the notes tell how much.",
	.reading =
		"Begin with the first finding: it lost the most time. Threads that wait without a "
		"selection (for work, data, a child) are not findings, since waiting may be what they "
		"are for: name the thread that should be faster with --comm or --tid.",
	.example =
		"$ kymo report why my-trace\n"
		"Trace  my-trace\n"
		"Range  2026-11-26 14:45:17.155467638 to 2026-11-26 14:45:17.709708589\n"
		"       554.2 ms, 977380 events\n"
		"\n"
		"What stands out\n"
		"  1. load (tid 27545) and 111 other threads could run, but waited 1.409 s for a CPU. Meanwhile the\n"
		"     CPU ran load (tid 27715) 9.1 %, load (tid 27716) 9.0 %, load (tid 27545) 8.2 %, 124 others\n"
		"     72 %. That is 42 % of the time in which threads ran or lost time.\n"
		"     How sure: certain: switches and wake-ups show it\n"
		"     More: kymo report breakdown --of preemption --tid 27545 my-trace\n"
		"\n"
		"  2. worker-2 (tid 27674) and 3 other threads waited 854.6 ms for the lock at 0x5596759ea080 of\n"
		"     process 27653. It was held by holder (tid 27672) 93 %, worker-3 (tid 27675) 3.4 %, worker-1\n"
		"     (tid 27673) 2.0 %, 1 other 1.2 %. Meanwhile holder (tid 27672) slept in clock_nanosleep\n"
		"     458.7 ms, and was preempted (by load (tid 27715)) 115.0 ms. That is 26 % of the time in which\n"
		"     threads ran or lost time.\n"
		"     How sure: certain that it waited; the holder follows from the futex calls that release the lock\n"
		"     More: kymo report locks --pid 27653 my-trace\n"
		"\n"
		"  3. Some calls of read of objdump (tid 27718)'s process are slow: half of 80 take at most 1.272 us,\n"
		"     but the longest 5.748 ms. The time of the slow ones goes to: running in the kernel 54 %,\n"
		"     preempted (holder (tid 27672)) 18 %.\n"
		"     How sure: certain: entries, exits and switches show it\n"
		"     More: kymo report breakdown --of syscall:read --pid 27718 my-trace\n"
		"\n"
		"  4. The machine: 2 CPUs, busy in 94 % of the time that is known. Most CPU time had load (tid 27545)\n"
		"     16 %, load (tid 27544) 16 %, perf (tid 27684) 10 %.\n"
		"     More: name the thread that is slow: kymo report why --comm NAME my-trace\n",
	.tables = tables,
	KY_CAUSES_NEEDS,
	.ignores = KY_IGNORES_BY,
	.whole = true,
	.begin = report_why_begin,
	.finish = report_why_finish,
	.free = report_why_free,
};
