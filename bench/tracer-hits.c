/* SPDX-License-Identifier: MIT */
/*
 * tracer-hits WHAT N [THREADS]: ns per turn of a loop that hits one event, as "ns cpu".
 * bench/bench-tracer runs it under recorders. The first figure is the best of many short parts, each
 * shorter than a time slice, so that other processes on the CPU do not show; the second is all.
 */
#include <pthread.h>
#include <sched.h>
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

#define PART 20000

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
	{"nothing", nothing},	    {"disabled", disabled},	  {"word", word}, {"three", three},
	{"floor", least},
#ifdef HAVE_LTTNG
	{"lttng-word", lttng_word}, {"lttng-three", lttng_three},
#endif
};

struct thread {
	pthread_t id;
	void (*hit)(uint64_t i);
	uint64_t n;
	int cpu; /* -1: any */
	double best_ns, all_ns;
};

static void *run(void *data)
{
	struct thread *thread = data;
	uint64_t parts = thread->n / PART + 1, begin = now_ns(), last = begin;
	cpu_set_t cpus;

	if (thread->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(thread->cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	thread->best_ns = 1e9;
	for (uint64_t p = 0; p < parts; p++) {
		uint64_t end;

		for (uint64_t i = 0; i < PART; i++)
			thread->hit(i);
		end = now_ns();
		if ((double)(end - last) / PART < thread->best_ns)
			thread->best_ns = (double)(end - last) / PART;
		last = end;
	}
	thread->all_ns = (double)(last - begin) / (double)(parts * PART);
	return NULL;
}

int main(int argc, char **argv)
{
	struct thread threads[64] = {0};
	int n_threads = argc > 3 ? atoi(argv[3]) : 1;
	double best = 0, all = 0;

	for (size_t k = 0; argc > 2 && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (strcmp(kinds[k].name, argv[1]) != 0)
			continue;
		for (int i = 0; i < n_threads && i < 64; i++) {
			threads[i].hit = kinds[k].hit;
			threads[i].n = strtoull(argv[2], NULL, 10);
			threads[i].cpu = argc > 3 ? i : -1;
			pthread_create(&threads[i].id, NULL, run, &threads[i]);
		}
		for (int i = 0; i < n_threads && i < 64; i++) {
			pthread_join(threads[i].id, NULL);
			best += threads[i].best_ns / n_threads;
			all += threads[i].all_ns / n_threads;
		}
		printf("%.2f %.2f\n", best, all);
		return 0;
	}
	fprintf(stderr, "usage: tracer-hits WHAT N [THREADS]\n");
	return 2;
}
