/* SPDX-License-Identifier: MIT */
/* The options of reports: defaults, checks, and what they mean for a table. */
#include "analysis/reports/report-options.h"

#include <string.h>

#include "analysis/causes/members.h"
#include "base/error.h"
#include "base/strbuf.h"

#define LIMIT_PEOPLE 10
#define LIMIT_SHORT  5
#define LIMIT_GROUP  3

void ky_report_options_init(struct ky_report_options *options)
{
	*options = (struct ky_report_options){
		.limit = KY_LIMIT_DEFAULT, .for_people = true, .at_ns = INT64_MIN};
	for (int i = 0; i < 2; i++) {
		options->side_begin_ns[i] = INT64_MIN;
		options->side_end_ns[i] = INT64_MAX;
	}
	ky_focus_init(&options->focus);
}

void ky_report_options_fini(struct ky_report_options *options)
{
	ky_focus_fini(&options->focus);
}

/* Is @name the table's, or "report.table"? */
static bool names_table(const char *name, const struct ky_report *report,
			const struct ky_table_def *def)
{
	size_t len = strlen(report->name);

	return strcmp(name, def->name) == 0 ||
	       (strncmp(name, report->name, len) == 0 && name[len] == '.' &&
		strcmp(name + len + 1, def->name) == 0);
}

bool ky_report_wants(const struct ky_report_options *options, const struct ky_report *report,
		     size_t table)
{
	const struct ky_table_def *def = report->tables[table];

	for (size_t i = 0; i < options->n_tables; i++) {
		if (names_table(options->tables[i], report, def))
			return true;
	}
	if (options->n_tables)
		return false;
	/* A report that is nothing but a log is shown. */
	if (def->kind == KY_TABLE_LOG)
		return !report->tables[1];
	return !options->for_people || (def->kind != KY_TABLE_FREQ && !def->is_detail);
}

uint64_t ky_report_limit(const struct ky_report_options *options, enum ky_table_kind kind)
{
	if (kind == KY_TABLE_FIXED || kind == KY_TABLE_FREQ)
		return 0;
	if (options->limit != KY_LIMIT_DEFAULT)
		return options->limit;
	return kind == KY_TABLE_TOP || options->for_people ? LIMIT_PEOPLE : 0;
}

bool ky_report_is_by_length(const struct ky_report_options *options)
{
	return strcmp(options->sort, "duration") == 0 && !options->ascending;
}

uint64_t ky_report_table_limit(const struct ky_report_options *options,
			       const struct ky_table_def *def)
{
	if (def->is_one_of_many && options->for_people && options->limit == KY_LIMIT_DEFAULT &&
	    !options->n_tables)
		return LIMIT_SHORT;
	return ky_report_limit(options, def->kind);
}

/* Of each of several groups, people get fewer. */
static uint64_t report_options_limit(const struct ky_report_options *options,
				     const struct ky_table_def *def)
{
	if (options->for_people && options->limit == KY_LIMIT_DEFAULT && !options->n_tables &&
	    def->kind == KY_TABLE_TOP && def->columns[0].group)
		return LIMIT_GROUP;
	return ky_report_table_limit(options, def);
}

uint64_t ky_report_keep(const struct ky_report_options *options, const struct ky_report *report,
			size_t table)
{
	const struct ky_table_def *def = report->tables[table];

	if (!options->sort || ky_table_column(def, options->sort) < 0 ||
	    !ky_report_wants(options, report, table))
		return report_options_limit(options, def);
	return def->kind == KY_TABLE_TOP && ky_report_is_by_length(options)
		       ? report_options_limit(options, def)
		       : 0;
}

enum ky_by ky_report_by(const struct ky_report_options *options, enum ky_by liked)
{
	return options->by == KY_BY_DEFAULT ? liked : options->by;
}

/* Which options are given that a report may be unable to heed: enum ky_ignored. */
static unsigned int given_options(const struct ky_report_options *options)
{
	unsigned int given = 0;

	if (options->by != KY_BY_DEFAULT)
		given |= KY_IGNORES_BY;
	if (options->focus.min_ns || options->focus.max_ns != UINT64_MAX)
		given |= KY_IGNORES_DURATION;
	return given;
}

static const char *ignored_text(unsigned int ignored)
{
	return ignored & KY_IGNORES_BY ? "report %s has no rows of threads to group"
				       : "report %s has no durations to select by";
}

int ky_report_check_heeded(const struct ky_report *const *reports, size_t n_reports,
			   const struct ky_report_options *options, struct kymo_error *err)
{
	unsigned int ignored = given_options(options);

	for (size_t i = 0; i < n_reports; i++)
		ignored &= reports[i]->ignores;
	if (!ignored || !n_reports)
		return 0;
	ky_error_set(err, KYMO_E_INVALID, ignored_text(ignored), reports[0]->name);
	ky_error_input(err, ignored & KY_IGNORES_BY ? "group" : "durations");
	return KYMO_E_INVALID;
}

static int report_options_invalid(struct kymo_error *err, const char *fmt, const char *name,
				  const char *hint)
{
	ky_error_set(err, KYMO_E_INVALID, fmt, name);
	ky_error_hint(err, "%s", hint);
	return KYMO_E_INVALID;
}

/* Does it choose a part of the trace, but for an end? */
static bool report_options_selects(const struct ky_focus *focus)
{
	return ky_focus_names_threads(focus) || focus->cpus.len || focus->begin_ns != INT64_MIN ||
	       focus->min_ns || focus->max_ns != UINT64_MAX;
}

