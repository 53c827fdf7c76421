/* SPDX-License-Identifier: MIT */
/* Stores the symbols of a trace's addresses with the trace, and tells about it. */
#ifndef KY_CLI_READING_SYMBOL_STORE_H
#define KY_CLI_READING_SYMBOL_STORE_H

#include "cli/reading/symbol-options.h"

/*
 * Of the traces below @path. Prints one line to the standard error. @is_asked: a trace without addresses is worth a line, too.
 * 0, or what ky_trace_set_open_with() or ky_trace_store() return.
 */
int ky_cli_symbols_store(const char *path, const struct ky_symbol_options *options, bool is_asked,
			 struct kymo_error *err);

#endif
