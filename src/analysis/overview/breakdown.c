/* SPDX-License-Identifier: MIT */
/* Report breakdown: its sums and tables. */
#include "analysis/overview/breakdown.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/reports/report-list.h"
#include "analysis/state/periods.h"

/* ---- the run --------------------------------------------------------------------------- */

void ky_breakdown_free(void *data)
{
	struct ky_breakdown *run = data;

	ky_cause_members_free(run->members);
	ky_part_sums_fini(&run->causes);
	ky_part_sums_fini(&run->parts);
	for (int i = 0; i < KY_CAUSES; i++)
		ky_part_sums_fini(&run->meanwhile[i]);
	free(run->groups);
	free(run);
}

void *ky_breakdown_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_breakdown *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->model = model;
	run->members = ky_report_members_new(model, options);
	if (run->members)
		return run;
	ky_breakdown_free(run);
	return NULL;
}

/* ---- the sums ---------------------------------------------------------------------------- */

struct adding {
	struct ky_breakdown *run;
	uint64_t number; /* of the member, from 0 */
	bool slow;
	enum ky_cause waits_for; /* of parts of those that are waited for */
};

static int breakdown_add_meanwhile(void *data, const struct ky_part *part)
{
	struct adding *adding = data;

	adding->run->n_parts++;
	return ky_part_sums_add(&adding->run->meanwhile[adding->waits_for], part, adding->number,
				adding->slow);
}

static bool breakdown_is_for_other(const struct ky_part *part)
{
	return part->who && part->who != part->thread &&
	       (part->cause == KY_CAUSE_LOCK || part->cause == KY_CAUSE_FUTEX ||
		part->cause == KY_CAUSE_THREAD || part->cause == KY_CAUSE_PIPE ||
		part->cause == KY_CAUSE_NETWORK ||
		(part->cause == KY_CAUSE_FAULT && part->who->pid == part->thread->pid));
}

static int breakdown_add(void *data, const struct ky_part *part)
{
	struct adding *adding = data;
	struct ky_breakdown *run = adding->run;

	run->n_parts++;
	if (ky_part_sums_add(&run->causes, part, adding->number, adding->slow) < 0 ||
	    ky_part_sums_add(&run->parts, part, adding->number, adding->slow) < 0)
		return KYMO_E_MEMORY;
	if (!breakdown_is_for_other(part))
		return 0;
	adding->waits_for = part->cause;
	return ky_causes_explain(run->members->causes, part->who, part->begin_ns, part->end_ns,
				 breakdown_add_meanwhile, adding);
}

static int breakdown_compare_ns(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

/* Members from here on are the slowest 1 %. UINT64_MAX: there are none, or memory lacks. */
static uint64_t breakdown_slow_ns(const struct ky_cause_members *members)
{
	size_t n = members->list.len;
	uint64_t *all = calloc(n + 1, sizeof(*all)), slow;

	if (!all)
		return UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		all[i] = ky_cause_member_ns(&members->list.data[i]);
	qsort(all, n, sizeof(*all), breakdown_compare_ns);
	slow = n ? all[n - 1 - (n - 1) / 100] : UINT64_MAX;
	free(all);
	return slow;
}

/* Keep only the members that are wanted; each has its number, from 0. */
int ky_breakdown_sum(struct ky_breakdown *run, const struct ky_report_options *options,
		     const struct ky_report_result *result, uint64_t *n_slow, uint64_t *n_all)
{
	struct ky_cause_members *members = run->members;
	uint64_t slow_ns = breakdown_slow_ns(members);
	int status = 0;

	for (size_t i = 0; i < members->list.len && status >= 0; i++) {
		const struct ky_cause_member *member = &members->list.data[i];
		struct adding adding = {run, i, ky_cause_member_ns(member) >= slow_ns, 0};

		if (!ky_report_wants_member(options, result, member, i))
			continue;
		if (run->n_parts > KY_PARTS_MAX) {
			run->left_out++;
			continue;
		}
		++*n_all;
		*n_slow += adding.slow;
		status = ky_cause_member_explain(members, member, breakdown_add, &adding);
	}
	return status;
}

/* ---- the tables ---------------------------------------------------------------------------- */

static void breakdown_fill_cause(const struct ky_breakdown *run, struct ky_table *table,
				 const struct ky_part_sum *sum, uint64_t n_slow, uint64_t n_all)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[CAUSE_TEXT], ky_cause_text(sum->like.cause));
	ky_cell_u64(&row[CAUSE_TIME], sum->total_ns);
	ky_cell_f64(&row[CAUSE_SHARE], ky_part(sum->total_ns, run->causes.total_ns));
	ky_cell_u64(&row[CAUSE_MEMBERS], sum->n_members);
	ky_cell_f64(&row[CAUSE_EACH], (double)sum->total_ns / (double)n_all);
	if (n_slow)
		ky_cell_f64(&row[CAUSE_SLOW], (double)sum->slow_ns / (double)n_slow);
	ky_cell_u64(&row[CAUSE_LONGEST], sum->longest_ns);
}

