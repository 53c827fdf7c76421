/* SPDX-License-Identifier: MIT */
/*
 * Samples of what the CPUs run, with call stacks of kernel and program: perf events of all CPUs, in a ring for each CPU.
 * The kernel also tells in these rings which processes begin, end, execute programs and map files, so that addresses can be
 * looked up later.
 *
 *	ky_samples_open()	events and rings of all CPUs; off
 *	ky_samples_begin()	on
 *	ky_samples_read()	the records until a time, in the order of time over all CPUs
 *	ky_samples_pause()	off; ky_samples_begin() goes on
 *	ky_samples_close()
 *
 * Before the first sample of a process that has frames of a program, and again after ky_samples_renew(), the listener gets all
 * executable mappings of the process, with the sample's time. Of later mappings it gets each.
 * IDs are those of the recorder's PID namespace. Threads: one at a time.
 */
#ifndef KY_KERNEL_SAMPLES_SAMPLES_H
#define KY_KERNEL_SAMPLES_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/samples/sample-processes.h"
#include "kernel/samples/sample-source.h"
#include "kernel/samples/sample-stacks.h"
#include "os/clock.h"

struct ky_samples_options {
	const struct ky_sample_source *sources; /* that were found; copied */
	size_t n_sources;
	const struct ky_os_clock *clock; /* of the trace; borrowed */
	uint64_t ring_bytes;		 /* of each CPU */
	/* Not 0: programs' frames by DWARF, in so many bytes of the stack; else by frame pointers. */
	uint32_t stack_bytes;
};

struct ky_sample {
	const struct ky_sample_thread *thread;
	uint32_t source, cpu;
	uint64_t cycles;
	uint64_t period; /* what it stands for: ns of a clock, else a number of events */
	/* Addresses, the innermost first. */
	const uint64_t *kernel, *user;
	uint32_t n_kernel, n_user;
	/* The same, which have numbers; NULL: without a number. */
	struct ky_sample_stack *kernel_stack, *user_stack;
};

struct ky_sample_mapping {
	const struct ky_sample_thread *thread; /* a thread of the process */
	uint32_t cpu;
	uint64_t cycles;
	const struct ky_sample_map *map; /* NULL: all that the process had mapped is gone */
};

struct ky_samples_listener {
	void *data;
	/* Does the trace have @thread? NULL: it has all. */
	bool (*wants)(void *data, const struct ky_sample_thread *thread);
	int (*sample)(void *data, const struct ky_sample *sample, struct kymo_error *err);
	int (*mapping)(void *data, const struct ky_sample_mapping *mapping, struct kymo_error *err);
};

struct ky_samples;

/* 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no such counter), KYMO_E_MEMORY, KYMO_E_IO; *samples is NULL then. */
int ky_samples_open(const struct ky_samples_options *options, struct ky_samples **samples,
		    struct kymo_error *err);
/* NULL is fine. */
void ky_samples_close(struct ky_samples *samples);
/* Rings wake @epoll_fd with @ptr. 0 or KYMO_E_IO. */
int ky_samples_watch(struct ky_samples *samples, int epoll_fd, void *ptr, struct kymo_error *err);

/* CPUs with a ring, by index, in the order of their numbers. */
size_t ky_samples_n_cpus(const struct ky_samples *samples);
uint32_t ky_samples_cpu(const struct ky_samples *samples, size_t index);
/* How many records of the CPU the kernel has dropped since its ring was full. */
uint64_t ky_samples_lost(const struct ky_samples *samples, size_t index);

/* 0 or KYMO_E_IO. */
int ky_samples_begin(struct ky_samples *samples, struct kymo_error *err);
void ky_samples_pause(struct ky_samples *samples);
/* @final: to the end; else until a moment ago, so that all CPUs' records are there. 0, KYMO_E_MEMORY, or what the listener returned. */
int ky_samples_read(struct ky_samples *samples, bool final,
		    const struct ky_samples_listener *listener, struct kymo_error *err);
/* Until when everything was read, in cycles. */
uint64_t ky_samples_known_until(const struct ky_samples *samples);
/* Another trace begins, which has no mappings yet. */
void ky_samples_renew(struct ky_samples *samples);

/* The thread, and its children that begin later, are marked as chosen. 0 or KYMO_E_MEMORY. */
int ky_samples_choose(struct ky_samples *samples, int32_t tid);

#endif
