/* SPDX-License-Identifier: MIT */
#include "flow/ctf-sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "ctf/repack.h"
#include "flow/ctf-metadata.h"
#include "store/walk.h"
#include "store/writer.h"

#define NONE SIZE_MAX

/* The output of one input stream. */
struct out_stream {
	const struct ky_stream *in;
	struct ky_packet_sink *files;
	int number; /* in files */
	struct ky_repacker *repacker;
	struct ky_walk walk; /* to packets that are written without events */
	struct ky_packet_list packets;
	size_t next; /* where to look for the next input packet */
	size_t open; /* the input packet that is being rebuilt, or NONE */
	size_t due;  /* a packet behind a loss that must be written, with events or without */
	size_t last; /* the input packet that was written last, or NONE */
	uint64_t number_of_next; /* sequence number of the next output packet */
	bool numbered;		 /* number_of_next is known */
	bool keeps;		 /* packets without events, too: nothing is left out */
	uint64_t n_cut;		 /* input packets became more by so many */
};

struct ctf_sink {
	struct ky_sink sink;
	const struct ky_trace_set *set;
	struct ky_packet_sink **files; /* by trace */
	struct ky_trace_class **as;    /* by trace: what it is written as; NULL: as it is */
	struct out_stream **streams;   /* by stream index; NULL: nothing of it yet */
	bool *whole;		       /* by stream index: packets without events are kept */
};

/* ---- packets ------------------------------------------------------------------------------ */

static int write_packet(struct out_stream *s, bool cut, struct kymo_error *err)
{
	struct ky_repacked done;
	struct ky_packet_out out;
	int ret = ky_repacker_end(s->repacker, cut, &done, err);

	if (ret < 0)
		return ret;
	out = (struct ky_packet_out){
		.data = done.data,
		.size_bytes = done.size_bytes,
		.content_bits = done.content_bits,
		.begin_cycles = done.begin_cycles,
		.end_cycles = done.end_cycles,
		.discarded = done.discarded,
		.sequence = done.sequence,
		.stream_class_id = done.stream_class_id,
		.stream_id = done.stream_id,
		.no_times = !done.has_times,
	};
	s->number_of_next = done.sequence + 1;
	s->n_cut += cut;
	return s->files->ops->packet(s->files, s->number, &out, err);
}

static int end_packet(struct out_stream *s, struct kymo_error *err)
{
	if (s->open == NONE)
		return KYMO_OK;
	s->last = s->open;
	s->open = NONE;
	return write_packet(s, false, err);
}

/* Begin packet @index, which is @in; the one before has ended. */
static int begin_packet(struct out_stream *s, size_t index, const struct ky_packet *in,
			struct kymo_error *err)
{
	int ret;

	if (!s->numbered || s->keeps)
		s->number_of_next = in->sequence + s->n_cut;
	s->numbered = true;
	ret = ky_repacker_begin(s->repacker, in, s->number_of_next, err);
	if (ret == KYMO_OK)
		s->open = index;
	if (s->due != NONE && s->due <= index)
		s->due = NONE;
	return ret;
}

/* Write packet @index without any event. */
static int empty_packet(struct out_stream *s, size_t index, struct kymo_error *err)
{
	int ret = end_packet(s, err);

	if (ret < 0)
		return ret;
	ky_walk_go(&s->walk, s->packets.data[index].offset_bytes);
	ret = ky_walk_next(&s->walk, err);
	if (ret > 0)
		ret = begin_packet(s, index, s->walk.packet, err);
	return ret < 0 ? ret : end_packet(s, err);
}

/* Packets that had no event, before packet @upto. */
static int write_kept(struct out_stream *s, size_t upto, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (; s->keeps && s->next < upto && ret == KYMO_OK; s->next++)
		ret = empty_packet(s, s->next, err);
	return ret;
}

static int write_due(struct out_stream *s, struct kymo_error *err)
{
	return s->due == NONE ? KYMO_OK : empty_packet(s, s->due, err);
}

