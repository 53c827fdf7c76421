/* SPDX-License-Identifier: MIT */
/* Report summary: the most notable facts of a trace, each with the command that digs deeper. */
#include "analysis/reports/report-list.h"

#include "analysis/overview/summary-internal.h"
#include "analysis/state/errno-name.h"

/* ---- documentation --------------------------------------------------------------------- */

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

/* Calls that wait for work, for an input or for a time: their durations say nothing. */
static const char *const idle_calls[] = {
	"accept",     "accept4", "clock_nanosleep", "epoll_pwait",    "epoll_pwait2",
	"epoll_wait", "futex",	 "io_getevents",    "io_uring_enter", "nanosleep",
	"pause",      "poll",	 "ppoll",	    "pselect6",	      "recvfrom",
	"recvmmsg",   "recvmsg", "restart_syscall", "rt_sigsuspend",  "rt_sigtimedwait",
	"select",     "wait4",	 "waitid",
};

#define ETIMEDOUT_NUMBER 110

static void report_summary_keep(struct ky_summary_longest *longest, uint64_t ns, int64_t end_ns,
				const struct ky_thread *thread)
{
	if (ns > longest->ns)
		*longest =
			(struct ky_summary_longest){.ns = ns, .end_ns = end_ns, .thread = thread};
}

static int report_summary_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
				 struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(begin_ns, end_ns);

	(void)cpu;
	if (state == KY_CPU_IDLE)
		run->idle_ns += ns;
	if (state != KY_CPU_BUSY)
		return 0;
	run->busy_ns += ns;
	return ky_model_in_focus(run->model, thread)
		       ? ky_aggregation_add(&run->threads, thread, SUM_CPU, ns)
		       : 0;
}

static int report_summary_on_waited(void *data, const struct ky_waited *waited)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(waited->wait.begin_ns, waited->end_ns);

	if (waited->wait.kind == KY_WAIT_PREEMPTED) {
		report_summary_keep(&run->preemption, ns, waited->end_ns, waited->thread);
		run->preemption.by =
			ns == run->preemption.ns ? waited->wait.by : run->preemption.by;
		run->preemptions++;
		run->preempted_ns += ns;
		return ky_aggregation_add(&run->threads, waited->thread, SUM_PREEMPTED, ns);
	}
	report_summary_keep(&run->wait, ns, waited->end_ns, waited->thread);
	return ky_stats_add(&run->waits, ns);
}

static bool report_summary_is_idle(const char *name)
{
	for (size_t i = 0; i < sizeof(idle_calls) / sizeof(*idle_calls); i++) {
		if (strcmp(name, idle_calls[i]) == 0)
			return true;
	}
	return false;
}

/* What is known of @syscall. NULL: out of memory. */
static struct ky_summary_call *report_summary_call_get(struct ky_summary *run, uint32_t syscall)
{
	struct ky_summary_call *known;

	while (run->by_call.len <= syscall) {
		const char *name = ky_model_syscall_name(run->model, (uint32_t)run->by_call.len);

		if (ky_vec_push(&run->by_call, (struct ky_summary_call){
						       .waits = report_summary_is_idle(name)}) < 0)
			return NULL;
	}
	known = &run->by_call.data[syscall];
	if (!known->entry)
		known->entry = ky_aggregation_get(&run->calls, NULL, syscall);
	return known->entry ? known : NULL;
}

static int report_summary_on_call(void *data, const struct ky_call *call)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns);
	struct ky_summary_call *known;

	if (call->outcome != KY_CALL_DONE)
		return 0;
	run->calls_done++;
	run->failed += call->has_ret && ky_is_error(call->ret);
	known = report_summary_call_get(run, call->syscall);
	if (!known)
		return KYMO_E_MEMORY;
	known->n++;
	if (!known->waits && ky_stats_add(&known->entry->stats, ns) < 0)
		return KYMO_E_MEMORY;
	return ky_aggregation_add(&run->threads, call->thread, SUM_CALLS, 1);
}

static int report_summary_on_io(void *data, const struct ky_io *io)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(io->call->begin_ns, io->call->end_ns);
	struct ky_summary_longest *longest = &run->files[io->kind];

	if (io->kind == KY_IO_READ || io->kind == KY_IO_COPY)
		run->bytes_read += io->bytes;
	if (io->kind == KY_IO_WRITE || io->kind == KY_IO_COPY)
		run->bytes_written += io->bytes;
	/* Only files: a thread that reads a pipe or a socket waits for another thread. */
	if (io->kind == KY_IO_SYNC || (io->file && io->file->kind == KY_FILE_DISK)) {
		run->file_calls[io->kind]++;
		run->file_ns[io->kind] += ns;
		if (ns > longest->ns) {
			report_summary_keep(longest, ns, io->call->end_ns, io->call->thread);
			longest->syscall = io->call->syscall;
			longest->file = io->file ? io->file->name : NULL;
		}
	}
	return ky_aggregation_add(&run->threads, io->call->thread, SUM_BYTES, io->bytes);
}

