/* SPDX-License-Identifier: MIT */
/* Notes of reports: what their figures lack. */
#include "analysis/reports/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/tables/render-cell.h"
#include "base/text.h"

const char *ky_irq_kind_text(enum ky_irq_kind kind)
{
	static const char *const texts[] = {
		[KY_IRQ_HARD] = "hard", [KY_IRQ_SOFT] = "soft", [KY_IRQ_VECTOR] = "vector"};

	return texts[kind];
}

void ky_cell_line(struct ky_table *table, struct ky_cell *cell, const struct ky_irq_line *line)
{
	ky_cell_irq(table, cell, ky_irq_kind_text(line->kind), line->nr, line->name);
}

/* ---- notes ----------------------------------------------------------------------------- */

int ky_report_note(struct ky_report_result *result, const char *fmt, ...)
{
	char *note;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&note, fmt, ap);
	va_end(ap);
	if (len < 0)
		return KYMO_E_MEMORY;
	if (ky_vec_push(&result->notes, note) < 0) {
		free(note);
		return KYMO_E_MEMORY;
	}
	return 0;
}

bool ky_report_note_is_new(const struct ky_report_results *results, size_t at, const char *note)
{
	const struct ky_report *report = results->list.data[at].report;

	/* What counts is of its interval, even where the one before has the same figure. */
	if (strpbrk(note, "0123456789"))
		return true;
	while (at-- > 0) {
		if (results->list.data[at].report != report)
			continue;
		ky_vec_foreach(&results->list.data[at].notes, before) {
			if (strcmp(*before, note) == 0)
				return false;
		}
		break;
	}
	return true;
}

#define NOT_IN_FIGURES                                                                          \
	"these figures leave out what happened there, and calls and waits of threads on these " \
	"CPUs may be missing or wrong"

/* " of HOST" where there are several, else "". */
static void report_common_add_host(struct ky_strbuf *out, const struct ky_model *model,
				   const struct ky_host *host)
{
	const char *label = ky_report_host(model, host);

	if (label)
		ky_strbuf_addf(out, " of %s", label);
}

/* Makes @text, which is finished, a note. */
static int note_text(struct ky_report_result *result, struct ky_strbuf *text)
{
	int status = ky_strbuf_failed(text) ? KYMO_E_MEMORY
					    : ky_report_note(result, "%s", ky_strbuf_text(text));

	ky_strbuf_fini(text);
	return status;
}

/* CPUs that the trace knows by name only. */
static int note_absent_cpus(struct ky_report_result *result, const struct ky_host *host)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *before = " (";

	if (!host->lacks_cpus)
		return 0;
	ky_strbuf_adds(&text, "events");
	report_common_add_host(&text, result->model, host);
	ky_strbuf_adds(&text, " name CPUs without a data stream in the trace");
	for (unsigned int cpu = 0; cpu < 64; cpu++) {
		if (host->absent_cpus >> cpu & 1) {
			ky_strbuf_addf(&text, "%s%u", before, cpu);
			before = ", ";
		}
	}
	ky_strbuf_adds(&text, host->absent_cpus ? "): " NOT_IN_FIGURES : ": " NOT_IN_FIGURES);
	return note_text(result, &text);
}

/* A CPU whose record ends in damage, in this interval or before it, while those of others go on. */
static int note_cut_cpu(struct ky_report_result *result, const struct ky_cpu *cpu)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (cpu->cut_ns == INT64_MIN || cpu->cut_ns >= result->end_ns)
		return 0;
	ky_strbuf_addf(&text, "damage ends the record of CPU %u", cpu->id);
	report_common_add_host(&text, result->model, cpu->host);
	ky_strbuf_adds(&text, " at ");
	ky_render_time(&text, cpu->cut_ns, false);
	ky_strbuf_adds(&text, ": " NOT_IN_FIGURES);
	return note_text(result, &text);
}

