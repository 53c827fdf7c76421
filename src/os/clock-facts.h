/* SPDX-License-Identifier: MIT */
/*
 * What a machine knows of a recording's clock at one moment: the processor's time stamp counter, which a host and its guests share, and how
 * far NTP or PTP believes wall time to be from UTC.
 *
 * Threads: any.
 */
#ifndef KY_OS_CLOCK_FACTS_H
#define KY_OS_CLOCK_FACTS_H

#include "os/clock.h"

struct ky_clock_facts {
	uint64_t cycles; /* of the recording's clock */
	bool has_tsc;
	uint64_t tsc;	       /* at the same moment */
	uint64_t tsc_error_ns; /* the true moment of @tsc is within +- this of @cycles */
	/* CLOCK_REALTIME at that moment; the kernel's state of NTP says that UTC is within +- utc_error_ns, if it is synchronized. */
	int64_t wall_ns;
	bool is_synchronized;
	uint64_t utc_error_ns; /* of @wall_ns, with the error of the reading */
};

void ky_os_clock_facts(const struct ky_os_clock *clock, struct ky_clock_facts *facts);

#endif
