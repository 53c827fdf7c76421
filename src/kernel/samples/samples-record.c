/* SPDX-License-Identifier: MIT */
/* What the records of the rings say. The kernel's records are trusted to be what their size says, and no more. */
#include <string.h>

#include "base/error.h"
#include "kernel/samples/samples-internal.h"

/* Of a sample, in the order of its fields; the call chain's length and its addresses follow. */
struct samples_head {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns, period, n_chain;
};

/* Of what a BPF program has written. */
struct samples_program {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t n_raw;
	uint8_t raw[4];
};

/* Behind all other records. */
struct samples_tail {
	uint32_t pid, tid;
	uint64_t time_ns, id;
};

struct samples_task {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};

struct samples_comm {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct samples_mmap {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, bytes, offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, generation;
		};
		struct {
			uint8_t build_id_bytes, reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t protection, flags;
	char path[];
};

uint64_t ky_samples_cycles(const struct ky_samples *samples, uint64_t time_ns)
{
	return ky_os_clock_between(&samples->before, &samples->now, time_ns);
}

static bool samples_is_of_program(const struct samples_cpu *cpu,
				  const struct perf_event_header *record)
{
	const struct samples_program *head = (const void *)record;

	return cpu->output_fd >= 0 && record->size >= sizeof(*head) && head->id == cpu->output_id;
}

uint64_t ky_samples_time(const struct samples_cpu *cpu, const struct perf_event_header *record,
			 uint64_t before)
{
	struct samples_tail tail;

	if (record->type == PERF_RECORD_SAMPLE && samples_is_of_program(cpu, record))
		return ((const struct samples_program *)record)->time_ns;
	if (record->type == PERF_RECORD_SAMPLE)
		return record->size >= sizeof(struct samples_head)
			       ? ((const struct samples_head *)record)->time_ns
			       : before;
	if (record->size < sizeof(*record) + sizeof(tail))
		return before;
	memcpy(&tail, (const uint8_t *)record + record->size - sizeof(tail), sizeof(tail));
	return tail.time_ns;
}

/* ---- mappings ----------------------------------------------------------------------------- */

static int samples_tell_map(const struct samples_cpu *cpu, uint64_t cycles,
			    const struct ky_sample_thread *thread, const struct ky_sample_map *map,
			    const struct ky_samples_listener *listener, struct kymo_error *err)
{
	const struct ky_sample_mapping mapping = {
		.thread = thread, .cpu = cpu->number, .cycles = cycles, .map = map};

	return listener->mapping(listener->data, &mapping, err);
}

static int samples_tell_maps(struct ky_samples *samples, const struct samples_cpu *cpu,
			     uint64_t cycles, const struct ky_sample_thread *thread,
			     const struct ky_samples_listener *listener, struct kymo_error *err)
{
	struct ky_sample_process *process = ky_sample_process(&samples->processes, thread->pid);
	int ret;

	if (!process)
		return ky_error_nomem(err);
	if (process->told == samples->generation)
		return KYMO_OK;
	if (ky_sample_process_find_maps(&samples->processes, process) < 0)
		return ky_error_nomem(err);
	process->told = samples->generation;
	ret = samples_tell_map(cpu, cycles, thread, NULL, listener, err);
	ky_vec_foreach(&process->maps->maps, map)
		if (!ret)
			ret = samples_tell_map(cpu, cycles, thread, map, listener, err);
	return ret;
}

static uint8_t samples_protection(const struct samples_mmap *record)
{
	/* PROT_READ, PROT_WRITE, PROT_EXEC; MAP_SHARED */
	return (uint8_t)((record->protection & 7) | (record->flags & 1 ? 8 : 0));
}

static int samples_take_mmap(struct ky_samples *samples, const struct samples_cpu *cpu,
			     const struct samples_mmap *record,
			     const struct ky_samples_listener *listener, struct kymo_error *err)
{
	const char *path = record->path, *end = (const char *)record + record->header.size;
	const struct ky_sample_thread *thread;
	struct ky_sample_map map = {
		.begin = record->address,
		.end = record->address + record->bytes,
		.offset = record->offset,
		.protection = samples_protection(record),
	};
	bool told;

	if (path >= end || !memchr(path, '\0', (size_t)(end - path)) || map.end < map.begin)
		return KYMO_OK;
	/* Anonymous memory, "//anon", has no path elsewhere. */
	map.path = (char *)(strncmp(path, "//", 2) == 0 ? "" : path);
	if ((record->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) &&
	    record->build_id_bytes <= sizeof(map.build_id)) {
		map.build_id_bytes = record->build_id_bytes;
		memcpy(map.build_id, record->build_id, record->build_id_bytes);
	} else {
		map.device = record->major << 20 | (record->minor & 0xfffff);
		map.inode = record->inode;
	}
	if (ky_sample_processes_map(&samples->processes, (int32_t)record->pid, &map,
				    samples->generation, &told) < 0)
		return ky_error_nomem(err);
	if (!told)
		return KYMO_OK;
	thread = ky_sample_thread(&samples->processes, (int32_t)record->tid, (int32_t)record->pid);
	return thread ? samples_tell_map(cpu, ky_samples_cycles(samples, cpu->record_ns), thread,
					 &map, listener, err)
		      : ky_error_nomem(err);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* The chain has a mark before the addresses of each level. */
static void samples_split_chain(const uint64_t *chain, uint64_t n, struct ky_sample *sample)
{
	uint64_t level = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (chain[i] >= PERF_CONTEXT_MAX) {
			level = chain[i];
			continue;
		}
		if (level == PERF_CONTEXT_KERNEL && !sample->n_kernel++)
			sample->kernel = &chain[i];
		else if (level == PERF_CONTEXT_USER && !sample->n_user++)
			sample->user = &chain[i];
	}
}

static uint32_t samples_source(const struct ky_samples *samples, const struct samples_cpu *cpu,
			       uint64_t id)
{
	for (uint32_t i = 0; i < samples->n_sources; i++) {
		if (cpu->ids[i] == id)
			return i;
	}
	return 0;
}

/*
 * Behind the call chain: the registers' form (0: there are none) and the registers; the stack's size, the stack, and how much of it
 * is there.
 */
static bool samples_find_copy(const struct ky_samples *samples, const uint64_t *at,
			      const uint64_t *end, struct ky_unwind_copy *copy)
{
	uint64_t n = (uint64_t)__builtin_popcountll(samples->registers), bytes;

	if (end - at < 2 || !*at++ || (uint64_t)(end - at) < n + 1)
		return false;
	copy->mask = samples->registers;
	copy->registers = at;
	copy->n_registers = (uint32_t)n;
	at += n;
	bytes = *at++;
	if (bytes / 8 >= (uint64_t)(end - at))
		return false;
	copy->stack = (const uint8_t *)at;
	copy->stack_bytes = at[bytes / 8] < bytes ? at[bytes / 8] : bytes;
	return true;
}

/* The program's frames, from the copy of its stack. */
static int samples_unwind(struct ky_samples *samples, const struct samples_head *head, uint64_t n,
			  struct ky_sample *sample, struct kymo_error *err)
{
	const uint64_t *chain = (const uint64_t *)(head + 1);
	const uint64_t *end = (const uint64_t *)((const uint8_t *)head + head->header.size);
	struct ky_sample_process *process;
	struct ky_unwind_copy copy;

