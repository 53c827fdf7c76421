/* SPDX-License-Identifier: MIT */
/*
 * Count the events of a trace by type.
 *
 *	cc count-events.c $(pkg-config --cflags --libs kymo) -o count-events
 *	./count-events my-trace
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/reader.h>

static int fail(const struct kymo_error *err)
{
	fprintf(stderr, "%s: %s\n", err->path, err->message);
	return 1;
}

int main(int argc, char **argv)
{
	struct kymo_reader *reader;
	struct kymo_batch batch;
	struct kymo_error err;
	const struct kymo_trace *trace;
	uint64_t *counts, lost = 0;
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: count-events TRACE\n");
		return 2;
	}
	/* A path may hold several traces; they are read as one. NULL: no special options. */
	if (kymo_reader_open((const char *const *)&argv[1], 1, NULL, &reader, &err) < 0)
		return fail(&err);
	if (kymo_reader_n_traces(reader) != 1) {
		fprintf(stderr, "this example counts one trace at a time\n");
		kymo_reader_close(reader);
		return 1;
	}
	/* Event classes are numbered from 0, so that a plain array can hold the counts. */
	trace = kymo_reader_trace(reader, 0);
	counts = calloc(kymo_trace_n_event_classes(trace) + 1, sizeof(*counts));
	if (!counts)
		return 1;

	/* Events come in batches: 1 says that there is one, 0 that the trace has ended. */
	while ((ret = kymo_reader_next(reader, &batch, &err)) > 0) {
		kymo_batch_foreach(&batch, event)
			counts[kymo_event_class_index(event->event_class)]++;
		if (batch.loss)
			lost += batch.loss->events;
	}

	for (size_t i = 0; i < kymo_trace_n_event_classes(trace); i++) {
		if (counts[i])
			printf("%10" PRIu64 "  %s\n", counts[i],
			       kymo_event_class_name(kymo_trace_event_class(trace, i)));
	}
	if (lost)
		printf("%10" PRIu64 "  lost by the tracer\n", lost);
	/* A damaged trace gives all events that can be read first, and then the error. */
	if (ret < 0)
		fail(&err);
	free(counts);
	kymo_reader_close(reader);
	return ret < 0;
}
