/* SPDX-License-Identifier: MIT */
/*
 * The state history: states of CPUs, threads, interrupts and block devices, from the state model. history-rows.c has their rows.
 *
 * The model tells of an occurrence at its end: of a call at its exit, of an interrupt at its end, and of the time
 * that a thread ran at the switch. So the ended calls of a thread and interrupts of a CPU wait here until the time around them is
 * known; then this time is divided among them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/history/history-build.h"
#include "analysis/state/model-internal.h"

/* Without a switch, that many ended calls or interrupts are enough. */
#define PARTS_MAX ((size_t)1 << 17)

/* ---- the time of a thread on a CPU --------------------------------------------------- */

static int history_linux_add(struct ky_history_builder *builder, struct ky_open_row *row,
			     int64_t begin_ns, int64_t end_ns, uint64_t state)
{
	return ky_open_row_add(&builder->writer, row, begin_ns, end_ns, state);
}

/* The first of @list that ends after @ns, from @at on. */
static size_t skip(const struct ky_parts_list *list, size_t at, int64_t ns)
{
	while (at < list->len && list->data[at].end_ns <= ns)
		at++;
	return at;
}

/* The list loses what ended up to @ns. */
static void history_linux_drop(struct ky_parts_list *list, int64_t ns)
{
	size_t n = skip(list, 0, ns);

	if (!n)
		return;
	memmove(list->data, list->data + n, (list->len - n) * sizeof(*list->data));
	list->len -= n;
}

/* From @ns on, what a list says, and up to when: it is part @at or the time before it. */
static uint64_t in_list(const struct ky_parts_list *list, size_t at, int64_t ns, int64_t *until)
{
	if (at == list->len)
		return KY_STATE_NONE;
	if (list->data[at].begin_ns > ns) {
		if (list->data[at].begin_ns < *until)
			*until = list->data[at].begin_ns;
		return KY_STATE_NONE;
	}
	if (list->data[at].end_ns < *until)
		*until = list->data[at].end_ns;
	return list->data[at].state;
}

/* The thread is still in a call, since when. */
static bool is_in_call(struct ky_history_builder *builder, const struct ky_thread *thread,
		       struct ky_part *call)
{
	const char *name;

	if (thread->syscall.id == KY_NO_SYSCALL)
		return false;
	/* It has no exit, and ends at once. */
	name = ky_model_syscall_name(builder->model, thread->syscall.id);
	if (strstr(name, "sigreturn"))
		return false;
	call->begin_ns = thread->syscall.begin_ns;
	call->state = ky_history_call_state(builder, thread->syscall.id);
	return true;
}

/* What a thread does outside of system calls, as far as events tell. */
static uint64_t running_state(const struct ky_thread *thread)
{
	bool is_kernel = thread->tid == 2 || thread->ppid == 2; /* kthreadd's */

	/* Up to its first entry or exit, it may be in a call that began before the trace. */
	if (is_kernel || !thread->returned || !(thread->host->abilities & KY_CAN_SYSCALLS))
		return KY_STATE_RUNNING;
	return KY_STATE_USER;
}

/* @thread ran from @begin_ns to @end_ns on a CPU with these @irqs. */
static int divide(struct ky_history_builder *builder, const struct ky_thread *thread,
		  struct ky_thread_row *own, const struct ky_parts_list *irqs, int64_t begin_ns,
		  int64_t end_ns)
{
	struct ky_part open = {INT64_MAX, INT64_MAX, KY_STATE_NONE};
	size_t irq = 0, call = 0;
	int status = 0;

	(void)is_in_call(builder, thread, &open);
	for (int64_t ns = begin_ns; ns < end_ns && status >= 0;) {
		int64_t until = end_ns;
		uint64_t state;

		irq = skip(irqs, irq, ns);
		call = skip(&own->calls, call, ns);
		state = in_list(irqs, irq, ns, &until);
		if (state == KY_STATE_NONE)
			state = in_list(&own->calls, call, ns, &until);
		if (state == KY_STATE_NONE && open.begin_ns <= ns)
			state = open.state;
		else if (state == KY_STATE_NONE && open.begin_ns < until)
			until = open.begin_ns;
		status = history_linux_add(builder, own->row, ns, until,
					   state == KY_STATE_NONE ? running_state(thread) : state);
		ns = until;
	}
	history_linux_drop(&own->calls, end_ns);
	return status;
}