	if (!samples->unwind || !samples_find_copy(samples, chain + n, end, &copy))
		return KYMO_OK;
	process = ky_sample_process(&samples->processes, sample->thread->pid);
	if (!process || ky_sample_process_find_maps(&samples->processes, process) < 0)
		return ky_error_nomem(err);
	sample->user = samples->frames;
	sample->n_user = ky_unwind(samples->unwind, process, &copy, samples->frames);
	return KYMO_OK;
}

/* Frames of the kernel, and of the process. */
static void samples_number(struct ky_samples *samples, struct ky_sample *sample)
{
	struct ky_sample_stacks *stacks = &samples->stacks;
	uint32_t pid = (uint32_t)sample->thread->pid;

	if (sample->n_kernel)
		sample->kernel_stack = ky_sample_stacks_add(
			stacks, ky_sample_stacks_hash(0, sample->kernel, sample->n_kernel),
			sample->kernel, sample->n_kernel);
	if (sample->n_user)
		sample->user_stack = ky_sample_stacks_add(
			stacks, ky_sample_stacks_hash(pid, sample->user, sample->n_user),
			sample->user, sample->n_user);
}

static int samples_give(struct ky_samples *samples, const struct samples_cpu *cpu,
			struct ky_sample *sample, const struct ky_samples_listener *listener,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (sample->n_user)
		ret = samples_tell_maps(samples, cpu, sample->cycles, sample->thread, listener,
					err);
	return ret < 0 ? ret : listener->sample(listener->data, sample, err);
}

static int samples_take_sample(struct ky_samples *samples, const struct samples_cpu *cpu,
			       const struct samples_head *head,
			       const struct ky_samples_listener *listener, struct kymo_error *err)
{
	uint64_t most = (head->header.size - sizeof(*head)) / sizeof(uint64_t);
	uint64_t n = head->n_chain < most ? head->n_chain : most;
	struct ky_sample sample = {
		.source = samples_source(samples, cpu, head->id),
		.cpu = cpu->number,
		.cycles = ky_samples_cycles(samples, head->time_ns),
		.period = head->period,
	};
	int ret;

	if (samples->sources[sample.source].period > 1)
		sample.period = samples->sources[sample.source].period;

	/* The idle task, and threads that have ended or are of other PID namespaces. */
	if ((int32_t)head->tid <= 0)
		return KYMO_OK;
	sample.thread =
		ky_sample_thread(&samples->processes, (int32_t)head->tid, (int32_t)head->pid);
	if (!sample.thread)
		return ky_error_nomem(err);
	if (listener->wants && !listener->wants(listener->data, sample.thread))
		return KYMO_OK;
	samples_split_chain((const uint64_t *)(head + 1), n, &sample);
	ret = samples_unwind(samples, head, n, &sample, err);
	if (ret < 0)
		return ret;
	samples_number(samples, &sample);
	return samples_give(samples, cpu, &sample, listener, err);
}

/* As a sample of perf; the stacks have come before. */
static int samples_take_program(struct ky_samples *samples, const struct samples_cpu *cpu,
				const struct samples_program *head,
				const struct ky_samples_listener *listener, struct kymo_error *err)
{
	size_t most = head->header.size - offsetof(struct samples_program, raw);
	size_t n = head->n_raw < most ? head->n_raw : most;
	struct ky_sample sample = {
		.cpu = cpu->number,
		.cycles = ky_samples_cycles(samples, head->time_ns),
	};
	uint32_t kind = 0;

	memcpy(&kind, head->raw, n < sizeof(kind) ? n : sizeof(kind));
	if (kind == KY_BPF_STACKS_STACK)
		return ky_samples_bpf_stack(samples, head->raw, n);
	if ((int32_t)head->tid <= 0 || !ky_samples_bpf_sample(samples, head->raw, n, &sample))
		return KYMO_OK;
	sample.thread =
		ky_sample_thread(&samples->processes, (int32_t)head->tid, (int32_t)head->pid);
	if (!sample.thread)
		return ky_error_nomem(err);
	if (listener->wants && !listener->wants(listener->data, sample.thread))
		return KYMO_OK;
	return samples_give(samples, cpu, &sample, listener, err);
}

/* ---- all ---------------------------------------------------------------------------------- */

static int samples_take_task(struct ky_samples *samples, const struct samples_task *task,
			     struct kymo_error *err)
{
	struct ky_sample_processes *table = &samples->processes;

