/* SPDX-License-Identifier: MIT */
/* --jobs, for every command that reads traces on several CPUs. */
#ifndef KY_CLI_READING_JOBS_H
#define KY_CLI_READING_JOBS_H

#include "cli/terminal/command.h"
#include "store/read/trace.h"

/* A row for a table over struct @type, whose uint64_t is member @jobs (0: not given). */
/* clang-format off */
#define KY_JOBS_OPTION_DEF(type, jobs)                                                           \
	{.name = "jobs",                                                                         \
	 .kind = KY_OPTION_U64,                                                                  \
	 .arg = "N",                                                                             \
	 .help = "Use N CPUs; the output is the same. Default: all CPUs that this process may " \
		 "use; one for a small trace.",                                         \
	 .at = offsetof(type, jobs)}
/* clang-format on */

/* How many CPUs to use for the traces of @set when the user said @wanted. */
unsigned int ky_cli_jobs(uint64_t wanted, const struct ky_trace_set *set);

#endif
