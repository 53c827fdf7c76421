/* SPDX-License-Identifier: MIT */
/*
 * What reading through the public API costs: goes through all events of a trace.
 *
 *	api-read TRACE			looks at each event
 *	api-read -f FIELD TRACE		reads a number of each event that has such a field, too
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/reader.h>

static uint64_t n_events, sum;

/* A handle per event class of the only trace; all zeros where the class has no such field. */
static struct kymo_field *find_fields(const struct kymo_trace *trace, const char *name)
{
	size_t n = kymo_trace_n_event_classes(trace);
	struct kymo_field *fields = calloc(n + 1, sizeof(*fields));

	for (size_t i = 0; fields && i < n; i++)
		kymo_field_find(kymo_trace_event_class(trace, i), name, &fields[i]);
	return fields;
}

static void take(const struct kymo_batch *batch, const struct kymo_field *fields)
{
	int64_t value;

	kymo_batch_foreach(batch, event) {
		n_events++;
		sum += (uint64_t)event->time_ns;
		if (fields &&
		    kymo_event_get_i64(event, &fields[kymo_event_class_index(event->event_class)],
				       &value))
			sum += (uint64_t)value;
	}
}

int main(int argc, char **argv)
{
	const char *name = argc == 4 && !strcmp(argv[1], "-f") ? argv[2] : NULL;
	const char *path = argc > 1 ? argv[argc - 1] : "";
	struct kymo_field *fields = NULL;
	struct kymo_reader *reader;
	struct kymo_batch batch;
	struct kymo_error err;
	int ret;

	ret = kymo_reader_open(&path, 1, NULL, &reader, &err);
	if (ret == KYMO_OK && name)
		fields = find_fields(kymo_reader_trace(reader, 0), name);
	while (ret >= 0 && (ret = kymo_reader_next(reader, &batch, &err)) > 0)
		take(&batch, fields);
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", err.path, err.message);
	printf("%" PRIu64 " events, sum %" PRIu64 "\n", n_events, sum);
	free(fields);
	kymo_reader_close(reader);
	return ret < 0;
}
