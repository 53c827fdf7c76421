/* SPDX-License-Identifier: MIT */
/* Report summary: the most notable facts of a trace, each with the command that digs deeper. */
#include "analysis/reports/report-list.h"

#include <inttypes.h>

#include "analysis/state/errno-name.h"
#include "analysis/tables/render-cell.h"
#include "base/text.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { FACT_SUBJECT, FACT_TEXT, FACT_MORE };

static const struct ky_column fact_columns[] = {
	[FACT_SUBJECT] = {"subject", "Subject", KY_CELL_TEXT, "The subject of the fact."},
	[FACT_TEXT] = {"fact", "Fact", KY_CELL_TEXT, "The most notable value."},
	[FACT_MORE] = {"more", "More by", KY_CELL_TEXT,
		       "The command with more details; append the trace."},
};

static const struct ky_table_def fact_table = KY_TABLE_DEF(
	"facts", "Overview",
	"One row for each fact, from the whole system to its parts. Facts without events in the "
	"trace have no row.",
	fact_columns, KY_TABLE_FIXED);

static const struct ky_table_def *const tables[] = {&fact_table, NULL};

/* ---- the run --------------------------------------------------------------------------- */

enum { SUM_CPU, SUM_CALLS, SUM_BYTES };

struct longest {
	uint64_t ns;
	int64_t end_ns;
	const struct ky_thread *thread;
	uint32_t syscall;
	const struct ky_irq_line *line;
	const char *file;
};

struct run {
	struct ky_model *model;
	uint64_t busy_ns, idle_ns;
	struct ky_aggregation threads;
	struct ky_aggregation calls; /* what: the system call */
	struct ky_stats waits, device;
	struct longest wait, irq, io, request, futex;
	uint64_t failed, calls_done, bytes_read, bytes_written;
	uint64_t sent, received, futex_ns, futexes;
};

static void report_summary_keep(struct longest *longest, uint64_t ns, int64_t end_ns,
				const struct ky_thread *thread)
{
	if (ns > longest->ns)
		*longest = (struct longest){.ns = ns, .end_ns = end_ns, .thread = thread};
}

static int report_summary_add(struct run *run, const struct ky_thread *thread, int sum,
			      uint64_t value)
{
	struct ky_entry *entry = ky_aggregation_get(&run->threads, thread, 0);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[sum] += value;
	return 0;
}

static int report_summary_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
				 struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(begin_ns, end_ns);

	(void)cpu;
	if (state == KY_CPU_IDLE)
		run->idle_ns += ns;
	if (state != KY_CPU_BUSY)
		return 0;
	run->busy_ns += ns;
	return ky_model_in_focus(run->model, thread) ? report_summary_add(run, thread, SUM_CPU, ns)
						     : 0;
}

static int report_summary_on_waited(void *data, const struct ky_waited *waited)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(waited->wait.begin_ns, waited->end_ns);

	if (waited->wait.kind != KY_WAIT_WOKEN)
		return 0;
	report_summary_keep(&run->wait, ns, waited->end_ns, waited->thread);
	return ky_stats_add(&run->waits, ns);
}

static int report_summary_on_call(void *data, const struct ky_call *call)
{
	struct run *run = data;
	struct ky_entry *entry;

	if (call->outcome != KY_CALL_DONE)
		return 0;
	run->calls_done++;
	run->failed += call->has_ret && ky_is_error(call->ret);
	entry = ky_aggregation_get(&run->calls, NULL, call->syscall);
	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[SUM_CALLS]++;
	return report_summary_add(run, call->thread, SUM_CALLS, 1);
}