/* The packet at @offset_bytes; packets come in order. NONE: not in the list. */
static size_t find_packet(const struct out_stream *s, uint64_t offset_bytes)
{
	for (size_t i = s->next; i < s->packets.len; i++) {
		if (s->packets.data[i].offset_bytes == offset_bytes)
			return i;
	}
	return NONE;
}

/* The packet at whose end a loss ends. */
static size_t find_loss(const struct out_stream *s, const struct ky_loss *loss)
{
	for (size_t i = s->next; i < s->packets.len; i++) {
		if (s->packets.data[i].has_times && s->packets.data[i].end_ns == loss->end_ns)
			return i;
	}
	return NONE;
}

/*
 * Before packet @index events are missing: a reader finds that by comparing it with the
 * packet before, so that one is needed as well.
 */
static int before_loss(struct out_stream *s, size_t index, const struct ky_loss *loss,
		       struct kymo_error *err)
{
	int ret = KYMO_OK;

	/* It is found where no packet is left out. */
	if (s->keeps)
		return end_packet(s, err);
	if (s->due != NONE && s->due < index)
		ret = write_due(s, err);
	if (ret == KYMO_OK && index && s->last != index - 1 && s->open != index - 1 &&
	    s->packets.len > index)
		ret = empty_packet(s, index - 1, err);
	if (ret == KYMO_OK)
		ret = end_packet(s, err);
	s->number_of_next += loss->packets;
	s->due = index;
	return ret;
}

/* ---- streams ------------------------------------------------------------------------------ */

static void stream_free(struct out_stream *s)
{
	if (!s)
		return;
	ky_repacker_free(s->repacker);
	ky_walk_fini(&s->walk);
	ky_vec_fini(&s->packets);
	free(s);
}

static size_t trace_number(const struct ctf_sink *sink, const struct ky_stream *stream)
{
	size_t i = 0;

	while (sink->set->traces.data[i] != stream->trace)
		i++;
	return i;
}

struct ky_packet_sink *ky_ctf_sink_files(const struct ky_sink *base, const struct ky_stream *stream)
{
	const struct ctf_sink *sink = (const struct ctf_sink *)base;

	return sink->files[trace_number(sink, stream)];
}

bool ky_ctf_sink_copies(const struct ky_sink *base, const struct ky_stream *stream)
{
	const struct ctf_sink *sink = (const struct ctf_sink *)base;

	return !sink->as[trace_number(sink, stream)];
}

static int stream_open(struct ctf_sink *sink, const struct ky_stream *in, struct out_stream **out,
		       struct kymo_error *err)
{
	struct out_stream *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return ky_error_nomem(err);
	s->in = in;
	s->open = s->due = s->last = NONE;
	s->keeps = sink->whole[in->index];
	s->files = ky_ctf_sink_files(&sink->sink, in);
	s->repacker = ky_repacker_new(in->trace->cls, sink->as[trace_number(sink, in)]);
	ret = s->repacker ? ky_walk_init(&s->walk, in, err) : ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = ky_stream_packets(in, &s->packets, NULL);
	/* Whoever reads the events meets the damage and tells. */
	if (ret == KYMO_E_FORMAT)
		ret = KYMO_OK;
	if (ret == KYMO_OK)
		ret = s->number = s->files->ops->stream(s->files, in->name, err);
	if (ret < 0) {
		stream_free(s);
		return ret;
	}
	*out = s;
	return KYMO_OK;
}

static int stream_of(struct ctf_sink *sink, const struct ky_stream *in, struct out_stream **out,
		     struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!sink->streams[in->index])
		ret = stream_open(sink, in, &sink->streams[in->index], err);
	*out = sink->streams[in->index];
	return ret;
}

/* ---- the sink ----------------------------------------------------------------------------- */

