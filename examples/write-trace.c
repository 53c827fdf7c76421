/* SPDX-License-Identifier: MIT */
/*
 * Write a trace: what a program did, with times, for any tool that reads CTF.
 *
 *	./write-trace my-trace && kymo print my-trace
 */
#include <stdio.h>
#include <time.h>

#include <kymo/writer.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	static const char *const paths[] = {"/", "/etc/passwd", "/favicon.ico"};
	/* The default: nanoseconds since 1970. */
	struct kymo_clock_options clock_options = kymo_clock_options_init();
	struct kymo_writer *writer;
	struct kymo_stream_def *stream;
	struct kymo_event_def *request, *idle;
	struct kymo_fields *fields;
	struct kymo_enum_def *status;
	struct kymo_output *output;
	struct kymo_error err;
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: write-trace NEW-DIRECTORY\n");
		return 2;
	}
	if (kymo_writer_new(NULL, &writer, &err) < 0)
		return 1;

	/* What events look like. If something is wrong here, kymo_writer_open() says so. */
	kymo_writer_env_text(writer, "hostname", "example");
	stream = kymo_writer_add_stream(writer, kymo_writer_add_clock(writer, &clock_options));
	request = kymo_stream_def_add_event(stream, "request");
	fields = kymo_event_def_fields(request);
	kymo_fields_add_string(fields, "path");
	status = kymo_fields_add_enum(fields, "status", 16, false);
	kymo_enum_def_add(status, "ok", 200, 299);
	kymo_enum_def_add(status, "not found", 404, 404);
	kymo_fields_add_uint(kymo_fields_add_sequence(fields, "chunks"), NULL, 32);
	idle = kymo_stream_def_add_event(stream, "idle");

	ret = kymo_writer_open(writer, argv[1], &err);
	if (ret == KYMO_OK)
		ret = kymo_output_open(writer, stream, "worker_0", 0, &output, &err);
	for (unsigned int i = 0; i < 3 && ret == KYMO_OK; i++) {
		/* The values of an event, in the order of its fields. */
		kymo_output_begin(output, request, now_ns());
		kymo_output_text(output, paths[i]);
		kymo_output_u64(output, i < 2 ? 200 : 404);
		kymo_output_length(output, i);
		for (unsigned int chunk = 0; chunk < i; chunk++)
			kymo_output_u64(output, 4096 + chunk);
		ret = kymo_output_commit(output, &err);
	}
	if (ret == KYMO_OK) {
		kymo_output_begin(output, idle, now_ns());
		ret = kymo_output_commit(output, &err);
	}
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", err.path, err.message);
	/* Writes out the rest; an error here means that the trace is not whole. */
	return kymo_writer_close(writer, &err) < 0 || ret < 0;
}
