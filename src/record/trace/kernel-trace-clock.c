/* SPDX-License-Identifier: MIT */
/* What a trace says of its clock, in its environment: the time stamp counter, and NTP's state, at begin and end. kymo sync reads it. */
#include "record/trace/kernel-trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/clock-facts.h"

/*
 * Numbers are texts of always the same length, so the end of a recording does not change the metadata's size. Readers of a live trace have
 * the first part of the metadata already.
 */
#define NUMBER_FORMAT "%020" PRIu64

/* Sets the number that is there, or adds it. */
static int kernel_trace_clock_set(struct ky_trace_class *trace, const char *when, const char *what,
				  uint64_t number)
{
	char name[64], text[24];

	snprintf(name, sizeof(name), "clock_%s_%s", when, what);
	snprintf(text, sizeof(text), NUMBER_FORMAT, number);
	for (size_t i = 0; i < trace->env.len; i++) {
		struct ky_env *env = &trace->env.data[i];

		if (strcmp(env->name, name) == 0) {
			env->text = ky_arena_strdup(&trace->arena, text);
			return env->text ? KYMO_OK : KYMO_E_MEMORY;
		}
	}
	return ky_env_add_text(trace, name, text);
}

/* @facts of zeros: nothing is known yet. */
static int kernel_trace_clock_tell(const struct ky_kernel_trace *kernel, const char *when,
				   const struct ky_clock_facts *facts)
{
	const struct {
		const char *what;
		uint64_t number;
	} entries[] = {
		{"cycles", facts->cycles},
		{"wall_ns", (uint64_t)facts->wall_ns},
		{"utc_synchronized", facts->is_synchronized},
		{"utc_error_ns", facts->utc_error_ns},
		{"tsc", facts->has_tsc ? facts->tsc : 0},
		{"tsc_error_ns", facts->tsc_error_ns},
	};
	/* A clock that is the counter itself was not compared with it. */
	size_t n = kernel->clock.kind == KY_OS_CLOCK_TSC ? 4 : 6;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && !ret; i++)
		ret = kernel_trace_clock_set(kernel->trace, when, entries[i].what,
					     entries[i].number);
	return ret;
}

int ky_kernel_trace_clock_begins(struct ky_kernel_trace *kernel)
{
	struct ky_clock_facts facts;
	int ret;

	/* Pages of another machine, or of an earlier recording. */
	if (kernel->hostname || kernel->kernel_release)
		return KYMO_OK;
	kernel->tells_clock = true;
	ky_os_clock_facts(&kernel->clock, &facts);
	ret = kernel_trace_clock_tell(kernel, "begin", &facts);
	facts = (struct ky_clock_facts){0};
	return ret ? ret : kernel_trace_clock_tell(kernel, "end", &facts);
}

int ky_kernel_trace_clock_ends(struct ky_kernel_trace *kernel)
{
	struct ky_clock_facts facts;

	if (!kernel->tells_clock)
		return KYMO_OK;
	ky_os_clock_facts(&kernel->clock, &facts);
	return kernel_trace_clock_tell(kernel, "end", &facts);
}
