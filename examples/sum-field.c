/* SPDX-License-Identifier: MIT */
/*
 * Sum a number of each event by thread: the bytes that read() returned, for example.
 *
 *	cc sum-field.c $(pkg-config --cflags --libs kymo) -o sum-field
 *	./sum-field my-trace syscall_exit_read ret
 *
 * The thread is the context field "tid"; the field may lie in others: "ctx.sizes[0]".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/reader.h>

#define N_SLOTS 32768 /* as many threads as Linux has by default */

struct thread {
	int64_t tid, sum;
	uint64_t n_events;
};

static struct thread threads[N_SLOTS];

static struct thread *thread_of(int64_t tid)
{
	for (size_t i = (uint64_t)tid % N_SLOTS;; i = (i + 1) % N_SLOTS) {
		if (threads[i].n_events && threads[i].tid != tid)
			continue;
		threads[i].tid = tid;
		return &threads[i];
	}
}

int main(int argc, char **argv)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_field tid = {0}, field = {0};
	struct kymo_reader *reader;
	struct kymo_batch batch;
	struct kymo_error err;
	int64_t thread, value;
	int ret;

	if (argc != 4) {
		fprintf(stderr, "usage: sum-field TRACE EVENT FIELD\n");
		return 2;
	}
	options.events = (const char *const *)&argv[2];
	options.n_events = 1;
	options.jobs = 0; /* decode on all CPUs */
	ret = kymo_reader_open((const char *const *)&argv[1], 1, &options, &reader, &err);
	while (ret >= 0 && (ret = kymo_reader_next(reader, &batch, &err)) > 0) {
		kymo_batch_foreach(&batch, event) {
			/* A handle is found once for each event class; here there is usually one. */
			if (event->event_class != field.event_class) {
				kymo_field_find(event->event_class, "tid", &tid);
				kymo_field_find(event->event_class, argv[3], &field);
			}
			if (!kymo_event_get_i64(event, &tid, &thread) ||
			    !kymo_event_get_i64(event, &field, &value))
				continue;
			thread_of(thread)->sum += value;
			thread_of(thread)->n_events++;
		}
	}
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", err.path, err.message);
	kymo_reader_close(reader);
	for (size_t i = 0; i < N_SLOTS; i++) {
		if (threads[i].n_events)
			printf("%8" PRId64 " %10" PRIu64 " events %14" PRId64 "\n", threads[i].tid,
			       threads[i].n_events, threads[i].sum);
	}
	return ret < 0;
}
