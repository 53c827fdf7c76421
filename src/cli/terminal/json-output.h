/* SPDX-License-Identifier: MIT */
/* JSON on the standard output. */
#ifndef KY_CLI_TERMINAL_JSON_OUTPUT_H
#define KY_CLI_TERMINAL_JSON_OUTPUT_H

#include "analysis/tables/jansson-text.h"

/*
 * Write @root, indented by @indent blanks, and a line feed. Takes @root over; NULL is out of memory.
 * 0 or KYMO_E_MEMORY; that it could not be written, ky_cli_finish() tells.
 */
int ky_cli_put_json(json_t *root, size_t indent, struct kymo_error *err);

#endif
