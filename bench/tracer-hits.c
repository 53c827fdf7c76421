/* SPDX-License-Identifier: MIT */
/*
 * tracer-hits WHAT PARTS [THREADS]: what hitting an event costs, and the floor; without the loop and
 * the call. bench/bench-tracer runs it under recorders. Printed are: best ns per event, the floor's
 * best ns. Loop, floor and event take turns in parts far shorter than a time slice, so that other
 * load on the machine does not show in the best ones, or shows in all alike.
 *
 * tracer-hits WHAT SECONDS paced: 10 million events per second, 1000 every 100 us; printed are the
 * ns per event of the median burst, and the floor's, which takes turns with it; then how many.
 *
 * tracer-hits WHAT: one hit, in a program that ends at once.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kymo/trace.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#ifdef HAVE_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng-hits.h"
#endif

#define PART  5000
#define BURST 1000

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static const char *text = "hello world";

/* Each turn is a call, as of a function that does something; "nothing" is what that costs. */
static __attribute__((noinline)) void nothing(uint64_t i)
{
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

static __attribute__((noinline)) void disabled(uint64_t i)
{
	KYMO_EVENT(bench, disabled, i);
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

static __attribute__((noinline)) void word(uint64_t i)
{
	KYMO_EVENT(bench, word, i);
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

static __attribute__((noinline)) void three(uint64_t i)
{
	int number = (int)i;

	KYMO_EVENT(bench, three, number, i, text);
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

/* Both ends of a pair. */
static __attribute__((noinline)) void latency(uint64_t i)
{
	uint64_t key = i + (uint64_t)(uintptr_t)&i;

	KYMO_LATENCY_BEGIN(bench, key);
	KYMO_LATENCY_END(bench, key);
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

#ifdef HAVE_LTTNG
static __attribute__((noinline)) void lttng_word(uint64_t i)
{
	lttng_ust_tracepoint(lttng_bench, word, i);
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

static __attribute__((noinline)) void lttng_three(uint64_t i)
{
	lttng_ust_tracepoint(lttng_bench, three, (int)i, i, text);
	__asm__ __volatile__("" ::"r"(i) : "memory");
}
#endif

/* The floor: the clock, and 16 bytes stored in a ring of 64 KiB. */
static uint64_t ring[8192] __attribute__((aligned(64)));

static __attribute__((noinline)) void least(uint64_t i)
{
	uint64_t at = 2 * i & 8191;
#if defined(__x86_64__)
	ring[at] = __rdtsc();
#else
	ring[at] = now_ns();
#endif
	ring[at + 1] = i;
	__asm__ __volatile__("" ::"r"(i) : "memory");
}

static const struct {
	const char *name;
	void (*hit)(uint64_t i);
} kinds[] = {
	{"nothing", nothing},	    {"disabled", disabled},	  {"word", word},
	{"three", three},	    {"latency", latency},
#ifdef HAVE_LTTNG
	{"lttng-word", lttng_word}, {"lttng-three", lttng_three},
#endif
};

/* Every call in it is an indirect one. */
static __attribute__((noinline, noclone)) double part_ns(void (*hit)(uint64_t i), uint64_t n)
{
	uint64_t begin = now_ns();

	for (uint64_t i = 0; i < n; i++)
		hit(i);
	return (double)(now_ns() - begin) / (double)n;
}

static double least_of(double a, double b)
{
	return a < b ? a : b;
}

struct thread {
	pthread_t id;
	void (*hit)(uint64_t i);
	uint64_t parts;
	int cpu; /* -1: any */
	double ns, floor_ns;
};

static void *run(void *data)
{
	struct thread *thread = data;
	double loop = 1e9, floor = 1e9, event = 1e9;
	cpu_set_t cpus;

	if (thread->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(thread->cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	for (uint64_t p = 0; p < thread->parts; p++) {
		loop = least_of(loop, part_ns(nothing, PART));
		floor = least_of(floor, part_ns(least, PART));
		event = least_of(event, part_ns(thread->hit, PART));
	}
	thread->ns = event - loop;
	thread->floor_ns = floor - loop;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int run_paced(void (*hit)(uint64_t i), double seconds, double per_s)
{
	size_t n = (size_t)(seconds * per_s / BURST);
	double step_ns = 1e9 * BURST / per_s;
	double *event = calloc(3 * n, sizeof(double)), *floor = event + n, *loop = floor + n;
	uint64_t start = now_ns();

	for (size_t i = 0; event && i < n; i++) {
		while ((double)(now_ns() - start) < (double)i * step_ns)
			;
		event[i] = part_ns(hit, BURST);
		floor[i] = part_ns(least, BURST);
		loop[i] = part_ns(nothing, BURST);
	}
	qsort(event, n, sizeof(double), compare);
	qsort(floor, n, sizeof(double), compare);
	qsort(loop, n, sizeof(double), compare);
	printf("%.2f %.2f %zu\n", event[n / 2] - loop[n / 2], floor[n / 2] - loop[n / 2],
	       n * BURST);
	free(event);
	return 0;
}

int main(int argc, char **argv)
{
	struct thread threads[64] = {0};
	bool is_paced = argc > 3 && strcmp(argv[3], "paced") == 0;
	int n_threads = argc > 3 ? atoi(argv[3]) : 1;
	double ns = 0, floor_ns = 0;

	for (size_t k = 0; argc > 1 && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (strcmp(kinds[k].name, argv[1]) != 0)
			continue;
		if (argc == 2) {
			kinds[k].hit(0);
			return 0;
		}
		if (is_paced)
			return run_paced(kinds[k].hit, atof(argv[2]),
					 argc > 4 ? atof(argv[4]) : 1e7);
		for (int i = 0; i < n_threads && i < 64; i++) {
			threads[i].hit = kinds[k].hit;
			threads[i].parts = strtoull(argv[2], NULL, 10);
			threads[i].cpu = argc > 3 ? i : -1;
			pthread_create(&threads[i].id, NULL, run, &threads[i]);
		}
		for (int i = 0; i < n_threads && i < 64; i++) {
			pthread_join(threads[i].id, NULL);
			ns += threads[i].ns / n_threads;
			floor_ns += threads[i].floor_ns / n_threads;
		}
		printf("%.2f %.2f\n", ns, floor_ns);
		return 0;
	}
	fprintf(stderr,
		"usage: tracer-hits WHAT PARTS [THREADS], tracer-hits WHAT SECONDS paced [EVENTS_PER_S]\n");
	return 2;
}
