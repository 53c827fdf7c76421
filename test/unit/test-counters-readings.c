/* SPDX-License-Identifier: MIT */
/* The regions are memory of the test's; it leaves readings there as the programs do. */
#include "unit.h"

#include <string.h>
#include <sys/mman.h>

#include "kernel/counters/counters-internal.h"

#define N_CPUS	2
#define N_SLOTS 64
#define SWITCH	10
#define WAKING	11
#define ENTER	KY_COUNTERS_OF_SYS_ENTER
#define EXIT	KY_COUNTERS_OF_SYS_EXIT
#define NEVER	UINT64_MAX

struct fixture {
	struct ky_counters *counters;
	uint64_t next[N_CPUS]; /* number of the next reading */
};

static void set_up(struct fixture *f)
{
	static const struct ky_os_counter counter = {.name = "page-faults"};
	const struct ky_counter_choice choice = {&counter, false};
	struct ky_counters *counters = ky_counters_new(&choice, 1, 0);
	struct ky_bpf_regions *regions = &counters->programs.regions;

	memset(f, 0, sizeof(*f));
	assert_non_null(counters);
	f->counters = counters;
	counters->n_cpus = N_CPUS;
	counters->cpus = calloc(N_CPUS, sizeof(*counters->cpus));
	for (int cpu = 0; cpu < N_CPUS; cpu++)
		for (int i = 0; i < KY_COUNTERS_MAX; i++)
			counters->cpus[cpu].fds[i] = -1;
	counters->programs.n_slots = N_SLOTS;
	counters->programs.slot_bytes = ky_counters_slot_bytes(1);
	regions->n = N_CPUS;
	regions->bytes = KY_COUNTERS_DATA_OFFSET + N_SLOTS * counters->programs.slot_bytes;
	regions->at = mmap(NULL, regions->bytes * N_CPUS, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(regions->at, MAP_FAILED);
}

static void tear_down(struct fixture *f)
{
	ky_counters_free(f->counters);
}

static struct ky_counters_slot *slot_at(struct fixture *f, uint32_t cpu, uint64_t number)
{
	struct ky_bpf_counters *programs = &f->counters->programs;
	uint8_t *region = ky_bpf_region(&programs->regions, cpu);

	return (void *)(region + KY_COUNTERS_DATA_OFFSET + number % N_SLOTS * programs->slot_bytes);
}

/* A program begins: it has a number, and has not yet said that the reading is whole. */
static uint64_t begin(struct fixture *f, uint32_t cpu, uint32_t key, uint32_t tid, uint64_t time_ns)
{
	uint64_t number = f->next[cpu]++;
	struct ky_counters_slot *slot = slot_at(f, cpu, number);

	*(uint64_t *)ky_bpf_region(&f->counters->programs.regions, cpu) = f->next[cpu];
	slot->number = 0;
	slot->time_ns = time_ns;
	slot->tid = tid;
	slot->key = key;
	slot->values[0] = time_ns; /* a counter that can be told from all others */
	return number;
}

static void end(struct fixture *f, uint32_t cpu, uint64_t number)
{
	slot_at(f, cpu, number)->number = number + 1;
}

static void leave(struct fixture *f, uint32_t cpu, uint32_t key, uint32_t tid, uint64_t time_ns)
{
	end(f, cpu, begin(f, cpu, key, tid, time_ns));
}

/* What an event is given: the time of the reading that it was; NEVER: of none of its own. */
static uint64_t take(struct fixture *f, uint32_t cpu, uint32_t key, uint32_t tid, uint64_t time_ns,
		     bool is_interrupt)
{
	uint64_t missing = ky_counters_missing(f->counters);
	uint64_t value = ky_counters_take(f->counters, key, tid, cpu, time_ns, is_interrupt)[0];

	if (ky_counters_missing(f->counters) == missing)
		return value;
	assert_int_equal(value, ky_counters_last(f->counters, cpu)[0]);
	return NEVER;
}

static void test_each_has_its_own(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	leave(&f, 0, WAKING, 7, 100);
	leave(&f, 0, SWITCH, 7, 200);
	leave(&f, 1, SWITCH, 8, 150);
	ky_counters_drain(f.counters);
	leave(&f, 0, SWITCH, 7, 300);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 101, false), 100);
	assert_int_equal(take(&f, 1, SWITCH, 8, 151, false), 150);
	assert_int_equal(take(&f, 0, SWITCH, 7, 201, false), 200);
	assert_int_equal(take(&f, 0, SWITCH, 7, 301, false), 300);
	assert_int_equal(f.counters->n_readings, 0);
	/* There is no more. */
	assert_int_equal(take(&f, 0, SWITCH, 7, 302, false), NEVER);
	assert_int_equal(take(&f, 0, SWITCH, 9, 303, false), NEVER);
	tear_down(&f);
}