static void breakdown_fill_causes(struct ky_breakdown *run, struct ky_table *table, uint64_t n_slow,
				  uint64_t n_all)
{
	uint64_t slow_ns = 0, longest_ns = 0;
	struct ky_cell *row;

	ky_part_sums_sort(&run->causes);
	ky_vec_foreach(&run->causes.list, sum)
		breakdown_fill_cause(run, table, sum, n_slow, n_all);
	if (!n_all)
		return;
	ky_vec_foreach(&run->causes.list, sum)
		slow_ns += sum->slow_ns;
	ky_vec_foreach(&run->members->list, member)
		longest_ns = longest_ns < ky_cause_member_ns(member) ? ky_cause_member_ns(member)
								     : longest_ns;
	row = ky_table_row(table);
	ky_cell_text(table, &row[CAUSE_TEXT], "the whole");
	ky_cell_u64(&row[CAUSE_TIME], run->causes.total_ns);
	ky_cell_f64(&row[CAUSE_SHARE], run->causes.total_ns ? 1 : 0);
	ky_cell_u64(&row[CAUSE_MEMBERS], n_all);
	ky_cell_f64(&row[CAUSE_EACH], (double)run->causes.total_ns / (double)n_all);
	if (n_slow)
		ky_cell_f64(&row[CAUSE_SLOW], (double)slow_ns / (double)n_slow);
	if (n_all == run->members->list.len)
		ky_cell_u64(&row[CAUSE_LONGEST], longest_ns);
}

static void breakdown_fill_parts(struct ky_breakdown *run, struct ky_table *table, uint64_t n_slow,
				 enum ky_by by)
{
	ky_part_sums_sort(&run->parts);
	ky_vec_foreach(&run->parts.list, sum) {
		struct ky_cell *row = ky_table_row(table);

		ky_fill_part(table, row, run->model, &sum->like, by);
		ky_cell_u64(&row[WHO_TIME], sum->total_ns);
		ky_cell_f64(&row[WHO_SHARE], ky_part(sum->total_ns, run->causes.total_ns));
		ky_cell_u64(&row[WHO_COUNT], sum->count);
		ky_cell_u64(&row[WHO_LONGEST], sum->longest_ns);
		if (n_slow)
			ky_cell_f64(&row[WHO_SLOW], (double)sum->slow_ns / (double)n_slow);
	}
}

static void breakdown_fill_meanwhile(struct ky_breakdown *run, struct ky_table *table,
				     enum ky_by by)
{
	for (int cause = 0; cause < KY_CAUSES; cause++) {
		ky_vec_foreach(&run->meanwhile[cause].list, sum) {
			struct ky_cell *row = ky_table_row(table);

			ky_cell_text(table, &row[MEAN_CAUSE], ky_cause_text((enum ky_cause)cause));
			ky_cell_who(table, &row[MEAN_BY], run->model, sum->like.thread, by);
			ky_fill_part(table, &row[MEAN_PARTS], run->model, &sum->like, by);
			ky_cell_u64(&row[MEAN_TIME], sum->total_ns);
			ky_cell_f64(&row[MEAN_SHARE], ky_part(sum->total_ns, run->causes.total_ns));
		}
	}
	ky_table_sort(table, MEAN_TIME, false);
}

