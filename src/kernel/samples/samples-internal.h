/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the samples: their rings, and what is read of their records. */
#ifndef KY_KERNEL_SAMPLES_SAMPLES_INTERNAL_H
#define KY_KERNEL_SAMPLES_SAMPLES_INTERNAL_H

#include "base/vec.h"
#include "kernel/bpf/stacks.h"
#include "kernel/samples/perf-ring.h"
#include "kernel/samples/samples.h"
#include "kernel/samples/unwind.h"
#define KY_SAMPLES_TYPE                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

struct samples_cpu {
	uint32_t number;
	int fds[KY_SAMPLE_SOURCES_MAX]; /* of the sources; the first one has the ring */
	uint64_t ids[KY_SAMPLE_SOURCES_MAX];
	int output_fd; /* by which BPF programs write into the ring; -1: there are none */
	uint64_t output_id;
	struct ky_perf_ring ring;
	const struct perf_event_header *record; /* the next one; NULL: none */
	uint64_t record_ns;
	uint64_t n_done, lost;
};

struct ky_samples {
	struct ky_sample_source sources[KY_SAMPLE_SOURCES_MAX];
	size_t n_sources;
	const struct ky_os_clock *clock;
	uint64_t ring_bytes;
	uint32_t stack_bytes;
	uint64_t registers;	  /* perf's mask of those that are copied with the stack */
	struct ky_unwind *unwind; /* NULL: by frame pointers */
	uint64_t frames[KY_UNWIND_FRAMES_MAX];
	KY_VEC(struct samples_cpu) cpus;
	struct ky_sample_processes processes;
	struct ky_sample_stacks stacks;
	struct ky_bpf_stacks bpf;
	int programs[KY_SAMPLE_SOURCES_MAX]; /* of sources that are sampled by BPF; else -1 */
	int watches[KY_SAMPLE_SOURCES_MAX];  /* perf events of their tracepoints */
	uint64_t generation;		     /* of traces that need mappings anew */
	struct ky_os_clock_pair before, now;
	uint64_t known_until; /* cycles */
};

/* samples-record.c. A time of CLOCK_MONOTONIC as the trace's clock has it. */
uint64_t ky_samples_cycles(const struct ky_samples *samples, uint64_t time_ns);
/* When @record was made; of one without a time @before. */
uint64_t ky_samples_time(const struct samples_cpu *cpu, const struct perf_event_header *record,
			 uint64_t before);
/* Give the CPU's record to the listener. */
int ky_samples_take(struct ky_samples *samples, struct samples_cpu *cpu,
		    const struct ky_samples_listener *listener, struct kymo_error *err);

/* samples-bpf.c. The programs of the sources that can have such; where the kernel takes none, perf makes the samples. */
void ky_samples_bpf_load(struct ky_samples *samples);
void ky_samples_bpf_unload(struct ky_samples *samples);
/* Change @attr, of source @i on a CPU, where a program makes the samples. */
void ky_samples_bpf_attr(const struct ky_samples *samples, size_t i, struct perf_event_attr *attr);
/* The perf event @fd of source @i runs the source's program, if it has one for perf events. */
int ky_samples_bpf_attach(const struct ky_samples *samples, size_t i, int fd,
			  struct kymo_error *err);
/* Programs write into the CPU's ring. */
int ky_samples_bpf_ring(struct ky_samples *samples, struct samples_cpu *cpu,
			struct kymo_error *err);
void ky_samples_bpf_turn(struct ky_samples *samples, bool is_on);
/* What a program has written: a stack; a sample (false: it is another record). */
int ky_samples_bpf_stack(struct ky_samples *samples, const uint8_t *raw, size_t bytes);
bool ky_samples_bpf_sample(const struct ky_samples *samples, const uint8_t *raw, size_t bytes,
			   struct ky_sample *sample);

#endif
