/* SPDX-License-Identifier: MIT */
/* What a file of debug information says, as text. */
#ifndef KY_CLI_COMMANDS_DEBUG_INFO_SHOW_H
#define KY_CLI_COMMANDS_DEBUG_INFO_SHOW_H

#include <kymo/error.h>

#include "base/strbuf.h"

/*
 * Appends what the .kdi file @path says about @names: functions with address and signature, types with members. Without names:
 * its build ID, and how much it has. 0, KYMO_E_NOT_FOUND for a name that it does not have, or an error of ky_kdi_open().
 */
int ky_debug_info_show(struct ky_strbuf *out, const char *path, char **names, int n_names,
		       struct kymo_error *err);

/* Appends the frames of @address in a program, library or .kdi file, one a line. */
struct ky_symbols;
void ky_debug_info_look(struct ky_strbuf *out, struct ky_symbols *symbols, uint32_t object,
			uint64_t address);

#endif
