/* SPDX-License-Identifier: MIT */
/* kymo symbols: stores the symbols of a trace's addresses with the trace. */
#include "cli/terminal/command.h"

#include <string.h>

#include "base/error.h"
#include "cli/reading/symbol-store.h"

struct symbols_options {
	struct ky_symbol_options symbols;
};

static const struct ky_option_def symbols_option_defs[] = {
	{.name = "symbol-dir",
	 .kind = KY_OPTION_LIST,
	 .arg = "DIR",
	 .help = "Look in DIR first: for BUILD-ID.kdi, and for debug files as in /usr/lib/debug. "
		 "May be given several times.",
	 .at = offsetof(struct symbols_options, symbols.dirs)},
	{0},
};

static int run_symbols(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct symbols_options *options = data;
	struct kymo_error err;

	if (strcmp(args[0], "add") != 0)
		return ky_cli_usage(command, "'%s' is not add", args[0]);
	ky_error_clear(&err);
	for (int i = 1; i < n_args; i++)
		if (ky_cli_symbols_store(args[i], &options->symbols, true, &err) < 0) {
			ky_cli_error(&err);
			return KY_EXIT_FAIL;
		}
	return KY_EXIT_OK;
}

const struct ky_command ky_command_symbols = {
	.name = "symbols",
	.summary = "store the symbols of a trace's addresses with the trace",
	.usage = "[OPTIONS] add TRACE...",
	.description =
		"'add' looks up the addresses of code in the events of TRACE, a directory, and stores functions, lines and inlined functions in TRACE/symbols. 'kymo print --symbols' and the reports find them there, on any machine and at any time. Only the functions at recorded addresses are stored: some kilobytes.\n"
		"\n"
		"Do it on the machine of the recording before it reboots, and before its programs "
		"are replaced; 'kymo record --symbols' does it when the recording ends. Programs "
		"and libraries have build IDs, so that --symbol-dir DIR can serve them later, too.",
	.examples = "# after the recording, on the same machine\n"
		    "kymo symbols add my-trace\n\n"
		    "# with debug files from another place\n"
		    "kymo symbols add --symbol-dir debug-files my-trace",
	.see_also = "record print debug-info",
	.options = symbols_option_defs,
	.options_size = sizeof(struct symbols_options),
	.min_args = 2,
	.max_args = -1,
	.operands = "add",
	.is_rare = true,
	.run = run_symbols,
};
