/* SPDX-License-Identifier: MIT */
/* The data streams of samples: a stream class of their own, whose context has both call stacks. */
#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "kernel/statedump/statedump.h"
#include "record/trace/kernel-trace-internal.h"

/* Stacks are in the trace once: ctf/decode/stored-stacks.h. */
static struct ky_field_class *kernel_trace_samples_context(struct ky_trace_class *trace)
{
	const struct ky_convert convert = {.context = KY_CONTEXT_PID | KY_CONTEXT_PROCNAME};
	static const char *const stacks[][2] = {
		{"__callstack_kernel_length", "_callstack_kernel"},
		{"__callstack_user_length", "_callstack_user"},
	};
	struct ky_field_class *st = ky_convert_context_class(&convert, trace), *length;

	if (!st || !ky_struct_add_int(trace, st, "_callstack_kernel_id", 32, false, 10) ||
	    !ky_struct_add_int(trace, st, "_callstack_user_id", 32, false, 10))
		return NULL;
	for (size_t i = 0; i < 2; i++) {
		length = ky_struct_add_int(trace, st, stacks[i][0], 32, false, 10);
		if (!length || !ky_struct_add_sequence(trace, st, stacks[i][1],
						       ky_int_new(trace, 64, false, 16), length))
			return NULL;
	}
	return st;
}

static int kernel_trace_samples_event(struct ky_kernel_trace *kernel,
				      struct ky_stream_class *stream)
{
	struct ky_event_class *event = ky_event_class_new(stream, KY_KERNEL_SAMPLE_EVENT, "sample");
	struct ky_field_class *source;

	if (!event)
		return KYMO_E_MEMORY;
	event->payload = ky_struct_new(kernel->trace);
	if (!event->payload)
		return KYMO_E_MEMORY;
	source = ky_struct_add_enum(kernel->trace, event->payload, "_source", 8, false);
	if (!source)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < kernel->n_sources; i++)
		if (ky_enum_add(kernel->trace, source, kernel->sources[i].name, (int64_t)i,
				(int64_t)i) < 0)
			return KYMO_E_MEMORY;
	return ky_struct_add_int(kernel->trace, event->payload, "_period", 64, false, 10)
		       ? KYMO_OK
		       : KYMO_E_MEMORY;
}

static int kernel_trace_samples_begin(struct ky_kernel_trace *kernel,
				      struct ky_stream_class *stream)
{
	struct ky_event_class *event =
		ky_event_class_new(stream, KY_KERNEL_SAMPLE_BEGIN, "kymo_mappings_begin");

	if (!event)
		return KYMO_E_MEMORY;
	event->payload = ky_struct_new(kernel->trace);
	return event->payload && ky_struct_add_int(kernel->trace, event->payload, "_pid", 32, true,
						   10)
		       ? KYMO_OK
		       : KYMO_E_MEMORY;
}

int ky_kernel_trace_add_samples(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	struct ky_stream_class *stream;

	if (!kernel->n_sources)
		return KYMO_OK;
	stream = ky_lttng_layout_stream(kernel->trace, KY_KERNEL_SAMPLES_STREAM,
					kernel->clock_class, true);
	if (!stream)
		return ky_error_nomem(err);
	stream->event_context = kernel_trace_samples_context(kernel->trace);
	if (!stream->event_context || kernel_trace_samples_event(kernel, stream) < 0 ||
	    kernel_trace_samples_begin(kernel, stream) < 0)
		return ky_error_nomem(err);
	return ky_statedump_define_one(stream, KY_KERNEL_SAMPLE_MAP, KY_STATEDUMP_PROCESS_MAP, err);
}
