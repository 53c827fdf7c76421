/* SPDX-License-Identifier: MIT */
/* Filters of events that the kernel evaluates: written to its files. */
#include <stdio.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

int ky_session_write_filter_anew(struct ky_session *session, struct ky_event_source *source,
				 struct kymo_error *err)
{
	char name[400];

	if (source->of_bpf)
		return KYMO_OK;
	if (source->kernel_filter)
		return ky_session_write_filter(session, source, err);
	snprintf(name, sizeof(name), "events/%s/%s/filter", source->system, source->event);
	/* "0" is the kernel's word for none. */
	return ky_instance_write(ky_session_instance_of(session, source), name, "0", err);
}

/*
 * Recording continues when the kernel refuses a filter. The filter that selects processes by name
 * is the exception.
 */
int ky_session_write_filter(struct ky_session *session, struct ky_event_source *source,
			    struct kymo_error *err)
{
	char name[400];
	int ret;

	snprintf(name, sizeof(name), "events/%s/%s/filter", source->system, source->event);
	ret = ky_instance_write(ky_session_instance_of(session, source), name,
				source->kernel_filter, err);
	if (ret == 0 || session->options.threads.comm)
		return ret;
	ky_kernel_trace_leave_to_recorder(&session->kernel, source);
	return KYMO_OK;
}