static int put_event(struct out_stream *s, const struct ky_event *event, struct kymo_error *err)
{
	int ret = ky_repacker_event(s->repacker, event, err);

	if (ret != 1)
		return ret;
	ret = write_packet(s, true, err);
	if (ret == KYMO_OK)
		ret = ky_repacker_continue(s->repacker, event->cycles, s->number_of_next, err);
	return ret < 0 ? ret : ky_repacker_event(s->repacker, event, err);
}

/* Go on to the packet that @event lies in. */
static int enter_packet(struct out_stream *s, const struct ky_packet *in,
			const struct ky_loss *loss, struct kymo_error *err)
{
	size_t index;
	int ret;

	if (s->open != NONE && s->packets.data[s->open].offset_bytes == in->file_offset_bytes)
		return KYMO_OK;
	index = find_packet(s, in->file_offset_bytes);
	if (index == NONE)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the packet at byte %llu was not there "
				    "before: is the trace being written?",
				    (unsigned long long)in->file_offset_bytes);
	ret = loss ? before_loss(s, index, loss, err) : end_packet(s, err);
	if (ret == KYMO_OK && s->due != NONE && s->due < index)
		ret = write_due(s, err);
	if (ret == KYMO_OK)
		ret = write_kept(s, index, err);
	s->next = index + 1;
	return ret < 0 ? ret : begin_packet(s, index, in, err);
}

/* A loss with no event behind it, yet: events of the same packet may follow. */
static int take_loss(struct out_stream *s, const struct ky_loss *loss, struct kymo_error *err)
{
	size_t index = find_loss(s, loss);

	if (index == NONE || s->keeps)
		return KYMO_OK;
	s->next = index;
	return before_loss(s, index, loss, err);
}

static int ctf_batch(struct ky_sink *base, const struct ky_batch *batch, struct kymo_error *err)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;
	struct out_stream *s;
	int ret = stream_of(sink, batch->stream, &s, err);

	if (ret == KYMO_OK && batch->n_events)
		ret = enter_packet(s, batch->events->packet, batch->loss, err);
	else if (ret == KYMO_OK && batch->loss)
		ret = take_loss(s, batch->loss, err);
	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++)
		ret = put_event(s, &batch->events[i], err);
	if (ret == KYMO_E_FORMAT || ret == KYMO_E_UNSUPPORTED)
		ky_stream_place(batch->stream, err);
	return ret;
}

void ky_ctf_sink_keep(struct ky_sink *base, const bool *whole)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;

	memcpy(sink->whole, whole, sink->set->streams.len * sizeof(*whole));
}

/* Packets behind the last event, and streams without any. */
static int ctf_end(struct ky_sink *base, struct kymo_error *err)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;
	struct out_stream *s;
	int ret = KYMO_OK;

	for (size_t i = 0; i < sink->set->streams.len && ret == KYMO_OK; i++) {
		if (!sink->whole[i])
			continue;
		ret = stream_of(sink, sink->set->streams.data[i], &s, err);
		if (ret == KYMO_OK)
			ret = write_kept(s, s->packets.len, err);
	}
	return ret;
}

static int finish_stream(struct out_stream *s, struct kymo_error *err)
{
	int ret = end_packet(s, err);

	if (ret == KYMO_OK)
		ret = write_due(s, err);
	if (ret == KYMO_E_FORMAT || ret == KYMO_E_UNSUPPORTED)
		ky_error_path(err, s->in->file.path);
	return ret;
}

static int ctf_finish(struct ky_sink *base, struct kymo_error *err)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;
	int ret = KYMO_OK, here;

	for (size_t i = 0; i < sink->set->streams.len; i++) {
		if (sink->streams[i] && ret == KYMO_OK)
			ret = finish_stream(sink->streams[i], err);
	}
	for (size_t i = 0; i < sink->set->traces.len; i++) {
		if (!sink->files[i])
			continue;
		here = sink->files[i]->ops->close(sink->files[i], ret < 0 ? NULL : err);
		sink->files[i] = NULL;
		ret = ret < 0 ? ret : here;
	}
	return ret;
}

