/* SPDX-License-Identifier: MIT */
/* What commands that run reports share: options that choose, sort and group, and names of reports. */
#ifndef KY_CLI_REPORT_OPTIONS_H
#define KY_CLI_REPORT_OPTIONS_H

#include "analysis/report.h"
#include "cli/command.h"

struct ky_focus_options {
	uint64_t min_ns, max_ns;
	struct ky_text_list tids, pids, comms, cpus;
	const char *sort, *by;
};

/* Rows for a table over struct @type, whose struct ky_focus_options is member @focus. */
/* clang-format off */
#define KY_FOCUS_OPTION_DEFS(type, focus) \
	{.name = "sort", \
	 .letter = 's', \
	 .kind = KY_OPTION_TEXT, \
	 .arg = "COLUMN", \
	 .help = "Sort by the column of this name (as in JSON), the largest first; with ':asc' behind " \
		 "it, the smallest.", \
	 .at = offsetof(type, focus.sort)}, \
	{.name = "group-by", \
	 .letter = 'g', \
	 .kind = KY_OPTION_TEXT, \
	 .arg = "WHAT", \
	 .help = "Add rows of threads up by thread, process or name (of the thread). Default: as each " \
		 "report says.", \
	 .choices = "thread process name", \
	 .at = offsetof(type, focus.by)}, \
	{.name = "tid", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "TID", \
	 .help = "Only threads with this id; may be given again, or several with commas, for more. What " \
		 "any of --tid, --pid and --comm names is shown.", \
	 .at = offsetof(type, focus.tids)}, \
	{.name = "pid", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "PID", \
	 .help = "Only threads of the process with this id; as --tid.", \
	 .at = offsetof(type, focus.pids)}, \
	{.name = "comm", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "GLOB", \
	 .help = "Only threads whose name matches at that moment, such as 'ngin*'; may be given again " \
		 "for more.", \
	 .at = offsetof(type, focus.comms)}, \
	{.name = "cpu", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "N", \
	 .help = "Only what happened on this CPU; may be given again, or several with commas, for more.", \
	 .at = offsetof(type, focus.cpus)}, \
	{.name = "min", \
	 .kind = KY_OPTION_DURATION, \
	 .arg = "TIME", \
	 .help = "Only what took at least so long (calls, waits, interrupts, requests): 5ms, 100us.", \
	 .at = offsetof(type, focus.min_ns)}, \
	{.name = "max", \
	 .kind = KY_OPTION_DURATION, \
	 .arg = "TIME", \
	 .help = "Only what took at most so long.", \
	 .at = offsetof(type, focus.max_ns)}
/* clang-format on */

void ky_cli_focus_defaults(struct ky_focus_options *options);

/*
 * Put @from into @to, which borrows from it. *@column, the name to sort by, is to be freed in any
 * case. 0, KYMO_E_INVALID or KYMO_E_MEMORY.
 */
int ky_cli_focus(struct ky_report_options *to, const struct ky_focus_options *from, char **column,
		 struct kymo_error *err);

/* "'cpuu' is no report; did you mean 'cpu'?" to stderr. Returns KY_EXIT_USAGE. */
int ky_cli_unknown_report(const struct ky_command *command, const char *name);

#endif
