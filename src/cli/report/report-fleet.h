/* SPDX-License-Identifier: MIT */
/* kymo report --fleet: reports across the hosts of a store. */
#ifndef KY_CLI_REPORT_REPORT_FLEET_H
#define KY_CLI_REPORT_REPORT_FLEET_H

#include "cli/report/report-live.h"
#include "cli/options/report-options.h"

struct ky_report_fleet_options {
	const char *place; /* of the store; NULL: reports are of traces */
	struct ky_text_list hosts;
	uint64_t since_ns;
	bool merges_hosts;
};

/* Rows for a table over struct @type, whose struct ky_report_fleet_options is member @fleet. */
/* clang-format off */
#define KY_REPORT_FLEET_OPTION_DEFS(type, fleet) \
	{.name = "fleet", \
	 .kind = KY_OPTION_TEXT, \
	 .arg = "DIR|URL", \
	 .help = "Report on the hosts of a store that 'kymo fleet load --report NAME' fills, instead of traces; " \
		 "there is no TRACE then. docs/fleet.md explains it.", \
	 .at = offsetof(type, fleet.place)}, \
	{.name = "hosts", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "GLOB", \
	 .help = "With --fleet: only hosts with a matching name, such as 'web-*'; '!' before it leaves them out. May be " \
		 "given again; the last one that matches decides.", \
	 .at = offsetof(type, fleet.hosts)}, \
	{.name = "since", \
	 .kind = KY_OPTION_DURATION, \
	 .arg = "TIME", \
	 .help = "With --fleet: only traces that end in the last TIME before the newest one. Default: all.", \
	 .at = offsetof(type, fleet.since_ns)}, \
	{.name = "merge-hosts", \
	 .kind = KY_OPTION_FLAG, \
	 .help = "With --fleet: one row for all hosts instead of one for each host. Threads with the same name are then one row.", \
	 .at = offsetof(type, fleet.merges_hosts)}
/* clang-format on */

struct ky_report_fleet {
	const struct ky_report_fleet_options *options;
	const struct ky_report *const *reports;
	size_t n_reports;
	const char *own;			/* a file of SQL instead of reports; NULL: none */
	const struct ky_text_list *parameters;	/* of it */
	const struct ky_focus_options *focus;	/* the order; the rest of it is for traces */
	const struct ky_report_options *wanted; /* limit and tables */
	struct ky_report_form form;
};

/* What of @focus is for traces only: "--comm"; NULL: nothing. */
const char *ky_report_fleet_unfit_focus(const struct ky_focus_options *focus);
/* Returns an exit code. */
int ky_report_fleet(const struct ky_report_fleet *run);

#endif
