/* SPDX-License-Identifier: MIT */
/* The options of the text format, for every command that writes it. */
#ifndef KY_CLI_READING_TEXT_OPTIONS_H
#define KY_CLI_READING_TEXT_OPTIONS_H

#include "cli/terminal/command.h"
#include "flow/sinks/text.h"

/* What was said about names, fields and colours; ky_cli_text_style() makes options of it. */
struct ky_text_words {
	struct ky_text_list names, fields;
	const char *color;
	bool raw, decoded; /* values */
};

#define KY_TEXT_FIELDS_HELP                                                                   \
	"What to print besides time, name and fields: all, none, default, or some of trace, " \
	"trace:hostname, trace:domain, trace:procname, trace:vpid, loglevel, emf, callsite "  \
	"(separated by commas)."

/*
 * Rows for a table over struct @type, whose struct ky_text_options is member @text, and struct
 * ky_text_words member @words. --fields has rows of its own in the commands.
 */
/* clang-format off */
#define KY_TEXT_OPTION_DEFS(type, text, words)                                                   \
	{.name = "clock-date",                                                                   \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Show the date before the time of day.",                                        \
	 .at = offsetof(type, text.clock_date)},                                                 \
	{.name = "clock-gmt",                                                                    \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Show and read times in UTC instead of the local time zone (TZ).",              \
	 .at = offsetof(type, text.clock_gmt)},                                                  \
	{.name = "clock-seconds",                                                                \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Show seconds since the clock's origin instead of the time of day.",            \
	 .at = offsetof(type, text.clock_seconds)},                                              \
	{.name = "clock-cycles",                                                                 \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Show the clock's raw value, and differences in its cycles.",                   \
	 .at = offsetof(type, text.clock_cycles)},                                               \
	{.name = "no-delta",                                                                     \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Leave out the time since the previous event.",                                   \
	 .at = offsetof(type, text.no_delta)},                                                   \
	{.name = "uncertain",                                                                    \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "After 'kymo sync': begin a line with '~' when an event of another machine in a line " \
		 "before may have happened after this one, because the clocks are not known that well.", \
	 .at = offsetof(type, text.uncertain)},                                                  \
	{.name = "raw-values",                                                                   \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "On a terminal: do not add what numbers of signals, devices, advice and kinds " \
		 "of block requests mean, as in 'sig = 14 (SIGALRM)'.",                          \
	 .at = offsetof(type, words.raw)},                                                       \
	{.name = "decoded-values",                                                               \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Add these meanings in files and pipes, too.",                                  \
	 .at = offsetof(type, words.decoded)},                                                   \
	{.name = "names",                                                                        \
	 .kind = KY_OPTION_LIST,                                                                 \
	 .arg = "LIST",                                                                          \
	 .help = "Which names to write: all, none, default (payload,context), or some of " \
		 "payload, context, scope, header (separated by commas).",                   \
	 .at = offsetof(type, words.names),                                                      \
	 .choices = "all none default payload context scope header"},                            \
	{.name = "color",                                                                        \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "WHEN",                                                                          \
	 .help = "Colours: auto (default: on a terminal, unless NO_COLOR is set), always or " \
		 "never. BABELTRACE_TERM_COLOR has the same effect as in babeltrace2.",                    \
	 .at = offsetof(type, words.color),                                                      \
	 .choices = "auto always never"}
/* clang-format on */
/* For completion of --fields. */
#define KY_TEXT_FIELDS_CHOICES                                                                   \
	"all none default trace trace:hostname trace:domain trace:procname trace:vpid loglevel " \
	"emf callsite"

/*
 * Put into @text what @words say. @to_stdout: that is where the text goes.
 * Returns 0, or KYMO_E_INVALID for words that mean nothing (a usage error).
 */
int ky_cli_text_style(const struct ky_text_words *words, bool to_stdout,
		      struct ky_text_options *text, struct kymo_error *err);
/* After the text on the standard output: what babeltrace2 ends with, where there are colours. */
void ky_cli_text_end(const struct ky_text_options *text);

#endif
