/* SPDX-License-Identifier: MIT */
#include "cli/reading/convert-ctf.h"

#include <stdlib.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "flow/sinks/ctf-sink.h"

static void convert_ctf_tell_loss(void *data, const struct ky_loss *loss)
{
	ky_cli_warn_loss(loss, data);
}

static void convert_ctf_tell_progress(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	(void)data;
	ky_cli_progress("converting", done_bytes, total_bytes);
}

static void copy_progress(uint64_t done_bytes, uint64_t total_bytes)
{
	ky_cli_progress("converting", done_bytes, total_bytes);
}

/* Event by event, several streams at a time. */
static int write_events(const struct ky_trace_set *set, const struct ky_selection *selection,
			const struct ky_text_options *times, struct ky_thread_pool *pool,
			struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_pass pass = {
		.loss = convert_ctf_tell_loss,
		.data = (void *)(uintptr_t)times,
		.stop = ky_cli_interrupted,
		.progress = convert_ctf_tell_progress,
	};
	int ret = ky_ctf_sink_pass(sink, &pass, pool, set, selection, err);

	ky_cli_progress_end();
	return ky_cli_finish_flow(sink, ret, err);
}

/* All of it: no event has to be touched unless it is damaged. */
static int write_whole(const struct ky_trace_set *set, struct ky_selection *selection,
		       const struct ky_text_options *times, struct ky_thread_pool *pool,
		       struct ky_sink *sink, struct kymo_error *err)
{
	const struct ky_ctf_copy how = {pool, ky_cli_interrupted, copy_progress};
	bool *damaged = calloc(set->streams.len + 1, sizeof(*damaged));
	int ret = damaged ? KYMO_OK : ky_error_nomem(err);

	if (ret == KYMO_OK)
		ret = ky_ctf_sink_copy(sink, set, &how, damaged, err);
	ky_cli_progress_end();
	if (ret == KYMO_OK) {
		ky_ctf_sink_keep(sink, damaged);
		selection->only = damaged;
		ret = write_events(set, selection, times, pool, sink, err);
	}
	free(damaged);
	return ret;
}

int ky_cli_convert_ctf(const struct ky_trace_set *set, const struct ky_select_options *options,
		       const struct ky_text_options *times, struct ky_thread_pool *pool,
		       struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret = ky_cli_select_resolve(set, options, times->clock_gmt, pool, &selection, err);

	if (ret < 0)
		return ky_cli_in_filter(ret, err);
	if (!ky_cli_selects(options))
		return write_whole(set, &selection, times, pool, sink, err);
	return ky_cli_in_filter(write_events(set, &selection, times, pool, sink, err), err);
}
