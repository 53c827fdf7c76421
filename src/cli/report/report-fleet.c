/* SPDX-License-Identifier: MIT */
#include "cli/report/report-fleet.h"

#include <string.h>

#include "base/error.h"
#include "cli/report/report-own.h"
#include "fleet/fleet-ask.h"

#define MEMORY_MAX_BYTES ((uint64_t)2 << 30)

const char *ky_report_fleet_unfit_focus(const struct ky_focus_options *focus)
{
	const struct {
		const char *name;
		bool is_given;
	} options[] = {
		{"--tid", focus->tids.len},
		{"--pid", focus->pids.len},
		{"--comm", focus->comms.len},
		{"--cgroup", focus->cgroups.len},
		{"--cpu", focus->cpus.len},
		{"--group-by", focus->by != NULL},
		{"--period", focus->periods.len},
		{"--min", focus->min_ns != 0},
		{"--max", focus->max_ns != UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].is_given)
			return options[i].name;
	return NULL;
}

static int report_fleet_show_own(const struct ky_report_fleet *run, struct ky_fleet *store,
				 const struct ky_report_options *wanted, struct kymo_error *err)
{
	struct ky_own_file file;
	struct ky_fleet_answer answer;
	int ret = ky_own_file_read(&file, run->own, run->parameters, err);

	if (!ret) {
		const struct ky_fleet_own own = {
			.path = run->own,
			.text = ky_strbuf_text(&file.text),
			.parameters = file.parameters,
			.n_parameters = file.n,
			.options = wanted,
			.place = run->options->place,
			.since_ns = run->options->since_ns,
		};

		ret = ky_fleet_ask_own(store, &own, &answer, err);
		if (!ret)
			ret = ky_cli_show_reports(&answer.results, &run->form, err);
		else if (ret == KYMO_E_INVALID && strstr(err->message, "no such "))
			ky_error_hint(err,
				      "kymo query --schema --fleet %s lists tables and columns",
				      run->options->place);
		ky_fleet_answer_fini(&answer);
	}
	ky_own_file_fini(&file);
	return ret;
}

static int report_fleet_show(const struct ky_report_fleet *run, struct ky_fleet *store,
			     const struct ky_report_options *wanted, struct kymo_error *err)
{
	const struct ky_fleet_ask ask = {
		.reports = run->reports,
		.n_reports = run->n_reports,
		.options = wanted,
		.place = run->options->place,
		.hosts = run->options->hosts.items,
		.n_hosts = run->options->hosts.len,
		.since_ns = run->options->since_ns,
		.merges_hosts = run->options->merges_hosts,
	};
	struct ky_fleet_answer answer;
	int ret = ky_fleet_ask_reports(store, &ask, &answer, err);

	if (!ret)
		ret = ky_cli_show_reports(&answer.results, &run->form, err);
	else if (ret == KYMO_E_NOT_FOUND)
		ky_error_hint(err, "kymo fleet load --report %s --to %s TRACE... loads them",
			      run->reports[0]->name, run->options->place);
	ky_fleet_answer_fini(&answer);
	return ret;
}

static int report_fleet_run(const struct ky_report_fleet *run, struct kymo_error *err)
{
	struct ky_cli_wanted wanted;
	struct ky_fleet *store = NULL;
	int ret = ky_cli_wanted_init(&wanted, run->focus, NULL, err);

	wanted.options.limit = run->wanted->limit;
	wanted.options.for_people = run->wanted->for_people;
	wanted.options.tables = run->wanted->tables;
	wanted.options.n_tables = run->wanted->n_tables;
	if (!ret)
		ret = ky_fleet_open(run->options->place, false, &store, err);
	if (!ret && !store->is_clickhouse)
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
	if (!ret)
		ret = run->own ? report_fleet_show_own(run, store, &wanted.options, err)
			       : report_fleet_show(run, store, &wanted.options, err);
	ky_fleet_close(store);
	ky_cli_wanted_fini(&wanted);
	return ret;
}

int ky_report_fleet(const struct ky_report_fleet *run)
{
	struct kymo_error err;
	int ret;

	ky_error_clear(&err);
	ret = report_fleet_run(run, &err);
	if (ret >= 0)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}
