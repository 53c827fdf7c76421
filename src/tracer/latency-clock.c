/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter as a clock of durations, where the kernel itself keeps time by it. Its rate is not to be had without
 * privileges, so it is measured: from the first use on, at growing distances up to some seconds. What is wrong with it is
 * what lies between two readings of two clocks (some 10 ns), for the distance is never shorter than the duration.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "ring/ring-writer.h"
#include "tracer/latency.h"
#include "tracer/ring-config.h"
#include "tracer/tracer.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
/* About the first duration that is measured without a new look at the rate; and a distance, in ticks, that is enough. */
#define FIRST_NS   20000
#define FAR_TICKS  (UINT64_C(1) << 35)
#define NEAR_TICKS (UINT64_C(1) << 22)

struct ky_latency_clock ky_latency_clock;

/* The two clocks at the same time: the closest of some tries. */
struct clock_point {
	uint64_t ticks, ns;
};

static struct clock_point latency_clock_look(void)
{
	struct clock_point best = {0};
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = ky_clock_tsc(), ns = ky_clock_monotonic(), after = ky_clock_tsc();

		if (after - before >= best_width)
			continue;
		best_width = after - before;
		best = (struct clock_point){before + best_width / 2, ns};
	}
	return best;
}

/* Where a correction begins. The flag in ky_process guards it. */
static struct clock_point base;

static uint64_t latency_clock_rate(const struct clock_point *from, const struct clock_point *to)
{
	uint64_t ticks = to->ticks - from->ticks;

	return ticks ? (uint64_t)(((unsigned __int128)(to->ns - from->ns) << 32) / ticks) : 0;
}

static bool latency_clock_try(struct ky_process *process)
{
	return !__atomic_exchange_n(&process->is_correcting, true, __ATOMIC_ACQUIRE);
}

static void latency_clock_give_back(struct ky_process *process)
{
	__atomic_store_n(&process->is_correcting, false, __ATOMIC_RELEASE);
}

/* Does the kernel keep time by the counter? */
static bool latency_clock_is_tsc(void)
{
#if defined(__x86_64__)
	char text[8] = "";
	long fd = ky_sys(SYS_openat, AT_FDCWD, (long)CLOCKSOURCE, O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return false;
	ky_sys(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return memcmp(text, "tsc\n", 4) == 0;
#else
	return false;
#endif
}

void ky_latency_clock_begin(struct ky_process *process)
{
	struct clock_point from, to;

	if (__atomic_load_n(&ky_latency_clock.is_ready, __ATOMIC_ACQUIRE))
		return;
	(void)ky_rb_find_rseq(&ky_latency_clock.rseq_area);
	if (latency_clock_is_tsc()) {
		from = latency_clock_look();
		do
			to = latency_clock_look();
		while (to.ns - from.ns < FIRST_NS);
		__atomic_store_n(&ky_latency_clock.rate, latency_clock_rate(&from, &to),
				 __ATOMIC_RELAXED);
		if (latency_clock_try(process)) {
			base = base.ticks ? base : from;
			latency_clock_give_back(process);
		}
		__atomic_store_n(&ky_latency_clock.is_tsc, true, __ATOMIC_RELAXED);
	}
	/* Two threads may do all this beside each other, and find the same. */
	__atomic_store_n(&ky_latency_clock.is_ready, true, __ATOMIC_RELEASE);
}

/* Once the rate is known well, another one means that one clock stood still (suspend): begin anew, with the old one. */
static bool latency_clock_is_break(uint64_t rate, uint64_t ticks)
{
	uint64_t old = ky_latency_clock.rate;
	uint64_t off = rate > old ? rate - old : old - rate;

	return ticks > NEAR_TICKS && off > old / 64;
}

void ky_latency_clock_correct(struct ky_process *process)
{
	struct clock_point now;
	uint64_t rate, ticks;

	/* Another thread does, or this one, which a signal has interrupted. */
	if (!latency_clock_try(process))
		return;
	now = latency_clock_look();
	base = base.ticks ? base : now;
	ticks = now.ticks - base.ticks;
	rate = latency_clock_rate(&base, &now);
	if (rate && !latency_clock_is_break(rate, ticks))
		__atomic_store_n(&ky_latency_clock.rate, rate, __ATOMIC_RELAXED);
	if (ticks >= FAR_TICKS || latency_clock_is_break(rate, ticks)) {
		base = now;
		ticks = FAR_TICKS;
	}
	__atomic_store_n(&ky_latency_clock.next, now.ticks + ticks, __ATOMIC_RELAXED);
	latency_clock_give_back(process);
}