struct largest {
	struct ky_part part;
	uint64_t ns;
	struct ky_part_sums sums;
};

static int breakdown_add_largest(void *data, const struct ky_part *part)
{
	struct largest *largest = data;

	return ky_part_sums_add(&largest->sums, part, 0, false);
}

static void breakdown_fill_what(struct ky_table *table, struct ky_cell *cell,
				const struct ky_cause_members *members,
				const struct ky_cause_member *member)
{
	switch (members->of.kind) {
	case KY_OF_SYSCALL:
		ky_cell_text(table, cell, ky_model_syscall_name(members->model, member->syscall));
		break;
	case KY_OF_BLOCK:
		ky_cell_text(table, cell, member->block.disk->name);
		break;
	case KY_OF_IRQ:
	case KY_OF_SOFTIRQ:
		ky_cell_text(table, cell, member->irq.line->name);
		break;
	case KY_OF_PERIOD:
		ky_cell_text(table, cell, member->period->name);
		break;
	default:
		break;
	}
}

static int breakdown_fill_member(struct ky_breakdown *run, struct ky_table *table, size_t i)
{
	const struct ky_cause_member *member = &run->members->list.data[i];
	struct largest largest = {.sums = {.details = KY_PART_WHO}};
	int status = ky_cause_member_explain(run->members, member, breakdown_add_largest, &largest);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_u64(&row[TOP_NUMBER], i + 1);
	ky_cell_i64(&row[TOP_BEGIN], member->begin_ns);
	ky_cell_i64(&row[TOP_END], member->end_ns);
	ky_cell_u64(&row[TOP_DURATION], ky_cause_member_ns(member));
	if (member->thread)
		ky_cell_thread(table, &row[TOP_THREAD], run->model, member->thread);
	breakdown_fill_what(table, &row[TOP_WHAT], run->members, member);
	ky_part_sums_sort(&largest.sums);
	if (largest.sums.list.len) {
		const struct ky_part_sum *sum = &largest.sums.list.data[0];

		ky_cell_text(table, &row[TOP_CAUSE], ky_cause_text(sum->like.cause));
		if (sum->like.who)
			ky_cell_thread(table, &row[TOP_WHO], run->model, sum->like.who);
		ky_cell_f64(&row[TOP_PART], ky_part(sum->total_ns, largest.sums.total_ns));
	}
	ky_part_sums_fini(&largest.sums);
	return status;
}

static int breakdown_compare_members(const void *a, const void *b, void *data)
{
	const struct ky_cause_members *members = data;
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	uint64_t left_ns = ky_cause_member_ns(&members->list.data[left]);
	uint64_t right_ns = ky_cause_member_ns(&members->list.data[right]);

	if (left_ns != right_ns)
		return left_ns < right_ns ? 1 : -1;
	return left < right ? -1 : 1;
}

/* @longest: the longest first, as many as are wanted. */
int ky_breakdown_fill_members(struct ky_breakdown *run, struct ky_table *table,
			      const struct ky_report_options *options,
			      const struct ky_report_result *result, uint64_t limit, bool longest)
{
	struct ky_cause_members *members = run->members;
	size_t n = 0, *order = calloc(members->list.len + 1, sizeof(*order));
	int status = order ? 0 : KYMO_E_MEMORY;

	for (size_t i = 0; order && i < members->list.len; i++) {
		if (ky_report_wants_member(options, result, &members->list.data[i], i))
			order[n++] = i;
	}
	if (order && longest)
		qsort_r(order, n, sizeof(*order), breakdown_compare_members, members);
	for (size_t i = 0; i < n && status >= 0 && (!limit || i < limit); i++)
		status = breakdown_fill_member(run, table, order[i]);
	if (limit && n > limit)
		table->n_omitted += n - limit;
	free(order);
	return status;
}

struct logging {
	struct ky_breakdown *run;
	struct ky_table *table;
	uint64_t number, limit;
};

