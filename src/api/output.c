/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: outputs: their packets, and the events in them. */
#include "api/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/encode/encode.h"

/* ---- opening ------------------------------------------------------------------------------ */

void ky_output_free(struct kymo_output *output)
{
	if (!output)
		return;
	ky_packet_writer_fini(&output->packet);
	ky_vec_fini(&output->values);
	free(output->slots);
	free(output->texts);
	free(output);
}

static struct kymo_output *output_new(struct kymo_writer *writer, struct kymo_stream_def *stream,
				      uint32_t cpu)
{
	struct kymo_output *output = calloc(1, sizeof(*output));

	if (!output)
		return NULL;
	output->writer = writer;
	output->stream = stream;
	output->texts = malloc(writer->options.packet_bytes);
	output->slots = calloc((size_t)writer->trace->n_slots + 1, sizeof(*output->slots));
	if (output->texts && output->slots &&
	    ky_packet_writer_init(&output->packet, writer->options.packet_bytes,
				  writer->trace->uuid, (uint32_t)stream->cls->id, 0, cpu,
				  stream->compact_header) == KYMO_OK)
		return output;
	ky_output_free(output);
	return NULL;
}

static int add_output(struct kymo_writer *writer, struct kymo_output *output, const char *name,
		      struct kymo_error *err)
{
	int ret = KYMO_OK;

	pthread_mutex_lock(&writer->lock);
	output->packet.stream_id = writer->outputs.len;
	if (ky_vec_reserve(&writer->outputs, 1) < 0)
		ret = ky_error_nomem(err);
	else
		ret = output->number = ky_store_stream(writer->packets, name, err);
	if (ret >= 0)
		writer->outputs.data[writer->outputs.len++] = output;
	pthread_mutex_unlock(&writer->lock);
	return ret < 0 ? ret : KYMO_OK;
}

int kymo_output_open(struct kymo_writer *writer, struct kymo_stream_def *stream, const char *name,
		     uint32_t cpu, struct kymo_output **out, struct kymo_error *err)
{
	struct kymo_output *output;
	int ret;

	if (out)
		*out = NULL;
	if (!writer || !stream || stream->writer != writer || !name || !out)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_output_open() wants a writer, a stream of its own and "
				    "a name");
	if (!writer->packets)
		return ky_error_set(err, KYMO_E_STATE, "the writer is not open");
	if (writer->code != KYMO_OK) {
		if (err)
			*err = writer->first;
		return writer->code;
	}
	output = output_new(writer, stream, cpu);
	if (!output)
		return ky_error_nomem(err);
	ret = add_output(writer, output, name, err);
	if (ret < 0)
		ky_output_free(output);
	else
		*out = output;
	return ret;
}

/* ---- packets ------------------------------------------------------------------------------ */

static int api_output_send_packet(struct kymo_output *output, uint64_t end_cycles,
				  struct kymo_error *err)
{
	struct ky_packet_writer *pw = &output->packet;
	struct kymo_writer *writer = output->writer;
	struct ky_packet_out out = {
		.data = pw->data,
		.size_bytes = ky_packet_writer_close(pw, end_cycles, output->told_lost, 8),
		.content_bits = (uint64_t)pw->used_bytes * 8 - pw->pad_bits,
		.begin_cycles = pw->begin_cycles,
		.end_cycles = end_cycles,
		.discarded = output->told_lost,
		.sequence = pw->sequence,
		.stream_class_id = pw->stream_class_id,
		.stream_id = pw->stream_id,
	};
	int ret;

	pthread_mutex_lock(&writer->lock);
	ret = ky_store_packet(writer->packets, output->number, &out, err);
	pthread_mutex_unlock(&writer->lock);
	if (ret < 0) {
		/* It never was; the next one that can be written tells what is missing. */
		pw->sequence--;
		output->lost += pw->events;
	}
	return ret;
}

int kymo_output_close_packet(struct kymo_output *output, struct kymo_error *err)
{
	if (!output)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_output_close_packet() wants an output");
	return output->packet.open ? api_output_send_packet(output, output->last_cycles, err)
				   : KYMO_OK;
}

/*
 * Losses go into an empty packet of their own, which says exactly when they happened. Readers
 * compare a packet with the one before: a stream that begins with losses gets an empty one first.
 */
static int api_output_tell_losses(struct kymo_output *output, uint64_t cycles,
				  struct kymo_error *err)
{
	uint64_t lost = output->lost;
	int ret = KYMO_OK;

	if (!lost)
		return KYMO_OK;
	if (output->packet.sequence == UINT64_MAX) {
		output->last_cycles = cycles;
		ky_packet_writer_begin(&output->packet, cycles);
		ret = api_output_send_packet(output, cycles, err);
	}
	if (ret < 0)
		return ret;
	output->told_lost += lost;
	ky_packet_writer_begin(&output->packet, output->last_cycles);
	ret = api_output_send_packet(output, cycles, err);
	if (ret < 0)
		output->told_lost -= lost;
	else
		output->lost = 0;
	return ret;
}

