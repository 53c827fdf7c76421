/* SPDX-License-Identifier: MIT */
#include "analysis/reports/report-parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reports/report-options.h"
#include "analysis/tables/duration-class.h"
#include "analysis/tables/render-cell.h"

/* The kernel cuts the name of a thread there. */
#define COMM_MAX 15

/* "(eth0)": a narrow table, which has no column for the interrupt, tells interrupts apart, too. */
static void report_parts_fill_irq(struct ky_table *table, struct ky_cell *cell,
				  const struct ky_irq_line *line)
{
	char name[64];

	if (line->name[0])
		snprintf(name, sizeof(name), "(%s)", line->name);
	else
		snprintf(name, sizeof(name), "(%s %d)", ky_irq_kind_text(line->kind),
			 (int)line->nr);
	ky_cell_process(table, cell, -1, -1, name, NULL);
}

void ky_fill_part(struct ky_table *table, struct ky_cell *row, const struct ky_model *model,
		  const struct ky_part *part, enum ky_by by)
{
	ky_cell_text(table, &row[KY_PART_CAUSE], ky_cause_text(part->cause));
	if (part->who)
		ky_cell_who(table, &row[KY_PART_WHO_COLUMN], model, part->who, by);
	else if (part->idle)
		ky_cell_process(table, &row[KY_PART_WHO_COLUMN], -1, -1, "(idle CPU)", NULL);
	else if (part->cause == KY_CAUSE_IRQ && part->line)
		report_parts_fill_irq(table, &row[KY_PART_WHO_COLUMN], part->line);
	if (part->line)
		ky_cell_line(table, &row[KY_PART_IRQ], part->line);
	if (part->disk)
		ky_cell_text(table, &row[KY_PART_DISK], part->disk->name);
	if (part->syscall != KY_NO_SYSCALL)
		ky_cell_text(table, &row[KY_PART_SYSCALL],
			     ky_model_syscall_name(model, part->syscall));
	else if (part->in_fault)
		ky_cell_text(table, &row[KY_PART_SYSCALL], "(page fault)");
	ky_cell_file(table, &row[KY_PART_FILE], part->file);
	if (part->address)
		ky_cell_u64(&row[KY_PART_FUTEX], part->address);
}

static int report_parts_compare(const void *a, const void *b, void *by)
{
	const struct ky_thread *const *left = a, *const *right = b;
	int order = ky_threads_compare(*left, *right, *(const enum ky_by *)by);

	/* The first one of a group is the one that was seen first. */
	return order ? order : (*left)->index < (*right)->index ? -1 : 1;
}

const struct ky_thread **ky_part_groups(const struct ky_model *model, enum ky_by by)
{
	size_t n = ky_model_n_threads(model);
	const struct ky_thread **sorted, **groups;
	const struct ky_thread *first = NULL;

	if (by == KY_BY_DEFAULT || by == KY_BY_THREAD)
		return NULL;
	sorted = calloc(n + 1, sizeof(*sorted));
	groups = calloc(n + 1, sizeof(*groups));
	for (size_t i = 0; sorted && groups && i < n; i++)
		sorted[i] = ky_model_thread(model, i);
	if (sorted && groups && n)
		qsort_r(sorted, n, sizeof(*sorted), report_parts_compare, &by);
	for (size_t i = 0; sorted && groups && i < n; i++) {
		if (!first || ky_threads_compare(first, sorted[i], by) != 0)
			first = sorted[i];
		groups[sorted[i]->index] = first;
	}
	if (!sorted) {
		free(groups);
		groups = NULL;
	}
	free(sorted);
	return groups;
}

size_t ky_heatmap_column(const struct ky_report_result *result, int64_t ns)
{
	uint64_t span = ky_ns_between(result->begin_ns, result->end_ns) + 1;
	size_t column = (size_t)((double)ky_ns_between(result->begin_ns, ns) / (double)span *
				 KY_HEATMAP_COLUMNS);

	return column < KY_HEATMAP_COLUMNS ? column : KY_HEATMAP_COLUMNS - 1;
}