	int status;

	if (task->header.type == PERF_RECORD_EXIT)
		status = ky_sample_processes_exit(table, (int32_t)task->pid, (int32_t)task->tid);
	else
		status = ky_sample_processes_fork(table, (int32_t)task->pid, (int32_t)task->tid,
						  (int32_t)task->parent_pid,
						  (int32_t)task->parent_tid);
	return status < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int samples_take_comm(struct ky_samples *samples, const struct samples_comm *comm,
			     struct kymo_error *err)
{
	bool is_exec = comm->header.misc & PERF_RECORD_MISC_COMM_EXEC;

	if (!memchr(comm->comm, '\0', comm->header.size - sizeof(*comm)))
		return KYMO_OK;
	return ky_sample_processes_name(&samples->processes, (int32_t)comm->pid, (int32_t)comm->tid,
					comm->comm, is_exec) < 0
		       ? ky_error_nomem(err)
		       : KYMO_OK;
}

/* @id and a number follow in one, the number alone in the other. */
static void samples_take_lost(struct samples_cpu *cpu, const struct perf_event_header *record)
{
	const uint64_t *values = (const uint64_t *)(record + 1);
	size_t at = record->type == PERF_RECORD_LOST;

	if (record->size >= sizeof(*record) + (at + 1) * sizeof(uint64_t))
		cpu->lost += values[at];
}

int ky_samples_take(struct ky_samples *samples, struct samples_cpu *cpu,
		    const struct ky_samples_listener *listener, struct kymo_error *err)
{
	const struct perf_event_header *record = cpu->record;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		if (samples_is_of_program(cpu, record))
			return samples_take_program(samples, cpu, (const void *)record, listener,
						    err);
		return record->size < sizeof(struct samples_head)
			       ? KYMO_OK
			       : samples_take_sample(samples, cpu, (const void *)record, listener,
						     err);
	case PERF_RECORD_MMAP2:
		return record->size <= sizeof(struct samples_mmap)
			       ? KYMO_OK
			       : samples_take_mmap(samples, cpu, (const void *)record, listener,
						   err);
	case PERF_RECORD_COMM:
		return record->size <= sizeof(struct samples_comm)
			       ? KYMO_OK
			       : samples_take_comm(samples, (const void *)record, err);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return record->size < sizeof(struct samples_task)
			       ? KYMO_OK
			       : samples_take_task(samples, (const void *)record, err);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		samples_take_lost(cpu, record);
		return KYMO_OK;
	default:
		return KYMO_OK;
	}
}
