/* SPDX-License-Identifier: MIT */
/* The state history: a record of history-save.c becomes the state of a new model. Every number is checked. */
#include "analysis/history/history-save.h"

#include <stdlib.h>
#include <string.h>

struct restoring {
	struct ky_model *model;
	struct ky_bytes *bytes;
	int64_t ns;
	KY_VEC(struct ky_thread *) threads; /* by number - 1 */
	KY_VEC(uint32_t) syscalls;	    /* numbers in the model, by the saved ones */
	KY_VEC(struct ky_irq_line *) lines;
	KY_VEC(struct ky_cpu *) cpus;
};

#define COUNT_MAX (UINT64_C(1) << 24) /* of anything */

static int64_t get_time(struct restoring *from)
{
	uint64_t value = ky_bytes_varint(from->bytes);

	if (!value)
		return INT64_MIN;
	value--;
	return (int64_t)((uint64_t)from->ns - (value >> 1 ^ -(value & 1)));
}

static int32_t get_int(struct restoring *from)
{
	int64_t value = ky_bytes_signed(from->bytes);

	from->bytes->bad |= value < INT32_MIN || value > INT32_MAX;
	return (int32_t)value;
}

/* At most @max. */
static uint64_t get_number(struct restoring *from, uint64_t max)
{
	uint64_t value = ky_bytes_varint(from->bytes);

	if (value <= max)
		return value;
	from->bytes->bad = true;
	return 0;
}

/* The length of a text; its bytes are at bytes->at, and must be skipped. */
static size_t get_len(struct restoring *from, uint64_t max)
{
	uint64_t len = get_number(from, max);

	if (len <= (uint64_t)(from->bytes->end - from->bytes->at))
		return (size_t)len;
	from->bytes->bad = true;
	return 0;
}

static struct ky_host *get_host(struct restoring *from)
{
	return from->model->hosts.data[get_number(from, from->model->hosts.len - 1)];
}

static int history_restore_is_good(const struct restoring *from)
{
	return from->bytes->bad ? KYMO_E_FORMAT : 0;
}

/* ---- names ------------------------------------------------------------------------------------- */

static void restore_host(struct restoring *from, struct ky_host *host)
{
	uint64_t flags;

	host->torn_until_ns = get_time(from);
	host->blind_until_ns = get_time(from);
	host->absent_cpus = ky_bytes_varint(from->bytes);
	flags = get_number(from, 3);
	host->announces = flags & 1;
	host->lacks_cpus = flags >> 1;
}

static int get_hosts(struct restoring *from)
{
	uint64_t n = ky_bytes_varint(from->bytes);

	if (!n || n != from->model->hosts.len)
		return KYMO_E_FORMAT;
	ky_vec_foreach(&from->model->hosts, it)
		restore_host(from, *it);
	return history_restore_is_good(from);
}

static int get_syscalls(struct restoring *from)
{
	uint64_t n = get_number(from, COUNT_MAX);

	for (uint64_t i = 0; i < n && !from->bytes->bad; i++) {
		size_t len = get_len(from, KY_ROW_NAME_BYTES);
		char name[KY_ROW_NAME_BYTES + 1];
		uint32_t number;

		memcpy(name, from->bytes->at, len);
		name[len] = '\0';
		from->bytes->at += len;
		number = from->bytes->bad ? 0 : ky_model_syscall(from->model, name);
		if (number == KY_NO_SYSCALL || ky_vec_push(&from->syscalls, number) < 0)
			return KYMO_E_MEMORY;
	}
	return history_restore_is_good(from);
}

static int get_lines(struct restoring *from)
{
	uint64_t n = get_number(from, COUNT_MAX);

	for (uint64_t i = 0; i < n && !from->bytes->bad; i++) {
		struct ky_host *host = get_host(from);
		enum ky_irq_kind kind = (enum ky_irq_kind)get_number(from, KY_IRQ_KINDS - 1);
		int32_t nr = get_int(from);
		size_t len = get_len(from, UINT16_MAX);
		struct ky_irq_line *line;

		if (from->bytes->bad)
			break;
		line = ky_irq_line_get(from->model, host, kind, nr, (const char *)from->bytes->at,
				       len);
		from->bytes->at += len;
		if (!line || ky_vec_push(&from->lines, line) < 0)
			return KYMO_E_MEMORY;
	}
	return history_restore_is_good(from);
}

static const struct ky_irq_line *get_line(struct restoring *from, bool may_lack)
{
	uint64_t number;

	if (!may_lack && !from->lines.len)
		from->bytes->bad = true;
	if (from->bytes->bad)
		return NULL;
	number = get_number(from, may_lack ? from->lines.len : from->lines.len - 1);
	if (may_lack && !number)
		return NULL;
	return from->lines.data[may_lack ? number - 1 : number];
}

/* ---- CPUs -------------------------------------------------------------------------------------- */

