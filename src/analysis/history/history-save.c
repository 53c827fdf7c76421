/* SPDX-License-Identifier: MIT */
/*
 * The state history: the state of the model at a time, as a record. A report of a range begins with it. It has CPUs, threads, calls,
 * waits and interrupts; not files, devices, address spaces and locks.
 */
#include "analysis/history/history-save.h"

#include <stdlib.h>
#include <string.h>

/* Relative to the state's own time; INT64_MIN is 0. */
static void put_time(const struct ky_history_saving *saving, int64_t ns)
{
	uint64_t past = (uint64_t)saving->ns - (uint64_t)ns;

	if (ns == INT64_MIN)
		ky_put_varint(saving->out, 0);
	else
		ky_put_varint(saving->out, (past << 1 ^ -(past >> 63)) + 1);
}

static void put_text(struct ky_strbuf *out, const char *text)
{
	size_t len = strlen(text);

	ky_put_varint(out, len);
	ky_strbuf_add(out, text, len);
}

/* ---- threads ------------------------------------------------------------------------------------- */

static void number_runs(struct ky_history_saving *saving, const struct ky_cpu *cpu)
{
	int64_t begin_ns, end_ns;

	for (size_t i = ky_cpu_runs_since(cpu, saving->since_ns); i > 0; i--)
		saving->numbers[ky_cpu_run(cpu, i, &begin_ns, &end_ns)->index] = 1;
}

/* A thread of the past, whose number another one has, matters only to those that it woke, or that waited for it. */
static void number_threads(struct ky_history_saving *saving)
{
	const struct ky_model *model = saving->model;

	ky_vec_foreach(&model->threads, it) {
		const struct ky_thread *thread = *it;

		if (ky_map_get(&thread->host->threads, (uint32_t)thread->tid) == thread)
			saving->numbers[thread->index] = 1;
		if (thread->wait.waker)
			saving->numbers[thread->wait.waker->index] = 1;
		if (thread->woken.waker)
			saving->numbers[thread->woken.waker->index] = 1;
		if (thread->wait.by)
			saving->numbers[thread->wait.by->index] = 1;
		if (thread->woken.by)
			saving->numbers[thread->woken.by->index] = 1;
		if (thread->wait.kind && thread->wait.begin_ns != INT64_MIN &&
		    thread->wait.begin_ns < saving->since_ns)
			saving->since_ns = thread->wait.begin_ns;
	}
	ky_vec_foreach(&model->cpus, cpu) {
		if ((*cpu)->current)
			saving->numbers[(*cpu)->current->index] = 1;
		number_runs(saving, *cpu);
	}
	for (size_t i = 0; i < model->threads.len; i++) {
		if (saving->numbers[i])
			saving->numbers[i] = ++saving->n_threads;
	}
}

static void put_thread_number(const struct ky_history_saving *saving,
			      const struct ky_thread *thread)
{
	ky_put_varint(saving->out, thread ? saving->numbers[thread->index] : 0);
}

static void put_wait(const struct ky_history_saving *saving, const struct ky_wait *wait)
{
	ky_put_varint(saving->out, wait->kind);
	if (!wait->kind)
		return;
	put_time(saving, wait->begin_ns);
	put_thread_number(saving, wait->waker);
	ky_put_varint(saving->out, wait->irq ? wait->irq->index + 1 : 0);
	put_thread_number(saving, wait->by);
	ky_put_varint(saving->out, wait->cpu_id);
}

static void history_save_put_call(const struct ky_history_saving *saving,
				  const struct ky_syscall *call)
{
	ky_put_varint(saving->out, call->id == KY_NO_SYSCALL ? 0 : (uint64_t)call->id + 1);
	if (call->id == KY_NO_SYSCALL)
		return;
	ky_put_varint(saving->out, call->cpu_id);
	put_time(saving, call->begin_ns);
}

static uint64_t thread_flags(const struct ky_thread *thread)
{
	bool is_last = ky_map_get(&thread->host->threads, (uint32_t)thread->tid) == (void *)thread;

	return (uint64_t)thread->running | (uint64_t)thread->announced << 1 |
	       (uint64_t)thread->unannounced << 2 | (uint64_t)thread->born << 3 |
	       (uint64_t)thread->fresh << 4 | (uint64_t)thread->dead << 5 |
	       (uint64_t)thread->returned << 6 | (uint64_t)is_last << 7;
}

static void put_thread(const struct ky_history_saving *saving, const struct ky_thread *thread)
{
	struct ky_strbuf *out = saving->out;

	ky_put_varint(out, thread->host->index);
	ky_put_signed(out, thread->tid);
	ky_put_signed(out, thread->pid);
	ky_put_signed(out, thread->ppid);
	ky_put_signed(out, thread->prio);
	ky_put_signed(out, thread->cpu);
	ky_put_varint(out, thread_flags(thread));
	ky_put_varint(out, thread->off);
	put_time(saving, thread->off_ns);
	put_time(saving, thread->left_ns);
	put_time(saving, thread->stray_ns);
	ky_put_varint(out, thread->queue ? thread->queue->index + 1 : 0);
	ky_put_varint(out, thread->cgroup);
	ky_put_varint(out, strnlen(thread->comm, KY_COMM_SIZE - 1));
	ky_strbuf_add(out, thread->comm, strnlen(thread->comm, KY_COMM_SIZE - 1));
	history_save_put_call(saving, &thread->syscall);
	put_wait(saving, &thread->wait);
	put_wait(saving, &thread->woken);
}