bool ky_report_wants_member(const struct ky_report_options *options,
			    const struct ky_report_result *result,
			    const struct ky_cause_member *member, size_t i)
{
	if (options->cell_column &&
	    (ky_heatmap_column(result, member->end_ns) + 1 != options->cell_column ||
	     ky_duration_class(ky_cause_member_ns(member)) != options->cell_row))
		return false;
	if (options->member)
		return options->member == i + 1;
	return options->at_ns == INT64_MIN ||
	       (member->begin_ns <= options->at_ns && member->end_ns >= options->at_ns);
}

int ky_report_note_causes(struct ky_report_result *result, const struct ky_causes *causes)
{
	unsigned int abilities = ky_model_abilities(result->model);
	struct ky_strbuf since = KY_STRBUF_INIT;
	int status = ky_report_note_losses(result);
	int64_t full_ns;

	if (status >= 0)
		status = ky_report_note_switches(result);
	if (status >= 0 && !(abilities & KY_CAN_WAKE))
		status = ky_report_note(result,
					"the trace has no wake-ups (sched_waking): who ended "
					"a wait is not known");
	if (status >= 0 && !(abilities & KY_CAN_IRQ))
		status = ky_report_note(
			result, "the trace has no interrupts (irq_handler_entry): waits that "
				"an interrupt ended can seem to be ended by the thread that it "
				"interrupted");
	if (status >= 0 && ky_causes_is_full(causes, &full_ns)) {
		ky_render_time(&since, full_ns, true);
		status = ky_report_note(result,
					"the trace is too long: all after %s is unknown; choose a "
					"range with --begin and --end",
					ky_strbuf_text(&since));
	}
	ky_strbuf_fini(&since);
	return status;
}

void ky_report_add_nothing(struct ky_strbuf *out, const struct ky_cause_members *members)
{
	ky_strbuf_addf(out, "no %s matches", ky_of_text(members->of.kind));
	ky_vec_foreach(&members->focus->comms, comm) {
		if (strlen(*comm) <= COMM_MAX || strpbrk(*comm, "*?\\"))
			continue;
		ky_strbuf_addf(out, "; names of threads have at most %d letters, and '%s' has more",
			       COMM_MAX, *comm);
		break;
	}
}

int ky_report_note_nothing(struct ky_report_result *result, const struct ky_cause_members *members)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int status;

	ky_report_add_nothing(&text, members);
	status = ky_strbuf_failed(&text) ? KYMO_E_MEMORY
					 : ky_report_note(result, "%s", ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	return status;
}

int ky_report_note_members(struct ky_report_result *result, const struct ky_cause_members *members)
{
	int status = 0;

	if (members->omitted)
		status = ky_report_note(result,
					"%llu more were too many to keep; choose some with --min, "
					"--begin and --end",
					(unsigned long long)members->omitted);
	if (status >= 0 && members->unmeasured)
		status = ky_report_note(
			result,
			"%llu are left out: the trace does not have their begin or their "
			"end, or has lost events of them",
			(unsigned long long)members->unmeasured);
	return status;
}

struct ky_cause_members *ky_report_members_new(struct ky_model *model,
					       const struct ky_report_options *options)
{
	struct ky_of of;

	(void)ky_of_parse(options->of, &of, NULL); /* it was checked */
	return ky_cause_members_new(model, options->causes, &of, &options->focus);
}

void ky_fill_part_log(struct ky_table *table, const struct ky_model *model, uint64_t number,
		      const struct ky_part *part)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_u64(&row[KY_PART_LOG_NUMBER], number + 1);
	ky_cell_i64(&row[KY_PART_LOG_BEGIN], part->begin_ns);
	ky_cell_i64(&row[KY_PART_LOG_END], part->end_ns);
	ky_cell_u64(&row[KY_PART_LOG_DURATION], ky_ns_between(part->begin_ns, part->end_ns));
	if (part->thread)
		ky_cell_thread(table, &row[KY_PART_LOG_THREAD], model, part->thread);
	ky_fill_part(table, &row[KY_PART_LOG_PARTS], model, part, KY_BY_THREAD);
	if (part->cpu >= 0)
		ky_cell_u64(&row[KY_PART_LOG_CPU], (uint64_t)part->cpu);
}

struct ky_causes *ky_report_causes_new(struct ky_model *model)
{
	return ky_causes_new(model);
}

void ky_report_causes_free(struct ky_causes *causes)
{
	ky_causes_free(causes);
}
