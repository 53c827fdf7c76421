/* SPDX-License-Identifier: MIT */
#include "kernel/switches/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "kernel/bpf/switches.h"
#include "kernel/tracefs/cpu-ring.h"
#include "os/cpu.h"

#define SWITCH_EVENT "events/sched/sched_switch/"
/* A CPU that is busy with something else is given several chances. */
#define TEST_SLEEPS	3
#define TEST_TRIES	32 /* a busy CPU is seldom idle: some 10 ms at most */
#define TEST_SLEEPS_MIN 2  /* fewer say nothing about a CPU */
#define TEST_SLEEP_NS	60000
#define TEST_LONG_NS	400000 /* later ones: a CPU that was busy so far will be for longer */
#define TEST_SHORTS	8

/* Does the ring have the CPU's switches from idle? */
enum verdict {
	HAS, /* or the CPU is offline */
	LACKS,
	UNKNOWN, /* the CPU had none during the test: the program is on until the ring shows one */
};

/* What was fetched of a CPU: slots whose time_ns is in cycles of the ring's clock. */
struct cpu {
	enum verdict verdict;
	uint64_t tail; /* switches that were fetched */
	uint64_t lost;
	size_t first; /* of `slots`: those before it are taken */
	KY_VEC(struct ky_switches_slot) slots;
};

struct ky_switches {
	struct ky_bpf_switches program;
	struct cpu *cpus; /* one for each region */
	const struct ky_os_clock *clock;
	struct ky_os_clock_pair before; /* of the last fetch: cycles, and CLOCK_MONOTONIC */
};

static struct ky_switches_head *head_of(const struct ky_switches *switches, uint32_t cpu)
{
	return ky_bpf_region(&switches->program.regions, cpu);
}

int ky_switches_open(struct ky_switches **out, struct kymo_error *err)
{
	struct ky_switches *switches = calloc(1, sizeof(*switches));
	int ret;

	*out = NULL;
	if (!switches)
		return ky_error_nomem(err);
	ret = ky_bpf_switches_load(&switches->program, err);
	if (!ret) {
		switches->cpus = calloc(switches->program.regions.n, sizeof(*switches->cpus));
		ret = switches->cpus ? KYMO_OK : ky_error_nomem(err);
	}
	if (ret < 0) {
		ky_switches_close(switches);
		return ret;
	}
	*out = switches;
	return KYMO_OK;
}

void ky_switches_close(struct ky_switches *switches)
{
	if (!switches)
		return;
	for (uint32_t i = 0; switches->cpus && i < switches->program.regions.n; i++)
		ky_vec_fini(&switches->cpus[i].slots);
	free(switches->cpus);
	ky_bpf_switches_unload(&switches->program);
	free(switches);
}

static void switches_switch_on(struct ky_switches *switches, uint32_t cpu, bool on)
{
	struct ky_switches_head *head = head_of(switches, cpu);

	__atomic_store_n(&head->is_on, on, __ATOMIC_RELEASE);
}

/* ---- the self-test ---------------------------------------------------------------------- */

static uint64_t switched(const struct ky_switches *switches, uint32_t cpu)
{
	return __atomic_load_n(&head_of(switches, cpu)->n, __ATOMIC_ACQUIRE);
}

static void sleep_on(const struct ky_switches *switches, uint32_t cpu)
{
	struct timespec pause = {0, TEST_SLEEP_NS};

	for (int i = 0; i < TEST_TRIES && switched(switches, cpu) < TEST_SLEEPS; i++) {
		pause.tv_nsec = i < TEST_SHORTS ? TEST_SLEEP_NS : TEST_LONG_NS;
		nanosleep(&pause, NULL);
	}
}

/* This thread sleeps on each CPU that it may run on: a CPU with nothing else to do switches to idle and back. */
static void make_switches(const struct ky_switches *switches, const cpu_set_t *allowed)
{
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE && cpu < switches->program.regions.n; cpu++) {
		cpu_set_t one;

		if (!CPU_ISSET(cpu, allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) < 0)
			continue;
		sleep_on(switches, cpu);
	}
	(void)sched_setaffinity(0, sizeof(*allowed), allowed);
}