static int breakdown_log(void *data, const struct ky_part *part)
{
	struct logging *logging = data;
	struct ky_table *table = logging->table;

	if (logging->limit && ky_table_n_rows(table) >= logging->limit) {
		table->n_omitted++;
		return 0;
	}
	ky_fill_part_log(table, logging->run->model, logging->number, part);
	return 0;
}

static int breakdown_fill_log(struct ky_breakdown *run, struct ky_table *table,
			      const struct ky_report_options *options,
			      const struct ky_report_result *result, uint64_t limit)
{
	int status = 0;

	for (size_t i = 0; i < run->members->list.len && status >= 0; i++) {
		const struct ky_cause_member *member = &run->members->list.data[i];
		struct logging logging = {run, table, i, limit};

		if (ky_report_wants_member(options, result, member, i))
			status = ky_cause_member_explain(run->members, member, breakdown_log,
							 &logging);
	}
	return status;
}

int ky_breakdown_note(const struct ky_breakdown *run, struct ky_report_result *result)
{
	int status = ky_report_note_causes(result, run->members->causes);

	if (status >= 0 && run->left_out)
		status = ky_report_note(result,
					"%llu are left out, as all together have too many parts; "
					"choose some with --min, --tid, --begin and --end",
					(unsigned long long)run->left_out);
	return status < 0 ? status : ky_report_note_members(result, run->members);
}

static int breakdown_note(struct ky_breakdown *run, struct ky_report_result *result, uint64_t n_all)
{
	int status = ky_breakdown_note(run, result);

	if (status >= 0 && !n_all)
		status = ky_report_note_nothing(result, run->members);
	return status;
}

static int breakdown_fill_singles(struct ky_breakdown *run, const struct ky_report_options *options,
				  struct ky_report_result *result)
{
	uint64_t top = ky_report_keep(options, &ky_report_breakdown, TABLE_TOP);
	int status = ky_breakdown_fill_members(run, &result->tables[TABLE_TOP], options, result,
					       top, true);

	if (status >= 0 && !result->tables[TABLE_MEMBERS].hidden)
		status = ky_breakdown_fill_members(
			run, &result->tables[TABLE_MEMBERS], options, result,
			ky_report_keep(options, &ky_report_breakdown, TABLE_MEMBERS), false);
	/* Of one member, its parts in their order are what was asked for. */
	if (options->member || options->at_ns != INT64_MIN)
		result->tables[TABLE_LOG].hidden &= options->n_tables != 0;
	if (status >= 0 && !result->tables[TABLE_LOG].hidden)
		status = breakdown_fill_log(
			run, &result->tables[TABLE_LOG], options, result,
			options->limit == KY_LIMIT_DEFAULT
				? 0
				: ky_report_keep(options, &ky_report_breakdown, TABLE_LOG));
	return status;
}

int ky_breakdown_finish(void *data, const struct ky_report_options *options,
			struct ky_report_result *result)
{
	struct ky_breakdown *run = data;
	enum ky_by by = ky_report_by(options, KY_BY_THREAD);
	uint64_t n_slow = 0, n_all = 0;
	int status = ky_cause_members_end(run->members);

	run->groups = ky_part_groups(run->model, by);
	run->parts.groups = run->groups;
	run->parts.details = KY_PART_WHO | KY_PART_CALL;
	for (int i = 0; i < KY_CAUSES; i++) {
		run->meanwhile[i].groups = run->groups;
		run->meanwhile[i].details = KY_PART_WHOSE | KY_PART_WHO | KY_PART_CALL;
	}
	if (status >= 0)
		status = ky_breakdown_sum(run, options, result, &n_slow, &n_all);
	if (status < 0)
		return status;
	breakdown_fill_causes(run, &result->tables[TABLE_CAUSES], n_slow, n_all);
	breakdown_fill_parts(run, &result->tables[TABLE_PARTS], n_slow, by);
	breakdown_fill_meanwhile(run, &result->tables[TABLE_MEANWHILE], by);
	status = ky_breakdown_fill_levels(run, options, result);
	if (status >= 0)
		status = breakdown_fill_singles(run, options, result);
	return status < 0 ? status : breakdown_note(run, result, n_all);
}
