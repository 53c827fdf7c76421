/* SPDX-License-Identifier: MIT */
/*
 * What a trace can hold: clocks, event types and their fields, whatever they are.
 *
 *	cc show-metadata.c $(pkg-config --cflags --libs kymo) -o show-metadata
 *	./show-metadata my-trace
 */
#include <inttypes.h>
#include <stdio.h>

#include <kymo/reader.h>

static void show(const struct kymo_field_class *cls, const char *name, int depth)
{
	uint64_t bits = kymo_field_class_size_bits(cls);

	printf("%*s%s: %s", depth * 2, "", name ? name : "-",
	       kymo_field_kind_text(kymo_field_class_kind(cls)));
	if (bits != KYMO_VARIES)
		printf(", %" PRIu64 " bits", bits);
	for (size_t i = 0; i < kymo_field_class_n_labels(cls); i++)
		printf("%s%s", i ? ", " : ": ", kymo_field_class_label(cls, i, NULL));
	puts("");
	/* Members of structures, options of variants; elements of arrays. */
	for (size_t i = 0; i < kymo_field_class_n_members(cls); i++)
		show(kymo_field_class_member(cls, i), kymo_field_class_member_name(cls, i),
		     depth + 1);
	if (kymo_field_class_element(cls))
		show(kymo_field_class_element(cls), NULL, depth + 1);
}

static void show_trace(const struct kymo_trace *trace)
{
	printf("%s\n", kymo_trace_path(trace));
	for (size_t i = 0; i < kymo_trace_n_clocks(trace); i++)
		printf("clock %s, %" PRIu64 " Hz\n", kymo_clock_name(kymo_trace_clock(trace, i)),
		       kymo_clock_frequency_hz(kymo_trace_clock(trace, i)));
	for (size_t i = 0; i < kymo_trace_n_event_classes(trace); i++) {
		const struct kymo_event_class *cls = kymo_trace_event_class(trace, i);

		printf("event %s\n", kymo_event_class_name(cls));
		if (kymo_event_class_scope(cls, KYMO_SCOPE_EVENT_CONTEXT))
			show(kymo_event_class_scope(cls, KYMO_SCOPE_EVENT_CONTEXT), "context", 1);
		if (kymo_event_class_scope(cls, KYMO_SCOPE_PAYLOAD))
			show(kymo_event_class_scope(cls, KYMO_SCOPE_PAYLOAD), "fields", 1);
	}
}

int main(int argc, char **argv)
{
	struct kymo_reader *reader;
	struct kymo_error err;

	if (argc != 2) {
		fprintf(stderr, "usage: show-metadata TRACE\n");
		return 2;
	}
	if (kymo_reader_open((const char *const *)&argv[1], 1, NULL, &reader, &err) < 0) {
		fprintf(stderr, "%s: %s\n", err.path, err.message);
		return 1;
	}
	for (size_t i = 0; i < kymo_reader_n_traces(reader); i++)
		show_trace(kymo_reader_trace(reader, i));
	for (size_t i = 0; i < kymo_reader_n_streams(reader); i++) {
		const struct kymo_stream *stream = kymo_reader_stream(reader, i);
		struct kymo_packets *packets;

		if (kymo_packets_open(stream, &packets, &err) == KYMO_OK)
			printf("data stream %s: %zu packets\n", kymo_stream_name(stream),
			       kymo_packets_n(packets));
		kymo_packets_free(packets);
	}
	kymo_reader_close(reader);
	return 0;
}
