/* SPDX-License-Identifier: MIT */
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "os/file.h"
#include "os/now.h"
#include "os/tsc.h"

#define NS_PER_S   INT64_C(1000000000)
#define PAIR_TRIES 64
/* While recording, for each page: 8 tries take 0.3 us and miss the best of 64 by 5 ns in one case of 1000. */
#define PAIR_QUICK_TRIES 8
/* Measuring the frequency: some 20 ns in this long, so below 1 ppm, until refined at the end. */
#define MEASURE_NS	 (50 * 1000 * 1000)
#define STEP_MIN_NS	 10000
#define REFINE_MAX_PPM	 1000 /* NTP steers by 500 at most; more is something else */
#define REFINE_MIN_NS	 (NS_PER_S / 10)
#define CONTINUE_MAX_NS	 50000 /* as precise as wall time is on machines with NTP */
#define PAIR_GOOD_ENOUGH 1     /* ns; no better one will come */

typedef __int128 int128;

static uint64_t read_cycles(enum ky_os_clock_kind kind)
{
	return kind == KY_OS_CLOCK_TSC ? ky_tsc_read() : (uint64_t)ky_os_now_ns();
}

uint64_t ky_os_clock_now(const struct ky_os_clock *clock)
{
	return read_cycles(clock->kind);
}

static int64_t cycles_to_ns(int128 cycles, uint64_t hz)
{
	return (int64_t)(cycles * NS_PER_S / (int64_t)hz);
}

/* @id read between two readings of our clock; the narrowest of @tries wins. */
static struct ky_os_clock_pair measure_best(enum ky_os_clock_kind kind, clockid_t id, uint64_t hz,
					    int tries)
{
	struct ky_os_clock_pair best = {0, 0, UINT64_MAX};

	for (int i = 0; i < tries && best.error_ns > PAIR_GOOD_ENOUGH; i++) {
		uint64_t before = read_cycles(kind);
		int64_t ns = ky_os_time_ns(id);
		uint64_t after = read_cycles(kind);
		/* Rounded up, and 1 for the resolution of the clock that was read. */
		uint64_t error_ns = (uint64_t)cycles_to_ns((after - before) / 2 + 1, hz) + 1;

		if (after >= before && error_ns < best.error_ns)
			best = (struct ky_os_clock_pair){before + (after - before) / 2, ns,
							 error_ns};
	}
	return best;
}

static struct ky_os_clock_pair measure_pair(enum ky_os_clock_kind kind, clockid_t id, uint64_t hz)
{
	return measure_best(kind, id, hz, PAIR_TRIES);
}

/* ---- frequency -------------------------------------------------------------------------- */

/* The fields that belong together, by the page's sequence lock. */
static bool read_mult(const volatile struct perf_event_mmap_page *page, uint32_t *mult,
		      uint16_t *shift)
{
	for (int i = 0; i < 1000; i++) {
		uint32_t lock = page->lock;
		bool valid;

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		valid = page->cap_user_time;
		*mult = page->time_mult;
		*shift = page->time_shift;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (page->lock == lock && !(lock & 1))
			return valid && *mult && *shift < 64;
	}
	return false;
}

int ky_os_tsc_frequency_perf(uint64_t *hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint32_t mult;
	uint16_t shift;
	bool known;
	void *page;

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? KYMO_E_PERMISSION : KYMO_E_UNSUPPORTED;
	page = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return KYMO_E_UNSUPPORTED;
	known = read_mult(page, &mult, &shift);
	munmap(page, page_bytes);
	if (!known)
		return KYMO_E_UNSUPPORTED;
	/* The kernel converts: ns = cycles * mult >> shift. */
	*hz = (uint64_t)((((unsigned __int128)NS_PER_S << shift) + mult / 2) / mult);
	return KYMO_OK;
}

static uint64_t frequency_between(const struct ky_os_clock_pair *a,
				  const struct ky_os_clock_pair *b)
{
	int64_t ns = b->ns - a->ns;

	if (ns <= 0 || b->cycles <= a->cycles)
		return 0;
	return (uint64_t)(((unsigned __int128)(b->cycles - a->cycles) * NS_PER_S + ns / 2) / ns);
}

