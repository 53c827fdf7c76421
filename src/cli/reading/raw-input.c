/* SPDX-License-Identifier: MIT */
#include "cli/reading/raw-input.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "cli/terminal/command.h"
#include "record/kernel/raw.h"
#include "store/scratch-trace.h"

/* What was converted; the traces stay where they are, since those who read them know their addresses. */
static KY_VEC(struct ky_scratch_trace *) traces;
static KY_VEC(struct ky_trace_at) places;

static void free_traces(void)
{
	ky_vec_foreach(&traces, trace) {
		ky_scratch_trace_fini(*trace);
		free(*trace);
	}
	ky_vec_fini(&traces);
	ky_vec_fini(&places);
}

static struct ky_scratch_trace *new_trace(void)
{
	struct ky_scratch_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	ky_strbuf_init(&trace->metadata);
	if (!traces.len)
		atexit(free_traces);
	if (ky_vec_push(&traces, trace) == 0)
		return trace;
	free(trace);
	return NULL;
}

static void add_part(struct ky_strbuf *text, uint64_t n, const char *what)
{
	if (n)
		ky_strbuf_addf(text, "%s%" PRIu64 " %s", text->len ? ", " : "", n, what);
}

static void tell_left_out(const char *path, const struct ky_raw_stats *stats)
{
	uint64_t left_out = stats->own + stats->hidden + stats->filtered;
	struct ky_strbuf parts = KY_STRBUF_INIT;

	add_part(&parts, stats->own, "system calls of Kymo's own");
	add_part(&parts, stats->hidden, "that only tell of threads or are call stacks");
	add_part(&parts, stats->filtered, "that the filters did not want");
	ky_log_info(&ky_cli_log, "%s: %" PRIu64 " raw records, %" PRIu64 " events; left out: %s",
		    path, stats->events + left_out, stats->events,
		    left_out ? ky_strbuf_text(&parts) : "none");
	ky_strbuf_fini(&parts);
}

static int convert(const char *path, bool tell, struct kymo_error *err)
{
	struct ky_scratch_trace *trace = new_trace();
	struct ky_trace_at at = {path, "kernel", trace};
	struct ky_packet_store *store;
	struct ky_raw_stats stats;
	int ret;

	if (!trace || ky_vec_push(&places, at) < 0)
		return ky_error_nomem(err);
	ret = ky_scratch_store_open(trace, &store, err);
	if (ret < 0)
		return ret;
	ret = ky_raw_convert(path, store, &ky_cli_log, &stats, err);
	ky_store_free(store);
	if (!ret && tell)
		tell_left_out(path, &stats);
	return ret;
}

int ky_cli_convert_raw(char **paths, int n_paths, bool tell, struct ky_trace_options *options,
		       struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (int i = 0; i < n_paths && !ret; i++) {
		if (ky_raw_is(paths[i]))
			ret = convert(paths[i], tell, err);
	}
	options->scratch = places.data;
	options->n_scratch = places.len;
	return ret;
}
