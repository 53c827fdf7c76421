/* SPDX-License-Identifier: MIT */
/* The recording's clock against the kernel's own clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/clock.h"

#define MS_IN_NS 1000000

static int64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* A value read between two looks at the wall clock lies between them, give or take. */
static void assert_agrees(const struct ky_os_clock *clock, int64_t within_ns)
{
	int64_t before = wall_ns(), ns = ky_os_clock_to_ns(clock, ky_os_clock_now(clock));
	int64_t after = wall_ns();

	assert_true(ns >= before - within_ns);
	assert_true(ns <= after + within_ns);
}

static bool init(struct ky_os_clock *clock, enum ky_os_clock_kind kind)
{
	struct kymo_error err;
	int ret = ky_os_clock_init(clock, kind, &err);

	if (ret == KYMO_E_UNSUPPORTED && kind == KY_OS_CLOCK_TSC) {
		print_message("%s\n", err.message);
		assert_non_null(ky_os_tsc_unsound());
		return false;
	}
	assert_int_equal(ret, 0);
	return true;
}

static void check_kind(enum ky_os_clock_kind kind)
{
	struct ky_os_clock clock;
	uint64_t last = 0;

	if (!init(&clock, kind))
		skip();
	assert_true(clock.offset_cycles >= 0);
	assert_true((uint64_t)clock.offset_cycles < clock.frequency_hz);
	assert_true(clock.precision_ns < MS_IN_NS);
	assert_agrees(&clock, MS_IN_NS);
	for (int i = 0; i < 100000; i++) {
		uint64_t cycles = ky_os_clock_now(&clock);

		assert_true(cycles >= last);
		last = cycles;
	}
}

static void tsc(void **state)
{
	check_kind(KY_OS_CLOCK_TSC);
}

static void monotonic(void **state)
{
	struct ky_os_clock clock;

	check_kind(KY_OS_CLOCK_MONOTONIC);
	assert_int_equal(ky_os_clock_init(&clock, KY_OS_CLOCK_MONOTONIC, NULL), 0);
	assert_string_equal(clock.name, "monotonic");
	assert_string_equal(clock.tracefs_name, "mono");
	assert_int_equal(clock.frequency_hz, 1000000000);
}

static void automatic(void **state)
{
	struct ky_os_clock clock;

	assert_int_equal(ky_os_clock_init(&clock, KY_OS_CLOCK_AUTO, NULL), 0);
	assert_int_equal(clock.kind, ky_os_tsc_unsound() ? KY_OS_CLOCK_MONOTONIC : KY_OS_CLOCK_TSC);
}

static void boot_id(void **state)
{
	struct ky_os_clock clock;
	char want[64], have[64];
	uint8_t id[16];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	int len = 0;

	assert_non_null(file);
	assert_non_null(fgets(want, sizeof(want), file));
	fclose(file);
	want[36] = '\0';
	assert_int_equal(ky_os_clock_init(&clock, KY_OS_CLOCK_MONOTONIC, NULL), 0);
	for (int i = 0; i < 16; i++)
		len += snprintf(have + len, sizeof(have) - (size_t)len, "%s%02x",
				i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", clock.uuid[i]);
	assert_string_equal(have, want);
	assert_true(ky_os_boot_id(id));
	assert_memory_equal(id, clock.uuid, sizeof(id));
}

static void drift(void **state)
{
	const struct timespec wait = {0, 300 * MS_IN_NS};
	struct ky_os_clock_drift now;
	struct ky_os_clock clock;

	assert_int_equal(ky_os_clock_init(&clock, KY_OS_CLOCK_AUTO, NULL), 0);
	nanosleep(&wait, NULL);
	ky_os_clock_resample(&clock, &now);
	assert_true(now.elapsed_ns >= 300 * MS_IN_NS);
	/* 100 ppm would be a broken frequency. */
	assert_true(llabs(now.drift_ns) < now.elapsed_ns / 10000);
	assert_int_equal(now.step_ns, 0);
	assert_agrees(&clock, MS_IN_NS);
}

/* A frequency that is off by 50 ppm, as NTP may steer, is found and put right at both ends. */
static void refine(void **state)
{
	const struct timespec wait = {0, 300 * MS_IN_NS};
	struct ky_os_clock_drift now;
	struct ky_os_clock clock;
	uint64_t true_hz;

	if (!init(&clock, KY_OS_CLOCK_TSC))
		skip();
	true_hz = clock.frequency_hz;
	clock.frequency_hz += true_hz / 20000;
	nanosleep(&wait, NULL);
	ky_os_clock_resample(&clock, &now);
	assert_true(now.drift_ns < -10000);
	assert_true(ky_os_clock_refine(&clock, &now));
	assert_true(llabs((int64_t)(clock.frequency_hz - true_hz)) < (int64_t)(true_hz / 200000));
	assert_agrees(&clock, MS_IN_NS / 10);
	assert_true(llabs(ky_os_clock_to_ns(&clock, clock.real.cycles) - clock.real.ns) < 3);
	ky_os_clock_resample(&clock, &now);
	assert_true(llabs(now.drift_ns) < 10000);
}

/* What has drifted is made up for by the next mapping, which begins where the last one ends. */
static void continues(void **state)
{
	const struct timespec wait = {0, 300 * MS_IN_NS};
	struct ky_os_clock_drift now;
	struct ky_os_clock clock, last;

	if (!init(&clock, KY_OS_CLOCK_TSC))
		skip();
	ky_os_clock_resample(&clock, &now);
	assert_false(ky_os_clock_continue(&clock, &now));
	/* The mapping of a finished trace stays as it is. */
	clock.frequency_hz += clock.frequency_hz / 2000;
	last = clock;
	nanosleep(&wait, NULL);
	ky_os_clock_resample(&clock, &now);
	assert_false(ky_os_clock_refine(&clock, &now));
	assert_true(now.drift_ns < -100000);
	assert_true(ky_os_clock_continue(&clock, &now));
	assert_true(llabs(ky_os_clock_to_ns(&clock, now.mono.cycles) -
			  ky_os_clock_to_ns(&last, now.mono.cycles)) < 3);
	nanosleep(&wait, NULL);
	ky_os_clock_resample(&clock, &now);
	assert_true(ky_os_clock_refine(&clock, &now));
	ky_os_clock_resample(&clock, &now);
	assert_true(llabs(now.drift_ns) < 10000);
}

/* Ten days of uptime: the anchor holds whatever the frequency is. */
static void long_uptime(void **state)
{
	struct ky_os_clock clock;
	uint64_t ten_days;

	if (!init(&clock, KY_OS_CLOCK_TSC))
		skip();
	ten_days = clock.frequency_hz * 864000;
	assert_int_equal(ky_os_clock_to_ns(&clock, clock.real.cycles + ten_days) -
				 ky_os_clock_to_ns(&clock, clock.real.cycles),
			 INT64_C(864000) * 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tsc),	     cmocka_unit_test(monotonic),
		cmocka_unit_test(boot_id),   cmocka_unit_test(automatic),
		cmocka_unit_test(drift),     cmocka_unit_test(refine),
		cmocka_unit_test(continues), cmocka_unit_test(long_uptime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