static int history_linux_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
				struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_history_builder *builder = data;
	struct ky_cpu_row *on = ky_history_cpu(builder, cpu);
	struct ky_thread_row *own;
	int status = 0;

	if (!on)
		return KYMO_E_MEMORY;
	if (state == KY_CPU_IDLE)
		status = history_linux_add(builder, on->row, begin_ns, end_ns, KY_STATE_IDLE);
	if (state == KY_CPU_BUSY) {
		own = ky_history_thread(builder, thread);
		if (!own)
			return KYMO_E_MEMORY;
		status = history_linux_add(builder, on->row, begin_ns, end_ns,
					   ky_state(KY_STATE_RUNS, own->row->id));
		if (status >= 0)
			status = divide(builder, thread, own, &on->irqs, begin_ns, end_ns);
	}
	history_linux_drop(&on->irqs, end_ns);
	return status;
}

/* ---- calls --------------------------------------------------------------------------- */

static bool history_linux_has_times(const struct ky_call *call)
{
	switch (call->outcome) {
	case KY_CALL_DONE:
	case KY_CALL_HEADLESS:
	case KY_CALL_BIRTH:
	case KY_CALL_EXITED:
		return call->end_ns != INT64_MIN;
	default:
		return false; /* it ended at some time that no event tells */
	}
}

static int history_linux_on_call(void *data, const struct ky_call *call)
{
	struct ky_history_builder *builder = data;
	struct ky_thread_row *own;
	struct ky_part part;

	if (!history_linux_has_times(call))
		return 0;
	own = ky_history_thread(builder, call->thread);
	part = (struct ky_part){call->begin_ns, call->end_ns,
				ky_history_call_state(builder, call->syscall)};
	if (!own || part.state == KY_STATE_NONE)
		return KYMO_E_MEMORY;
	if (call->thread->host->abilities & KY_CAN_SWITCH && own->calls.len < PARTS_MAX)
		return ky_vec_push(&own->calls, part);
	/* Nothing tells when it ran. */
	ky_vec_clear(&own->calls);
	return part.begin_ns == INT64_MIN ? 0
					  : history_linux_add(builder, own->row, part.begin_ns,
							      part.end_ns, part.state);
}

/* ---- threads off the CPU ------------------------------------------------------------- */

static uint64_t off_state(struct ky_history_builder *builder, const struct ky_time_off *time)
{
	uint32_t syscall = time->thread->syscall.id;
	enum ky_state_kind kind = KY_STATE_BLOCKED;
	uint64_t name = 0;

	if (time->kind == KY_OFF_READY)
		return KY_STATE_WAIT_CPU;
	if (syscall != KY_NO_SYSCALL && ky_history_know_call(builder, syscall) >= 0) {
		name = builder->syscalls.data[syscall];
		kind = builder->reasons.data[syscall];
	}
	if (time->kind == KY_OFF_DISK)
		kind = KY_STATE_DISK;
	else if (time->kind == KY_OFF_OTHER)
		kind = KY_STATE_STOPPED;
	return ky_state(kind, name);
}

static int history_linux_on_off(void *data, const struct ky_time_off *time)
{
	struct ky_history_builder *builder = data;
	struct ky_thread_row *own = ky_history_thread(builder, time->thread);

	if (!own)
		return KYMO_E_MEMORY;
	return history_linux_add(builder, own->row, time->begin_ns, time->end_ns,
				 off_state(builder, time));
}

static int history_linux_on_queued(void *data, const struct ky_cpu *cpu, int64_t ns)
{
	struct ky_history_builder *builder = data;
	struct ky_cpu_row *own = ky_history_cpu(builder, cpu);
	int status = 0;

	if (own && !own->queue)
		own->queue = ky_history_writer_row(&builder->writer, KY_ROW_QUEUE, own->row->id,
						   cpu->id, "waiting threads");
	if (!own || !own->queue)
		return KYMO_E_MEMORY;
	if (own->queue_ns != INT64_MIN)
		status = history_linux_add(builder, own->queue, own->queue_ns, ns,
					   ky_state(KY_STATE_VALUE, own->n_waiting));
	own->queue_ns = ns;
	own->n_waiting = cpu->n_waiting;
	return status;
}