static void test_one_that_is_being_written(void **state)
{
	struct fixture f;
	uint64_t number;

	(void)state;
	set_up(&f);
	number = begin(&f, 0, WAKING, 7, 100);
	leave(&f, 0, SWITCH, 7, 120); /* an interrupt's */
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, SWITCH, 7, 121, true), 120);
	end(&f, 0, number);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 130, false), 100);
	tear_down(&f);
}

static void test_interrupts_within(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	leave(&f, 0, SWITCH, 7, 100);
	leave(&f, 0, WAKING, 7, 110);
	leave(&f, 0, WAKING, 7, 120);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 121, true), 120);
	assert_int_equal(take(&f, 0, WAKING, 7, 122, true), 110);
	assert_int_equal(take(&f, 0, SWITCH, 7, 123, false), 100);
	tear_down(&f);
}

/* Readings of events that nobody wants are not given to later ones whose own was lost. */
static void test_left_by_others(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	/* On another CPU. */
	leave(&f, 0, WAKING, 7, 100);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 1, WAKING, 7, 200, true), NEVER);
	/* Another thread has been there since. */
	leave(&f, 0, WAKING, 7, 300);
	leave(&f, 0, SWITCH, 8, 310);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 400, true), NEVER);
	assert_int_equal(take(&f, 0, SWITCH, 8, 401, false), 310);
	/* The same, and the thread is back; the one before has its own. */
	leave(&f, 0, WAKING, 7, 500);
	leave(&f, 0, WAKING, 8, 510);
	leave(&f, 0, SWITCH, 7, 520);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 501, true), 500);
	leave(&f, 0, WAKING, 7, 540);
	leave(&f, 0, WAKING, 8, 550);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 560, true), NEVER);
	tear_down(&f);
}

static void test_idle_threads(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	leave(&f, 0, SWITCH, 0, 100);
	leave(&f, 1, SWITCH, 0, 110);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, SWITCH, 0, 120, false), 100);
	assert_int_equal(take(&f, 1, SWITCH, 0, 121, false), 110);
	tear_down(&f);
}

/* A thread may lose its CPU between a call's reading and its event. */
static void test_calls(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	leave(&f, 0, ENTER, 7, 100);
	leave(&f, 0, SWITCH, 7, 110);
	leave(&f, 0, SWITCH, 8, 120);
	leave(&f, 1, WAKING, 7, 130);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, SWITCH, 7, 111, false), 110);
	assert_int_equal(take(&f, 0, SWITCH, 8, 121, false), 120);
	assert_int_equal(take(&f, 1, WAKING, 7, 131, false), 130);
	assert_int_equal(take(&f, 1, ENTER, 7, 140, false), 100);
	/* One that nobody wants, and the end of it; the next one's was lost. */
	leave(&f, 0, ENTER, 7, 200);
	leave(&f, 0, EXIT, 7, 210);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, ENTER, 7, 220, false), NEVER);
	/* This one comes before any of its own. */
	leave(&f, 0, ENTER, 7, 300);
	leave(&f, 0, EXIT, 7, 310);
	leave(&f, 0, ENTER, 7, 320);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, ENTER, 7, 321, false), 320);
	assert_int_equal(f.counters->n_readings, 0);
	tear_down(&f);
}

