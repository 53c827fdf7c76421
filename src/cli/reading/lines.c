/* SPDX-License-Identifier: MIT */
#include "cli/reading/lines.h"

#include "base/error.h"
#include "cli/terminal/command.h"
#include "flow/parallel/parallel-sink.h"
#include "flow/parallel/slices.h"

static void reading_lines_tell_loss(void *data, const struct ky_loss *loss)
{
	ky_cli_warn_loss(loss, ((const struct ky_flow_run *)data)->times);
}

static void reading_lines_tell_progress(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	ky_cli_progress(((const struct ky_flow_run *)data)->progress, done_bytes, total_bytes);
}

static int run_slices(const struct ky_lines *lines, const struct ky_trace_set *set,
		      const struct ky_selection *selection, struct ky_thread_pool *pool,
		      struct ky_flow_run *run, struct kymo_error *err)
{
	const struct ky_slices slices = {
		.pool = pool,
		.make = lines->make,
		.data = lines->data,
		.fd = lines->fd,
		.write = lines->write,
		.write_data = lines->sink,
		.loss = reading_lines_tell_loss,
		.loss_data = run,
		.progress = run->progress ? reading_lines_tell_progress : NULL,
		.progress_data = run,
		.stop = ky_cli_interrupted,
	};
	int ret = ky_slices_run(&slices, set, selection, err);

	if (run->progress)
		ky_cli_progress_end();
	return lines->sink ? ky_cli_finish_flow(lines->sink, ret, err) : ret;
}

/* One merge; the sink may hold events of the graph: it goes first. */
static int run_merge(const struct ky_lines *lines, const struct ky_trace_set *set,
		     const struct ky_selection *selection, struct ky_thread_pool *pool,
		     struct ky_flow_run *run, struct kymo_error *err)
{
	struct ky_flow *flow;
	struct ky_sink *sink;
	int ret = ky_flow_open_selected(set, selection, &flow, err);

	if (ret < 0)
		return ret;
	sink = lines->sink    ? NULL
	       : lines->alone ? lines->make(lines->data)
			      : ky_parallel_sink_new(pool, lines->make, lines->data);
	ret = sink || lines->sink ? ky_cli_run_flow(run, flow, sink ? sink : lines->sink, err)
				  : ky_error_nomem(err);
	ky_sink_free(sink);
	ky_flow_close(flow);
	return ret;
}

int ky_cli_lines(const struct ky_lines *lines, const struct ky_trace_set *set,
		 const struct ky_select_options *options, struct ky_thread_pool *pool,
		 struct ky_flow_run *run, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret = ky_cli_select_resolve(set, options, lines->gmt, pool, &selection, err);

	if (ret == KYMO_OK && !lines->alone && ky_slices_fit(pool, set, &selection))
		ret = run_slices(lines, set, &selection, pool, run, err);
	else if (ret == KYMO_OK)
		ret = run_merge(lines, set, &selection, pool, run, err);
	return ky_cli_in_filter(ret, err);
}
