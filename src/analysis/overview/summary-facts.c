/* SPDX-License-Identifier: MIT */
/* Report summary: the sentences. */
#include <inttypes.h>

#include "analysis/overview/summary-internal.h"
#include "analysis/tables/render-cell.h"
#include "base/text.h"

/* What is that much longer than the median of so many, and that long, is worth a line. */
#define OUTLIER_LEAST 20
#define OUTLIER_NS    UINT64_C(1000000)
#define OUTLIER_CALLS 10

/* A row; @fact is used up. */
static void summary_facts_put(struct ky_table *table, const char *subject, struct ky_strbuf *fact,
			      const char *more)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[FACT_SUBJECT], subject);
	ky_cell_text(table, &row[FACT_TEXT], ky_strbuf_text(fact));
	ky_cell_text(table, &row[FACT_MORE], more);
	ky_strbuf_fini(fact);
}

static void summary_facts_add_thread(struct ky_strbuf *out, const struct ky_thread *thread)
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

static const char *summary_facts_s(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* "5 per second" */
static void add_rate(struct ky_strbuf *out, const struct ky_summary *run, uint64_t count)
{
	uint64_t range_ns = ky_report_range_ns(run->model);

	if (range_ns)
		ky_strbuf_addf(out, ", %.1f per second", (double)count * 1e9 / (double)range_ns);
}

static void say_cpu(const struct ky_summary *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_CPU);
	struct ky_strbuf fact = KY_STRBUF_INIT;
	uint64_t range_ns = ky_report_range_ns(run->model);

	if (!run->busy_ns && !run->idle_ns)
		return;
	ky_strbuf_addf(&fact, "the CPUs were busy %.1f %% of the time%s",
		       ky_part(run->busy_ns, run->busy_ns + run->idle_ns) * 100,
		       ky_model_names_threads(run->model) ? ", with all threads" : "");
	summary_facts_put(table, "CPU", &fact, "kymo report cpu,threads");
	if (!most)
		return;
	ky_strbuf_adds(&fact, "the busiest thread ran for ");
	ky_render_duration(&fact, (double)most->sums[SUM_CPU]);
	ky_strbuf_addf(&fact, ", %.1f %% of a CPU", ky_part(most->sums[SUM_CPU], range_ns) * 100);
	summary_facts_add_thread(&fact, most->thread);
	summary_facts_put(table, "CPU", &fact, "kymo report cpu");
}

static void say_preemptions(const struct ky_summary *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_PREEMPTED);
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (!run->preemptions)
		return;
	ky_strbuf_addf(&fact, "%" PRIu64 " preemption%s cost ", run->preemptions,
		       summary_facts_s(run->preemptions));
	ky_render_duration(&fact, (double)run->preempted_ns);
	ky_strbuf_adds(&fact, ", the longest ");
	ky_render_duration(&fact, (double)run->preemption.ns);
	summary_facts_add_thread(&fact, run->preemption.thread);
	if (run->preemption.by) {
		ky_strbuf_adds(&fact, " by");
		summary_facts_add_thread(&fact, run->preemption.by);
	}
	if (most) {
		ky_strbuf_adds(&fact, "; most time of one thread: ");
		ky_render_duration(&fact, (double)most->sums[SUM_PREEMPTED]);
		summary_facts_add_thread(&fact, most->thread);
	}
	summary_facts_put(table, "Preemption", &fact, "kymo report sched -t preempted");
}

static void say_waits(const struct ky_summary *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_MOVES);
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (run->waits.count) {
		ky_strbuf_addf(&fact,
			       "%" PRIu64 " wake-ups waited for a CPU, half of them less than ",
			       run->waits.count);
		ky_render_duration(&fact, (double)ky_stats_percentile(&run->waits, 50));
		ky_strbuf_adds(&fact, ", the longest ");
		ky_render_duration(&fact, (double)run->wait.ns);
		summary_facts_add_thread(&fact, run->wait.thread);
		summary_facts_put(table, "Scheduling", &fact, "kymo report sched");
	}
	say_preemptions(run, table);
	if (!most)
		return;
	ky_strbuf_addf(&fact, "%" PRIu64 " migration%s between CPUs", run->migrations,
		       summary_facts_s(run->migrations));
	add_rate(&fact, run, run->migrations);
	ky_strbuf_addf(&fact, "; %" PRIu64 " of one thread", most->sums[SUM_MOVES]);
	summary_facts_add_thread(&fact, most->thread);
	summary_facts_put(table, "Migrations", &fact, "kymo report sched -t migrations");
}

