/* SPDX-License-Identifier: MIT */
#include "kernel/samples/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/samples/perf-ring.h"
#include "kernel/samples/samples-internal.h"
#include "os/cpu.h"

/* A record may be stamped, and be in the ring a little later. */
#define SETTLED_NS 1000000
/* Between two readings of both clocks that far apart the rate is exact. */
#define RATE_NS 1000000

/* ---- opening ------------------------------------------------------------------------------ */

static struct perf_event_attr samples_attr(const struct ky_samples *samples, size_t number)
{
	const struct ky_sample_source *source = &samples->sources[number];
	struct perf_event_attr attr = {
		.type = source->type,
		.size = sizeof(attr),
		.config = source->config,
		.freq = source->frequency_hz != 0,
		.sample_type = KY_SAMPLES_TYPE,
		.disabled = 1,
		/* An idle CPU runs nothing. */
		.exclude_idle = !source->is_tracepoint,
		.exclude_guest = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(samples->ring_bytes / 4),
	};

	if (samples->unwind) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = samples->registers;
		attr.sample_stack_user = samples->stack_bytes;
		attr.exclude_callchain_user = 1;
	}
	/*
	 * With a period in its samples, the kernel makes one of each event of software, whatever the period is. An address
	 * has the same room, and is not in other records.
	 */
	if (source->period > 1)
		attr.sample_type ^= PERF_SAMPLE_PERIOD | PERF_SAMPLE_ADDR;
	if (source->frequency_hz)
		attr.sample_freq = source->frequency_hz;
	else
		attr.sample_period = source->period;
	ky_samples_bpf_attr(samples, number, &attr);
	/* One event of a CPU tells of processes. */
	if (!number)
		attr.mmap = attr.mmap2 = attr.build_id = attr.comm = attr.comm_exec = attr.task = 1;
	return attr;
}

static int samples_refused(const struct ky_sample_source *source, int errnum,
			   struct kymo_error *err)
{
	int status = errnum == EACCES || errnum == EPERM	? KYMO_E_PERMISSION
		     : errnum == ENOENT || errnum == EOPNOTSUPP ? KYMO_E_UNSUPPORTED
								: KYMO_E_IO;

	ky_error_set(err, status, "cannot sample at %s: %s", source->name, strerror(errnum));
	if (status == KYMO_E_UNSUPPORTED)
		ky_error_hint(err,
			      "this machine has no such counter; try cpu-clock, page-faults or "
			      "context-switches");
	return status;
}

static int samples_open_event(struct perf_event_attr *attr, uint32_t cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EINVAL || !attr->build_id)
		return fd;
	/* Linux before 5.12 gives no build ids. */
	attr->build_id = 0;
	return (int)syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int samples_join(struct samples_cpu *cpu, size_t number, struct kymo_error *err)
{
	int fd = cpu->fds[number];

	if (ioctl(fd, PERF_EVENT_IOC_ID, &cpu->ids[number]) < 0 ||
	    (number && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fds[0]) < 0))
		return ky_error_errno(err, errno, "cannot set up samples");
	return KYMO_OK;
}

/* 0; 1: the CPU is not online. */
static int samples_open_cpu(struct ky_samples *samples, struct samples_cpu *cpu,
			    struct kymo_error *err)
{
	for (size_t i = 0; i < samples->n_sources; i++) {
		struct perf_event_attr attr = samples_attr(samples, i);
		int ret;

		cpu->fds[i] = samples_open_event(&attr, cpu->number);
		if (cpu->fds[i] < 0 && errno == ENODEV)
			return 1;
		if (cpu->fds[i] < 0)
			return samples_refused(&samples->sources[i], errno, err);
		ret = i ? KYMO_OK
			: ky_perf_ring_map(&cpu->ring, cpu->fds[0], samples->ring_bytes, err);
		if (!ret)
			ret = samples_join(cpu, i, err);
		if (!ret)
			ret = ky_samples_bpf_attach(samples, i, cpu->fds[i], err);
		if (ret < 0)
			return ret;
	}
	return ky_samples_bpf_ring(samples, cpu, err);
}

