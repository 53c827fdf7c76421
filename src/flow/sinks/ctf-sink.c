/* SPDX-License-Identifier: MIT */
#include "flow/sinks/ctf-sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/decode/stored-stacks.h"
#include "store/read/sync-file.h"
#include "flow/sinks/ctf-metadata.h"
#include "flow/sinks/ctf-stream.h"

/* Streams share nothing but their traces' files, which several threads may use. */
struct ctf_sink {
	struct ky_sink sink;
	const struct ky_trace_set *set;
	struct ky_packet_store *store;
	struct ky_store_trace **files;	/* by trace */
	struct ky_trace_class **as;	/* by trace: what it is written as; NULL: as it is */
	struct ky_ctf_stream **streams; /* by stream index; NULL: nothing of it yet */
	bool *whole;			/* by stream index: packets without events are kept */
};

static size_t ctf_sink_trace_number(const struct ctf_sink *sink, const struct ky_stream *stream)
{
	size_t i = 0;

	while (sink->set->traces.data[i] != stream->trace)
		i++;
	return i;
}

struct ky_store_trace *ky_ctf_sink_files(const struct ky_sink *base, const struct ky_stream *stream)
{
	const struct ctf_sink *sink = (const struct ctf_sink *)base;

	return sink->files[ctf_sink_trace_number(sink, stream)];
}

bool ky_ctf_sink_copies(const struct ky_sink *base, const struct ky_stream *stream)
{
	const struct ctf_sink *sink = (const struct ctf_sink *)base;
	size_t number = ctf_sink_trace_number(sink, stream);

	/* A copy for other readers has each stack where it is. */
	if (stream->cls && ky_stored_stacks_are_in(stream->cls))
		return false;
	return !sink->as[number] && ky_store_can_copy(sink->files[number]);
}

static int stream_of(struct ctf_sink *sink, const struct ky_stream *in, struct ky_ctf_stream **out,
		     struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!sink->streams[in->index])
		ret = ky_ctf_stream_open(in, sink->as[ctf_sink_trace_number(sink, in)],
					 sink->whole[in->index], ky_ctf_sink_files(&sink->sink, in),
					 &sink->streams[in->index], err);
	*out = sink->streams[in->index];
	return ret;
}

/* ---- the sink ----------------------------------------------------------------------------- */

static int ctf_batch(struct ky_sink *base, const struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_ctf_stream *s;
	int ret = stream_of((struct ctf_sink *)base, batch->stream, &s, err);

	return ret == KYMO_OK ? ky_ctf_stream_batch(s, batch, err) : ret;
}

static int ctf_finish(struct ky_sink *base, struct kymo_error *err)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;
	int ret = KYMO_OK, here;

	for (size_t i = 0; i < sink->set->streams.len; i++) {
		if (sink->streams[i] && ret == KYMO_OK)
			ret = ky_ctf_stream_finish(sink->streams[i], err);
	}
	for (size_t i = 0; i < sink->set->traces.len; i++) {
		if (!sink->files[i])
			continue;
		here = ky_store_close(sink->files[i], ret < 0 ? NULL : err);
		sink->files[i] = NULL;
		ret = ret < 0 ? ret : here;
	}
	return ret;
}

static void ctf_free(struct ky_sink *base)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;

	for (size_t i = 0; sink->streams && i < sink->set->streams.len; i++)
		ky_ctf_stream_free(sink->streams[i]);
	for (size_t i = 0; sink->files && i < sink->set->traces.len; i++)
		(void)ky_store_close(sink->files[i], NULL);
	for (size_t i = 0; sink->as && i < sink->set->traces.len; i++)
		ky_trace_class_free(sink->as[i]);
	free(sink->as);
	free(sink->whole);
	free(sink->streams);
	free(sink->files);
	ky_store_free(sink->store);
	free(sink);
}

static const struct ky_sink_ops ctf_ops = {
	.batch = ctf_batch,
	.finish = ctf_finish,
	.free = ctf_free,
};

/* ---- streams side by side ------------------------------------------------------------------- */

static int pass_batch(void *data, const struct ky_batch *batch, struct kymo_error *err)
{
	return ctf_batch(data, batch, err);
}

/* Packets behind the last event, where all are kept. */
static int pass_end(void *data, const struct ky_stream *in, struct kymo_error *err)
{
	struct ctf_sink *sink = data;
	struct ky_ctf_stream *s;
	int ret;

	if (!sink->whole[in->index])
		return KYMO_OK;
	ret = stream_of(sink, in, &s, err);
	return ret == KYMO_OK ? ky_ctf_stream_end(s, err) : ret;
}

