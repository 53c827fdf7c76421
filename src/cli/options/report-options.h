/* SPDX-License-Identifier: MIT */
/* What commands that run reports share: options that choose, sort and group, and names of reports. */
#ifndef KY_CLI_OPTIONS_REPORT_OPTIONS_H
#define KY_CLI_OPTIONS_REPORT_OPTIONS_H

#include "analysis/reports/report.h"
#include "cli/terminal/command.h"

struct ky_focus_options {
	uint64_t min_ns, max_ns;
	struct ky_text_list tids, pids, comms, cgroups, cpus;
	const char *sort, *by;
	struct ky_text_list periods;
};

/* Rows for a table over struct @type, whose struct ky_focus_options is member @focus. */
/* clang-format off */
#define KY_FOCUS_OPTION_DEFS(type, focus) \
	{.name = "sort", \
	 .letter = 's', \
	 .kind = KY_OPTION_TEXT, \
	 .arg = "COLUMN", \
	 .help = "Sort by the column with this name (as in JSON), in descending order; " \
		 "COLUMN:asc sorts in ascending order.", \
	 .at = offsetof(type, focus.sort)}, \
	{.name = "group-by", \
	 .letter = 'g', \
	 .kind = KY_OPTION_TEXT, \
	 .arg = "WHAT", \
	 .help = "Group the rows of threads by thread, process, name (of the thread) or cgroup " \
		 "(the thread's control group of version 2 at the end); the stacks of report flame also by cpu. Default: see the help of " \
		 "each report.", \
	 .choices = "thread process name cgroup", \
	 .at = offsetof(type, focus.by)}, \
	{.name = "tid", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "TID", \
	 .help = "Only threads with this ID; may be given again, or with several IDs, separated " \
		 "by commas. A report shows threads that match any of --tid, --pid, --comm and " \
		 "--cgroup.", \
	 .at = offsetof(type, focus.tids)}, \
	{.name = "pid", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "PID", \
	 .help = "Only threads of the process with this ID; see --tid.", \
	 .at = offsetof(type, focus.pids)}, \
	{.name = "comm", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "GLOB", \
	 .help = "Only threads with a matching name, of their own or of their process, at the " \
		 "time of the event, such as 'ngin*'; may be given again.", \
	 .at = offsetof(type, focus.comms)}, \
	{.name = "cgroup", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "GROUP", \
	 .help = "Only threads of this control group of version 2: its path in the trace's state " \
		 "dump, with wildcards ('/user.slice/*'); its number; or its directory on this " \
		 "machine (the number is the directory's inode). Groups below it are not " \
		 "included, unless a wildcard matches them. May be given again; see --tid.", \
	 .at = offsetof(type, focus.cgroups)}, \
	{.name = "cpu", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "N", \
	 .help = "Only events on this CPU; may be given again, or with several numbers, separated " \
		 "by commas.", \
	 .at = offsetof(type, focus.cpus)}, \
	{.name = "min", \
	 .kind = KY_OPTION_DURATION, \
	 .arg = "TIME", \
	 .help = "Only calls, waits, interrupts and requests with at least this duration: 5ms, " \
		 "100us.", \
	 .at = offsetof(type, focus.min_ns)}, \
	{.name = "max", \
	 .kind = KY_OPTION_DURATION, \
	 .arg = "TIME", \
	 .help = "Only those with at most this duration.", \
	 .at = offsetof(type, focus.max_ns)}, \
	{.name = "period", \
	 .kind = KY_OPTION_LIST, \
	 .arg = "DEFINITION", \
	 .help = "For report periods: measure from one event to another, 'NAME : BEGIN : END'. " \
		 "BEGIN and END are expressions as for --filter. May be given again. 'kymo " \
		 "report periods --help' explains keys, captures and nesting.", \
	 .at = offsetof(type, focus.periods)}
/* clang-format on */

void ky_cli_focus_defaults(struct ky_focus_options *options);

/* What is wanted of reports, with what its options borrow. */
struct ky_cli_wanted {
	struct ky_report_options options;
	struct ky_periods *periods;
	char *column; /* to sort by */
};

/*
 * What @from asks for of the traces of @set; both are borrowed. The rest of the options is as
 * ky_report_options_init() leaves it. To be freed by the other in any case. 0, KYMO_E_INVALID,
 * KYMO_E_MEMORY, or what is wrong with a period's definition.
 */
int ky_cli_wanted_init(struct ky_cli_wanted *wanted, const struct ky_focus_options *from,
		       const struct ky_trace_set *set, struct kymo_error *err);
void ky_cli_wanted_fini(struct ky_cli_wanted *wanted);

/*
 * --period goes with report periods (@wants), and it with that. KY_EXIT_OK, or KY_EXIT_USAGE and a
 * line to stderr.
 */
int ky_cli_check_periods(const struct ky_command *command, const struct ky_focus_options *options,
			 bool wants);

/* "'cpuu' is no report; did you mean 'cpu'?" to stderr. Returns KY_EXIT_USAGE. */
int ky_cli_unknown_report(const struct ky_command *command, const char *name);

#endif