static int report_summary_on_io(void *data, const struct ky_io *io)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(io->call->begin_ns, io->call->end_ns);

	if (io->kind == KY_IO_READ || io->kind == KY_IO_COPY)
		run->bytes_read += io->bytes;
	if (io->kind == KY_IO_WRITE || io->kind == KY_IO_COPY)
		run->bytes_written += io->bytes;
	/* Only files: a thread that reads a pipe or a socket waits for another thread. */
	if (io->file && io->file->kind == KY_FILE_DISK && ns > run->io.ns) {
		report_summary_keep(&run->io, ns, io->call->end_ns, io->call->thread);
		run->io.syscall = io->call->syscall;
		run->io.file = io->file->name;
	}
	return report_summary_add(run, io->call->thread, SUM_BYTES, io->bytes);
}

static int report_summary_on_irq(void *data, const struct ky_irq *irq)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(irq->begin_ns, irq->end_ns);

	if (irq->begin_ns == INT64_MIN || ns <= run->irq.ns)
		return 0;
	report_summary_keep(&run->irq, ns, irq->end_ns, NULL);
	run->irq.line = irq->line;
	return 0;
}

static int report_summary_on_request(void *data, const struct ky_request *request)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(request->issue_ns, request->end_ns);

	if (request->issue_ns == INT64_MIN)
		return 0;
	if (ns > run->request.ns) {
		report_summary_keep(&run->request, ns, request->end_ns, request->thread);
		run->request.file = request->disk->name;
	}
	return ky_stats_add(&run->device, ns);
}

static int report_summary_on_packet(void *data, const struct ky_packet_seen *packet)
{
	struct run *run = data;

	if (packet->received)
		run->received += packet->bytes;
	else if (!packet->failed)
		run->sent += packet->bytes;
	return 0;
}

static int report_summary_on_futex(void *data, const struct ky_call *call)
{
	struct run *run = data;
	const struct ky_wait *woken = &call->thread->woken;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns);

	if (!ky_futex_waits(call->args[1]))
		return 0;
	run->futexes++;
	run->futex_ns += ns;
	if (call->ret >= 0 && woken->kind && !woken->irq && woken->begin_ns >= call->begin_ns)
		report_summary_keep(&run->futex, ns, call->end_ns, call->thread);
	return 0;
}

static void report_summary_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->threads);
	ky_aggregation_fini(&run->calls);
	ky_stats_fini(&run->waits);
	ky_stats_fini(&run->device);
	free(run);
}

static void *report_summary_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {
		.ran = report_summary_on_ran,
		.waited = report_summary_on_waited,
		.call = report_summary_on_call,
		.io = report_summary_on_io,
		.irq = report_summary_on_irq,
		.request = report_summary_on_request,
		.packet = report_summary_on_packet,
		.futex = report_summary_on_futex,
	};

	(void)options;
	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- facts ----------------------------------------------------------------------------- */

/* A row; @fact is used up. */
static void report_summary_say(struct ky_table *table, const char *subject, struct ky_strbuf *fact,
			       const char *more)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[FACT_SUBJECT], subject);
	ky_cell_text(table, &row[FACT_TEXT], ky_strbuf_text(fact));
	ky_cell_text(table, &row[FACT_MORE], more);
	ky_strbuf_fini(fact);
}

static void report_summary_add_thread(struct ky_strbuf *out, const struct ky_thread *thread)
{
	if (thread)
		ky_strbuf_addf(out, " (%s, tid %d)", thread->comm[0] ? thread->comm : "?",
			       (int)thread->tid);
}

static const struct ky_entry *largest(const struct ky_aggregation *aggregation, int sum)
{
	const struct ky_entry *best = NULL;

	ky_vec_foreach(&aggregation->entries, entry) {
		if ((*entry)->sums[sum] && (!best || (*entry)->sums[sum] > best->sums[sum]))
			best = *entry;
	}
	return best;
}

static void say_cpu(const struct run *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_CPU);
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (!run->busy_ns && !run->idle_ns)
		return;
	ky_strbuf_addf(&fact, "CPUs were busy %.1f %% of the time",
		       ky_part(run->busy_ns, run->busy_ns + run->idle_ns) * 100);
	if (most) {
		ky_strbuf_adds(&fact, ", most with ");
		ky_render_duration(&fact, (double)most->sums[SUM_CPU]);
		ky_strbuf_adds(&fact, " of one thread");
		report_summary_add_thread(&fact, most->thread);
	}
	report_summary_say(table, "CPU", &fact, "kymo report cpu,threads");
}

