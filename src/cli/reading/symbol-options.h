/* SPDX-License-Identifier: MIT */
/* The options for names of addresses, for every command that writes events. */
#ifndef KY_CLI_READING_SYMBOL_OPTIONS_H
#define KY_CLI_READING_SYMBOL_OPTIONS_H

#include "analysis/addresses/trace-symbols.h"
#include "cli/terminal/command.h"

struct ky_symbol_options {
	bool on, off;
	struct ky_text_list dirs;
};

/* Rows for a table over struct @type, whose struct ky_symbol_options is member @symbols. */
/* clang-format off */
#define KY_SYMBOL_OPTION_DEFS(type, symbols)                                                     \
	{.name = "symbols",                                                                      \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Add functions and lines to addresses of code, as in 'ip = 0x55D0 (main+0x1c " \
		 "shop.c:34)': contexts ip, callstack_kernel and callstack_user, and functions " \
		 "of the kernel. Default: on a terminal.",                                       \
	 .at = offsetof(type, symbols.on)},                                                      \
	{.name = "no-symbols",                                                                   \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Do not add them on a terminal either.",                                        \
	 .at = offsetof(type, symbols.off)},                                                     \
	{.name = "symbol-dir",                                                                   \
	 .kind = KY_OPTION_LIST,                                                                 \
	 .arg = "DIR",                                                                           \
	 .help = "Look for debug files in DIR first, by build ID, as in /usr/lib/debug. "        \
		 "May be given several times.",                                                  \
	 .at = offsetof(type, symbols.dirs)}
/* clang-format on */

/*
 * The names of the addresses in @set; *symbols is NULL where they are not wanted or there are no addresses. @to_people: the
 * output is for a terminal. @is_live: see ky_trace_symbols_options. 0, KYMO_E_INVALID for options that exclude each other, or an error of ky_trace_symbols_open().
 */
int ky_cli_symbols_open(const struct ky_trace_set *set, const struct ky_symbol_options *options,
			bool to_people, bool is_live, struct ky_trace_symbols **symbols,
			struct kymo_error *err);

#endif
