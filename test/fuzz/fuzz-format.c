/* SPDX-License-Identifier: MIT */
/* Format files, any bytes: fields stay within a record, and what is parsed can be compiled. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/resolve/lttng-layout.h"
#include "kernel/convert/convert.h"
#include "kernel/events/print-fmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ky_format *format)
{
	for (size_t i = 0; i < format->n_fields; i++) {
		const struct ky_format_field *field = &format->fields[i];

		if (field->offset + field->size > KY_FORMAT_MAX_BYTES || !field->name[0])
			abort();
		if (field->kind == KY_FORMAT_ARRAY &&
		    field->elements * field->element_bytes > field->size)
			abort();
		for (size_t k = 0; k < field->n_labels; k++)
			if ((field->kind != KY_FORMAT_INT && field->kind != KY_FORMAT_POINTER) ||
			    !field->labels[k].text[0])
				abort();
	}
}

static void compile(const struct ky_format *format, const char *system)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_stream_class *stream = ky_stream_class_new(trace, 0);
	struct ky_event_class *event = ky_event_class_new(stream, 0, format->name);
	struct ky_convert convert;

	if (ky_convert_init(&convert, 0, NULL) < 0)
		abort();
	(void)ky_convert_add(&convert, system, format, event, NULL);
	ky_convert_fini(&convert);
	ky_trace_class_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_page_layout layout;
	struct ky_format format;
	struct ky_arena arena;
	char *text = malloc(size ? size : 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	ky_arena_init(&arena);
	if (ky_format_parse(&arena, text, size, &format, NULL) == 0) {
		if (ky_print_fmt_apply(&arena, text, size, NULL, &format, NULL) < 0)
			abort();
		check(&format);
		compile(&format, "syscalls");
		compile(&format, "sched");
		compile(&format, "block");
	}
	(void)ky_page_layout_parse(text, size, &layout, NULL);
	ky_arena_fini(&arena);
	free(text);
	return 0;
}