static int get_irqs(struct restoring *from, struct ky_cpu *cpu)
{
	uint64_t depth = get_number(from, KY_IRQ_DEPTH + 1);
	uint64_t raised;

	if (!depth)
		return history_restore_is_good(from);
	cpu->irqs = ky_arena_new(&from->model->arena, struct ky_cpu_irqs);
	if (!cpu->irqs)
		return KYMO_E_MEMORY;
	ky_irq_lose(cpu);
	for (uint64_t i = 0; i + 1 < depth; i++) {
		struct ky_running_irq *irq = &cpu->irqs->stack[i];

		irq->line = get_line(from, false);
		irq->begin_ns = get_time(from);
		irq->raise_ns = get_time(from);
		if (from->bytes->bad)
			return KYMO_E_FORMAT;
		cpu->irqs->depth++;
	}
	raised = get_number(from, UINT32_MAX);
	for (uint32_t i = 0; i < KY_SOFTIRQS; i++) {
		if (raised >> i & 1)
			cpu->irqs->raise_ns[i] = get_time(from);
	}
	return history_restore_is_good(from);
}

/* *@current: the number of the thread that runs; it follows later. */
static int get_cpu(struct restoring *from, uint64_t *current)
{
	struct ky_host *host = get_host(from);
	uint32_t id = (uint32_t)get_number(from, UINT32_MAX - 1);
	struct ky_cpu *cpu;

	if (from->bytes->bad)
		return KYMO_E_FORMAT;
	cpu = ky_model_cpu_get(from->model, host, id);
	if (!cpu || ky_vec_push(&from->cpus, cpu) < 0)
		return KYMO_E_MEMORY;
	cpu->state = (enum ky_cpu_state)get_number(from, KY_CPU_BUSY);
	*current = get_number(from, COUNT_MAX);
	cpu->since_ns = get_time(from);
	cpu->seen_ns = get_time(from);
	cpu->begin_ns = get_time(from);
	cpu->lost_until_ns = get_time(from);
	cpu->lost_ns = (int64_t)get_number(from, INT64_MAX);
	cpu->missing = ky_bytes_varint(from->bytes);
	cpu->unnamed = get_number(from, 1);
	cpu->n_waiting = (uint32_t)get_number(from, UINT32_MAX);
	if ((cpu->state == KY_CPU_BUSY) != (*current != 0))
		return KYMO_E_FORMAT;
	return get_irqs(from, cpu);
}

static struct ky_cpu *get_queue(struct restoring *from)
{
	uint64_t number = get_number(from, from->cpus.len);

	return number ? from->cpus.data[number - 1] : NULL;
}

/* ---- threads -------------------------------------------------------------------------------------- */

static void get_flags(struct restoring *from, struct ky_thread *thread, bool *is_last)
{
	uint64_t flags = get_number(from, 255);

	thread->running = flags & 1;
	thread->announced = flags >> 1 & 1;
	thread->unannounced = flags >> 2 & 1;
	thread->born = flags >> 3 & 1;
	thread->fresh = flags >> 4 & 1;
	thread->dead = flags >> 5 & 1;
	thread->returned = flags >> 6 & 1;
	*is_last = flags >> 7;
}

static void get_call(struct restoring *from, struct ky_syscall *call)
{
	uint64_t id = get_number(from, from->syscalls.len);

	if (!id)
		return;
	call->id = from->syscalls.data[id - 1];
	call->cpu_id = (uint32_t)get_number(from, UINT32_MAX);
	call->begin_ns = get_time(from);
}

static struct ky_thread *get_other(struct restoring *from)
{
	uint64_t number = get_number(from, from->threads.len);

	return number ? from->threads.data[number - 1] : NULL;
}

static void restore_wait(struct restoring *from, struct ky_wait *wait)
{
	*wait = (struct ky_wait){.kind = (enum ky_wait_kind)get_number(from, KY_WAIT_PREEMPTED)};
	if (!wait->kind)
		return;
	wait->begin_ns = get_time(from);
	wait->waker = get_other(from);
	wait->irq = get_line(from, true);
	wait->by = get_other(from);
	wait->cpu_id = (uint32_t)get_number(from, UINT32_MAX);
}

static void get_comm(struct restoring *from, struct ky_thread *thread)
{
	size_t len = get_len(from, KY_COMM_SIZE - 1);

	memset(thread->comm, 0, sizeof(thread->comm));
	memcpy(thread->comm, from->bytes->at, len);
	from->bytes->at += len;
}

static int restore_thread(struct restoring *from, struct ky_thread *thread)
{
	struct ky_host *host = get_host(from);
	bool is_last;

	thread->host = host;
	thread->tid = get_int(from);
	thread->pid = get_int(from);
	thread->ppid = get_int(from);
	thread->prio = get_int(from);
	thread->cpu = get_int(from);
	get_flags(from, thread, &is_last);
	thread->off = (enum ky_off_kind)get_number(from, KY_OFF_KINDS - 1);
	thread->off_ns = get_time(from);
	thread->left_ns = get_time(from);
	thread->stray_ns = get_time(from);
	thread->queue = get_queue(from);
	thread->cgroup = ky_bytes_varint(from->bytes);
	get_comm(from, thread);
	get_call(from, &thread->syscall);
	restore_wait(from, &thread->wait);
	restore_wait(from, &thread->woken);
	if (from->bytes->bad)
		return KYMO_E_FORMAT;
	return is_last ? ky_map_set(&host->threads, (uint32_t)thread->tid, thread) : 0;
}

