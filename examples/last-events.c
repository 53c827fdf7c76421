/* SPDX-License-Identifier: MIT */
/*
 * The events that match a filter in the last milliseconds of a trace, and where they lie.
 *
 *	cc last-events.c $(pkg-config --cflags --libs kymo) -o last-events
 *	./last-events my-trace 500 'ret < 0'
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/reader.h>

/* What is before that is never read. */
static int print_last(struct kymo_reader *reader, int64_t last_ns, struct kymo_error *err)
{
	int64_t begin_ns, end_ns;
	struct kymo_batch batch;
	uint64_t offset = 0;
	int ret = kymo_reader_range(reader, &begin_ns, &end_ns, err);

	if (ret == KYMO_OK)
		ret = kymo_reader_seek_end(reader, last_ns, err);
	while (ret >= 0 && (ret = kymo_reader_next(reader, &batch, err)) > 0) {
		/* Damage was passed over (options.recover), or the tracer lost events. */
		if (batch.loss && batch.loss->damage)
			printf("damaged: %s\n", batch.loss->damage->message);
		else if (batch.loss)
			printf("%" PRIu64 " events lost\n", batch.loss->events);
		kymo_batch_foreach(&batch, event) {
			const char *path = kymo_batch_place(&batch, event, &offset);

			printf("%12.6f ms %s, at byte %" PRIu64 " of %s\n",
			       (double)(event->time_ns - end_ns) / 1e6,
			       kymo_event_class_name(event->event_class), offset, path);
		}
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_reader *reader;
	struct kymo_error err;
	int ret;

	if (argc != 4) {
		fprintf(stderr, "usage: last-events TRACE MILLISECONDS FILTER\n");
		return 2;
	}
	options.filter = argv[3];
	options.recover = true;
	ret = kymo_reader_open((const char *const *)&argv[1], 1, &options, &reader, &err);
	if (ret == KYMO_OK)
		ret = print_last(reader, strtoll(argv[2], NULL, 10) * 1000000, &err);
	if (ret < 0)
		fprintf(stderr, "%s%s%s\n", err.path, *err.path ? ": " : "", err.message);
	kymo_reader_close(reader);
	return ret < 0;
}