int ky_report_note_losses(struct ky_report_result *result)
{
	uint64_t events = 0, gaps = 0, pauses = 0, paused_ns = 0;
	char time[32];
	int status = 0;

	for (size_t i = 0; i < ky_model_n_hosts(result->model) && status >= 0; i++) {
		const struct ky_host *host = ky_model_host(result->model, i);

		events += host->lost_events;
		gaps += host->gaps;
		pauses += host->pauses;
		paused_ns += host->paused_ns;
		status = note_absent_cpus(result, host);
	}
	for (size_t i = 0; i < ky_model_n_cpus(result->model) && status >= 0; i++)
		status = note_cut_cpu(result, ky_model_cpu(result->model, i));
	if (status >= 0 && pauses)
		status = ky_report_note(
			result,
			"the recording was paused for %s in %" PRIu64
			" pause%s, and these figures leave out what happened in them",
			ky_format_duration(time, paused_ns), pauses, pauses == 1 ? "" : "s");
	if (status < 0)
		return status;
	if (!gaps)
		return 0;
	return ky_report_note(result,
			      "%" PRIu64 " events were lost in %" PRIu64 " gap%s, and these "
			      "figures leave out what happened in them",
			      events, gaps, gaps == 1 ? "" : "s");
}

/* Kernels have been seen that never tell of switches from the idle thread of some CPU. */
int ky_report_note_switches(struct ky_report_result *result)
{
	uint64_t missing = 0, n_cpus = 0;

	for (size_t i = 0; i < ky_model_n_cpus(result->model); i++) {
		const struct ky_cpu *cpu = ky_model_cpu(result->model, i);

		missing += cpu->missing - cpu->missing_before;
		n_cpus += cpu->missing > cpu->missing_before;
	}
	if (!missing)
		return 0;
	return ky_report_note(result,
			      "%" PRIu64 " switch%s of %" PRIu64
			      " CPU%s %s not recorded (by a filter or the kernel): "
			      "times around them are left out; a few do not matter",
			      missing, missing == 1 ? "" : "es", n_cpus, n_cpus == 1 ? "" : "s",
			      missing == 1 ? "was" : "were");
}

int ky_report_note_waits(struct ky_report_result *result)
{
	struct ky_waits_known waits = ky_model_waits(result->model);
	char longest[32], total[32];

	if (!waits.missed)
		return 0;
	return ky_report_note(
		result,
		"measured %" PRIu64 " of %" PRIu64 " waits for a CPU: the other %" PRIu64
		" ended without a recorded switch to the thread; each lasted at most %s, "
		"together at most %s",
		waits.measured, waits.measured + waits.missed, waits.missed,
		ky_format_duration(longest, waits.missed_longest_ns),
		ky_format_duration(total, waits.missed_most_ns));
}

int ky_report_note_cpu_time(struct ky_report_result *result)
{
	struct ky_waits_known waits = ky_model_waits(result->model);
	char more[32];

	if (!waits.missed)
		return 0;
	return ky_report_note(
		result,
		"%" PRIu64 " runs began without a recorded switch to the thread: their CPU time "
		"counts from the first event of the thread on; with the time since the wake-ups, "
		"it would be at most %s more",
		waits.missed, ky_format_duration(more, waits.missed_most_ns));
}

int ky_report_note_files(struct ky_report_result *result)
{
	uint64_t nameless = 0;
	bool lost = false;

	for (size_t i = 0; i < ky_model_n_hosts(result->model); i++) {
		lost |= ky_model_host(result->model, i)->torn_until_ns != INT64_MIN;
		nameless += ky_model_host(result->model, i)->nameless;
	}
	if (nameless &&
	    ky_report_note(result,
			   "%" PRIu64 " files were opened without a path in the trace: they have "
			   "the names of their descriptors (kymo record --syscall-content=paths "
			   "records paths)",
			   nameless) < 0)
		return KYMO_E_MEMORY;
	if (lost &&
	    ky_report_note(result, "after a gap, descriptors may refer to other files than shown, "
				   "because opens and closes may be lost") < 0)
		return KYMO_E_MEMORY;
	return ky_report_note_losses(result);
}