static void samples_close_cpu(struct ky_samples *samples, struct samples_cpu *cpu)
{
	ky_perf_ring_unmap(&cpu->ring);
	if (cpu->output_fd >= 0)
		close(cpu->output_fd);
	for (size_t i = samples->n_sources; i-- > 0;)
		if (cpu->fds[i] >= 0)
			close(cpu->fds[i]);
}

static int samples_open_cpus(struct ky_samples *samples, struct kymo_error *err)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	for (uint32_t i = 0; i < (uint32_t)(n > 0 ? n : 1); i++) {
		struct samples_cpu cpu = {.number = i, .output_fd = -1};
		int ret;

		memset(cpu.fds, 0xff, sizeof(cpu.fds));
		if (!ky_os_cpu_is_online(i))
			continue;
		ret = samples_open_cpu(samples, &cpu, err);
		if (!ret && ky_vec_push(&samples->cpus, cpu) < 0)
			ret = ky_error_nomem(err);
		if (ret)
			samples_close_cpu(samples, &cpu);
		if (ret < 0)
			return ret;
	}
	return samples->cpus.len ? KYMO_OK : ky_error_set(err, KYMO_E_IO, "no CPU can be sampled");
}

static int samples_open_unwind(struct ky_samples *samples, struct kymo_error *err)
{
	if (!samples->stack_bytes)
		return KYMO_OK;
	if (!samples->registers)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "stacks cannot be unwound by DWARF on this architecture");
	return ky_unwind_new(&samples->unwind, false, true, err);
}

int ky_samples_open(const struct ky_samples_options *options, struct ky_samples **out,
		    struct kymo_error *err)
{
	struct ky_samples *samples = calloc(1, sizeof(*samples));
	int ret;

	*out = NULL;
	if (!samples)
		return ky_error_nomem(err);
	samples->n_sources = options->n_sources < KY_SAMPLE_SOURCES_MAX ? options->n_sources
									: KY_SAMPLE_SOURCES_MAX;
	memcpy(samples->sources, options->sources, samples->n_sources * sizeof(*samples->sources));
	samples->clock = options->clock;
	samples->ring_bytes = options->ring_bytes;
	samples->generation = 1;
	samples->stack_bytes = options->stack_bytes;
	samples->registers = options->stack_bytes ? ky_unwind_registers() : 0;
	ky_sample_processes_init(&samples->processes);
	ky_sample_stacks_init(&samples->stacks);
	memset(samples->programs, 0xff, sizeof(samples->programs));
	memset(samples->watches, 0xff, sizeof(samples->watches));
	ky_samples_bpf_load(samples);
	ret = samples_open_unwind(samples, err);
	if (!ret)
		ret = samples_open_cpus(samples, err);
	samples->stacks.n_writers = (uint32_t)samples->cpus.len;
	if (ret < 0) {
		ky_samples_close(samples);
		return ret;
	}
	*out = samples;
	return KYMO_OK;
}

void ky_samples_close(struct ky_samples *samples)
{
	if (!samples)
		return;
	ky_vec_foreach(&samples->cpus, cpu)
		samples_close_cpu(samples, cpu);
	ky_samples_bpf_unload(samples);
	ky_vec_fini(&samples->cpus);
	ky_sample_processes_fini(&samples->processes);
	ky_sample_stacks_fini(&samples->stacks);
	ky_unwind_free(samples->unwind);
	free(samples);
}

int ky_samples_watch(struct ky_samples *samples, int epoll_fd, void *ptr, struct kymo_error *err)
{
	ky_vec_foreach(&samples->cpus, cpu) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = ptr};

		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, cpu->fds[0], &event) < 0)
			return ky_error_errno(err, errno, "cannot wait for samples");
	}
	return KYMO_OK;
}

size_t ky_samples_n_cpus(const struct ky_samples *samples)
{
	return samples->cpus.len;
}

uint32_t ky_samples_cpu(const struct ky_samples *samples, size_t index)
{
	return samples->cpus.data[index].number;
}

