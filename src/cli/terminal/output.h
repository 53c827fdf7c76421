/* SPDX-License-Identifier: MIT */
/*
 * Output that appears whole or not at all: a file is made without a name, where the file system can do that;
 * everything else under a hidden name beside the final one, and renamed when it is complete.
 */
#ifndef KY_CLI_TERMINAL_OUTPUT_H
#define KY_CLI_TERMINAL_OUTPUT_H

#include <stdbool.h>

#include <kymo/error.h>

struct ky_cli_output {
	char *path; /* what the user asked for; NULL: the standard output */
	char *temp; /* where it is made; NULL when there is nothing to rename */
	int fd;	    /* of a file; -1 for directories */
	bool is_directory;
	bool is_unnamed; /* a file that gets a name when it is complete */
};

/*
 * A file. NULL and "-" are the standard output; what exists and is no regular file (a pipe, a
 * device) is written as it is; a regular file is replaced in the end.
 */
int ky_cli_output_file(struct ky_cli_output *output, const char *path, struct kymo_error *err);

/* A directory, made empty at output->temp. One that exists and is not empty is refused. */
int ky_cli_output_directory(struct ky_cli_output *output, const char *path, struct kymo_error *err);

/* It is complete: give it its name. Then, and after a failure too, ky_cli_output_close(). */
int ky_cli_output_commit(struct ky_cli_output *output, struct kymo_error *err);

/* Removes what was not committed. */
void ky_cli_output_close(struct ky_cli_output *output);

#endif
