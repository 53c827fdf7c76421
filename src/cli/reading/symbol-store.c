/* SPDX-License-Identifier: MIT */
#include "cli/reading/symbol-store.h"

#include <inttypes.h>

#include "analysis/addresses/trace-store.h"
#include "base/error.h"

static void tell(const struct ky_trace_stored *stored)
{
	ky_log_info(&ky_cli_log,
		    "symbols of %" PRIu64 " address%s stored: %" PRIu32 " file%s, %" PRIu32
		    " function%s of the kernel; %" PRIu64 " without a name",
		    stored->addresses, stored->addresses == 1 ? "" : "es", stored->files,
		    stored->files == 1 ? "" : "s", stored->kernel_functions,
		    stored->kernel_functions == 1 ? "" : "s", stored->unknown);
	if (stored->kernel_problem)
		ky_log_warning(&ky_cli_log, "no functions of the kernel: %s",
			       stored->kernel_problem);
}

static int symbol_store_store(const struct ky_trace_set *set, const char *path,
			      const struct ky_symbol_options *options, struct kymo_error *err)
{
	const struct ky_trace_symbols_options own = {
		.dirs = options->dirs.items,
		.n_dirs = options->dirs.len,
		.for_store = true,
	};
	struct ky_trace_symbols *symbols;
	struct ky_trace_stored stored;
	int ret = ky_trace_symbols_open(set, &own, &symbols, err);

	if (ret < 0)
		return ret;
	ret = ky_trace_store(set, symbols, path, &stored, err);
	if (!ret)
		tell(&stored);
	ky_trace_symbols_close(symbols);
	return ret;
}

int ky_cli_symbols_store(const char *path, const struct ky_symbol_options *options, bool is_asked,
			 struct kymo_error *err)
{
	struct ky_trace_set set;
	int ret = ky_trace_set_open(&set, &path, 1, &ky_cli_log, err);

	if (ret < 0)
		return ret;
	if (ky_trace_has_addresses(&set))
		ret = symbol_store_store(&set, path, options, err);
	else if (is_asked)
		ky_log_info(
			&ky_cli_log,
			"no event has addresses of code: record with -c ip, --callstack-kernel, "
			"--callstack-user or --sample");
	ky_trace_set_close(&set);
	return ret;
}