/* The programs went round before anybody looked: what was there is theirs, what waits is nobody's. */
static void test_losses(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	leave(&f, 0, ENTER, 7, 80);
	leave(&f, 0, WAKING, 7, 90);
	leave(&f, 0, ENTER, 9, 95);
	leave(&f, 0, WAKING, 7, 100);
	leave(&f, 1, ENTER, 8, 100);
	ky_counters_drain(f.counters);
	for (int i = 0; i < 2 * N_SLOTS; i++)
		leave(&f, 0, SWITCH, 7, 1000 + (uint64_t)i);
	ky_counters_drain(f.counters);
	/* From before the loss; and what may be, or not. */
	assert_int_equal(take(&f, 0, WAKING, 7, 91, true), 90);
	assert_int_equal(take(&f, 0, WAKING, 7, 105, true), NEVER);
	assert_int_equal(take(&f, 0, ENTER, 9, 110, false), NEVER);
	assert_int_equal(take(&f, 0, SWITCH, 7, 1002, true), NEVER);
	/* The other CPU's are as they were. */
	assert_int_equal(take(&f, 1, ENTER, 8, 1003, false), 100);
	/* Those that were not overwritten. */
	assert_int_equal(take(&f, 0, SWITCH, 7, 1000 + N_SLOTS, false), 1000 + N_SLOTS);
	assert_int_equal(take(&f, 0, SWITCH, 7, 1000 + 2 * N_SLOTS, false), 999 + 2 * N_SLOTS);
	assert_int_equal(f.counters->n_readings, 1); /* its call may still come */
	tear_down(&f);
}

/* One that was being written when others were taken after it, and was overwritten since. */
static void test_a_gap_that_is_lost(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	leave(&f, 0, WAKING, 7, 100); /* nobody wants it */
	(void)begin(&f, 0, WAKING, 7, 110);
	leave(&f, 0, SWITCH, 7, 120);
	ky_counters_drain(f.counters);
	for (int i = 0; i < N_SLOTS; i++)
		leave(&f, 0, SWITCH, 9, 1000 + (uint64_t)i);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 111, true), NEVER);
	/* Those from behind it are their events' own. */
	assert_int_equal(take(&f, 0, SWITCH, 7, 121, true), 120);
	assert_int_equal(take(&f, 0, SWITCH, 9, 1001, true), 1001);
	tear_down(&f);
}

static void test_what_waits_too_long(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (uint32_t tid = 1; tid <= 20; tid++)
		leave(&f, tid % N_CPUS, WAKING, tid, 100 + tid);
	ky_counters_drain(f.counters);
	ky_counters_expire(f.counters, 1000);
	assert_int_equal(f.counters->n_readings, 20);
	ky_counters_expire(f.counters, 3000000000);
	assert_int_equal(f.counters->n_readings, 0);
	assert_int_equal(f.counters->threads.len, 0);
	leave(&f, 0, WAKING, 7, 3000000100);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, WAKING, 7, 3000000101, false), 3000000100);
	tear_down(&f);
}

/* A CPU has been away; its counters of before were read until others were there. */
static void test_counters_that_were_replaced(void **state)
{
	struct fixture f;
	struct ky_counters_cpu *cpu;

	(void)state;
	set_up(&f);
	cpu = &f.counters->cpus[0];
	cpu->base_before[0] = 1000;
	cpu->raw_before[0] = 100;
	cpu->base[0] = 1130;
	cpu->replaced_ns = 200;
	leave(&f, 0, SWITCH, 7, 20); /* a new one, stamped just before */
	leave(&f, 0, SWITCH, 7, 120);
	leave(&f, 0, SWITCH, 7, 250);
	ky_counters_drain(f.counters);
	assert_int_equal(take(&f, 0, SWITCH, 7, 21, false), 1150);
	assert_int_equal(take(&f, 0, SWITCH, 7, 121, false), 1120);
	assert_int_equal(take(&f, 0, SWITCH, 7, 251, false), 1380);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_has_its_own),
		cmocka_unit_test(test_one_that_is_being_written),
		cmocka_unit_test(test_interrupts_within),
		cmocka_unit_test(test_left_by_others),
		cmocka_unit_test(test_idle_threads),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_a_gap_that_is_lost),
		cmocka_unit_test(test_what_waits_too_long),
		cmocka_unit_test(test_counters_that_were_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
