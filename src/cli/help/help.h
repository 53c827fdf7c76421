/* SPDX-License-Identifier: MIT */
/* Help as text, man page and shell completion, all from the command table. */
#ifndef KY_CLI_HELP_HELP_H
#define KY_CLI_HELP_HELP_H

#include "cli/terminal/command.h"

/* One screen: what kymo is, its commands. Returns KY_EXIT_OK. */
int ky_help_overview(FILE *out);
/* What `kymo COMMAND --help` prints, wrapped to the terminal. Returns KY_EXIT_OK. */
int ky_help_command(FILE *out, const struct ky_command *command);

/* The same as man page source (mdoc); @command NULL: kymo.1 itself. Returns KY_EXIT_OK. */
int ky_man_page(FILE *out, const struct ky_command *command);

/* Completion scripts. Return KY_EXIT_OK. */
int ky_completion_bash(FILE *out);
int ky_completion_zsh(FILE *out);
int ky_completion_fish(FILE *out);

#endif