/* Without perf, or in a guest whose kernel takes sched_clock() from its hypervisor. */
static uint64_t measure_frequency(void)
{
	struct timespec wait = {0, MEASURE_NS};
	struct ky_os_clock_pair a, b;

	a = measure_pair(KY_OS_CLOCK_TSC, CLOCK_MONOTONIC, NS_PER_S);
	while (nanosleep(&wait, &wait) < 0 && errno == EINTR)
		;
	b = measure_pair(KY_OS_CLOCK_TSC, CLOCK_MONOTONIC, NS_PER_S);
	return frequency_between(&a, &b);
}

/* ---- the mapping ------------------------------------------------------------------------ */

/* The offset with which the anchor's value gives the anchor's time. */
static void set_offset(struct ky_os_clock *clock)
{
	int128 hz = (int64_t)clock->frequency_hz;
	int64_t base_ns = clock->real.ns - cycles_to_ns(clock->real.cycles, clock->frequency_hz);
	int64_t s = base_ns / NS_PER_S, ns = base_ns % NS_PER_S;

	if (ns < 0) {
		ns += NS_PER_S;
		s--;
	}
	/* Rounded up, because readers round down on the way back. */
	clock->offset_cycles = (int64_t)((ns * hz + NS_PER_S - 1) / NS_PER_S);
	clock->offset_s = s;
	if (clock->offset_cycles >= hz) {
		clock->offset_cycles -= hz;
		clock->offset_s++;
	}
}

uint64_t ky_os_clock_cycles(const struct ky_os_clock *clock, uint64_t ns)
{
	unsigned __int128 scaled = (unsigned __int128)ns * clock->frequency_hz;

	return (uint64_t)((scaled + NS_PER_S - 1) / NS_PER_S);
}

int64_t ky_os_clock_to_ns(const struct ky_os_clock *clock, uint64_t cycles)
{
	return clock->offset_s * NS_PER_S +
	       cycles_to_ns(clock->offset_cycles, clock->frequency_hz) +
	       cycles_to_ns(cycles, clock->frequency_hz);
}

bool ky_os_boot_id_text(char *text, size_t size)
{
	struct ky_strbuf read = KY_STRBUF_INIT;
	bool is_known;

	if (ky_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &read) == 0)
		read.data[strcspn(read.data, "\n")] = '\0';
	is_known = read.len && strlen(read.data) < size;
	if (is_known)
		memcpy(text, read.data, strlen(read.data) + 1);
	ky_strbuf_fini(&read);
	return is_known;
}

bool ky_os_boot_id(uint8_t id[16])
{
	char text[64];
	bool is_known = ky_os_boot_id_text(text, sizeof(text)) && ky_parse_uuid(text, id);

	if (!is_known)
		memset(id, 0, 16);
	return is_known;
}

static int init_tsc(struct ky_os_clock *clock)
{
	clock->kind = KY_OS_CLOCK_TSC;
	clock->name = "tsc";
	clock->tracefs_name = "x86-tsc";
	clock->description = "Time stamp counter, raw; offset measured at the start of recording";
	if (ky_os_tsc_frequency_perf(&clock->frequency_hz) < 0)
		clock->frequency_hz = measure_frequency();
	return clock->frequency_hz ? KYMO_OK : KYMO_E_UNSUPPORTED;
}

static void init_monotonic(struct ky_os_clock *clock)
{
	clock->kind = KY_OS_CLOCK_MONOTONIC;
	clock->name = "monotonic";
	clock->tracefs_name = "mono";
	clock->description = "Monotonic Clock";
	clock->frequency_hz = NS_PER_S;
}

int ky_os_clock_init(struct ky_os_clock *clock, enum ky_os_clock_kind kind, struct kymo_error *err)
{
	const char *why = kind == KY_OS_CLOCK_MONOTONIC ? "" : ky_tsc_unsound();

	memset(clock, 0, sizeof(*clock));
	if (!why && init_tsc(clock) < 0)
		why = "its frequency cannot be measured";
	if (why && kind == KY_OS_CLOCK_TSC) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "the time stamp counter cannot be used: %s",
			     why);
		ky_error_hint(err, "use the monotonic clock");
		return KYMO_E_UNSUPPORTED;
	}
	if (why)
		init_monotonic(clock);
	(void)ky_os_boot_id(clock->uuid);
	clock->mono = measure_pair(clock->kind, CLOCK_MONOTONIC, clock->frequency_hz);
	clock->real = measure_pair(clock->kind, CLOCK_REALTIME, clock->frequency_hz);
	clock->precision_ns = clock->real.error_ns;
	set_offset(clock);
	return KYMO_OK;
}

