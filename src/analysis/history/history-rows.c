/* SPDX-License-Identifier: MIT */
/* The state history: rows of the state model's things, and names in their states. */
#include <stdio.h>
#include <string.h>

#include "analysis/history/history-build.h"

/* ---- names --------------------------------------------------------------------------- */

/* What a thread waits for in a call. */
static const struct {
	const char *call;
	enum ky_state_kind kind;
} reasons[] = {
	{"futex", KY_STATE_LOCK},
	{"futex_time64", KY_STATE_LOCK},
	{"futex_wait", KY_STATE_LOCK},
	{"futex_waitv", KY_STATE_LOCK},
	{"nanosleep", KY_STATE_TIMER},
	{"clock_nanosleep", KY_STATE_TIMER},
	{"clock_nanosleep_time64", KY_STATE_TIMER},
	{"accept", KY_STATE_NETWORK},
	{"accept4", KY_STATE_NETWORK},
	{"connect", KY_STATE_NETWORK},
	{"recvfrom", KY_STATE_NETWORK},
	{"recvmsg", KY_STATE_NETWORK},
	{"recvmmsg", KY_STATE_NETWORK},
	{"sendto", KY_STATE_NETWORK},
	{"sendmsg", KY_STATE_NETWORK},
	{"sendmmsg", KY_STATE_NETWORK},
};

static enum ky_state_kind reason_of(const char *call)
{
	if (strncmp(call, "compat_", 7) == 0)
		call += 7;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		if (strcmp(call, reasons[i].call) == 0)
			return reasons[i].kind;
	}
	return KY_STATE_BLOCKED;
}

int ky_history_know_call(struct ky_history_builder *builder, uint32_t syscall)
{
	while (builder->syscalls.len <= syscall) {
		const char *text =
			ky_model_syscall_name(builder->model, (uint32_t)builder->syscalls.len);
		uint64_t name = ky_history_writer_name(&builder->writer, text);

		if (name == UINT64_MAX ||
		    ky_vec_push(&builder->reasons, (uint8_t)reason_of(text)) < 0 ||
		    ky_vec_push(&builder->syscalls, name) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

uint64_t ky_history_call_state(struct ky_history_builder *builder, uint32_t syscall)
{
	if (builder->syscalls.len <= syscall && ky_history_know_call(builder, syscall) < 0)
		return KY_STATE_NONE;
	return ky_state(KY_STATE_SYSCALL, builder->syscalls.data[syscall]);
}

void ky_history_line_text(const struct ky_irq_line *line, char *text, size_t size)
{
	if (line->kind == KY_IRQ_VECTOR)
		snprintf(text, size, "%s", line->name);
	else
		snprintf(text, size, "%s %d%s%s", line->kind == KY_IRQ_SOFT ? "softirq" : "irq",
			 line->nr, line->name[0] ? " " : "", line->name);
}

uint64_t ky_history_line_name(struct ky_history_builder *builder, const struct ky_irq_line *line)
{
	while (builder->lines.len <= line->index) {
		const struct ky_irq_line *next =
			ky_model_irq_line(builder->model, builder->lines.len);
		char text[128];
		uint64_t name;

		ky_history_line_text(next, text, sizeof(text));
		name = ky_history_writer_name(&builder->writer, text);
		if (name == UINT64_MAX || ky_vec_push(&builder->lines, name) < 0)
			return UINT64_MAX;
	}
	return builder->lines.data[line->index];
}

/* ---- rows ---------------------------------------------------------------------------- */

struct ky_thread_row *ky_history_thread(struct ky_history_builder *builder,
					const struct ky_thread *thread)
{
	struct ky_thread_row *own;

	while (builder->threads.len <= thread->index) {
		if (ky_vec_push(&builder->threads, (struct ky_thread_row){0}) < 0)
			return NULL;
	}
	own = &builder->threads.data[thread->index];
	if (!own->row)
		own->row = ky_history_writer_row(&builder->writer, KY_ROW_THREAD,
						 builder->machine_of[thread->host->index]->row->id,
						 thread->tid, thread->comm);
	return own->row ? own : NULL;
}

struct ky_cpu_row *ky_history_cpu(struct ky_history_builder *builder, const struct ky_cpu *cpu)
{
	struct ky_cpu_row *own;
	char name[32];

	while (builder->cpus.len <= cpu->index) {
		if (ky_vec_push(&builder->cpus, (struct ky_cpu_row){.queue_ns = INT64_MIN}) < 0)
			return NULL;
	}
	own = &builder->cpus.data[cpu->index];
	if (!own->row) {
		snprintf(name, sizeof(name), "CPU %u", cpu->id);
		own->row = ky_history_writer_row(&builder->writer, KY_ROW_CPU,
						 builder->machine_of[cpu->host->index]->row->id,
						 cpu->id, name);
	}
	return own->row ? own : NULL;
}

struct ky_open_row *ky_history_thread_row(struct ky_history_builder *builder,
					  const struct ky_machine *machine, int32_t tid)
{
	for (size_t i = 0; i < ky_model_n_hosts(builder->model); i++) {
		const struct ky_host *host = ky_model_host(builder->model, i);
		const struct ky_thread *thread;
		struct ky_thread_row *own;

		if (builder->machine_of[i] != machine)
			continue;
		thread = ky_map_get(&host->threads, (uint32_t)tid);
		own = thread ? ky_history_thread(builder, thread) : NULL;
		if (own)
			return own->row;
	}
	return NULL;
}

struct ky_open_row *ky_history_process_row(struct ky_history_builder *builder,
					   struct ky_machine *machine, int32_t pid)
{
	struct ky_open_row *row = ky_map_get(&machine->processes, (uint32_t)pid);

	if (row)
		return row;
	row = ky_history_writer_row(&builder->writer, KY_ROW_PROCESS, machine->row->id, pid, NULL);
	return row && ky_map_set(&machine->processes, (uint32_t)pid, row) == 0 ? row : NULL;
}

/* A thread's names are known only at its last event. */
static int name_thread(struct ky_history_builder *builder, const struct ky_thread *thread,
		       struct ky_open_row *row)
{
	struct ky_machine *machine = builder->machine_of[thread->host->index];
	struct ky_open_row *process = NULL;

	row->number = thread->tid;
	if (ky_open_row_name(&builder->writer, row, thread->comm) < 0)
		return KYMO_E_MEMORY;
	if (thread->pid == KY_UNKNOWN)
		return 0;
	process = ky_history_process_row(builder, machine, thread->pid);
	if (!process)
		return KYMO_E_MEMORY;
	ky_open_row_parent(row, process->id);
	if (thread->ppid > 0)
		ky_open_row_origin(process, thread->ppid);
	if (thread->pid == thread->tid || !process->name[0])
		return ky_open_row_name(&builder->writer, process, thread->comm);
	return 0;
}

int ky_history_name_rows(struct ky_history_builder *builder)
{
	size_t n = ky_model_n_threads(builder->model);
	int status = 0;

	for (size_t i = 0; i < builder->threads.len && i < n && status >= 0; i++) {
		if (builder->threads.data[i].row)
			status = name_thread(builder, ky_model_thread(builder->model, i),
					     builder->threads.data[i].row);
	}
	for (size_t i = 0; i < builder->disks.len && status >= 0; i++) {
		if (builder->disks.data[i])
			status = ky_open_row_name(&builder->writer, builder->disks.data[i]->row,
						  ky_model_disk(builder->model, i)->name);
	}
	return status;
}
