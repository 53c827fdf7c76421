/* SPDX-License-Identifier: MIT */
/* The option rows of the text format, for every command that writes it. */
#ifndef KY_CLI_TEXT_OPTIONS_H
#define KY_CLI_TEXT_OPTIONS_H

#include "cli/command.h"
#include "flow/text.h"

/* Rows for a table over struct @type, whose struct ky_text_options is member @text. */
/* clang-format off */
#define KY_TEXT_OPTION_DEFS(type, text)                                                          \
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
	 .help = "Leave out the time since the event before.",                                   \
	 .at = offsetof(type, text.no_delta)}
/* clang-format on */

#endif