/* The call with the largest sum, and the one that is furthest from its median. */
static void find_calls(const struct ky_summary *run, const struct ky_entry **most,
		       const struct ky_entry **outlier)
{
	double furthest = OUTLIER_LEAST;
	unsigned __int128 sum = 0;

	ky_vec_foreach(&run->calls.entries, it) {
		const struct ky_entry *entry = *it;
		struct ky_moments moments = ky_stats_moments(&entry->stats);
		double ratio;

		if (!moments.count)
			continue;
		if (moments.sum > sum) {
			sum = moments.sum;
			*most = entry;
		}
		if (moments.max < OUTLIER_NS || moments.count < OUTLIER_CALLS)
			continue;
		ratio = (double)moments.max / (double)(ky_stats_percentile(&entry->stats, 50) + 1);
		if (ratio > furthest) {
			furthest = ratio;
			*outlier = entry;
		}
	}
}

static void say_times_of_calls(const struct ky_summary *run, struct ky_table *table)
{
	const struct ky_entry *most = NULL, *outlier = NULL;
	struct ky_strbuf fact = KY_STRBUF_INIT;

	find_calls(run, &most, &outlier);
	if (most) {
		ky_strbuf_addf(&fact, "most time in %s: ",
			       ky_model_syscall_name(run->model, (uint32_t)most->what));
		ky_render_duration(&fact, (double)ky_stats_moments(&most->stats).sum);
		ky_strbuf_addf(&fact, " in %" PRIu64 " call%s, the longest ", most->sums[SUM_CALLS],
			       summary_facts_s(most->sums[SUM_CALLS]));
		ky_render_duration(&fact, (double)ky_stats_moments(&most->stats).max);
		ky_strbuf_adds(&fact, " (without calls that wait for work or a time)");
		summary_facts_put(table, "System calls", &fact, "kymo report syscalls -s total");
	}
	if (outlier) {
		ky_strbuf_addf(&fact,
			       "outlier: half of the %" PRIu64 " calls of %s take less than ",
			       outlier->sums[SUM_CALLS],
			       ky_model_syscall_name(run->model, (uint32_t)outlier->what));
		ky_render_duration(&fact, (double)ky_stats_percentile(&outlier->stats, 50));
		ky_strbuf_adds(&fact, ", the longest took ");
		ky_render_duration(&fact, (double)ky_stats_moments(&outlier->stats).max);
		summary_facts_put(table, "System calls", &fact, "kymo report syscalls -t top");
	}
}

static void say_calls(const struct ky_summary *run, struct ky_table *table)
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
		summary_facts_add_thread(&fact, most->thread);
	}
	summary_facts_put(table, "System calls", &fact, "kymo report syscalls");
	say_times_of_calls(run, table);
}

/* Reads, writes and syncs of files: how long together, and the longest. */
static void say_files(const struct ky_summary *run, struct ky_table *table)
{
	static const char *const names[KY_IO_KINDS][2] = {
		[KY_IO_READ] = {"read of a file", "reads of files"},
		[KY_IO_WRITE] = {"write to a file", "writes to files"},
		[KY_IO_SYNC] = {"sync", "syncs"},
	};
	struct ky_strbuf fact = KY_STRBUF_INIT;

	for (int kind = 0; kind < KY_IO_KINDS; kind++) {
		const struct ky_summary_longest *longest = &run->files[kind];

		if (!names[kind][0] || !longest->ns)
			continue;
		ky_strbuf_addf(&fact, "%" PRIu64 " %s took ", run->file_calls[kind],
			       names[kind][run->file_calls[kind] != 1]);
		ky_render_duration(&fact, (double)run->file_ns[kind]);
		ky_strbuf_adds(&fact, ", the longest ");
		ky_render_duration(&fact, (double)longest->ns);
		ky_strbuf_addf(&fact, ": %s", ky_model_syscall_name(run->model, longest->syscall));
		if (longest->file) {
			ky_strbuf_adds(&fact, " of ");
			ky_strbuf_adds(&fact, longest->file); /* lint: a cell's text is foreign */
		}
		summary_facts_add_thread(&fact, longest->thread);
		summary_facts_put(table, "I/O", &fact, "kymo report io-latency");
	}
}

static void say_io(const struct ky_summary *run, struct ky_table *table)
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
	summary_facts_add_thread(&fact, most->thread);
	summary_facts_put(table, "I/O", &fact, "kymo report io");
	say_files(run, table);
}