static void ctf_free(struct ky_sink *base)
{
	struct ctf_sink *sink = (struct ctf_sink *)base;

	for (size_t i = 0; sink->streams && i < sink->set->streams.len; i++)
		stream_free(sink->streams[i]);
	for (size_t i = 0; sink->files && i < sink->set->traces.len; i++) {
		if (sink->files[i])
			sink->files[i]->ops->close(sink->files[i], NULL);
	}
	for (size_t i = 0; sink->as && i < sink->set->traces.len; i++)
		ky_trace_class_free(sink->as[i]);
	free(sink->as);
	free(sink->whole);
	free(sink->streams);
	free(sink->files);
	free(sink);
}

static const struct ky_sink_ops ctf_ops = {
	.batch = ctf_batch,
	.end = ctf_end,
	.finish = ctf_finish,
	.free = ctf_free,
};

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

static int make_directories(char *path, size_t from, struct kymo_error *err)
{
	for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
		int failed;

		*slash = '\0';
		failed = mkdir(path, 0777) < 0 && errno != EEXIST;
		if (failed)
			ky_error_errno(err, errno, "cannot create the directory %s", path);
		*slash = '/';
		if (failed)
			return KYMO_E_IO;
	}
	return KYMO_OK;
}

static int open_trace(struct ctf_sink *sink, size_t number, const char *path, const char *below,
		      uint32_t major, struct kymo_error *err)
{
	size_t len_bytes;
	char *text, *dir;
	int ret;

	while (*below == '/')
		below++;
	if (asprintf(&dir, "%s%s%s", path, *below ? "/" : "", below) < 0)
		return ky_error_nomem(err);
	ret = *below ? make_directories(dir, strlen(path) + 1, err) : KYMO_OK;
	if (ret == KYMO_OK)
		ret = ky_dir_sink_open(dir, &sink->files[number], err);
	free(dir);
	if (ret < 0)
		return ret;
	ret = ky_ctf_metadata(sink->set->traces.data[number], major, &text, &len_bytes,
			      &sink->as[number], err);
	if (ret < 0)
		return ret;
	ret = sink->files[number]->ops->metadata(sink->files[number], text, len_bytes, err);
	free(text);
	return ret;
}

static int open_traces(struct ctf_sink *sink, const char *path, uint32_t major,
		       struct kymo_error *err)
{
	size_t n = sink->set->traces.len, common;
	char **real = calloc(n + 1, sizeof(*real));
	int ret = real ? KYMO_OK : ky_error_nomem(err);

	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		real[i] = realpath(sink->set->traces.data[i]->path, NULL);
		if (!real[i])
			ret = ky_error_errno(err, errno, "cannot open the trace %s",
					     sink->set->traces.data[i]->path);
	}
	common = ret == KYMO_OK && n ? common_length(real, n) : 0;
	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = open_trace(sink, i, path, real[i] + common, major, err);
	for (size_t i = 0; real && i < n; i++)
		free(real[i]);
	free(real);
	return ret;
}

int ky_ctf_sink_open(const struct ky_trace_set *set, const char *path, uint32_t major,
		     struct ky_sink **out, struct kymo_error *err)
{
	struct ctf_sink *sink = calloc(1, sizeof(*sink));
	int ret;

	if (!sink)
		return ky_error_nomem(err);
	sink->sink.ops = &ctf_ops;
	sink->set = set;
	sink->files = calloc(set->traces.len + 1, sizeof(*sink->files));
	sink->streams = calloc(set->streams.len + 1, sizeof(*sink->streams));
	sink->as = calloc(set->traces.len + 1, sizeof(*sink->as));
	sink->whole = calloc(set->streams.len + 1, sizeof(*sink->whole));
	ret = sink->files && sink->streams && sink->as && sink->whole
		      ? open_traces(sink, path, major, err)
		      : ky_error_nomem(err);
	if (ret < 0) {
		ctf_free(&sink->sink);
		return ret;
	}
	*out = &sink->sink;
	return KYMO_OK;
}
