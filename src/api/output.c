/* SPDX-License-Identifier: MIT */
/*
 * kymo/writer.h: outputs. An event's bytes are collected aside and go into the packet as a
 * whole, so that one with a mistake leaves nothing behind.
 *
 * Not through ctf/encode.h, which writes what was decoded, bit for bit, from lists of values:
 * here everything lies on whole bytes, and values become bytes as they come.
 */
#include <stdlib.h>
#include <string.h>

#include "api/writer.h"
#include "base/error.h"

/* An array whose elements are being given. */
struct level {
	uint32_t begin; /* step of the first element's first value */
	uint32_t left;	/* elements, the present one included */
};

struct kymo_output {
	struct kymo_writer *writer;
	struct kymo_stream_def *stream;
	struct ky_packet_writer packet;
	int number; /* of the stream in the sink */
	uint64_t last_cycles;
	uint64_t told_lost, lost; /* events, cumulative; not told yet */
	/* The event at hand; NULL: none was begun. */
	const struct kymo_event_def *event;
	uint64_t cycles;
	uint32_t at; /* step */
	uint32_t n_levels;
	struct level levels[KY_DEFINE_MAX_DEPTH];
	const char *problem; /* the first mistake with a value, and with which */
	const char *problem_name;
	int problem_code;
	uint32_t len_bytes;
	uint8_t *body; /* packet_bytes of room */
};

/* ---- opening ------------------------------------------------------------------------------ */

static void output_free(struct kymo_output *output)
{
	if (!output)
		return;
	ky_packet_writer_fini(&output->packet);
	free(output->body);
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
	output->body = malloc(writer->options.packet_bytes);
	if (output->body && ky_packet_writer_init(&output->packet, writer->options.packet_bytes,
						  writer->trace->uuid, (uint32_t)stream->cls->id, 0,
						  cpu, stream->compact_header) == KYMO_OK)
		return output;
	output_free(output);
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
		ret = output->number = writer->sink->ops->stream(writer->sink, name, err);
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
	if (!writer->sink)
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
		output_free(output);
	else
		*out = output;
	return ret;
}

/* ---- values ------------------------------------------------------------------------------ */

static void problem(struct kymo_output *output, int code, const char *text, const char *name)
{
	if (output->problem)
		return;
	output->problem = text;
	output->problem_name = name;
	output->problem_code = code;
}

/* Go to the next step that wants a value. */
static void settle(struct kymo_output *output)
{
	const struct kymo_event_def *event = output->event;

	while (output->at < event->steps.len) {
		const struct ky_put_step *step = &event->steps.data[output->at];

		if (step->put == KY_PUT_ARRAY && !step->n) {
			output->at = step->end + 1;
		} else if (step->put == KY_PUT_ARRAY) {
			output->levels[output->n_levels++] = (struct level){++output->at, step->n};
		} else if (step->put != KY_PUT_END) {
			return;
		} else if (--output->levels[output->n_levels - 1].left) {
			output->at = output->levels[output->n_levels - 1].begin;
		} else {
			output->n_levels--;
			output->at++;
		}
	}
}

void kymo_output_begin(struct kymo_output *output, const struct kymo_event_def *event,
		       uint64_t cycles)
{
	if (!output)
		return;
	output->event = event;
	output->cycles = cycles;
	output->at = 0;
	output->n_levels = 0;
	output->len_bytes = 0;
	output->problem = NULL;
	if (!event)
		return;
	if (event->stream != output->stream)
		problem(output, KYMO_E_INVALID, "belongs to another stream", NULL);
	else if (cycles < output->last_cycles)
		problem(output, KYMO_E_INVALID, "time goes back", NULL);
	settle(output);
}

/* The step whose value comes now, or NULL. */
static const struct ky_put_step *present(struct kymo_output *output)
{
	if (!output || !output->event || output->problem)
		return NULL;
	if (output->at < output->event->steps.len)
		return &output->event->steps.data[output->at];
	problem(output, KYMO_E_INVALID, "there are more values than fields", NULL);
	return NULL;
}

