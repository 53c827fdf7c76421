/* SPDX-License-Identifier: MIT */
#ifndef KY_RECORD_TRACE_KERNEL_TRACE_INTERNAL_H
#define KY_RECORD_TRACE_KERNEL_TRACE_INTERNAL_H

#include "record/trace/kernel-trace.h"

/* kernel-trace-filter.c: compile the filters of all events, after the trace model is finished. */
int ky_kernel_trace_compile_filters(struct ky_kernel_trace *kernel, struct kymo_error *err);
void ky_kernel_trace_free_filters(struct ky_kernel_trace *kernel);

/*
 * kernel-trace-context.c: @filter could not be compiled. When the cause is a context field that the
 * recording does not have, the hint of @err becomes the way to record that field.
 */
void ky_kernel_trace_explain_context(const struct ky_kernel_trace *kernel, const char *filter,
				     struct kymo_error *err);

/*
 * kernel-trace-comm.c: adds the selected thread name to the event's filters, which are not compiled
 * yet.
 */
int ky_kernel_trace_filter_comm(struct ky_kernel_trace *kernel, struct ky_event_source *source,
				struct kymo_error *err);

/* kernel-trace-samples.c: the stream class of samples, if there are sources. */
int ky_kernel_trace_add_samples(struct ky_kernel_trace *kernel, struct kymo_error *err);

/* kernel-trace-read.c: send each packet to the store when the converter has finished it. */
void ky_kernel_trace_use_convert(struct ky_kernel_trace *kernel);

#endif
