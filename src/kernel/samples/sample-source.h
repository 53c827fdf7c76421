/* SPDX-License-Identifier: MIT */
/*
 * What samples are taken at: a counter or a tracepoint, so many times a second or at each Nth.
 * Threads: any.
 */
#ifndef KY_KERNEL_SAMPLES_SAMPLE_SOURCE_H
#define KY_KERNEL_SAMPLES_SAMPLE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/tracefs/tracefs.h"

#define KY_SAMPLE_SOURCE_BYTES 128
#define KY_SAMPLE_SOURCES_MAX  16
#define KY_SAMPLE_HZ_MAX       100000u

struct ky_sample_source {
	char name[KY_SAMPLE_SOURCE_BYTES]; /* "cpu-clock", "sched:sched_switch" */
	bool is_default;		   /* "99": of the counter that this machine has for it */
	bool is_tracepoint;
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config;
	uint64_t frequency_hz; /* 0: each period */
	uint64_t period;
};

/*
 * "99" (times a second), "COUNTER", "COUNTER:N" (each Nth), "COUNTER:99Hz", "SYSTEM:EVENT", "SYSTEM:EVENT:N".
 * 0 or KYMO_E_INVALID, with a hint.
 */
int ky_sample_source_parse(const char *text, struct ky_sample_source *source,
			   struct kymo_error *err);
/* What the machine has for it: a tracepoint's number, cycles or the clock. 0, KYMO_E_NOT_FOUND, KYMO_E_UNSUPPORTED. */
int ky_sample_source_find(struct ky_sample_source *source, const struct ky_tracefs *fs,
			  struct kymo_error *err);
/* Is the period that its samples have a time in nanoseconds? */
bool ky_sample_source_is_clock(const struct ky_sample_source *source);

#endif