/* ---- drift ------------------------------------------------------------------------------ */

/* CLOCK_REALTIME - CLOCK_MONOTONIC: constant unless wall time is set. */
static int64_t real_minus_mono(const struct ky_os_clock_pair *real,
			       const struct ky_os_clock_pair *mono, uint64_t hz)
{
	int128 apart = (int128)real->cycles - mono->cycles;

	return real->ns - mono->ns - cycles_to_ns(apart, hz);
}

uint64_t ky_os_clock_between(const struct ky_os_clock_pair *from, const struct ky_os_clock_pair *to,
			     uint64_t time_ns)
{
	int64_t span_ns = to->ns - from->ns, since_ns = (int64_t)time_ns - from->ns;
	double rate = span_ns ? (double)(to->cycles - from->cycles) / (double)span_ns : 0;

	return from->cycles + (uint64_t)(int64_t)((double)since_ns * rate);
}

void ky_os_clock_mono_pair(const struct ky_os_clock *clock, struct ky_os_clock_pair *pair)
{
	*pair = measure_best(clock->kind, CLOCK_MONOTONIC, clock->frequency_hz, PAIR_QUICK_TRIES);
}

void ky_os_clock_resample(const struct ky_os_clock *clock, struct ky_os_clock_drift *drift)
{
	uint64_t hz = clock->frequency_hz;
	struct ky_os_clock_pair mono = measure_pair(clock->kind, CLOCK_MONOTONIC, hz);
	struct ky_os_clock_pair real = measure_pair(clock->kind, CLOCK_REALTIME, hz);
	int128 cycles = (int128)mono.cycles - clock->mono.cycles;

	drift->mono = mono;
	drift->elapsed_ns = mono.ns - clock->mono.ns;
	drift->drift_ns = cycles_to_ns(cycles, hz) - drift->elapsed_ns;
	drift->error_ns = mono.error_ns + clock->mono.error_ns;
	drift->step_ns =
		real_minus_mono(&real, &mono, hz) - real_minus_mono(&clock->real, &clock->mono, hz);
	/* Below this it is the error of four measurements. */
	if (llabs(drift->step_ns) < STEP_MIN_NS)
		drift->step_ns = 0;
}

bool ky_os_clock_refine(struct ky_os_clock *clock, const struct ky_os_clock_drift *drift)
{
	uint64_t hz;

	if (clock->is_fixed || clock->kind != KY_OS_CLOCK_TSC ||
	    drift->elapsed_ns < REFINE_MIN_NS ||
	    llabs(drift->drift_ns) <= (int64_t)drift->error_ns ||
	    llabs(drift->drift_ns) > drift->elapsed_ns / 1000000 * REFINE_MAX_PPM)
		return false;
	hz = frequency_between(&clock->mono, &drift->mono);
	if (!hz || hz == clock->frequency_hz)
		return false;
	clock->frequency_hz = hz;
	set_offset(clock);
	return true;
}

bool ky_os_clock_continue(struct ky_os_clock *clock, const struct ky_os_clock_drift *drift)
{
	uint64_t hz = frequency_between(&clock->mono, &drift->mono);
	int64_t apart_ns = llabs(drift->drift_ns);

	if (!clock->is_fixed || clock->kind != KY_OS_CLOCK_TSC || apart_ns < CONTINUE_MAX_NS ||
	    !hz || apart_ns > drift->elapsed_ns / 1000000 * REFINE_MAX_PPM) {
		clock->is_fixed = true;
		return false;
	}
	/* The anchors of the new mapping carry the drift, so that its refinement makes up for it. */
	clock->real.cycles = drift->mono.cycles;
	clock->real.ns = ky_os_clock_to_ns(clock, drift->mono.cycles);
	clock->mono = drift->mono;
	clock->mono.ns += drift->drift_ns;
	clock->frequency_hz = hz;
	clock->is_fixed = false;
	set_offset(clock);
	return true;
}

/* ---- diagnosis -------------------------------------------------------------------------- */

const char *ky_os_tsc_unsound(void)
{
	return ky_tsc_unsound();
}

void ky_os_clocksource(char name[64])
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	(void)ky_read_file(AT_FDCWD,
			   "/sys/devices/system/clocksource/clocksource0/current_clocksource", 63,
			   &text);
	snprintf(name, 64, "%s", ky_strbuf_text(&text));
	name[strcspn(name, "\n")] = '\0';
	ky_strbuf_fini(&text);
}
