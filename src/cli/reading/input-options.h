/* SPDX-License-Identifier: MIT */
/* How traces are read: options of every command that reads some. */
#ifndef KY_CLI_READING_INPUT_OPTIONS_H
#define KY_CLI_READING_INPUT_OPTIONS_H

#include "cli/reading/remotes.h"
#include "cli/terminal/command.h"
#include "store/read/trace.h"

struct ky_input_options {
	bool recover, force_correlate, no_sync;
	bool follow;	      /* no option: traces may still be written */
	bool leaves_out_late; /* no option: see struct ky_trace_options */
	bool tell_raw;	      /* no option: say what is left out of raw recordings */
	bool is_again; /* no option: the traces were opened before; warnings were given then */
	struct ky_text_list clock_offsets;
	const char *log_format, *log_time; /* NULL: found by the files */
	bool packet_data;		   /* no option: see struct ky_import_options */
	const char *relay_key;
	uint64_t relay_space;
	/* No option: those of the paths that are at relays; NULL: opening connects to them. */
	const struct ky_cli_remotes *remotes;
};

/* Rows for a table over struct @type, whose struct ky_input_options is member @input. */
/* clang-format off */
#define KY_INPUT_OPTION_DEFS(type, input)                                                        \
	{.name = "recover",                                                                      \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "After damage, continue with the next packet that can be read. Each damage " \
		 "causes a warning, and the exit code is 1.",                                                 \
	 .at = offsetof(type, input.recover)},                                                   \
	{.name = "clock-offset",                                                                 \
	 .kind = KY_OPTION_LIST,                                                                 \
	 .arg = "[TRACE:]NS",                                                                    \
	 .help = "Add this many nanoseconds (or -3ms, 2s) to the times of TRACE: a path of the " \
		 "command line, a trace below it, the last part of either, or a wildcard. " \
		 "Without TRACE, the offset applies to all traces. 'mark' instead of NS: shift it so " \
		 "that marks of kymo mark are at their times. May be given again.",                                              \
	 .at = offsetof(type, input.clock_offsets)},                                             \
	{.name = "no-sync",                                                                      \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Read times as they were recorded, without what 'kymo sync' found about the clocks.", \
	 .at = offsetof(type, input.no_sync)},                                                   \
	{.name = "log-format",                                                                   \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "FORMAT",                                                                        \
	 .help = "How to read files that are logs: the name of a format, or a regular expression " \
		 "with named groups, of which 'time' is the time (docs/import.md). Without this " \
		 "option, Kymo finds the format by the first lines.",                            \
	 .at = offsetof(type, input.log_format)},                                                \
	{.name = "log-time",                                                                     \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "FORMAT",                                                                        \
	 .help = "With --log-format: how times are written, as for strftime(), such as "         \
		 "'%Y-%m-%d %H:%M:%S.%f'; %f is a fraction of a second.",                        \
	 .at = offsetof(type, input.log_time)},                                                  \
	{.name = "relay-key",                                                                    \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "FILE",                                                                          \
	 .help = "For kymo://HOST/NAME: the relay's key, for TLS. Default for other machines: "  \
		 "~/.config/kymo/relay-key.",                                                    \
	 .at = offsetof(type, input.relay_key)},                                                 \
	{.name = "relay-space",                                                                  \
	 .kind = KY_OPTION_SIZE,                                                                 \
	 .arg = "SIZE",                                                                          \
	 .help = "For recordings at relays: the most that is kept of what comes, in files without a " \
		 "name in $TMPDIR or /var/tmp (16G); with --live, in memory, of what was not read " \
		 "yet (1G).",                                                                    \
	 .at = offsetof(type, input.relay_space)}

/* For commands that put several traces in one order. */
#define KY_CORRELATE_OPTION_DEF(type, input)                                                     \
	{.name = "clock-force-correlate",                                                        \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Merge traces by their times even if their clocks have no common origin.",      \
	 .at = offsetof(type, input.force_correlate)}
/* clang-format on */

/*
 * Open the traces at @args. @merge: they will be put in one order.
 * As ky_trace_set_open_with(); KYMO_E_INVALID is a usage error. Threads: any; what is imported stays until the program ends.
 */
int ky_cli_open(struct ky_trace_set *set, char **args, int n_args,
		const struct ky_input_options *options, bool merge, struct kymo_error *err);

/*
 * After a command: reports the damage of a file of another program whose good part the command has read. Returns @code, or the
 * exit code of a failure.
 */
int ky_cli_inputs_finish(int code);

#endif