/* ---- interrupts ---------------------------------------------------------------------- */

static struct ky_open_row *irq_row(struct ky_history_builder *builder, const struct ky_irq *irq,
				   struct ky_cpu_row *on)
{
	uint64_t key = (uint64_t)irq->line->index << 32 | irq->cpu->index;
	struct ky_open_row *row = ky_map_get(&builder->irqs, key);
	char text[128];

	if (row)
		return row;
	ky_history_line_text(irq->line, text, sizeof(text));
	row = ky_history_writer_row(&builder->writer, KY_ROW_IRQ, on->row->id, irq->line->nr, text);
	return row && ky_map_set(&builder->irqs, key, row) == 0 ? row : NULL;
}

/* Handlers that it was interrupted by ended before it: its time is what they leave. */
static int push_irq(struct ky_parts_list *list, const struct ky_part *part)
{
	size_t first = list->len, n;
	struct ky_part *inner;
	int64_t ns = part->begin_ns;

	while (first > 0 && list->data[first - 1].begin_ns >= part->begin_ns)
		first--;
	n = list->len - first;
	if (!n)
		return ky_vec_push(list, *part);
	inner = malloc(n * sizeof(*inner));
	if (!inner || ky_vec_reserve(list, n + 1) < 0) {
		free(inner);
		return KYMO_E_MEMORY;
	}
	memcpy(inner, list->data + first, n * sizeof(*inner));
	list->len = first;
	for (size_t i = 0; i < n; i++) {
		if (inner[i].begin_ns > ns)
			list->data[list->len++] =
				(struct ky_part){ns, inner[i].begin_ns, part->state};
		list->data[list->len++] = inner[i];
		ns = inner[i].end_ns;
	}
	if (part->end_ns > ns)
		list->data[list->len++] = (struct ky_part){ns, part->end_ns, part->state};
	free(inner);
	return 0;
}

static int history_linux_on_irq(void *data, const struct ky_irq *irq)
{
	struct ky_history_builder *builder = data;
	struct ky_cpu_row *on = ky_history_cpu(builder, irq->cpu);
	struct ky_open_row *row = on ? irq_row(builder, irq, on) : NULL;
	struct ky_thread_row *own = irq->thread ? ky_history_thread(builder, irq->thread) : NULL;
	uint64_t name = ky_history_line_name(builder, irq->line);
	struct ky_part part = {irq->begin_ns, irq->end_ns, 0};
	int status;

	if (!row || name == UINT64_MAX || (irq->thread && !own))
		return KYMO_E_MEMORY;
	if (irq->begin_ns == INT64_MIN || irq->begin_ns >= irq->end_ns)
		return 0;
	status = history_linux_add(builder, row, irq->begin_ns, irq->end_ns,
				   ky_state(KY_STATE_ACTIVE, own ? (uint64_t)own->row->id + 1 : 0));
	if (status < 0 || !(irq->cpu->host->abilities & KY_CAN_SWITCH))
		return status;
	if (on->irqs.len >= PARTS_MAX)
		ky_vec_clear(&on->irqs);
	part.state =
		ky_state(irq->line->kind == KY_IRQ_SOFT ? KY_STATE_SOFTIRQ : KY_STATE_IRQ, name);
	return push_irq(&on->irqs, &part);
}

/* ---- block devices ------------------------------------------------------------------- */

static struct ky_disk_row *disk_row(struct ky_history_builder *builder, const struct ky_disk *disk)
{
	struct ky_disk_row *own;

	while (builder->disks.len <= disk->index) {
		if (ky_vec_push(&builder->disks, NULL) < 0)
			return NULL;
	}
	own = builder->disks.data[disk->index];
	if (own)
		return own;
	own = ky_arena_new(&builder->writer.arena, struct ky_disk_row);
	if (!own)
		return NULL;
	own->since_ns = INT64_MIN;
	own->row = ky_history_writer_row(&builder->writer, KY_ROW_DISK,
					 builder->machine_of[disk->host->index]->row->id, disk->dev,
					 disk->name);
	if (!own->row)
		return NULL;
	builder->disks.data[disk->index] = own;
	return own;
}