static int start_test(const struct ky_instance *instance, struct kymo_error *err)
{
	int ret = ky_instance_write(instance, SWITCH_EVENT "filter", "prev_pid == 0", err);

	if (!ret)
		ret = ky_instance_write(instance, SWITCH_EVENT "enable", "1", err);
	return ret ? ret : ky_instance_write(instance, "tracing_on", "1", err);
}

/* The instance is as it was. */
static int end_test(const struct ky_instance *instance, int ret, struct kymo_error *err)
{
	static const char *const writes[][2] = {
		{"tracing_on", "0"}, {SWITCH_EVENT "enable", "0"}, {SWITCH_EVENT "filter", "0"}};

	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		int failed = ky_instance_write(instance, writes[i][0], writes[i][1],
					       ret < 0 ? NULL : err);

		ret = ret < 0 ? ret : failed;
	}
	return ret;
}

/*
 * Before the ring stops: what the program has seen by then, the ring has, too. A ring either has all
 * of a CPU's switches from idle or none.
 */
static void switches_compare(struct ky_switches *switches, const struct ky_instance *instance,
			     struct ky_switches_found *found)
{
	for (uint32_t cpu = 0; cpu < switches->program.regions.n; cpu++)
		switches_switch_on(switches, cpu, false);
	for (uint32_t cpu = 0; cpu < switches->program.regions.n; cpu++) {
		uint64_t n = switched(switches, cpu);
		struct ky_cpu_ring_stats stats;

		switches->cpus[cpu].verdict = HAS;
		if (ky_cpu_ring_stats(instance, cpu, &stats, NULL) < 0)
			continue;
		if (n < TEST_SLEEPS_MIN) {
			if (!ky_os_cpu_is_online(cpu))
				continue;
			found->n_unknown++;
			switches->cpus[cpu].verdict = UNKNOWN;
			continue;
		}
		found->n_tested++;
		if (stats.entries || stats.overrun)
			continue;
		switches->cpus[cpu].verdict = LACKS;
		if (!found->n_lacking++)
			found->first_lacking = cpu;
	}
}