/* All of them first, as one may be another one's waker. */
static int restore_threads(struct restoring *from)
{
	uint64_t n = get_number(from, COUNT_MAX);
	int status = history_restore_is_good(from);

	if (n > (uint64_t)(from->bytes->end - from->bytes->at))
		return KYMO_E_FORMAT;
	for (uint64_t i = 0; i < n && status >= 0; i++) {
		struct ky_thread *thread = ky_model_thread_blank(from->model);

		if (!thread || ky_vec_push(&from->threads, thread) < 0)
			status = KYMO_E_MEMORY;
	}
	for (uint64_t i = 0; i < n && status >= 0; i++)
		status = restore_thread(from, from->threads.data[i]);
	return status;
}

static int get_runs(struct restoring *from, struct ky_cpu *cpu)
{
	uint64_t n = get_number(from, COUNT_MAX);
	int status = 0;

	for (; n > 0 && status >= 0; n--) {
		const struct ky_thread *thread = get_other(from);
		int64_t begin_ns = get_time(from), end_ns = get_time(from);

		if (from->bytes->bad || !thread)
			return KYMO_E_FORMAT;
		status = ky_cpu_note_run(from->model, cpu, thread, begin_ns, end_ns);
	}
	return status;
}

static int get_cpus(struct restoring *from)
{
	uint64_t n = get_number(from, COUNT_MAX);
	int status = history_restore_is_good(from);
	uint64_t *current;

	if (n > (uint64_t)(from->bytes->end - from->bytes->at))
		return KYMO_E_FORMAT;
	current = calloc(n + 1, sizeof(*current));
	if (!current)
		return KYMO_E_MEMORY;
	for (uint64_t i = 0; i < n && status >= 0; i++)
		status = get_cpu(from, &current[i]);
	if (status >= 0)
		status = restore_threads(from);
	for (uint64_t i = 0; i < n && status >= 0; i++) {
		if (current[i] > from->threads.len)
			status = KYMO_E_FORMAT;
		else if (current[i])
			from->cpus.data[i]->current = from->threads.data[current[i] - 1];
	}
	for (uint64_t i = 0; i < n && status >= 0; i++)
		status = get_runs(from, from->cpus.data[i]);
	free(current);
	return status;
}

/* ---- streams ---------------------------------------------------------------------------------------- */

static int get_stream(struct restoring *from, struct ky_stream_state *stream)
{
	uint64_t n;

	stream->begun = get_number(from, 1);
	stream->cpu_id = (uint32_t)get_number(from, UINT32_MAX);
	stream->cpu = get_queue(from);
	stream->last_ns = get_time(from);
	n = get_number(from, from->cpus.len);
	if (stream->cpu && stream->cpu->id != stream->cpu_id)
		return KYMO_E_FORMAT;
	for (uint64_t i = 0; i < n && !from->bytes->bad; i++) {
		uint64_t index = get_number(from, from->cpus.len - 1);

		if (!from->bytes->bad && ky_map_set(&stream->cpus, from->cpus.data[index]->index,
						    from->cpus.data[index]) < 0)
			return KYMO_E_MEMORY;
	}
	return history_restore_is_good(from);
}

static int restore_all(struct restoring *from)
{
	int status = get_hosts(from);

	if (status >= 0)
		status = get_syscalls(from);
	if (status >= 0)
		status = get_lines(from);
	if (status >= 0)
		status = get_cpus(from);
	if (status >= 0 && ky_bytes_varint(from->bytes) != from->model->n_streams)
		status = KYMO_E_FORMAT;
	for (size_t i = 0; i < from->model->n_streams && status >= 0; i++)
		status = get_stream(from, &from->model->streams[i]);
	if (status >= 0 && (from->bytes->bad || from->bytes->at != from->bytes->end))
		status = KYMO_E_FORMAT;
	return status;
}

int ky_history_restore(struct ky_model *model, struct ky_bytes *bytes, int64_t *ns)
{
	struct restoring from = {.model = model, .bytes = bytes};
	int64_t first_ns;
	int status;

	from.ns = *ns = ky_bytes_signed(bytes);
	first_ns = get_time(&from);
	if (bytes->bad || first_ns == INT64_MIN || first_ns > *ns)
		return KYMO_E_FORMAT;
	status = restore_all(&from);
	/* The focus takes effect as with the first event. */
	if (status >= 0)
		ky_model_first(model, first_ns);
	ky_vec_fini(&from.threads);
	ky_vec_fini(&from.syscalls);
	ky_vec_fini(&from.lines);
	ky_vec_fini(&from.cpus);
	return status;
}