static int report_summary_on_migrated(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_summary *run = data;

	(void)ns;
	run->migrations++;
	return ky_aggregation_add(&run->threads, thread, SUM_MOVES, 1);
}

static int report_summary_on_signal(void *data, const struct ky_signal *signal)
{
	struct ky_summary *run = data;

	/* Of those that a chosen thread sends to another one, the other one is not chosen. */
	if (!ky_model_in_focus(run->model, signal->receiver))
		return 0;
	run->signals++;
	return ky_aggregation_add(&run->threads, signal->receiver, SUM_SIGNALS, 1);
}

static int report_summary_on_flush(void *data, const struct ky_request *flush)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(flush->issue_ns, flush->end_ns);

	run->flushes++;
	run->flush_ns += ns;
	run->flush_most_ns = ns > run->flush_most_ns ? ns : run->flush_most_ns;
	return 0;
}

static int report_summary_on_hold(void *data, const struct ky_lock_hold *hold)
{
	struct ky_summary *run = data;

	if (!ky_lock_is_lock(hold->lock))
		return 0;
	return ky_aggregation_add(&run->threads, hold->thread, SUM_DELAY, hold->delay_ns);
}

static int report_summary_on_irq(void *data, const struct ky_irq *irq)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(irq->begin_ns, irq->end_ns);

	if (irq->begin_ns == INT64_MIN || ns <= run->irq.ns)
		return 0;
	report_summary_keep(&run->irq, ns, irq->end_ns, NULL);
	run->irq.line = irq->line;
	return 0;
}

static int report_summary_on_request(void *data, const struct ky_request *request)
{
	struct ky_summary *run = data;
	uint64_t ns = ky_ns_between(request->issue_ns, request->end_ns);

	if (request->rwbs & KY_RWBS_READ)
		run->device_read += request->n_sectors * 512;
	else if (request->rwbs & KY_RWBS_WRITE)
		run->device_written += request->n_sectors * 512;
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
	struct ky_summary *run = data;

	if (packet->received)
		run->received += packet->bytes;
	else if (!packet->failed)
		run->sent += packet->bytes;
	return 0;
}

static int report_summary_on_futex(void *data, const struct ky_call *call)
{
	struct ky_summary *run = data;
	const struct ky_wait *woken = &call->thread->woken;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns);

	/* What a timeout ends waits for work, or for a time. */
	if (!ky_futex_waits(call->args[1]) || call->ret == -ETIMEDOUT_NUMBER)
		return 0;
	run->futexes++;
	run->futex_ns += ns;
	if (call->ret >= 0 && woken->kind && !woken->irq && woken->begin_ns >= call->begin_ns)
		report_summary_keep(&run->futex, ns, call->end_ns, call->thread);
	return 0;
}

static void report_summary_free_run(void *data)
{
	struct ky_summary *run = data;

	ky_aggregation_fini(&run->threads);
	ky_aggregation_fini(&run->calls);
	ky_stats_fini(&run->waits);
	ky_stats_fini(&run->device);
	ky_vec_fini(&run->by_call);
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
		.lock_hold = report_summary_on_hold,
		.migrated = report_summary_on_migrated,
		.signal = report_summary_on_signal,
		.flush = report_summary_on_flush,
	};

	(void)options;
	return ky_report_run(model, sizeof(struct ky_summary), &listener);
}

/* ---- the whole ------------------------------------------------------------------------- */