uint64_t ky_samples_lost(const struct ky_samples *samples, size_t index)
{
	return samples->cpus.data[index].lost;
}

/* ---- recording ---------------------------------------------------------------------------- */

int ky_samples_begin(struct ky_samples *samples, struct kymo_error *err)
{
	ky_os_clock_mono_pair(samples->clock, &samples->before);
	ky_vec_foreach(&samples->cpus, cpu)
		for (size_t i = 0; i < samples->n_sources; i++)
			if (ioctl(cpu->fds[i], PERF_EVENT_IOC_ENABLE, 0) < 0)
				return ky_error_errno(err, errno, "cannot begin to sample");
	ky_samples_bpf_turn(samples, true);
	return KYMO_OK;
}

void ky_samples_pause(struct ky_samples *samples)
{
	ky_samples_bpf_turn(samples, false);
	ky_vec_foreach(&samples->cpus, cpu)
		for (size_t i = 0; i < samples->n_sources; i++)
			(void)ioctl(cpu->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

/* The CPU whose next record is the oldest; NULL: no record is as old as @until_ns. */
static struct samples_cpu *samples_oldest(struct ky_samples *samples, uint64_t until_ns)
{
	struct samples_cpu *oldest = NULL;

	ky_vec_foreach(&samples->cpus, cpu) {
		if (!cpu->record)
			continue;
		if (cpu->record_ns <= until_ns && (!oldest || cpu->record_ns < oldest->record_ns))
			oldest = cpu;
	}
	return oldest;
}

static void samples_next(struct samples_cpu *cpu)
{
	cpu->record = ky_perf_ring_next(&cpu->ring);
	if (cpu->record)
		cpu->record_ns = ky_samples_time(cpu, cpu->record, cpu->record_ns);
}

/* How many records the ring gives before the kernel gets room. */
#define RELEASE_RECORDS 64

static int samples_drain(struct ky_samples *samples, uint64_t until_ns,
			 const struct ky_samples_listener *listener, struct kymo_error *err)
{
	struct samples_cpu *cpu;
	int ret = KYMO_OK;

	ky_vec_foreach(&samples->cpus, it) {
		ky_perf_ring_look(&it->ring);
		samples_next(it);
	}
	while (!ret && (cpu = samples_oldest(samples, until_ns))) {
		ret = ky_samples_take(samples, cpu, listener, err);
		ky_perf_ring_advance(&cpu->ring, cpu->record);
		if (++cpu->n_done % RELEASE_RECORDS == 0)
			ky_perf_ring_release(&cpu->ring);
		samples_next(cpu);
	}
	ky_vec_foreach(&samples->cpus, it)
		ky_perf_ring_release(&it->ring);
	return ret;
}

int ky_samples_read(struct ky_samples *samples, bool final,
		    const struct ky_samples_listener *listener, struct kymo_error *err)
{
	struct ky_os_clock_pair now;
	uint64_t until_ns;
	int ret;

	/* Before the rings are looked at: what is as old as this is in them. */
	ky_os_clock_mono_pair(samples->clock, &now);
	samples->now = now;
	until_ns = final ? UINT64_MAX : (uint64_t)now.ns - SETTLED_NS;
	ret = samples_drain(samples, until_ns, listener, err);
	ky_sample_processes_forget(&samples->processes);
	samples->known_until = ky_samples_cycles(samples, (uint64_t)now.ns - SETTLED_NS);
	if (now.ns - samples->before.ns > RATE_NS)
		samples->before = now;
	return ret;
}

uint64_t ky_samples_known_until(const struct ky_samples *samples)
{
	return samples->known_until;
}

void ky_samples_renew(struct ky_samples *samples)
{
	samples->generation++;
}

int ky_samples_choose(struct ky_samples *samples, int32_t tid)
{
	struct ky_sample_thread *thread = ky_sample_thread(&samples->processes, tid, tid);

	if (thread)
		thread->is_chosen = true;
	return thread ? KYMO_OK : KYMO_E_MEMORY;
}
