/* SPDX-License-Identifier: MIT */
/*
 * The ways in which kymo report runs the chosen reports. All functions print the reports or an error, and return
 * an exit code (KY_EXIT_...).
 *
 * Threads: the main thread.
 */
#ifndef KY_CLI_REPORT_REPORT_RUN_H
#define KY_CLI_REPORT_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/reports/report.h"
#include "cli/options/report-options.h"
#include "cli/reading/input-options.h"
#include "cli/reading/select-options.h"
#include "cli/report/report-fleet.h"
#include "cli/report/report-live.h"
#include "cli/terminal/command.h"

#define KY_REPORT_CHOICE_MAX 32

/* The options of kymo report. */
struct ky_report_request {
	bool all;
	const char *archive, *event, *of, *at, *cell, *span;
	bool wide;
	bool list, json, csv, csv_raw, html, markdown;
	const char *to;
	bool inlines;
	struct ky_text_list symbol_dirs;
	uint64_t limit, refresh_ns, jobs, member, space;
	struct ky_text_list tables, parameters;
	struct ky_focus_options focus;
	struct ky_select_options select; /* filter and times only */
	struct ky_input_options input;
	struct ky_live_options live;
	struct ky_report_fleet_options fleet;
	char **command;
};

/* The reports that the user chose. */
struct ky_report_choice {
	const struct ky_report *reports[KY_REPORT_CHOICE_MAX];
	size_t n;
	const char *sides[2]; /* of two traces: as the user names them */
	const char *own;      /* a file of SQL instead of reports; NULL: none */
};

/* Over the traces in @paths. */
int ky_report_run_reports(const struct ky_report_choice *selection, char **paths, int n_paths,
			  const struct ky_report_request *options);

/* Over recordings that run, by intervals. */
int ky_report_run_live(const struct ky_report_choice *selection, char **paths, int n_paths,
		       const struct ky_report_request *options);

/* Over the hosts of a store; @n_traces is the number of traces that the user named beside it: an error unless 0. */
int ky_report_run_fleet(const struct ky_command *command, const struct ky_report_choice *selection,
			int n_traces, const struct ky_report_request *options);

/* Records options->command and reports on its processes, or on those that the options choose. */
int ky_report_run_command(const struct ky_report_choice *selection,
			  const struct ky_report_request *options);

/* Writes the archive options->archive of the one trace in @paths. */
int ky_report_run_archive(const struct ky_command *command,
			  const struct ky_report_choice *selection, char **paths, int n_paths,
			  const struct ky_report_request *options);

#endif