static void history_save_put_threads(const struct ky_history_saving *saving)
{
	ky_put_varint(saving->out, saving->n_threads);
	ky_vec_foreach(&saving->model->threads, thread) {
		if (saving->numbers[(*thread)->index])
			put_thread(saving, *thread);
	}
}

/* ---- CPUs, streams, hosts ---------------------------------------------------------------------- */

static void put_irqs(const struct ky_history_saving *saving, const struct ky_cpu_irqs *irqs)
{
	uint32_t raised = 0;

	ky_put_varint(saving->out, irqs ? (uint64_t)irqs->depth + 1 : 0);
	if (!irqs)
		return;
	for (unsigned int i = 0; i < irqs->depth; i++) {
		ky_put_varint(saving->out, irqs->stack[i].line->index);
		put_time(saving, irqs->stack[i].begin_ns);
		put_time(saving, irqs->stack[i].raise_ns);
	}
	for (uint32_t i = 0; i < KY_SOFTIRQS; i++)
		raised |= (uint32_t)(irqs->raise_ns[i] != INT64_MIN) << i;
	ky_put_varint(saving->out, raised);
	for (uint32_t i = 0; i < KY_SOFTIRQS; i++) {
		if (raised >> i & 1)
			put_time(saving, irqs->raise_ns[i]);
	}
}

static void history_save_put_cpu(const struct ky_history_saving *saving, const struct ky_cpu *cpu)
{
	struct ky_strbuf *out = saving->out;

	ky_put_varint(out, cpu->host->index);
	ky_put_varint(out, cpu->id);
	ky_put_varint(out, cpu->state);
	put_thread_number(saving, cpu->current);
	put_time(saving, cpu->since_ns);
	put_time(saving, cpu->seen_ns);
	put_time(saving, cpu->begin_ns);
	put_time(saving, cpu->lost_until_ns);
	ky_put_varint(out, (uint64_t)cpu->lost_ns);
	ky_put_varint(out, cpu->missing);
	ky_put_varint(out, cpu->unnamed);
	ky_put_varint(out, cpu->n_waiting);
	put_irqs(saving, cpu->irqs);
}

/* From the first to the last one. */
static void put_runs(const struct ky_history_saving *saving, const struct ky_cpu *cpu)
{
	size_t n = ky_cpu_runs_since(cpu, saving->since_ns);
	int64_t begin_ns, end_ns;

	ky_put_varint(saving->out, n);
	for (; n > 0; n--) {
		put_thread_number(saving, ky_cpu_run(cpu, n, &begin_ns, &end_ns));
		put_time(saving, begin_ns);
		put_time(saving, end_ns);
	}
}

static void put_stream(const struct ky_history_saving *saving, const struct ky_stream_state *stream)
{
	size_t pos = 0;
	uint64_t index;
	void *cpu;

	ky_put_varint(saving->out, stream->begun);
	ky_put_varint(saving->out, stream->cpu_id);
	ky_put_varint(saving->out, stream->cpu ? stream->cpu->index + 1 : 0);
	put_time(saving, stream->last_ns);
	ky_put_varint(saving->out, stream->cpus.len);
	while (ky_map_next(&stream->cpus, &pos, &index, &cpu))
		ky_put_varint(saving->out, index);
}

static void put_host(const struct ky_history_saving *saving, const struct ky_host *host)
{
	put_time(saving, host->torn_until_ns);
	put_time(saving, host->blind_until_ns);
	ky_put_varint(saving->out, host->absent_cpus);
	ky_put_varint(saving->out, (uint64_t)host->announces | (uint64_t)host->lacks_cpus << 1);
}

static void history_save_put_lines(const struct ky_history_saving *saving)
{
	ky_put_varint(saving->out, saving->model->lines.len);
	ky_vec_foreach(&saving->model->lines, line) {
		ky_put_varint(saving->out, (*line)->host->index);
		ky_put_varint(saving->out, (*line)->kind);
		ky_put_signed(saving->out, (*line)->nr);
		put_text(saving->out, (*line)->name);
	}
}

int ky_history_save(const struct ky_model *model, int64_t ns, struct ky_strbuf *out)
{
	struct ky_history_saving saving = {
		.model = model, .ns = ns, .out = out, .since_ns = INT64_MAX};

	saving.numbers = calloc(model->threads.len + 1, sizeof(*saving.numbers));
	if (!saving.numbers)
		return KYMO_E_MEMORY;
	number_threads(&saving);
	ky_put_signed(out, ns);
	put_time(&saving, model->first_ns);
	ky_put_varint(out, model->hosts.len);
	ky_vec_foreach(&model->hosts, host)
		put_host(&saving, *host);
	ky_put_varint(out, model->syscalls.len);
	ky_vec_foreach(&model->syscalls, name)
		put_text(out, *name);
	history_save_put_lines(&saving);
	ky_put_varint(out, model->cpus.len);
	/* Threads lead to CPUs, and CPUs to threads: the latter come after all. */
	ky_vec_foreach(&model->cpus, cpu)
		history_save_put_cpu(&saving, *cpu);
	history_save_put_threads(&saving);
	ky_vec_foreach(&model->cpus, cpu)
		put_runs(&saving, *cpu);
	ky_put_varint(out, model->n_streams);
	for (size_t i = 0; i < model->n_streams; i++)
		put_stream(&saving, &model->streams[i]);
	free(saving.numbers);
	return ky_strbuf_failed(out) ? KYMO_E_MEMORY : 0;
}
