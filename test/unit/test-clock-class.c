/* SPDX-License-Identifier: MIT */
/* Clock values to nanoseconds: exact, floored, and without overflow. */
#include "unit.h"

#include "ctf/model/model.h"

static struct ky_clock_class clock_of(uint64_t freq, int64_t offset_s, int64_t offset)
{
	struct ky_clock_class clock = {
		.name = "c", .frequency_hz = freq, .offset_s = offset_s, .offset_cycles = offset};

	assert_int_equal(ky_clock_finish(&clock, NULL), 0);
	return clock;
}

static void test_nanoseconds(void **state)
{
	struct ky_clock_class clock = clock_of(1000000000, 1700000000, 123);

	assert_int_equal(clock.base_ns, 1700000000000000123);
	assert_int_equal(ky_clock_to_ns(&clock, 0), 1700000000000000123);
	assert_int_equal(ky_clock_to_ns(&clock, 877), 1700000000000001000);
	assert_int_equal(ky_clock_to_ns(&clock, UINT64_MAX), INT64_MAX);
}

static void test_floor(void **state)
{
	struct ky_clock_class third = clock_of(3, 0, -1);

	assert_int_equal(third.base_ns, -333333334);
	assert_int_equal(ky_clock_to_ns(&third, 0), -333333334);
	/* Each part is rounded down by itself. */
	assert_int_equal(ky_clock_to_ns(&third, 1), -333333334 + 333333333);
	assert_int_equal(ky_clock_to_ns(&third, 3), -333333334 + 1000000000);
}

static void test_offset_beyond_a_second(void **state)
{
	struct ky_clock_class clock = clock_of(1000, -5, 7500);

	assert_int_equal(clock.base_ns, 2500000000);
	assert_int_equal(ky_clock_to_ns(&clock, 1), 2501000000);
}

static void test_negative_origin(void **state)
{
	struct ky_clock_class clock = clock_of(1000000000, -9223372036, 0);

	assert_int_equal(ky_clock_to_ns(&clock, 0), -9223372036000000000);
	assert_int_equal(ky_clock_to_ns(&clock, UINT64_MAX), INT64_MAX);
	assert_int_equal(ky_clock_to_ns(&clock, 9223372036000000005), 5);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Against the definition, computed in 128 bits, for frequencies and values of every size. */
static void test_against_definition(void **state)
{
	uint64_t seed = 88172645463325252u;

	for (int i = 0; i < 200000; i++) {
		uint64_t freq = (next_random(&seed) >> next_random(&seed) % 64) | 1;
		uint64_t cycles = next_random(&seed) >> next_random(&seed) % 64;
		struct ky_clock_class clock = clock_of(freq, 0, 0);
		unsigned __int128 ns = (unsigned __int128)cycles * 1000000000 / freq;

		assert_int_equal(ky_clock_to_ns(&clock, cycles),
				 ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
	}
}

/* The places where a rounded reciprocal would be one short. */
static void test_exact_multiples(void **state)
{
	static const uint64_t freqs[] = {1000000001, 2399998000,	 3000000000,
					 4294967296, 999999999999999999, UINT64_MAX};

	for (size_t i = 0; i < sizeof(freqs) / sizeof(freqs[0]); i++) {
		struct ky_clock_class clock = clock_of(freqs[i], 0, 0);

		for (uint64_t n = 1; n <= UINT64_MAX / freqs[i] && n < 5; n++) {
			assert_int_equal(ky_clock_to_ns(&clock, n * freqs[i]), n * 1000000000);
			assert_int_equal(ky_clock_to_ns(&clock, n * freqs[i] - 1),
					 n * 1000000000 - 1);
		}
	}
}

static void test_refused(void **state)
{
	struct ky_clock_class clock = {.name = "c"};
	struct kymo_error err;

	assert_int_equal(ky_clock_finish(&clock, &err), KYMO_E_FORMAT);
	assert_string_equal(err.message, "clock \"c\": the frequency is 0");
}

static void test_origin_wraps(void **state)
{
	struct ky_clock_class clock = {.name = "c", .frequency_hz = 1, .offset_s = 9223372037};

	assert_int_equal(ky_clock_finish(&clock, NULL), 0);
	assert_true(clock.origin_wraps);
	assert_int_equal(clock.base_ns, -9223372036709551616);
	assert_int_equal(ky_clock_to_ns(&clock, 1), -9223372035709551616);
	clock.offset_cycles = -1;
	assert_int_equal(ky_clock_finish(&clock, NULL), 0);
	assert_false(clock.origin_wraps);
	assert_int_equal(clock.base_ns, 9223372036000000000);
	clock.offset_s = INT64_MIN;
	clock.offset_cycles = INT64_MIN;
	assert_int_equal(ky_clock_finish(&clock, NULL), 0);
	assert_true(clock.origin_wraps);
	assert_int_equal(clock.base_ns, 0);
}

/* A correction keeps the order of times, and is undone exactly. */
static void test_line(void **state)
{
	const int64_t drifts[] = {
		0, 1, -1, KY_CLOCK_DRIFT_MAX, -KY_CLOCK_DRIFT_MAX, INT64_C(461168601842738)};
	struct ky_clock_class clock = clock_of(2596124114, 1795690870, 697828396);

	(void)state;
	for (size_t i = 0; i < sizeof(drifts) / sizeof(drifts[0]); i++) {
		uint64_t cycles = UINT64_C(99181254611999);
		int64_t before;

		clock.line.is_set = false;
		before = ky_clock_to_ns(&clock, cycles);
		clock.line = (struct ky_clock_line){true, before - 1000, -3200000136, drifts[i]};
		assert_int_equal(ky_clock_to_ns(&clock, cycles),
				 before - 3200000136 + (int64_t)((__int128)1000 * drifts[i] >> 62));
		for (int n = 0; n < 1000; n++, cycles += UINT64_C(7777777777)) {
			int64_t ns = ky_clock_to_ns(&clock, cycles);
			uint64_t back = ky_clock_from_ns(&clock, ns);

			assert_true(ky_clock_to_ns(&clock, cycles + 1) >= ns);
			assert_true(back <= cycles && ky_clock_to_ns(&clock, back) == ns);
			assert_true(ky_clock_to_ns(&clock, back - 1) < ns);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nanoseconds),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_offset_beyond_a_second),
		cmocka_unit_test(test_negative_origin),
		cmocka_unit_test(test_against_definition),
		cmocka_unit_test(test_exact_multiples),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_origin_wraps),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