/* Append to the event's bytes. @pad: zeros behind. */
static void append(struct kymo_output *output, const void *data, size_t len, size_t pad)
{
	size_t room = output->writer->options.packet_bytes - output->len_bytes;

	if (len > room || pad > room - len) {
		problem(output, KYMO_E_LIMIT, "it is larger than a packet", NULL);
		return;
	}
	if (len)
		memcpy(output->body + output->len_bytes, data, len);
	memset(output->body + output->len_bytes + len, 0, pad);
	output->len_bytes += (uint32_t)(len + pad);
}

static void next_step(struct kymo_output *output)
{
	output->at++;
	settle(output);
}

/* @negative: @value is that of a negative number, as two's complement. */
static bool fits(const struct ky_put_step *step, uint64_t value, bool negative)
{
	unsigned int bits = step->size_bytes * 8u;

	if (step->is_signed)
		return negative ? (int64_t)value >> (bits - 1) == -1 : value >> (bits - 1) == 0;
	return !negative && (bits == 64 || value >> bits == 0);
}

static void put_integer(struct kymo_output *output, uint64_t value, bool negative)
{
	const struct ky_put_step *step = present(output);
	uint8_t bytes[8];
	uint32_t word = (uint32_t)value;
	uint16_t half = (uint16_t)value;

	if (!step)
		return;
	if (step->put != KY_PUT_INT) {
		problem(output, KYMO_E_INVALID, "it is no integer", step->name);
		return;
	}
	if (!fits(step, value, negative)) {
		problem(output, KYMO_E_INVALID, "the value does not fit", step->name);
		return;
	}
	/* In the machine's own byte order. */
	switch (step->size_bytes) {
	case 1:
		bytes[0] = (uint8_t)value;
		break;
	case 2:
		memcpy(bytes, &half, sizeof(half));
		break;
	case 4:
		memcpy(bytes, &word, sizeof(word));
		break;
	default:
		memcpy(bytes, &value, sizeof(value));
	}
	append(output, bytes, step->size_bytes, 0);
	next_step(output);
}

void kymo_output_u64(struct kymo_output *output, uint64_t value)
{
	put_integer(output, value, false);
}

void kymo_output_i64(struct kymo_output *output, int64_t value)
{
	put_integer(output, (uint64_t)value, value < 0);
}

void kymo_output_f64(struct kymo_output *output, double value)
{
	const struct ky_put_step *step = present(output);
	float narrow = (float)value;

	if (!step)
		return;
	if (step->put != KY_PUT_FLOAT) {
		problem(output, KYMO_E_INVALID, "it is no floating point number", step->name);
		return;
	}
	if (step->size_bytes == sizeof(narrow))
		append(output, &narrow, sizeof(narrow), 0);
	else
		append(output, &value, sizeof(value), 0);
	next_step(output);
}

void kymo_output_text_n(struct kymo_output *output, const char *text, size_t len)
{
	const struct ky_put_step *step = present(output);

	if (!step)
		return;
	if (step->put != KY_PUT_STRING && step->put != KY_PUT_CHARS) {
		problem(output, KYMO_E_INVALID, "it is no text", step->name);
		return;
	}
	if (!text && len) {
		problem(output, KYMO_E_INVALID, "the text is NULL", step->name);
		return;
	}
	len = len ? strnlen(text, len) : 0;
	if (step->put == KY_PUT_STRING)
		append(output, text, len, 1);
	else if (len < step->n)
		append(output, text, len, step->n - len);
	else
		append(output, text, step->n, 0);
	next_step(output);
}

void kymo_output_text(struct kymo_output *output, const char *text)
{
	kymo_output_text_n(output, text, text ? strlen(text) : 1);
}