static int report_summary_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	const struct ky_summary *run = data;
	struct ky_table *table = &result->tables[0];
	int status;

	(void)options;
	ky_vec_foreach(&run->by_call, call) {
		if (call->entry)
			call->entry->sums[SUM_CALLS] = call->n;
	}
	ky_summary_say(run, table);
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
		"line: the usage of the CPUs, the busiest thread, waits and preemptions, migrations, the most "
		"frequent calls, those with most time and outliers, reads, writes and syncs, devices, locks, "
		"signals, interrupts. Calls that wait for work, such as poll, and waits that a timeout ended are not "
		"among the times. The figures are those of the reports in column 'More by'.\n\nWith --comm, "
		"--pid and the like, the figures are of the chosen threads, except the line that says \"with all threads\".",
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
		   "  Subject       More by                          Fact\n"
		   "  CPU           kymo report cpu,threads          the CPUs were busy 15"
		   ".0 % of\n"
		   "                                                 the time\n"
		   "  CPU           kymo report cpu                  the busiest thread ra"
		   "n for\n"
		   "                                                 331.5 ms, 8.8 % of a "
		   "CPU (mem,\n"
		   "                                                 tid 328)\n"
		   "  Scheduling    kymo report sched                831 wake-ups waited f"
		   "or a CPU,\n"
		   "                                                 half of them less tha"
		   "n 45.31\n"
		   "                                                 us, the longest 27.05"
		   " ms\n"
		   "                                                 (lock-a, tid 324)\n"
		   "  Preemption    kymo report sched -t preempted   418 preemptions cost "
		   "176.7 ms,\n"
		   "                                                 the longest 14.45 ms "
		   "(work, tid\n"
		   "                                                 323) by (ksoftirqd/0,"
		   " tid 14);\n"
		   "                                                 most time of one thre"
		   "ad: 49.91\n"
		   "                                                 ms (work, tid 323)\n"
		   "  Migrations    kymo report sched -t migrations  44 migrations between"
		   " CPUs,\n"
		   "                                                 11.7 per second; 22 o"
		   "f one\n"
		   "                                                 thread (rcu_preempt, "
		   "tid 15)\n"
		   "  System calls  kymo report syscalls             5864 system calls, 71"
		   " failed;\n"
		   "                                                 most were newfstatat "
		   "(2058),\n"
		   "                                                 and 859 of one thread\n"
		   "                                                 (lttng-consumerd, tid"
		   " 275)\n"
		   "  System calls  kymo report syscalls -s total    most time in pread64:"
		   " 126.7 ms\n"
		   "                                                 in 146 calls, the lon"
		   "gest 12.15\n"
		   "                                                 ms (without calls tha"
		   "t wait for\n"
		   "                                                 work or a time)\n"
		   "  System calls  kymo report syscalls -t top      outlier: half of the "
		   "583 calls\n"
		   "                                                 of ioctl take less th"
		   "an 2.191\n"
		   "                                                 us, the longest took "
		   "16.51 ms\n"
		   "  I/O           kymo report io                   6.7 MiB read, 11.1 Mi"
		   "B written;\n"
		   "                                                 most by one thread, 1"
		   "3.5 MiB\n"
		   "                                                 (disk-io, tid 327)\n"
		   "  I/O           kymo report io-latency           175 reads of files to"
		   "ok 130.3\n"
		   "                                                 ms, the longest 12.15"
		   " ms:\n"
		   "                                                 pread64 of /mnt/d2 (d"
		   "isk-io,\n"
		   "                                                 tid 327)\n"
		   "  I/O           kymo report io-latency           260 writes to files t"
		   "ook 49.92\n"
		   "                                                 ms, the longest 2.365"
		   " ms: write\n"
		   "                                                 of /mnt/d0 (disk-io, "
		   "tid 327)\n"
		   "  I/O           kymo report io-latency           191 syncs took 137.4 "
		   "ms, the\n"
		   "                                                 longest 17.41 ms: fsy"
		   "nc of\n"
		   "                                                 /mnt/d1 (disk-io, tid"
		   " 327)\n"
		   "  Devices       kymo report block                151 requests: 10.0 Mi"
		   "B read,\n"
		   "                                                 9.2 MiB written, half"
		   " of them\n"
		   "                                                 in less than 195.6 us"
		   ", the\n"
		   "                                                 longest (vda) in 6.93"
		   "4 ms\n"
		   "  Devices       kymo report block -t flushes     15 flushes took 13.64"
		   " ms, the\n"
		   "                                                 longest 1.724 ms\n"
		   "  Network       kymo report net                  1.2 MiB of packets se"
		   "nt, 1.2\n"
		   "                                                 MiB received\n"
		   "  Locks         kymo report locks                25 waits at locks of "
		   "programs,\n"
		   "                                                 109.5 ms together (wi"
		   "thout\n"
		   "                                                 those that a timeout "
		   "ended);\n"
		   "                                                 the longest that anot"
		   "her thread\n"
		   "                                                 ended 89.87 ms (work,"
		   " tid 323)\n"
		   "  Locks         kymo report locks -t holders     the holder that delay"
		   "ed others\n"
		   "                                                 most: (lock-b, tid 32"
		   "5), by\n"
		   "                                                 12.61 ms\n"
		   "  Interrupts    kymo report irq                  the longest interrupt"
		   " took\n"
		   "                                                 5.642 ms (vector, loc"
		   "al_timer)\n",
	.tables = tables,
	.needs = 0,
	.needs_text = "",
	.needs_hint = "",
	.ignores = KY_IGNORES_BY,
	.begin = report_summary_begin,
	.finish = report_summary_finish,
	.free = report_summary_free_run,
};
