/* SPDX-License-Identifier: MIT */
/*
 * Print all fields of the events that match a filter expression.
 *
 *	./filter my-trace 'prev_comm == "bash" && prev_prio < 120'
 */
#include <inttypes.h>
#include <stdio.h>

#include <kymo/reader.h>

/* A value may contain others: a structure its members, an array its elements. */
static void print_value(const struct kymo_value *value)
{
	const struct kymo_value *child = kymo_value_first(value);
	const char *bytes;
	size_t len;

	if (kymo_value_name(value))
		printf(" %s =", kymo_value_name(value));
	bytes = kymo_value_bytes(value, &len);
	if (bytes)
		printf(" \"%.*s\"", (int)len, bytes);
	else if (kymo_value_label(value))
		printf(" %s", kymo_value_label(value));
	else if (kymo_value_kind(value) == KYMO_FIELD_FLOAT)
		printf(" %g", kymo_value_f64(value));
	else if (kymo_value_kind(value) == KYMO_FIELD_SINT)
		printf(" %" PRId64, kymo_value_i64(value));
	else if (kymo_value_kind(value) < KYMO_FIELD_STRING)
		printf(" %" PRIu64, kymo_value_u64(value));
	else
		for (size_t i = 0; i < kymo_value_n_children(value); i++) {
			print_value(child);
			child = kymo_value_next(child);
		}
}

int main(int argc, char **argv)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_values *values;
	const struct kymo_value *fields;
	struct kymo_reader *reader;
	struct kymo_batch batch;
	struct kymo_error err;
	int ret;

	if (argc != 3) {
		fprintf(stderr, "usage: filter TRACE EXPRESSION\n");
		return 2;
	}
	values = kymo_values_new(); /* memory for the fields of one event */
	options.filter = argv[2];
	ret = kymo_reader_open((const char *const *)&argv[1], 1, &options, &reader, &err);
	/* A mistake in the expression: err.column says where. */
	if (ret == KYMO_E_INVALID && err.column)
		fprintf(stderr, "%s\n%*s\n", argv[2], (int)err.column, "^");
	while (ret >= 0 && (ret = kymo_reader_next(reader, &batch, &err)) > 0) {
		kymo_batch_foreach(&batch, event) {
			printf("%s:", kymo_event_class_name(event->event_class));
			if (kymo_event_values(event, KYMO_SCOPE_PAYLOAD, values, &fields, &err) > 0)
				print_value(fields);
			printf("\n");
		}
	}
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", err.path, err.message);
	kymo_values_free(values);
	kymo_reader_close(reader);
	return ret < 0;
}
