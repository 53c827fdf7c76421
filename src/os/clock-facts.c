/* SPDX-License-Identifier: MIT */
#include "os/clock-facts.h"

#include <sys/timex.h>
#include <time.h>

#include "os/now.h"
#include "os/tsc.h"

#define FACTS_TRIES 64

static uint64_t clock_facts_ns(const struct ky_os_clock *clock, uint64_t cycles)
{
	return clock->frequency_hz
		       ? (uint64_t)((unsigned __int128)cycles * 1000000000u / clock->frequency_hz)
		       : 0;
}

/* The counter between two readings of the clock; the narrowest of some tries wins. */
static void clock_facts_tsc(const struct ky_os_clock *clock, struct ky_clock_facts *facts)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < FACTS_TRIES; i++) {
		uint64_t before = ky_os_clock_now(clock), tsc = ky_tsc_read();
		uint64_t after = ky_os_clock_now(clock), width = after - before;

		if (!tsc || after < before || width >= best)
			continue;
		best = width;
		facts->has_tsc = true;
		facts->tsc = tsc;
		facts->cycles = before + width / 2;
		facts->tsc_error_ns = clock_facts_ns(clock, width / 2 + 1) + 1;
	}
}

static void clock_facts_wall(const struct ky_os_clock *clock, struct ky_clock_facts *facts)
{
	uint64_t best = UINT64_MAX;
	struct timex timex = {0};
	int state = clock_adjtime(CLOCK_REALTIME, &timex);

	for (int i = 0; i < FACTS_TRIES; i++) {
		uint64_t before = ky_os_clock_now(clock);
		int64_t wall_ns = ky_os_time_ns(CLOCK_REALTIME);
		uint64_t after = ky_os_clock_now(clock), width = after - before;
		int64_t since = (int64_t)(before + width / 2 - facts->cycles);

		if (after < before || width >= best)
			continue;
		best = width;
		/* As it was at the moment of the other reading. */
		facts->wall_ns =
			since >= 0 ? wall_ns - (int64_t)clock_facts_ns(clock, (uint64_t)since)
				   : wall_ns + (int64_t)clock_facts_ns(clock, (uint64_t)-since);
	}
	facts->is_synchronized = state >= 0 && state != TIME_ERROR && timex.maxerror >= 0 &&
				 !(timex.status & STA_UNSYNC);
	facts->utc_error_ns = (uint64_t)(timex.maxerror > 0 ? timex.maxerror : 0) * 1000 +
			      clock_facts_ns(clock, best / 2) + 1;
}

void ky_os_clock_facts(const struct ky_os_clock *clock, struct ky_clock_facts *facts)
{
	*facts = (struct ky_clock_facts){.cycles = ky_os_clock_now(clock)};
	/* A clock that is the counter itself needs no reading of it. */
	if (clock->kind == KY_OS_CLOCK_TSC) {
		facts->has_tsc = true;
		facts->tsc = facts->cycles;
	} else {
		clock_facts_tsc(clock, facts);
	}
	clock_facts_wall(clock, facts);
}
