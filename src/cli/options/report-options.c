/* SPDX-License-Identifier: MIT */
#include "cli/options/report-options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/state/periods.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/options/options.h"

#define MAX_NAMES 64

static const char *nearest_report(const char *name)
{
	const char *names[MAX_NAMES];
	size_t n = 0;

	while (ky_reports[n] && n < MAX_NAMES) {
		names[n] = ky_reports[n]->name;
		n++;
	}
	return ky_nearest(name, names, n);
}

int ky_cli_unknown_report(const struct ky_command *command, const char *name)
{
	const char *near = nearest_report(name);

	if (near)
		return ky_cli_usage(command, "'%s' is not a report; did you mean '%s'?", name,
				    near);
	return ky_cli_usage(command, "'%s' is not a report; 'kymo report --list' lists them", name);
}

KY_VEC_TYPE(numbers, int32_t);

static int bad_option(struct kymo_error *err, const char *option, const char *text)
{
	return ky_error_set(err, KYMO_E_INVALID, "--%s: '%s' is not a number", option, text);
}

/* "1,2,3" */
static int add_numbers(struct numbers *numbers, const char *option, const char *text,
		       struct kymo_error *err)
{
	char *copy = strdup(text), *rest = copy, *word;
	uint64_t value;
	int status = copy ? 0 : ky_error_nomem(err);

	while (!status && (word = strsep(&rest, ","))) {
		if (ky_parse_u64(word, &value) < 0 || value > INT32_MAX)
			status = bad_option(err, option, text);
		else if (ky_vec_push(numbers, (int32_t)value) < 0)
			status = ky_error_nomem(err);
	}
	free(copy);
	return status;
}

static int get_numbers(struct numbers *numbers, const char *option, const struct ky_text_list *list,
		       struct kymo_error *err)
{
	int status = 0;

	for (size_t i = 0; i < list->len && !status; i++)
		status = add_numbers(numbers, option, list->items[i], err);
	return status;
}

/* "4711", the directory that has this inode, or a path as the trace tells it. */
static int add_cgroup(struct ky_focus *focus, const char *text, struct kymo_error *err)
{
	uint64_t number;
	struct stat about;

	if (ky_parse_u64(text, &number) < 0) {
		if (stat(text, &about) == 0 && S_ISDIR(about.st_mode) && text[1])
			number = about.st_ino;
		else if (text[0] == '/')
			return ky_vec_push(&focus->cgroup_paths, text) < 0 ? ky_error_nomem(err)
									   : 0;
		else
			return ky_error_set(err, KYMO_E_INVALID,
					    "--cgroup: '%s' is not a number, directory or path "
					    "that begins with '/'",
					    text);
	}
	return ky_vec_push(&focus->cgroups, number) < 0 ? ky_error_nomem(err) : 0;
}

static int set_focus(struct ky_focus *focus, const struct ky_focus_options *options,
		     struct kymo_error *err)
{
	struct numbers tids = KY_VEC_INIT, pids = KY_VEC_INIT, cpus = KY_VEC_INIT;
	int status = get_numbers(&tids, "tid", &options->tids, err);

	if (!status)
		status = get_numbers(&pids, "pid", &options->pids, err);
	if (!status)
		status = get_numbers(&cpus, "cpu", &options->cpus, err);
	focus->tids.data = tids.data;
	focus->tids.len = tids.len;
	focus->pids.data = pids.data;
	focus->pids.len = pids.len;
	for (size_t i = 0; i < cpus.len && !status; i++) {
		if (ky_vec_push(&focus->cpus, (uint32_t)cpus.data[i]) < 0)
			status = ky_error_nomem(err);
	}
	ky_vec_fini(&cpus);
	for (size_t i = 0; i < options->comms.len && !status; i++) {
		if (ky_vec_push(&focus->comms, options->comms.items[i]) < 0)
			status = ky_error_nomem(err);
	}
	for (size_t i = 0; i < options->cgroups.len && !status; i++)
		status = add_cgroup(focus, options->cgroups.items[i], err);
	focus->min_ns = options->min_ns;
	focus->max_ns = options->max_ns;
	return status;
}

static int set_by(struct ky_report_options *to, const char *text, struct kymo_error *err)
{
	if (!text)
		return 0;
	if (strcmp(text, "thread") == 0)
		to->by = KY_BY_THREAD;
	else if (strcmp(text, "process") == 0)
		to->by = KY_BY_PROCESS;
	else if (strcmp(text, "name") == 0)
		to->by = KY_BY_NAME;
	else if (strcmp(text, "cgroup") == 0)
		to->by = KY_BY_CGROUP;
	else if (strcmp(text, "cpu") == 0)
		to->by = KY_BY_CPU;
	else
		return ky_error_set(
			err, KYMO_E_INVALID,
			"--group-by needs thread, process, name, cgroup or cpu, not '%s'", text);
	return 0;
}

/* "total", "total:asc"; *@column is to be freed. */
static int set_sort(struct ky_report_options *to, const char *text, char **column,
		    struct kymo_error *err)
{
	char *colon;

	if (!text)
		return 0;
	*column = strdup(text);
	if (!*column)
		return ky_error_nomem(err);
	colon = strchr(*column, ':');
	if (colon)
		*colon++ = '\0';
	if (colon && strcmp(colon, "asc") != 0)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--sort needs COLUMN or COLUMN:asc, not '%s'", text);
	to->sort = *column;
	to->ascending = colon != NULL;
	return 0;
}

void ky_cli_focus_defaults(struct ky_focus_options *options)
{
	options->max_ns = UINT64_MAX;
}

int ky_cli_wanted_init(struct ky_cli_wanted *wanted, const struct ky_focus_options *from,
		       const struct ky_trace_set *set, struct kymo_error *err)
{
	struct ky_report_options *to = &wanted->options;
	int status;

	*wanted = (struct ky_cli_wanted){0};
	ky_report_options_init(to);
	status = set_by(to, from->by, err);
	if (!status)
		status = set_sort(to, from->sort, &wanted->column, err);
	if (!status)
		status = set_focus(&to->focus, from, err);
	if (!status && from->periods.len)
		status = ky_periods_new((const char *const *)from->periods.items, from->periods.len,
					set, &wanted->periods, err);
	to->periods = wanted->periods;
	to->focus.by_cgroup = to->by == KY_BY_CGROUP;
	return status;
}

void ky_cli_wanted_fini(struct ky_cli_wanted *wanted)
{
	ky_periods_free(wanted->periods);
	ky_report_options_fini(&wanted->options);
	free(wanted->column);
}

int ky_cli_check_periods(const struct ky_command *command, const struct ky_focus_options *options,
			 bool wants)
{
	if (wants == (options->periods.len > 0))
		return KY_EXIT_OK;
	return ky_cli_usage(command, wants ? "report periods needs --period 'NAME : BEGIN : END'"
					   : "--period needs report periods");
}