static void say_waits(const struct run *run, struct ky_table *table)
{
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (!run->waits.count)
		return;
	ky_strbuf_addf(&fact, "%" PRIu64 " wake-ups waited for a CPU, half of them less than ",
		       run->waits.count);
	ky_render_duration(&fact, (double)ky_stats_percentile(&run->waits, 50));
	ky_strbuf_adds(&fact, ", the longest ");
	ky_render_duration(&fact, (double)run->wait.ns);
	report_summary_add_thread(&fact, run->wait.thread);
	report_summary_say(table, "Scheduling", &fact, "kymo report sched");
}

static void say_calls(const struct run *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->calls, SUM_CALLS);
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (!most)
		return;
	ky_strbuf_addf(
		&fact, "%" PRIu64 " system calls, %" PRIu64 " failed; most were %s (%" PRIu64 ")",
		run->calls_done, run->failed,
		ky_model_syscall_name(run->model, (uint32_t)most->what), most->sums[SUM_CALLS]);
	most = largest(&run->threads, SUM_CALLS);
	if (most) {
		ky_strbuf_addf(&fact, ", and %" PRIu64 " of one thread", most->sums[SUM_CALLS]);
		report_summary_add_thread(&fact, most->thread);
	}
	report_summary_say(table, "System calls", &fact, "kymo report syscalls");
}

static void say_io(const struct run *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_BYTES);
	struct ky_strbuf fact = KY_STRBUF_INIT;
	char text[2][32];

	if (!most)
		return;
	ky_strbuf_addf(&fact, "%s read, %s written", ky_format_bytes(text[0], run->bytes_read),
		       ky_format_bytes(text[1], run->bytes_written));
	ky_strbuf_addf(&fact, "; most by one thread, %s",
		       ky_format_bytes(text[0], most->sums[SUM_BYTES]));
	report_summary_add_thread(&fact, most->thread);
	report_summary_say(table, "I/O", &fact, "kymo report io");
	if (!run->io.ns)
		return;
	ky_strbuf_addf(&fact, "the longest call on a file on disk was %s of %s: ",
		       ky_model_syscall_name(run->model, run->io.syscall), run->io.file);
	ky_render_duration(&fact, (double)run->io.ns);
	report_summary_add_thread(&fact, run->io.thread);
	report_summary_say(table, "I/O", &fact, "kymo report io-latency");
}

static void say_devices(const struct run *run, struct ky_table *table)
{
	struct ky_strbuf fact = KY_STRBUF_INIT;
	char text[2][32];

	if (run->device.count) {
		ky_strbuf_addf(&fact,
			       "%" PRIu64 " requests of block devices, half of them in less than ",
			       run->device.count);
		ky_render_duration(&fact, (double)ky_stats_percentile(&run->device, 50));
		ky_strbuf_addf(&fact, ", the longest (%s) in ",
			       run->request.file ? run->request.file : "?");
		ky_render_duration(&fact, (double)run->request.ns);
		report_summary_say(table, "Devices", &fact, "kymo report block");
	}
	if (run->sent || run->received) {
		ky_strbuf_addf(&fact, "%s of packets sent, %s received",
			       ky_format_bytes(text[0], run->sent),
			       ky_format_bytes(text[1], run->received));
		report_summary_say(table, "Network", &fact, "kymo report net");
	}
}

