/* SPDX-License-Identifier: MIT */
/*
 * What writing through the public API costs: events with two numbers, a text and a sequence.
 *
 *	api-write DIRECTORY N_EVENTS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/writer.h>

static struct kymo_event_def *define(struct kymo_stream_def *stream)
{
	struct kymo_event_def *event = kymo_stream_def_add_event(stream, "request");
	struct kymo_fields *fields = kymo_event_def_fields(event);

	kymo_fields_add_uint(fields, "id", 32);
	kymo_fields_add_int(fields, "time", 64);
	kymo_fields_add_string(fields, "path");
	kymo_fields_add_uint(kymo_fields_add_sequence(fields, "sizes"), NULL, 16);
	return event;
}

static int append(struct kymo_output *output, const struct kymo_event_def *event, uint64_t n,
		  struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (uint64_t i = 0; i < n && ret == KYMO_OK; i++) {
		kymo_output_begin(output, event, i * 1000);
		kymo_output_u64(output, (uint32_t)i);
		kymo_output_i64(output, -(int64_t)i);
		kymo_output_text(output, "/index.html");
		kymo_output_length(output, 2);
		kymo_output_u64(output, 7);
		kymo_output_u64(output, 8);
		ret = kymo_output_commit(output, err);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct kymo_clock_options clock_options = kymo_clock_options_init();
	struct kymo_stream_def *stream;
	struct kymo_event_def *event;
	struct kymo_output *output;
	struct kymo_writer *writer;
	struct kymo_error err;
	int ret;

	if (argc != 3)
		return 2;
	ret = kymo_writer_new(NULL, &writer, &err);
	if (ret < 0)
		return 1;
	stream = kymo_writer_add_stream(writer, kymo_writer_add_clock(writer, &clock_options));
	event = define(stream);
	ret = kymo_writer_open(writer, argv[1], &err);
	if (ret == KYMO_OK)
		ret = kymo_output_open(writer, stream, "s", 0, &output, &err);
	if (ret == KYMO_OK)
		ret = append(output, event, strtoull(argv[2], NULL, 10), &err);
	if (kymo_writer_close(writer, ret < 0 ? NULL : &err) < 0 || ret < 0) {
		fprintf(stderr, "%s: %s\n", err.path, err.message);
		return 1;
	}
	return 0;
}