/* Whole streams that have no packet. */
static int pass_empty(struct ctf_sink *sink, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < sink->set->streams.len && ret == KYMO_OK; i++) {
		if (!sink->set->streams.data[i]->file.data)
			ret = pass_end(sink, sink->set->streams.data[i], err);
	}
	return ret;
}

int ky_ctf_sink_pass(struct ky_sink *sink, struct ky_pass *pass, struct ky_thread_pool *pool,
		     const struct ky_trace_set *set, const struct ky_selection *selection,
		     struct kymo_error *err)
{
	int ret = pass_empty((struct ctf_sink *)sink, err);

	pass->batch = pass_batch;
	pass->end = pass_end;
	pass->batch_data = sink;
	return ret == KYMO_OK ? ky_pass_run(pass, pool, set, selection, err) : ret;
}

void ky_ctf_sink_keep(struct ky_sink *base, const bool *whole)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;

	memcpy(sink->whole, whole, sink->set->streams.len * sizeof(*whole));
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Length of the directory that all traces have in common, its slash included. */
static size_t common_length(char *const *paths, size_t n)
{
	size_t len = strlen(paths[0]), slash;

	for (size_t i = 1; i < n; i++) {
		size_t same = 0;

		while (same < len && paths[i][same] == paths[0][same])
			same++;
		/* A trace may itself be the directory that holds the others. */
		if (same < len || (paths[i][same] && paths[i][same] != '/')) {
			for (slash = same; slash && paths[0][slash - 1] != '/'; slash--)
				;
			same = slash;
		}
		len = same;
	}
	return len;
}

static int ctf_sink_open_trace(struct ctf_sink *sink, size_t number, const char *below,
			       uint32_t major, struct kymo_error *err)
{
	struct ky_store_place place = {.path = below};
	const struct ky_trace *trace = sink->set->traces.data[number];
	char *text, *dir = NULL;
	size_t len_bytes;
	int ret;

	while (*place.path == '/')
		place.path++;
	ret = ky_store_open(sink->store, &place, &sink->files[number], err);
	if (ret < 0)
		return ret;
	ret = ky_ctf_metadata(trace, major, &text, &len_bytes, &sink->as[number], err);
	if (ret < 0)
		return ret;
	ret = ky_store_metadata(sink->files[number], text, len_bytes, err);
	/* The events keep the times of their clock. */
	if (!ret && trace->sync && asprintf(&dir, "%s/%s", sink->store->name, place.path) < 0)
		ret = ky_error_nomem(err);
	else if (!ret && trace->sync)
		ret = ky_sync_copy(trace->sync, dir, text, len_bytes, err);
	free(dir);
	free(text);
	return ret;
}

static int ctf_sink_open_traces(struct ctf_sink *sink, uint32_t major, struct kymo_error *err)
{
	size_t n = sink->set->traces.len, common;
	char **real = calloc(n + 1, sizeof(*real));
	int ret = real ? KYMO_OK : ky_error_nomem(err);

	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		real[i] = ky_trace_real_path(sink->set->traces.data[i]);
		if (!real[i])
			ret = ky_error_errno(err, errno, "cannot open the trace %s",
					     sink->set->traces.data[i]->path);
	}
	common = ret == KYMO_OK && n ? common_length(real, n) : 0;
	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = ctf_sink_open_trace(sink, i, real[i] + common, major, err);
	for (size_t i = 0; real && i < n; i++)
		free(real[i]);
	free(real);
	return ret;
}

int ky_ctf_sink_open(const struct ky_trace_set *set, struct ky_packet_store *store, uint32_t major,
		     struct ky_sink **out, struct kymo_error *err)
{
	struct ctf_sink *sink = calloc(1, sizeof(*sink));
	int ret;

	if (!sink) {
		ky_store_free(store);
		return ky_error_nomem(err);
	}
	sink->store = store;
	sink->sink.ops = &ctf_ops;
	sink->set = set;
	sink->files = calloc(set->traces.len + 1, sizeof(*sink->files));
	sink->streams = calloc(set->streams.len + 1, sizeof(*sink->streams));
	sink->as = calloc(set->traces.len + 1, sizeof(*sink->as));
	sink->whole = calloc(set->streams.len + 1, sizeof(*sink->whole));
	ret = sink->files && sink->streams && sink->as && sink->whole
		      ? ctf_sink_open_traces(sink, major, err)
		      : ky_error_nomem(err);
	if (ret < 0) {
		ctf_free(&sink->sink);
		return ret;
	}
	*out = &sink->sink;
	return KYMO_OK;
}