void kymo_output_length(struct kymo_output *output, uint32_t length)
{
	const struct ky_put_step *step = present(output);

	if (!step)
		return;
	if (step->put != KY_PUT_SEQUENCE) {
		problem(output, KYMO_E_INVALID, "it is no sequence", step->name);
		return;
	}
	append(output, &length, sizeof(length), 0);
	if (length) {
		output->levels[output->n_levels++] = (struct level){++output->at, length};
	} else {
		output->at = step->end + 1;
	}
	settle(output);
}

/* ---- packets ------------------------------------------------------------------------------ */

static int send_packet(struct kymo_output *output, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_packet_writer *pw = &output->packet;
	struct kymo_writer *writer = output->writer;
	struct ky_packet_out out = {
		.data = pw->data,
		.size_bytes = ky_packet_writer_close(pw, end_cycles, output->told_lost, 8),
		.content_bits = (uint64_t)pw->used_bytes * 8,
		.begin_cycles = pw->begin_cycles,
		.end_cycles = end_cycles,
		.discarded = output->told_lost,
		.sequence = pw->sequence,
		.stream_class_id = pw->stream_class_id,
		.stream_id = pw->stream_id,
	};
	int ret;

	pthread_mutex_lock(&writer->lock);
	ret = writer->sink->ops->packet(writer->sink, output->number, &out, err);
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
	return output->packet.open ? send_packet(output, output->last_cycles, err) : KYMO_OK;
}

/*
 * Losses go into an empty packet of their own, which says exactly when they happened. Readers
 * compare a packet with the one before: a stream that begins with losses gets an empty one first.
 */
static int tell_losses(struct kymo_output *output, uint64_t cycles, struct kymo_error *err)
{
	uint64_t lost = output->lost;
	int ret = KYMO_OK;

	if (!lost)
		return KYMO_OK;
	if (output->packet.sequence == UINT64_MAX) {
		output->last_cycles = cycles;
		ky_packet_writer_begin(&output->packet, cycles);
		ret = send_packet(output, cycles, err);
	}
	if (ret < 0)
		return ret;
	output->told_lost += lost;
	ky_packet_writer_begin(&output->packet, output->last_cycles);
	ret = send_packet(output, cycles, err);
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

/* Room for the event in a new packet. NULL: *ret says why. */
static uint8_t *in_new_packet(struct kymo_output *output, int *ret, struct kymo_error *err)
{
	struct ky_packet_writer *pw = &output->packet;
	uint8_t *at;

	*ret = kymo_output_close_packet(output, err);
	if (*ret == KYMO_OK)
		*ret = tell_losses(output, output->cycles, err);
	if (*ret < 0)
		return NULL;
	ky_packet_writer_begin(pw, output->cycles);
	at = ky_packet_writer_event(pw, (uint32_t)output->event->cls->id, output->cycles,
				    output->len_bytes);
	if (at)
		return at;
	/* It never was: its sequence number is the next one's. */
	pw->open = false;
	pw->sequence--;
	*ret = ky_error_set(err, KYMO_E_LIMIT, "event '%s': it is larger than a packet",
			    output->event->cls->name);
	return NULL;
}

int kymo_output_commit(struct kymo_output *output, struct kymo_error *err)
{
	uint8_t *at = NULL;
	int ret;

	if (!output)
		return ky_error_set(err, KYMO_E_INVALID, "kymo_output_commit() wants an output");
	ret = check_event(output, err);
	if (ret == KYMO_OK && output->packet.open)
		at = ky_packet_writer_event(&output->packet, (uint32_t)output->event->cls->id,
					    output->cycles, output->len_bytes);
	if (ret == KYMO_OK && !at)
		at = in_new_packet(output, &ret, err);
	if (at) {
		memcpy(at, output->body, output->len_bytes);
		output->last_cycles = output->cycles;
	}
	output->event = NULL;
	return ret;
}

int ky_output_close(struct kymo_output *output, struct kymo_error *err)
{
	int ret = kymo_output_close_packet(output, err);

	if (ret == KYMO_OK)
		ret = tell_losses(output, output->last_cycles, err);
	output_free(output);
	return ret;
}
