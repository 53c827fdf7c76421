/* SPDX-License-Identifier: MIT */
#include "flow/sinks/ctf-stream.h"

#include <stdlib.h>

#include "base/error.h"
#include "ctf/encode/repack.h"
#include "store/read/walk.h"

#define NONE SIZE_MAX

struct ky_ctf_stream {
	const struct ky_stream *in;
	struct ky_store_trace *files;
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

/* ---- packets ------------------------------------------------------------------------------ */

static int ctf_stream_write_packet(struct ky_ctf_stream *s, bool cut, struct kymo_error *err)
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
	return ky_store_packet(s->files, s->number, &out, err);
}

static int ctf_stream_end_packet(struct ky_ctf_stream *s, struct kymo_error *err)
{
	if (s->open == NONE)
		return KYMO_OK;
	s->last = s->open;
	s->open = NONE;
	return ctf_stream_write_packet(s, false, err);
}

/* Begin packet @index, which is @in; the one before has ended. */
static int ctf_stream_begin_packet(struct ky_ctf_stream *s, size_t index,
				   const struct ky_packet *in, struct kymo_error *err)
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
static int empty_packet(struct ky_ctf_stream *s, size_t index, struct kymo_error *err)
{
	int ret = ctf_stream_end_packet(s, err);

	if (ret < 0)
		return ret;
	ky_walk_go(&s->walk, s->packets.data[index].offset_bytes);
	ret = ky_walk_next(&s->walk, err);
	if (ret > 0)
		ret = ctf_stream_begin_packet(s, index, s->walk.packet, err);
	return ret < 0 ? ret : ctf_stream_end_packet(s, err);
}

/* Packets that had no event, before packet @upto. */
static int write_kept(struct ky_ctf_stream *s, size_t upto, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (; s->keeps && s->next < upto && ret == KYMO_OK; s->next++)
		ret = empty_packet(s, s->next, err);
	return ret;
}

static int write_due(struct ky_ctf_stream *s, struct kymo_error *err)
{
	return s->due == NONE ? KYMO_OK : empty_packet(s, s->due, err);
}

/* The packet at @offset_bytes; packets come in order. NONE: not in the list. */
static size_t find_packet(const struct ky_ctf_stream *s, uint64_t offset_bytes)
{
	for (size_t i = s->next; i < s->packets.len; i++) {
		if (s->packets.data[i].offset_bytes == offset_bytes)
			return i;
	}
	return NONE;
}

/* The packet at whose end a loss ends. */
static size_t find_loss(const struct ky_ctf_stream *s, const struct ky_loss *loss)
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
static int before_loss(struct ky_ctf_stream *s, size_t index, const struct ky_loss *loss,
		       struct kymo_error *err)
{
	int ret = KYMO_OK;

	/* It is found where no packet is left out. */
	if (s->keeps)
		return ctf_stream_end_packet(s, err);
	if (s->due != NONE && s->due < index)
		ret = write_due(s, err);
	if (ret == KYMO_OK && index && s->last != index - 1 && s->open != index - 1 &&
	    s->packets.len > index)
		ret = empty_packet(s, index - 1, err);
	if (ret == KYMO_OK)
		ret = ctf_stream_end_packet(s, err);
	s->number_of_next += loss->packets;
	s->due = index;
	return ret;
}

/* ---- the stream ----------------------------------------------------------------------------- */

void ky_ctf_stream_free(struct ky_ctf_stream *s)
{
	if (!s)
		return;
	ky_repacker_free(s->repacker);
	ky_walk_fini(&s->walk);
	ky_vec_fini(&s->packets);
	free(s);
}

int ky_ctf_stream_open(const struct ky_stream *in, const struct ky_trace_class *as, bool keeps,
		       struct ky_store_trace *files, struct ky_ctf_stream **out,
		       struct kymo_error *err)
{
	struct ky_ctf_stream *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return ky_error_nomem(err);
	s->in = in;
	s->open = s->due = s->last = NONE;
	s->keeps = keeps;
	s->files = files;
	s->repacker = ky_repacker_new(in->trace->cls, as);
	ret = s->repacker ? ky_walk_init(&s->walk, in, err) : ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = ky_stream_packets(in, &s->packets, NULL);
	/* The reader of the events meets the damage and reports it. */
	if (ret == KYMO_E_FORMAT)
		ret = KYMO_OK;
	if (ret == KYMO_OK)
		ret = s->number = ky_store_stream(s->files, in->name, err);
	if (ret < 0) {
		ky_ctf_stream_free(s);
		return ret;
	}
	*out = s;
	return KYMO_OK;
}

static int ctf_stream_put_event(struct ky_ctf_stream *s, const struct ky_event *event,
				struct kymo_error *err)
{
	int ret = ky_repacker_event(s->repacker, event, err);

	if (ret != 1)
		return ret;
	ret = ctf_stream_write_packet(s, true, err);
	if (ret == KYMO_OK)
		ret = ky_repacker_continue(s->repacker, event->cycles, s->number_of_next, err);
	return ret < 0 ? ret : ky_repacker_event(s->repacker, event, err);
}

/* Go on to the packet that @event lies in. */
static int enter_packet(struct ky_ctf_stream *s, const struct ky_packet *in,
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
	ret = loss ? before_loss(s, index, loss, err) : ctf_stream_end_packet(s, err);
	if (ret == KYMO_OK && s->due != NONE && s->due < index)
		ret = write_due(s, err);
	if (ret == KYMO_OK)
		ret = write_kept(s, index, err);
	s->next = index + 1;
	return ret < 0 ? ret : ctf_stream_begin_packet(s, index, in, err);
}

/* A loss with no event behind it, yet: events of the same packet may follow. */
static int ctf_stream_take_loss(struct ky_ctf_stream *s, const struct ky_loss *loss,
				struct kymo_error *err)
{
	size_t index = find_loss(s, loss);

	if (index == NONE || s->keeps)
		return KYMO_OK;
	s->next = index;
	return before_loss(s, index, loss, err);
}

int ky_ctf_stream_batch(struct ky_ctf_stream *s, const struct ky_batch *batch,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (batch->n_events)
		ret = enter_packet(s, batch->events->packet, batch->loss, err);
	else if (batch->loss)
		ret = ctf_stream_take_loss(s, batch->loss, err);
	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++)
		ret = ctf_stream_put_event(s, &batch->events[i], err);
	if (ret == KYMO_E_FORMAT || ret == KYMO_E_UNSUPPORTED)
		ky_stream_place(s->in, err);
	return ret;
}

int ky_ctf_stream_end(struct ky_ctf_stream *s, struct kymo_error *err)
{
	return write_kept(s, s->packets.len, err);
}

int ky_ctf_stream_finish(struct ky_ctf_stream *s, struct kymo_error *err)
{
	int ret = ctf_stream_end_packet(s, err);

	if (ret == KYMO_OK)
		ret = write_due(s, err);
	if (ret == KYMO_E_FORMAT || ret == KYMO_E_UNSUPPORTED)
		ky_error_path(err, s->in->file.path);
	return ret;
}