static int report_options_check_two(const struct ky_report *const *reports, size_t n_reports,
				    const struct ky_report_options *options, struct kymo_error *err)
{
	for (size_t i = 0; i < n_reports; i++) {
		if (!reports[i]->wants_two)
			continue;
		if (!options->sides[0] || !options->sides[1])
			return report_options_invalid(err, "report %s needs two traces",
						      reports[i]->name,
						      "try: kymo report compare BEFORE AFTER");
		if (options->focus.begin_ns != INT64_MIN || options->focus.end_ns != INT64_MAX)
			return report_options_invalid(
				err, "report %s compares whole traces", reports[i]->name,
				"cut them before: kymo convert --begin, --end");
	}
	return 0;
}

int ky_report_check_whole(const struct ky_report *const *reports, size_t n_reports,
			  const struct ky_report_options *options, struct kymo_error *err)
{
	const struct ky_report *whole = NULL, *other = NULL;
	struct ky_of of;

	for (size_t i = 0; i < n_reports; i++) {
		if (reports[i]->whole)
			whole = reports[i];
		else
			other = reports[i];
	}
	if (!whole &&
	    (options->of || options->member || options->cell_column || options->at_ns != INT64_MIN))
		return report_options_invalid(
			err, "report %s has no use for --of, --at, --member and --cell",
			other ? other->name : "?",
			"they are options of reports breakdown, critical-path and heatmap");
	if (whole && other && report_options_selects(&options->focus))
		return report_options_invalid(
			err,
			"report %s needs all threads, from the first event on, so it "
			"does not run with a selection and other reports",
			whole->name, "run it in a command of its own");
	if (whole && options->interval_ns)
		return report_options_invalid(err, "report %s has no intervals", whole->name,
					      "choose a range: --begin, --end");
	if (report_options_check_two(reports, n_reports, options, err) < 0)
		return KYMO_E_INVALID;
	for (size_t i = 0; i < n_reports && options->by == KY_BY_CPU; i++)
		if (!reports[i]->has_cpu_groups)
			return report_options_invalid(err, "report %s has no groups by CPU",
						      reports[i]->name,
						      "try --group-by thread, process or name");
	for (size_t i = 0; i < n_reports && !options->of; i++) {
		if (reports[i]->wants_of)
			return report_options_invalid(err, "report %s needs --of", reports[i]->name,
						      "try --of syscall:read or --of wakeup");
		if (reports[i]->wants_choice && !ky_focus_names_threads(&options->focus))
			return report_options_invalid(
				err, "report %s needs a thread", reports[i]->name,
				"try --tid, --comm or --pid, or --of with a system call");
	}
	return whole && whole->own_of ? 0 : ky_of_parse(options->of, &of, err);
}

int ky_report_note_ignored(const struct ky_report_options *options, struct ky_report_result *result)
{
	unsigned int ignored = given_options(options) & result->report->ignores;

	return ignored ? ky_report_note(result, ignored_text(ignored), result->report->name) : 0;
}

/* Names for a hint, each once. */
static void reports_report_options_add_name(struct ky_strbuf *names, const char *name)
{
	const char *at = names->len ? ky_strbuf_text(names) : "";
	size_t len = strlen(name);

	for (; (at = strstr(at, name)); at += len) {
		bool begins = at == ky_strbuf_text(names) || at[-1] == ' ';

		if (begins && (!at[len] || at[len] == ','))
			return;
	}
	ky_strbuf_addf(names, "%s%s", names->len ? ", " : "", name);
}

static int unknown_table(const struct ky_report *const *reports, size_t n_reports, const char *name,
			 struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;

	for (size_t r = 0; r < n_reports; r++) {
		for (size_t t = 0; reports[r]->tables[t]; t++)
			reports_report_options_add_name(&names, reports[r]->tables[t]->name);
	}
	ky_error_set(err, KYMO_E_INVALID, "no table has the name '%s'", name);
	ky_error_input(err, "tables");
	ky_error_hint(err, "there are %s", ky_strbuf_text(&names));
	ky_strbuf_fini(&names);
	return KYMO_E_INVALID;
}

/* Of the tables that are shown. */
static int unknown_column(const struct ky_report *const *reports, size_t n_reports,
			  const struct ky_report_options *options, struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;

	for (size_t r = 0; r < n_reports; r++) {
		for (size_t t = 0; reports[r]->tables[t]; t++) {
			const struct ky_table_def *def = reports[r]->tables[t];

			for (size_t c = 0;
			     c < def->n_columns && ky_report_wants(options, reports[r], t); c++)
				reports_report_options_add_name(&names, def->columns[c].name);
		}
	}
	ky_error_set(err, KYMO_E_INVALID, "no table has a column '%s'", options->sort);
	ky_error_input(err, "sort column");
	ky_error_hint(err, "there are %s", ky_strbuf_text(&names));
	ky_strbuf_fini(&names);
	return KYMO_E_INVALID;
}

int ky_report_check_names(const struct ky_report *const *reports, size_t n_reports,
			  const struct ky_report_options *options, struct kymo_error *err)
{
	bool sorts = !options->sort;

	for (size_t i = 0; i < options->n_tables; i++) {
		bool known = false;

		for (size_t r = 0; r < n_reports; r++) {
			for (size_t t = 0; reports[r]->tables[t]; t++)
				known |= names_table(options->tables[i], reports[r],
						     reports[r]->tables[t]);
		}
		if (!known)
			return unknown_table(reports, n_reports, options->tables[i], err);
	}
	for (size_t r = 0; r < n_reports && !sorts; r++) {
		for (size_t t = 0; reports[r]->tables[t]; t++)
			sorts |= ky_table_column(reports[r]->tables[t], options->sort) >= 0;
	}
	return sorts ? 0 : unknown_column(reports, n_reports, options, err);
}
