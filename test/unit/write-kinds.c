/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace with every kind of field that kymo/writer.h knows, for the tests that show it
 * to other programs.
 *
 *	write-kinds DIRECTORY 1.8|2 N_CLASSES
 *
 * N_CLASSES further event classes: above 29 the event headers are the large ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/writer.h>

#define N_ROUNDS 500

static struct kymo_event_def *define_kinds(struct kymo_stream_def *stream)
{
	struct kymo_event_def *event = kymo_stream_def_add_event(stream, "all \"kinds\"");
	struct kymo_fields *fields = kymo_event_def_fields(event), *inner;
	struct kymo_enum_def *state;

	kymo_fields_add_uint(kymo_event_def_context(event), "depth", 8);
	kymo_fields_add_uint(fields, "u8", 8);
	kymo_fields_add_int(fields, "i16", 16);
	kymo_fields_add_hex(fields, "x32", 32);
	kymo_fields_add_int(fields, "i64", 64);
	kymo_fields_add_uint(fields, "u64", 64);
	kymo_fields_add_float(fields, "f32", 32);
	kymo_fields_add_float(fields, "f64", 64);
	kymo_fields_add_string(fields, "string");
	kymo_fields_add_chars(fields, "comm", 8);
	state = kymo_fields_add_enum(fields, "state", 8, true);
	kymo_enum_def_add(state, "down", -3, -1);
	kymo_enum_def_add(state, "zero", 0, 0);
	kymo_enum_def_add(state, "very high", 100, 127);
	inner = kymo_fields_add_struct(fields, "point");
	kymo_fields_add_int(inner, "x", 32);
	kymo_fields_add_string(kymo_fields_add_sequence(inner, "names"), NULL);
	kymo_fields_add_uint(
		kymo_fields_add_array(kymo_fields_add_array(fields, "grid", 2), NULL, 3), NULL, 16);
	inner = kymo_fields_add_struct(kymo_fields_add_sequence(fields, "list"), NULL);
	kymo_fields_add_uint(inner, "stream", 8);
	kymo_fields_add_uint(kymo_fields_add_array(inner, "none", 0), NULL, 8);
	kymo_event_def_set_loglevel(event, 6);
	return event;
}

static void put_kinds(struct kymo_output *output, unsigned int i)
{
	kymo_output_u64(output, 7); /* tid */
	kymo_output_u64(output, 3); /* depth */
	kymo_output_u64(output, i % 256);
	kymo_output_i64(output, -(int64_t)i);
	kymo_output_u64(output, 0xdeadbeef);
	kymo_output_i64(output, INT64_MIN);
	kymo_output_u64(output, UINT64_MAX);
	kymo_output_f64(output, 0.5);
	kymo_output_f64(output, -1e300);
	kymo_output_text(output, i == 3 ? "" : i % 2 ? "b" : "a \"quoted\" one");
	kymo_output_text(output, i % 2 ? "too long for it" : "short");
	kymo_output_i64(output, (int)(i % 130) - 3);
	kymo_output_i64(output, -5);
	kymo_output_length(output, i % 3);
	for (unsigned int n = 0; n < i % 3; n++)
		kymo_output_text(output, n ? "two" : "one");
	for (unsigned int n = 0; n < 6; n++)
		kymo_output_u64(output, n * 1000);
	kymo_output_length(output, i % 4);
	for (unsigned int n = 0; n < i % 4; n++)
		kymo_output_u64(output, n);
}

static int put_tick(struct kymo_output *output, const struct kymo_event_def *tick, uint64_t now,
		    struct kymo_error *err)
{
	kymo_output_begin(output, tick, now);
	kymo_output_i64(output, -1); /* tid */
	return kymo_output_commit(output, err);
}

static int append(struct kymo_output *outputs[2], const struct kymo_event_def *kinds,
		  const struct kymo_event_def *tick, struct kymo_error *err)
{
	uint64_t now = UINT64_C(1700000000000000000);
	int ret = KYMO_OK;

	for (unsigned int i = 0; i < N_ROUNDS && ret == KYMO_OK; i++) {
		/* Once so long that the headers' 27 and 32 bits do not suffice. */
		now += i == 100 ? UINT64_C(60000000000) : 1000;
		kymo_output_begin(outputs[0], kinds, now);
		put_kinds(outputs[0], i);
		ret = kymo_output_commit(outputs[0], err);
		if (ret == KYMO_OK)
			ret = put_tick(outputs[1], tick, now + 500, err);
		if (ret == KYMO_OK && i == 50)
			ret = kymo_output_lost(outputs[1], 13, err);
		if (ret == KYMO_OK && i == 200)
			ret = kymo_output_close_packet(outputs[1], err);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct kymo_writer_options options = kymo_writer_options_init();
	struct kymo_clock_options clock_options = kymo_clock_options_init();
	struct kymo_event_def *kinds, *tick = NULL;
	struct kymo_output *outputs[2];
	struct kymo_stream_def *stream;
	struct kymo_writer *writer;
	struct kymo_error err;
	char name[32];
	int ret;

	if (argc != 4)
		return 2;
	options.packet_bytes = 4096;
	options.format = strcmp(argv[2], "2") ? KYMO_FORMAT_CTF_1_8 : KYMO_FORMAT_CTF_2;
	if (kymo_writer_new(&options, &writer, &err) < 0)
		return 1;
	kymo_writer_env_text(writer, "hostname", "box \\ \"one\"");
	kymo_writer_env_number(writer, "answer", -42);
	clock_options.description = "real time";
	stream = kymo_writer_add_stream(writer, kymo_writer_add_clock(writer, &clock_options));
	kymo_fields_add_int(kymo_stream_def_context(stream), "tid", 32);
	kinds = define_kinds(stream);
	for (int i = 0; i <= atoi(argv[3]); i++) {
		snprintf(name, sizeof(name), "tick_%d", i);
		tick = kymo_stream_def_add_event(stream, name);
	}
	ret = kymo_writer_open(writer, argv[1], &err);
	for (unsigned int i = 0; i < 2 && ret == KYMO_OK; i++)
		ret = kymo_output_open(writer, stream, i ? "b" : "a", i, &outputs[i], &err);
	if (ret == KYMO_OK)
		ret = append(outputs, kinds, tick, &err);
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", err.path, err.message);
	return kymo_writer_close(writer, &err) < 0 || ret < 0;
}
