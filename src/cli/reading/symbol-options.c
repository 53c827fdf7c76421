/* SPDX-License-Identifier: MIT */
#include "cli/reading/symbol-options.h"

#include "base/error.h"

int ky_cli_symbols_open(const struct ky_trace_set *set, const struct ky_symbol_options *options,
			bool to_people, bool is_live, struct ky_trace_symbols **symbols,
			struct kymo_error *err)
{
	const struct ky_trace_symbols_options own = {
		.dirs = options->dirs.items,
		.n_dirs = options->dirs.len,
		.want_lines = true,
		.is_live = is_live,
	};

	*symbols = NULL;
	if (options->on && options->off)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--symbols and --no-symbols exclude each other");
	if (options->off || !(options->on || to_people) || !ky_trace_has_addresses(set))
		return KYMO_OK;
	return ky_trace_symbols_open(set, &own, symbols, err);
}