/* What the test recorded goes: opening the file so empties the rings. */
static int switches_clear(const struct ky_instance *instance, struct kymo_error *err)
{
	int fd = openat(instance->fd, "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return ky_error_errno(err, errno, "cannot empty the ring buffers");
	close(fd);
	return KYMO_OK;
}

int ky_switches_test(struct ky_switches *switches, const struct ky_instance *instance,
		     struct ky_switches_found *found, struct kymo_error *err)
{
	cpu_set_t allowed;
	int ret;

	*found = (struct ky_switches_found){0};
	/* A machine with more CPUs than a set holds is not tested. */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return KYMO_OK;
	ret = start_test(instance, err);
	if (!ret) {
		for (uint32_t cpu = 0; cpu < switches->program.regions.n; cpu++)
			switches_switch_on(switches, cpu, true);
		make_switches(switches, &allowed);
	}
	if (!ret)
		switches_compare(switches, instance, found);
	ret = end_test(instance, ret, err);
	return ret < 0 ? ret : switches_clear(instance, err);
}

/* ---- recording -------------------------------------------------------------------------- */

void ky_switches_begin(struct ky_switches *switches, const struct ky_os_clock *clock)
{
	switches->clock = clock;
	ky_os_clock_mono_pair(clock, &switches->before);
	for (uint32_t cpu = 0; cpu < switches->program.regions.n; cpu++) {
		switches->cpus[cpu].tail = head_of(switches, cpu)->n;
		switches_switch_on(switches, cpu, switches->cpus[cpu].verdict != HAS);
	}
}

void ky_switches_end(struct ky_switches *switches)
{
	ky_switches_drain(switches);
	for (uint32_t cpu = 0; cpu < switches->program.regions.n; cpu++)
		switches_switch_on(switches, cpu, false);
}

int ky_switches_fd(const struct ky_switches *switches)
{
	return ky_bpf_switches_fd(&switches->program);
}

void ky_switches_heed(struct ky_switches *switches)
{
	ky_bpf_switches_heed(&switches->program);
}

static void switches_fetch(struct ky_switches *switches, uint32_t number, uint64_t head,
			   const struct ky_os_clock_pair *now)
{
	const struct ky_switches_slot *slots =
		(const void *)((uint8_t *)head_of(switches, number) + KY_SWITCHES_DATA_OFFSET);
	struct cpu *cpu = &switches->cpus[number];
	size_t at = cpu->slots.len;

	if (head - cpu->tail > KY_SWITCHES_SLOTS) {
		cpu->lost += head - cpu->tail - KY_SWITCHES_SLOTS;
		cpu->tail = head - KY_SWITCHES_SLOTS;
	}
	if (ky_vec_reserve(&cpu->slots, (size_t)(head - cpu->tail)) < 0) {
		cpu->lost += head - cpu->tail;
		cpu->tail = head;
		return;
	}
	for (uint64_t i = cpu->tail; i < head; i++)
		cpu->slots.data[cpu->slots.len++] = slots[i % KY_SWITCHES_SLOTS];
	/* The program may have gone on over what was being copied. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	head = __atomic_load_n(&head_of(switches, number)->n, __ATOMIC_RELAXED) + 1;
	if (head - cpu->tail > KY_SWITCHES_SLOTS) {
		size_t bad = (size_t)(head - cpu->tail - KY_SWITCHES_SLOTS);

		bad = bad < cpu->slots.len - at ? bad : cpu->slots.len - at;
		cpu->lost += bad;
		memmove(&cpu->slots.data[at], &cpu->slots.data[at + bad],
			(cpu->slots.len - at - bad) * sizeof(*cpu->slots.data));
		cpu->tail += bad;
		cpu->slots.len -= bad;
	}
	cpu->tail += cpu->slots.len - at;
	for (; at < cpu->slots.len; at++)
		cpu->slots.data[at].time_ns =
			ky_os_clock_between(&switches->before, now, cpu->slots.data[at].time_ns);
}

/* What was taken makes room. */
static void switches_shift(struct cpu *cpu)
{
	if (!cpu->first)
		return;
	cpu->slots.len -= cpu->first;
	memmove(cpu->slots.data, &cpu->slots.data[cpu->first],
		cpu->slots.len * sizeof(*cpu->slots.data));
	cpu->first = 0;
}

void ky_switches_drain(struct ky_switches *switches)
{
	struct ky_os_clock_pair now = {.ns = 0};

	for (uint32_t i = 0; i < switches->program.regions.n; i++) {
		uint64_t head = __atomic_load_n(&head_of(switches, i)->n, __ATOMIC_ACQUIRE);

		if (switches->cpus[i].verdict == HAS || head == switches->cpus[i].tail)
			continue;
		/* After the head, so that no switch is younger. */
		if (!now.ns)
			ky_os_clock_mono_pair(switches->clock, &now);
		switches_shift(&switches->cpus[i]);
		if (now.ns > switches->before.ns)
			switches_fetch(switches, i, head, &now);
	}
	/* A longer way makes the rate more exact. */
	if (now.ns && now.ns - switches->before.ns > 1000000)
		switches->before = now;
}

void ky_switches_in_ring(struct ky_switches *switches, uint32_t number)
{
	struct cpu *cpu = &switches->cpus[number];

	if (number >= switches->program.regions.n || cpu->verdict != UNKNOWN)
		return;
	cpu->verdict = HAS;
	switches_switch_on(switches, number, false);
	cpu->first = cpu->slots.len;
}

bool ky_switches_are_needed(const struct ky_switches *switches)
{
	for (uint32_t i = 0; i < switches->program.regions.n; i++)
		if (switches->cpus[i].verdict != HAS)
			return true;
	return false;
}

uint64_t ky_switches_next(const struct ky_switches *switches, uint32_t number)
{
	const struct cpu *cpu = &switches->cpus[number];

	if (number >= switches->program.regions.n || cpu->first == cpu->slots.len)
		return UINT64_MAX;
	return cpu->slots.data[cpu->first].time_ns;
}

struct ky_switches_slot ky_switches_take(struct ky_switches *switches, uint32_t number)
{
	struct cpu *cpu = &switches->cpus[number];

	return cpu->slots.data[cpu->first++];
}

uint64_t ky_switches_lost(const struct ky_switches *switches, uint32_t number)
{
	return number < switches->program.regions.n ? switches->cpus[number].lost : 0;
}
