/* SPDX-License-Identifier: MIT */
/*
 * Samples at events, made by BPF programs: a sample names its stacks, and the kernel tells each stack once. The programs write into
 * the CPUs' rings, by an event of perf that each ring has for them. Where the kernel takes no such programs, perf makes the samples,
 * with whole stacks.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/samples/samples-internal.h"

/* Those that come by NMI could come in the middle of a program. */
static bool samples_bpf_can(const struct ky_samples *samples, const struct ky_sample_source *source)
{
	if (samples->stack_bytes || source->frequency_hz)
		return false;
	return source->is_tracepoint
		       ? source->period == 1
		       : source->type == PERF_TYPE_SOFTWARE && !ky_sample_source_is_clock(source);
}

static int samples_bpf_open(struct perf_event_attr *attr, uint32_t cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A tracepoint runs its programs on all CPUs while one event of perf is there for it, which need not be on. */
static bool samples_bpf_watch(struct ky_samples *samples, size_t i)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = samples->sources[i].config,
		.sample_period = 1,
		.disabled = 1,
	};

	for (uint32_t cpu = 0; cpu < (uint32_t)sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		samples->watches[i] = samples_bpf_open(&attr, cpu);
		if (samples->watches[i] >= 0)
			break;
	}
	if (samples->watches[i] >= 0 &&
	    ioctl(samples->watches[i], PERF_EVENT_IOC_SET_BPF, samples->programs[i]) == 0)
		return true;
	if (samples->watches[i] >= 0)
		close(samples->watches[i]);
	samples->watches[i] = -1;
	return false;
}

static void samples_bpf_drop(struct ky_samples *samples, size_t i)
{
	if (samples->programs[i] >= 0)
		close(samples->programs[i]);
	samples->programs[i] = -1;
}

void ky_samples_bpf_load(struct ky_samples *samples)
{
	bool has_events = false, has_counters = false;

	for (size_t i = 0; i < samples->n_sources; i++) {
		bool can = samples_bpf_can(samples, &samples->sources[i]);

		has_events |= can && samples->sources[i].is_tracepoint;
		has_counters |= can && !samples->sources[i].is_tracepoint;
	}
	if ((!has_events && !has_counters) ||
	    ky_bpf_stacks_load(&samples->bpf, has_events, has_counters, NULL) < 0) {
		ky_bpf_stacks_unload(&samples->bpf);
		return;
	}
	for (size_t i = 0; i < samples->n_sources; i++) {
		bool is_event = samples->sources[i].is_tracepoint;

		if (!samples_bpf_can(samples, &samples->sources[i]))
			continue;
		samples->programs[i] =
			ky_bpf_stacks_program(&samples->bpf, is_event, (uint32_t)i, NULL);
		if (samples->programs[i] >= 0 && is_event && !samples_bpf_watch(samples, i))
			samples_bpf_drop(samples, i);
	}
}

void ky_samples_bpf_unload(struct ky_samples *samples)
{
	for (size_t i = 0; i < samples->n_sources; i++) {
		if (samples->watches[i] >= 0)
			close(samples->watches[i]);
		samples_bpf_drop(samples, i);
	}
	ky_bpf_stacks_unload(&samples->bpf);
}

void ky_samples_bpf_attr(const struct ky_samples *samples, size_t i, struct perf_event_attr *attr)
{
	if (samples->programs[i] < 0)
		return;
	/* perf makes no samples, but the records about processes have the other fields at their end. */
	attr->sample_type &= ~(uint64_t)(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD);
	if (!samples->sources[i].is_tracepoint)
		return;
	/* The program is at the tracepoint itself. */
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
}

int ky_samples_bpf_attach(const struct ky_samples *samples, size_t i, int fd,
			  struct kymo_error *err)
{
	if (samples->programs[i] < 0 || samples->sources[i].is_tracepoint ||
	    ioctl(fd, PERF_EVENT_IOC_SET_BPF, samples->programs[i]) == 0)
		return KYMO_OK;
	return ky_error_errno(err, errno, "cannot set up samples");
}

int ky_samples_bpf_ring(struct ky_samples *samples, struct samples_cpu *cpu, struct kymo_error *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_RAW,
		.sample_period = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(samples->ring_bytes / 4),
	};

	if (!samples->bpf.skeleton)
		return KYMO_OK;
	cpu->output_fd = samples_bpf_open(&attr, cpu->number);
	if (cpu->output_fd < 0 || ioctl(cpu->output_fd, PERF_EVENT_IOC_ID, &cpu->output_id) < 0 ||
	    ioctl(cpu->output_fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fds[0]) < 0)
		return ky_error_errno(err, errno, "cannot set up samples");
	return ky_bpf_stacks_ring(&samples->bpf, cpu->number, cpu->output_fd, err);
}

void ky_samples_bpf_turn(struct ky_samples *samples, bool is_on)
{
	if (samples->bpf.skeleton)
		ky_bpf_stacks_turn(&samples->bpf, is_on);
}

/* ---- records ------------------------------------------------------------------------------ */

int ky_samples_bpf_stack(struct ky_samples *samples, const uint8_t *raw, size_t bytes)
{
	const size_t head = offsetof(struct ky_bpf_stack, addresses);
	struct ky_bpf_stack stack;

	if (bytes < head)
		return KYMO_OK;
	memcpy(&stack, raw, bytes < sizeof(stack) ? bytes : sizeof(stack));
	if (stack.n && stack.n <= KY_BPF_STACKS_FRAMES &&
	    bytes >= head + stack.n * sizeof(uint64_t))
		(void)ky_sample_stacks_add(&samples->stacks, stack.hash, stack.addresses, stack.n);
	return KYMO_OK;
}

bool ky_samples_bpf_sample(const struct ky_samples *samples, const uint8_t *raw, size_t bytes,
			   struct ky_sample *sample)
{
	struct ky_bpf_sample told;

	if (bytes < sizeof(told))
		return false;
	memcpy(&told, raw, sizeof(told));
	sample->source = told.source < samples->n_sources ? told.source : 0;
	sample->period = told.period;
	sample->kernel_stack = ky_sample_stacks_get(&samples->stacks, told.kernel);
	sample->user_stack = ky_sample_stacks_get(&samples->stacks, told.user);
	if (sample->kernel_stack) {
		sample->kernel = sample->kernel_stack->addresses;
		sample->n_kernel = sample->kernel_stack->n;
	}
	if (sample->user_stack) {
		sample->user = sample->user_stack->addresses;
		sample->n_user = sample->user_stack->n;
	}
	return true;
}
