/* SPDX-License-Identifier: MIT */
/*
 * Print one field of one type of event, with its time and CPU.
 *
 *	./print-field my-trace sched_switch next_comm
 */
#include <inttypes.h>
#include <stdio.h>

#include <kymo/reader.h>

/* A field has a type; ask for what you want, and see whether the field can give it. */
static void print_value(const struct kymo_event *event, const struct kymo_field *field)
{
	const char *text;
	double real;
	int64_t number;
	size_t len;

	text = kymo_event_get_text(event, field, &len);
	if (text)
		printf("\"%.*s\"\n", (int)len, text); /* there is no NUL at its end */
	else if (kymo_event_get_i64(event, field, &number))
		printf("%" PRId64 "\n", number);
	else if (kymo_event_get_f64(event, field, &real))
		printf("%g\n", real);
	else
		printf("?\n");
}

static int print_all(struct kymo_reader *reader, const char *name, struct kymo_error *err)
{
	const struct kymo_event_class *cls = NULL; /* whose field it is */
	struct kymo_field field = {0};
	struct kymo_batch batch;
	int ret;

	while ((ret = kymo_reader_next(reader, &batch, err)) > 0) {
		kymo_batch_foreach(&batch, event) {
			/* Find the field once, then use it for all events of that class. */
			if (event->event_class != cls) {
				cls = event->event_class;
				if (kymo_field_find(cls, name, &field) < 0)
					fprintf(stderr, "%s has no field %s\n",
						kymo_event_class_name(cls), name);
			}
			printf("%" PRId64 ".%09" PRId64 " CPU %" PRIu32 " ",
			       event->time_ns / 1000000000, event->time_ns % 1000000000,
			       event->cpu);
			print_value(event, &field);
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
		fprintf(stderr, "usage: print-field TRACE EVENT FIELD\n");
		return 2;
	}
	/* Other events are not even decoded. */
	options.events = (const char *const *)&argv[2];
	options.n_events = 1;
	ret = kymo_reader_open((const char *const *)&argv[1], 1, &options, &reader, &err);
	if (ret == KYMO_OK)
		ret = print_all(reader, argv[3], &err);
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", err.path, err.message);
	kymo_reader_close(reader);
	return ret < 0;
}
