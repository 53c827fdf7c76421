/* SPDX-License-Identifier: MIT */
/* What a trace says of its clock, in its environment: the time stamp counter, and NTP's state, at begin and end. kymo sync reads it. */
#include "record/trace/kernel-trace.h"

#include <stdio.h>

#include "os/clock-facts.h"

/* Sets the number that is there, or adds it. */
static int kernel_trace_clock_set(struct ky_trace_class *trace, const char *when, const char *what,
				  uint64_t number)
{
	char name[64];

	snprintf(name, sizeof(name), "clock_%s_%s", when, what);
	for (size_t i = 0; i < trace->env.len; i++) {
		struct ky_env *env = &trace->env.data[i];

		if (strcmp(env->name, name) == 0) {
			env->number = (int64_t)number;
			return KYMO_OK;
		}
	}
	return ky_env_add_number(trace, name, (int64_t)number);
}

static int kernel_trace_clock_tell(const struct ky_kernel_trace *kernel, const char *when)
{
	struct ky_trace_class *trace = kernel->trace;
	struct ky_clock_facts facts;
	int ret;

	ky_os_clock_facts(&kernel->clock, &facts);
	ret = kernel_trace_clock_set(trace, when, "cycles", facts.cycles);
	if (!ret && facts.has_tsc && kernel->clock.kind != KY_OS_CLOCK_TSC) {
		ret = kernel_trace_clock_set(trace, when, "tsc", facts.tsc);
		if (!ret)
			ret = kernel_trace_clock_set(trace, when, "tsc_error_ns",
						     facts.tsc_error_ns);
	}
	if (!ret)
		ret = kernel_trace_clock_set(trace, when, "wall_ns", (uint64_t)facts.wall_ns);
	if (!ret)
		ret = kernel_trace_clock_set(trace, when, "utc_synchronized",
					     facts.is_synchronized);
	if (!ret)
		ret = kernel_trace_clock_set(trace, when, "utc_error_ns", facts.utc_error_ns);
	return ret;
}

int ky_kernel_trace_clock_begins(struct ky_kernel_trace *kernel)
{
	/* Pages of another machine, or of an earlier recording. */
	if (kernel->hostname || kernel->kernel_release)
		return KYMO_OK;
	kernel->tells_clock = true;
	return kernel_trace_clock_tell(kernel, "begin");
}

int ky_kernel_trace_clock_ends(struct ky_kernel_trace *kernel)
{
	return kernel->tells_clock ? kernel_trace_clock_tell(kernel, "end") : KYMO_OK;
}