static void say_disks(const struct ky_summary *run, struct ky_table *table)
{
	struct ky_strbuf fact = KY_STRBUF_INIT;
	char text[2][32];

	if (run->device.count) {
		ky_strbuf_addf(&fact,
			       "%" PRIu64
			       " request%s: %s read, %s written, half of them in less than ",
			       run->device.count, summary_facts_s(run->device.count),
			       ky_format_bytes(text[0], run->device_read),
			       ky_format_bytes(text[1], run->device_written));
		ky_render_duration(&fact, (double)ky_stats_percentile(&run->device, 50));
		ky_strbuf_addf(&fact, ", the longest (%s) in ",
			       run->request.file ? run->request.file : "?");
		ky_render_duration(&fact, (double)run->request.ns);
		summary_facts_put(table, "Devices", &fact, "kymo report block");
	}
	if (run->flushes) {
		ky_strbuf_addf(&fact, "%" PRIu64 " flush%s took ", run->flushes,
			       run->flushes == 1 ? "" : "es");
		ky_render_duration(&fact, (double)run->flush_ns);
		ky_strbuf_adds(&fact, ", the longest ");
		ky_render_duration(&fact, (double)run->flush_most_ns);
		summary_facts_put(table, "Devices", &fact, "kymo report block -t flushes");
	}
}

static void say_devices(const struct ky_summary *run, struct ky_table *table)
{
	struct ky_strbuf fact = KY_STRBUF_INIT;
	char text[2][32];

	say_disks(run, table);
	if (run->sent || run->received) {
		ky_strbuf_addf(&fact, "%s of packets sent, %s received",
			       ky_format_bytes(text[0], run->sent),
			       ky_format_bytes(text[1], run->received));
		summary_facts_put(table, "Network", &fact, "kymo report net");
	}
}

static void say_locks(const struct ky_summary *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_DELAY);
	struct ky_strbuf fact = KY_STRBUF_INIT;

	if (!run->futexes)
		return;
	ky_strbuf_addf(&fact, "%" PRIu64 " wait%s at locks of programs, ", run->futexes,
		       summary_facts_s(run->futexes));
	ky_render_duration(&fact, (double)run->futex_ns);
	ky_strbuf_adds(&fact, " together (without those that a timeout ended)");
	if (run->futex.ns) {
		ky_strbuf_adds(&fact, "; the longest that another thread ended ");
		ky_render_duration(&fact, (double)run->futex.ns);
		summary_facts_add_thread(&fact, run->futex.thread);
	}
	summary_facts_put(table, "Locks", &fact, "kymo report locks");
	if (!most)
		return;
	ky_strbuf_adds(&fact, "the holder that delayed others most:");
	summary_facts_add_thread(&fact, most->thread);
	ky_strbuf_adds(&fact, ", by ");
	ky_render_duration(&fact, (double)most->sums[SUM_DELAY]);
	summary_facts_put(table, "Locks", &fact, "kymo report locks -t holders");
}

static void say_rest(const struct ky_summary *run, struct ky_table *table)
{
	const struct ky_entry *most = largest(&run->threads, SUM_SIGNALS);
	struct ky_strbuf fact = KY_STRBUF_INIT;

	say_locks(run, table);
	if (most) {
		ky_strbuf_addf(&fact, "%" PRIu64 " signal%s", run->signals,
			       summary_facts_s(run->signals));
		add_rate(&fact, run, run->signals);
		ky_strbuf_addf(&fact, "; %" PRIu64 " to one thread", most->sums[SUM_SIGNALS]);
		summary_facts_add_thread(&fact, most->thread);
		summary_facts_put(table, "Signals", &fact, "kymo report signals");
	}
	if (run->irq.ns) {
		ky_strbuf_adds(&fact, "the longest interrupt took ");
		ky_render_duration(&fact, (double)run->irq.ns);
		ky_strbuf_addf(&fact, " (%s, %s)", ky_irq_kind_text(run->irq.line->kind),
			       run->irq.line->name[0] ? run->irq.line->name : "?");
		summary_facts_put(table, "Interrupts", &fact,
				  run->irq.line->kind == KY_IRQ_SOFT ? "kymo report softirq"
								     : "kymo report irq");
	}
}

void ky_summary_say(const struct ky_summary *run, struct ky_table *table)
{
	say_cpu(run, table);
	say_waits(run, table);
	say_calls(run, table);
	say_io(run, table);
	say_devices(run, table);
	say_rest(run, table);
}
