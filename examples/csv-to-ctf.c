/* SPDX-License-Identifier: MIT */
/*
 * Convert another format: lines of "SECONDS,NAME,VALUE" on the standard input become a trace.
 *
 *	cc csv-to-ctf.c $(pkg-config --cflags --libs kymo) -o csv-to-ctf
 *	printf '1700000000.25,cpu0,41.5\n1700000001,note,too hot\n' | ./csv-to-ctf my-trace
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/writer.h>

enum { NUMBER, WORD }; /* options of field "value", in the order of their definition */

static struct kymo_event_def *define(struct kymo_stream_def *stream)
{
	struct kymo_event_def *sample = kymo_stream_def_add_event(stream, "sample");
	struct kymo_fields *fields = kymo_event_def_fields(sample);
	struct kymo_variant_def *value;

	kymo_fields_add_string(fields, "name");
	value = kymo_fields_add_variant(fields, "value");
	kymo_fields_add_float(kymo_variant_def_add(value, "number"), NULL, 64);
	kymo_fields_add_string(kymo_variant_def_add(value, "word"), NULL);
	return sample;
}

static int convert_line(struct kymo_output *output, const struct kymo_event_def *sample, char *line,
			struct kymo_error *err)
{
	char *name = strchr(line, ','), *value = name ? strchr(name + 1, ',') : NULL, *end;
	double number;

	if (!value)
		return KYMO_OK;
	*name++ = *value++ = '\0';
	value[strcspn(value, "\r\n")] = '\0';
	number = strtod(value, &end);
	kymo_output_begin(output, sample, (uint64_t)(strtold(line, NULL) * 1000000000.0L));
	kymo_output_text(output, name);
	kymo_output_option(output, *end ? WORD : NUMBER);
	if (*end)
		kymo_output_text(output, value);
	else
		kymo_output_f64(output, number);
	return kymo_output_commit(output, err); /* what is wrong with the line, if anything */
}

int main(int argc, char **argv)
{
	struct kymo_writer_options options = kymo_writer_options_init();
	struct kymo_event_def *sample;
	struct kymo_stream_def *stream;
	struct kymo_output *output;
	struct kymo_writer *writer;
	struct kymo_error err;
	char line[1024];
	int ret;

	if (argc != 2)
		return fprintf(stderr, "usage: csv-to-ctf TRACE <FILE\n"), 2;
	options.atomic = true; /* a whole trace or none */
	if (kymo_writer_new(&options, &writer, &err) < 0)
		return 1;
	stream = kymo_writer_add_stream(writer, kymo_writer_add_clock(writer, NULL));
	sample = define(stream);
	if ((ret = kymo_writer_open(writer, argv[1], &err)) == KYMO_OK)
		ret = kymo_output_open(writer, stream, "samples", 0, &output, &err);
	while (ret == KYMO_OK && fgets(line, sizeof(line), stdin))
		ret = convert_line(output, sample, line, &err);
	if (ret < 0)
		kymo_writer_abort(writer);
	else
		ret = kymo_writer_close(writer, &err);
	if (ret < 0)
		fprintf(stderr, "%s%s%s\n", err.path, *err.path ? ": " : "", err.message);
	return ret < 0;
}