static int on_issued(void *data, const struct ky_disk *disk, int64_t ns)
{
	struct ky_history_builder *builder = data;
	struct ky_disk_row *own = disk_row(builder, disk);
	int status = 0;

	if (!own)
		return KYMO_E_MEMORY;
	if (own->since_ns != INT64_MIN)
		status = history_linux_add(builder, own->row, own->since_ns, ns,
					   ky_state(KY_STATE_VALUE, own->n_issued));
	own->since_ns = ns;
	own->n_issued = disk->n_issued;
	return status;
}

/* A row in which no request is at that time. */
static struct ky_open_row *lane(struct ky_history_builder *builder, struct ky_disk_row *own,
				int64_t begin_ns)
{
	for (uint32_t i = 0; i < KY_DISK_LANES; i++) {
		struct ky_open_row *row = own->lanes[i];

		if (row && row->has_last && row->last_end_ns > begin_ns)
			continue;
		if (!row)
			own->lanes[i] = ky_history_writer_row(&builder->writer, KY_ROW_REQUESTS,
							      own->row->id, i, "requests");
		return own->lanes[i];
	}
	return own->lanes[KY_DISK_LANES - 1];
}

static int history_linux_on_request(void *data, const struct ky_request *request)
{
	struct ky_history_builder *builder = data;
	struct ky_disk_row *own = disk_row(builder, request->disk);
	struct ky_open_row *row;
	enum ky_state_kind kind;
	int status;

	if (!own)
		return KYMO_E_MEMORY;
	status = ky_history_transfer(builder, own, request);
	if (status < 0 || request->issue_ns == INT64_MIN)
		return status;
	row = lane(builder, own, request->issue_ns);
	kind = request->rwbs & KY_RWBS_WRITE  ? KY_STATE_WRITE
	       : request->rwbs & KY_RWBS_READ ? KY_STATE_READ
					      : KY_STATE_OTHER;
	return row ? history_linux_add(builder, row, request->issue_ns, request->end_ns,
				       ky_state(kind, request->n_sectors))
		   : KYMO_E_MEMORY;
}

/* ---- the listener -------------------------------------------------------------------- */

int ky_history_listen(struct ky_history_builder *builder)
{
	const struct ky_listener listener = {
		.data = builder,
		.ran = history_linux_on_ran,
		.call = history_linux_on_call,
		.off = history_linux_on_off,
		.queued = history_linux_on_queued,
		.irq = history_linux_on_irq,
		.issued = on_issued,
		.request = history_linux_on_request,
		.packet = ky_history_packet,
		.memory = ky_history_memory,
	};

	/* States of the model are to have the last runs, too. */
	ky_model_ask(builder->model, KY_ABOUT_RUNS);
	return ky_model_listen(builder->model, &listener);
}

int ky_history_count_up(struct ky_history_builder *builder)
{
	int64_t ns = builder->end_ns;
	int status = 0;

	ky_vec_foreach(&builder->cpus, cpu) {
		if (status >= 0 && cpu->queue && cpu->queue_ns < ns) {
			status = history_linux_add(builder, cpu->queue, cpu->queue_ns, ns,
						   ky_state(KY_STATE_VALUE, cpu->n_waiting));
			cpu->queue_ns = ns;
		}
	}
	ky_vec_foreach(&builder->disks, it) {
		struct ky_disk_row *disk = *it;

		if (status >= 0 && disk && disk->since_ns != INT64_MIN && disk->since_ns < ns) {
			status = history_linux_add(builder, disk->row, disk->since_ns, ns,
						   ky_state(KY_STATE_VALUE, disk->n_issued));
			disk->since_ns = ns;
		}
	}
	return status;
}

void ky_history_linux_fini(struct ky_history_builder *builder)
{
	ky_vec_foreach(&builder->threads, thread)
		ky_vec_fini(&thread->calls);
	ky_vec_foreach(&builder->cpus, cpu)
		ky_vec_fini(&cpu->irqs);
	ky_vec_fini(&builder->threads);
	ky_vec_fini(&builder->cpus);
	ky_vec_fini(&builder->disks);
	ky_vec_fini(&builder->syscalls);
	ky_vec_fini(&builder->reasons);
	ky_vec_fini(&builder->lines);
	ky_map_fini(&builder->irqs);
}
