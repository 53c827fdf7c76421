/* SPDX-License-Identifier: MIT */
/* Events as lines, on several CPUs: what print and convert have in common. */
#ifndef KY_CLI_READING_LINES_H
#define KY_CLI_READING_LINES_H

#include "cli/reading/run-flow.h"
#include "cli/reading/select-options.h"
#include "os/thread-pool.h"

struct ky_lines {
	bool alone; /* a line depends on all lines before: one thread makes them */
	/* Makes a sink of lines (sink.h), which writes to @fd; several work at the same time. */
	struct ky_sink *(*make)(void *data);
	void *data;
	int fd;
	bool gmt; /* times that options give are UTC */
	/*
	 * Both NULL, or what is written is not one file: the sink that writes it, which is finished then, too; and
	 * what puts there what a sink of @make holds.
	 */
	struct ky_sink *sink;
	int (*write)(void *sink, struct ky_sink *held, struct kymo_error *err);
};

/*
 * Write the events of @set that @options select. @run: as for ky_cli_run_flow(). Returns what
 * ky_cli_select_open() and ky_cli_run_flow() return.
 */
int ky_cli_lines(const struct ky_lines *lines, const struct ky_trace_set *set,
		 const struct ky_select_options *options, struct ky_thread_pool *pool,
		 struct ky_flow_run *run, struct kymo_error *err);

#endif
