/* SPDX-License-Identifier: MIT */
/* From CTF to CTF, on several CPUs. */
#ifndef KY_CLI_READING_CONVERT_CTF_H
#define KY_CLI_READING_CONVERT_CTF_H

#include "cli/reading/run-flow.h"
#include "cli/reading/select-options.h"
#include "os/thread-pool.h"

/*
 * Write what @options select, for which ky_cli_streams_apart() is true, into @sink (flow/sinks/ctf-sink.h), and
 * finish it. @times: as for ky_cli_run_flow(). Returns what ky_cli_run_flow() does.
 */
int ky_cli_convert_ctf(const struct ky_trace_set *set, const struct ky_select_options *options,
		       const struct ky_text_options *times, struct ky_thread_pool *pool,
		       struct ky_sink *sink, struct kymo_error *err);

#endif
