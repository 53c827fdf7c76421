/* SPDX-License-Identifier: MIT */
/* The program: finds the command and runs it. */
#include "cli/command.h"

const struct ky_command *const ky_commands[] = {
	NULL,
};

int main(int argc, char **argv)
{
	return argc > 1 && argv[1] ? KY_EXIT_USAGE : KY_EXIT_OK;
}