static void say_rest(const struct run *run, struct ky_table *table)
{
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (run->futexes) {
		ky_strbuf_addf(&fact, "%" PRIu64 " waits at locks of programs, ", run->futexes);
		ky_render_duration(&fact, (double)run->futex_ns);
		ky_strbuf_adds(&fact, " together");
		if (run->futex.ns) {
			ky_strbuf_adds(&fact, "; the longest that another thread ended ");
			ky_render_duration(&fact, (double)run->futex.ns);
			report_summary_add_thread(&fact, run->futex.thread);
		}
		report_summary_say(table, "Locks", &fact, "kymo report locks");
	}
	if (run->irq.ns) {
		ky_strbuf_adds(&fact, "the longest interrupt took ");
		ky_render_duration(&fact, (double)run->irq.ns);
		ky_strbuf_addf(&fact, " (%s, %s)", ky_irq_kind_text(run->irq.line->kind),
			       run->irq.line->name[0] ? run->irq.line->name : "?");
		report_summary_say(table, "Interrupts", &fact,
				   run->irq.line->kind == KY_IRQ_SOFT ? "kymo report softirq"
								      : "kymo report irq");
	}
}

static int report_summary_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	const struct run *run = data;
	struct ky_table *table = &result->tables[0];
	int status;

	(void)options;
	say_cpu(run, table);
	say_waits(run, table);
	say_calls(run, table);
	say_io(run, table);
	say_devices(run, table);
	say_rest(run, table);
	status = ky_report_note_losses(result);
	if (status >= 0)
		status = ky_report_note_switches(result);
	return status < 0 ? status : ky_report_note_waits(result);
}

const struct ky_report ky_report_summary = {
	.name = "summary",
	.summary = "one page: an overview, with references to other reports",
	.description =
		"Computes the other reports, and prints the most notable value of each in one "
		"line: the usage of the CPUs, the busiest thread, the longest waits, the most "
		"frequent calls, the slowest I/O, the longest interrupt.\n\nThe figures are those "
		"of the reports in the last column.",
	.events = "All events that the other reports need. Each line needs only the events of its "
		  "report.",
	.reading =
		"Start with this report, from top to bottom. Busy CPUs with long wake-up latencies "
		"need less work or more CPUs. Idle CPUs with slow calls mean that threads wait for "
		"devices, locks or other machines. Then run the command of the most surprising "
		"line.",
	.example = "$ kymo report summary my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Overview\n"
		   "  Subject       Fact                                                  "
		   "                                                            More by\n"
		   "  CPU           CPUs were busy 15.0 % of the time, most with 331.5 ms "
		   "of one thread (mem, tid 328)                                kymo repo."
		   "..\n"
		   "  Scheduling    831 wake-ups waited for a CPU, half of them less than "
		   "45.31 us, the longest 27.05 ms (lock-a, tid 324)            kymo repo."
		   "..\n"
		   "  System calls  5864 system calls, 71 failed; most were newfstatat (20"
		   "58), and 859 of one thread (lttng-consumerd, tid 275)       kymo repo."
		   "..\n"
		   "  I/O           6.7 MiB read, 11.1 MiB written; most by one thread, 13"
		   ".5 MiB (disk-io, tid 327)                                   kymo repo."
		   "..\n"
		   "  I/O           the longest call on a file on disk was fsync of /mnt/d"
		   "1: 17.41 ms (disk-io, tid 327)                              kymo repo."
		   "..\n"
		   "  Devices       151 requests of block devices, half of them in less th"
		   "an 195.6 us, the longest (vda) in 6.934 ms                  kymo repo."
		   "..\n"
		   "  Network       1.2 MiB of packets sent, 1.2 MiB received             "
		   "                                                            kymo repo."
		   "..\n"
		   "  Locks         25 waits at locks of programs, 109.5 ms together; the "
		   "longest that another thread ended 89.87 ms (work, tid 323)  kymo repo."
		   "..\n"
		   "  Interrupts    the longest interrupt took 5.642 ms (vector, local_tim"
		   "er)                                                         kymo repo."
		   "..\n",
	.tables = tables,
	.needs = 0,
	.needs_text = "",
	.needs_hint = "",
	.ignores = KY_IGNORES_BY,
	.begin = report_summary_begin,
	.finish = report_summary_finish,
	.free = report_summary_free_run,
};