int kymo_output_lost(struct kymo_output *output, uint64_t n_events, struct kymo_error *err)
{
	int ret = kymo_output_close_packet(output, err);

	if (output)
		output->lost += n_events;
	return ret;
}

/* ---- events ------------------------------------------------------------------------------ */

void kymo_output_begin(struct kymo_output *output, const struct kymo_event_def *event,
		       uint64_t cycles)
{
	if (!output)
		return;
	output->event = event;
	output->cycles = cycles;
	output->problem = NULL;
	if (event && event->stream != output->stream)
		ky_output_problem(output, KYMO_E_INVALID, "belongs to another stream", NULL);
	else if (event && cycles < output->last_cycles)
		ky_output_problem(output, KYMO_E_INVALID, "time goes back", NULL);
	ky_output_restart(output);
}

static int check_event(const struct kymo_output *output, struct kymo_error *err)
{
	const struct kymo_event_def *event = output->event;

	if (!event)
		return ky_error_set(err, KYMO_E_STATE, "no event was begun");
	if (output->problem && output->problem_name)
		return ky_error_set(err, output->problem_code, "event '%s', field '%s': %s",
				    event->cls->name, output->problem_name, output->problem);
	if (output->problem)
		return ky_error_set(err, output->problem_code, "event '%s': %s", event->cls->name,
				    output->problem);
	if (output->at < event->steps.len)
		return ky_error_set(err, KYMO_E_INVALID, "event '%s', field '%s' has no value",
				    event->cls->name, event->steps.data[output->at].name);
	return KYMO_OK;
}

static int too_large(const struct kymo_output *output, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_LIMIT, "event '%s': it is larger than a packet",
			    output->event->cls->name);
}

/* What an event that was not written has done to the packet is undone. */
static void api_output_take_back(struct ky_packet_writer *pw, const struct ky_packet_writer *before)
{
	pw->used_bytes = before->used_bytes;
	pw->pad_bits = before->pad_bits;
	pw->last_cycles = before->last_cycles;
	pw->events = before->events;
}

/* The values behind the header, which was just written. As ky_encode_scope(). */
static int encode_values(struct kymo_output *output, struct kymo_error *err)
{
	struct ky_packet_writer *pw = &output->packet;
	struct ky_encoder e = {
		.data = pw->data,
		.at_bits = (uint64_t)pw->used_bytes * 8,
		.size_bits = (uint64_t)pw->size_bytes * 8,
		.slots = output->slots,
		.big_endian = output->writer->trace->big_endian,
	};
	int ret = ky_encode_scope(&e, output->values.data, output->values.len, err);
	uint64_t end_bits = e.at_bits;

	if (ret != KYMO_OK)
		return ret;
	/* The rest of the last byte is no content, but zero. */
	(void)ky_encode_align(&e, 8);
	pw->used_bytes = (uint32_t)(e.at_bits / 8);
	pw->pad_bits = (uint8_t)(e.at_bits - end_bits);
	return KYMO_OK;
}

/* Into the present packet. 0, 1: there is no room; KYMO_E_INVALID: a mistake with values. */
static int api_output_put_event(struct kymo_output *output, struct kymo_error *err)
{
	struct ky_packet_writer *pw = &output->packet, before = *pw;
	struct kymo_error why;
	int ret;

	if (!ky_packet_writer_event(pw, (uint32_t)output->event->cls->id, output->cycles, 0))
		return 1;
	ret = encode_values(output, &why);
	if (ret == KYMO_OK)
		return ret;
	api_output_take_back(pw, &before);
	if (ret < 0)
		ky_error_set(err, ret, "event '%s': %s", output->event->cls->name, why.message);
	return ret;
}

static int put_in_new_packet(struct kymo_output *output, struct kymo_error *err)
{
	struct ky_packet_writer *pw = &output->packet;
	int ret = kymo_output_close_packet(output, err);

	if (ret == KYMO_OK)
		ret = api_output_tell_losses(output, output->cycles, err);
	if (ret < 0)
		return ret;
	ky_packet_writer_begin(pw, output->cycles);
	ret = api_output_put_event(output, err);
	if (ret == KYMO_OK)
		return ret;
	/* The packet never was: its sequence number is the next one's. */
	pw->open = false;
	pw->sequence--;
	return ret < 0 ? ret : too_large(output, err);
}

int kymo_output_commit(struct kymo_output *output, struct kymo_error *err)
{
	int ret;

	if (!output)
		return ky_error_set(err, KYMO_E_INVALID, "kymo_output_commit() wants an output");
	ret = check_event(output, err);
	if (ret == KYMO_OK)
		ret = output->packet.open ? api_output_put_event(output, err) : 1;
	if (ret > 0)
		ret = put_in_new_packet(output, err);
	if (ret == KYMO_OK)
		output->last_cycles = output->cycles;
	output->event = NULL;
	return ret;
}

int ky_output_close(struct kymo_output *output, struct kymo_error *err)
{
	int ret = kymo_output_close_packet(output, err);

	if (ret == KYMO_OK)
		ret = api_output_tell_losses(output, output->last_cycles, err);
	ky_output_free(output);
	return ret;
}
