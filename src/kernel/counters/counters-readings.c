/* SPDX-License-Identifier: MIT */
/* What the programs have left: fetched from the regions, kept by thread until its event comes. */
#include <stdlib.h>
#include <string.h>

#include "kernel/counters/counters-internal.h"

/* What waits for its event for longer waits for none that is recorded. */
#define EXPIRE_NS    1000000000
#define READINGS_MAX (1u << 18)
/* So far readings are out of order at most, when several CPUs' come together. */
#define STEP_NS 500000
/* Events that have interrupted one another, with room. */
#define NESTED_MAX 8
/* Idle threads have one id; their CPUs distinguish them. */
#define IDLE_KEY(cpu) (UINT64_C(1) << 32 | (cpu))

/* ---- what waits for its event --------------------------------------------------------- */

static void counters_readings_take_out(struct ky_counters *counters,
				       struct ky_counters_queue *queue,
				       struct ky_counters_reading *r)
{
	*(r->prev ? &r->prev->next : &queue->first) = r->next;
	*(r->next ? &r->next->prev : &queue->last) = r->prev;
	r->next = counters->unused;
	counters->unused = r;
	counters->n_readings--;
}

static bool is_of_syscall(const struct ky_counters_reading *r)
{
	return r->key >= KY_COUNTERS_OF_SYS_ENTER;
}

static struct ky_counters_reading *new_reading(struct ky_counters *counters)
{
	struct ky_counters_reading *r = counters->unused;

	if (r)
		counters->unused = r->next;
	else
		r = malloc(sizeof(*r) + counters->n * sizeof(r->values[0]));
	return r;
}

static struct ky_counters_queue *counters_readings_queue_of(struct ky_counters *counters,
							    uint64_t thread)
{
	struct ky_counters_queue *queue = ky_map_get(&counters->threads, thread);

	if (queue)
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (queue && ky_map_set(&counters->threads, thread, queue) < 0) {
		free(queue);
		queue = NULL;
	}
	return queue;
}

/* Readings of one thread come from several CPUs, and from within interrupts. */
static void counters_readings_insert(struct ky_counters_queue *queue, struct ky_counters_reading *r)
{
	struct ky_counters_reading *before = queue->last;

	while (before && before->time_ns > r->time_ns)
		before = before->prev;
	r->prev = before;
	r->next = before ? before->next : queue->first;
	*(r->prev ? &r->prev->next : &queue->first) = r;
	*(r->next ? &r->next->prev : &queue->last) = r;
}

/*
 * The CPU has gone on to another thread: events of the one before, of @queue, from its last run there are over. From a
 * reading to its event no other thread has the CPU, except in a system call's. Each reading is looked at once.
 */
static void counters_readings_end_run(const struct ky_counters_queue *queue, uint32_t cpu,
				      uint32_t run, uint64_t time_ns)
{
	for (struct ky_counters_reading *r = queue->last; r; r = r->prev) {
		if (r->cpu != cpu)
			continue;
		if (r->run != run)
			break;
		if (!is_of_syscall(r) && r->over_ns > time_ns)
			r->over_ns = time_ns;
	}
}

static void end_older_in_queue(uint32_t number, uint64_t after_ns, uint64_t newest_ns,
			       const struct ky_counters_queue *queue)
{
	for (struct ky_counters_reading *r = queue->first; r; r = r->next)
		if (r->cpu == number && r->time_ns <= newest_ns && r->over_ns > after_ns)
			r->over_ns = after_ns;
}

/*
 * A reading of CPU @number was lost that was taken after @after_ns: its event has none, and must not be given those of
 * up to @newest_ns that wait.
 */
static void end_older(struct ky_counters *counters, uint32_t number, uint64_t after_ns,
		      uint64_t newest_ns)
{
	size_t pos = 0;
	uint64_t thread;
	void *value;

	while (ky_map_next(&counters->threads, &pos, &thread, &value))
		end_older_in_queue(number, after_ns, newest_ns, value);
}

/* Readings of a CPU were lost behind the last one that was taken. */
static void counters_readings_note_loss(struct ky_counters *counters, uint32_t number)
{
	struct ky_counters_cpu *cpu = &counters->cpus[number];

	if (cpu->lost_ns == cpu->last_ns)
		return; /* none was taken since */
	cpu->lost_ns = cpu->last_ns;
	end_older(counters, number, cpu->lost_ns, UINT64_MAX);
}

static void take_place_in_run(struct ky_counters_cpu *cpu, uint32_t number,
			      struct ky_counters_queue *queue, struct ky_counters_reading *r)
{
	if (cpu->queue && cpu->queue != queue)
		counters_readings_end_run(cpu->queue, number, cpu->run, r->time_ns);
	cpu->run += cpu->queue != queue;
	cpu->queue = queue;
	cpu->last_ns = r->time_ns;
}

/* One that was being written when those after it were taken comes @late. */
static void place_in_run(struct ky_counters_cpu *cpu, uint32_t number,
			 struct ky_counters_queue *queue, struct ky_counters_reading *r, bool late)
{
	if (!late)
		take_place_in_run(cpu, number, queue, r);
	r->cpu = number;
	r->run = cpu->run;
	r->over_ns = late && cpu->queue != queue && !is_of_syscall(r) ? cpu->last_ns : UINT64_MAX;
}

/* Those that a CPU counts with since it is back begin at 0, so they have less than the ones before had. */
static uint64_t counters_readings_base_of(const struct ky_counters_cpu *cpu, size_t i,
					  const struct ky_counters_slot *slot)
{
	bool is_before = slot->time_ns < cpu->replaced_ns && slot->values[i] >= cpu->raw_before[i];

	return is_before ? cpu->base_before[i] : cpu->base[i];
}

static void counters_readings_push(struct ky_counters *counters, uint32_t number,
				   const struct ky_counters_slot *slot, bool late)
{
	uint64_t thread = slot->tid ? slot->tid : IDLE_KEY(number);
	struct ky_counters_queue *queue = counters_readings_queue_of(counters, thread);
	struct ky_counters_reading *r = queue ? new_reading(counters) : NULL;
	struct ky_counters_cpu *cpu = &counters->cpus[number];

	if (!r)
		return; /* its event will miss it */
	r->time_ns = slot->time_ns;
	r->key = slot->key;
	for (size_t i = 0; i < counters->n; i++) {
		if (counters->choices[i].of_thread) {
			r->values[i] = slot->values[i];
			continue;
		}
		if (slot->values[i] != KY_COUNTERS_UNKNOWN)
			cpu->last[i] = counters_readings_base_of(cpu, i, slot) + slot->values[i];
		r->values[i] = cpu->last[i];
	}
	place_in_run(cpu, number, queue, r, late);
	counters_readings_insert(queue, r);
	counters->n_readings++;
}

/* ---- the regions ---------------------------------------------------------------------- */

static const struct ky_counters_slot *counters_readings_slot_of(const struct ky_counters *counters,
								uint32_t cpu, uint64_t number)
{
	const struct ky_bpf_counters *p = &counters->programs;
	const uint8_t *region = ky_bpf_region(&p->regions, cpu);

	return (const void *)(region + KY_COUNTERS_DATA_OFFSET +
			      (number & (p->n_slots - 1)) * (uint64_t)p->slot_bytes);
}

/* 1: taken; 0: it is being written; -1: it is gone. */
static int counters_readings_take_slot(struct ky_counters *counters, uint32_t cpu, uint64_t number)
{
	const struct ky_counters_slot *slot = counters_readings_slot_of(counters, cpu, number);
	uint64_t copy[3 + KY_COUNTERS_MAX];
	/* Pairs with the program's exchange: what it has written before is there. */
	uint64_t now = __atomic_load_n(&slot->number, __ATOMIC_ACQUIRE);

	if (now != number + 1)
		return now > number + 1 ? -1 : 0;
	for (size_t i = 1; i < 3 + counters->n; i++)
		copy[i] = __atomic_load_n((const uint64_t *)slot + i, __ATOMIC_RELAXED);
	/* The copies come before the second look. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->number, __ATOMIC_RELAXED) != number + 1)
		return -1;
	counters_readings_push(counters, cpu, (const void *)copy,
			       number < counters->cpus[cpu].next);
	return 1;
}

/* When the next one was taken, about; UINT64_MAX: none exists. */
static uint64_t counters_readings_next_time(const struct ky_counters *counters, uint32_t number)
{
	const struct ky_counters_cpu *cpu = &counters->cpus[number];

	return cpu->next == cpu->head
		       ? UINT64_MAX
		       : __atomic_load_n(
				 &counters_readings_slot_of(counters, number, cpu->next)->time_ns,
				 __ATOMIC_RELAXED);
}

static void begin_drain(struct ky_counters *counters, uint32_t number)
{
	const uint8_t *region = ky_bpf_region(&counters->programs.regions, number);
	struct ky_counters_cpu *cpu = &counters->cpus[number];
	uint32_t n_gaps = 0;

	/* Pairs with the program's addition. */
	cpu->head = __atomic_load_n((const uint64_t *)(const void *)region, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < cpu->n_gaps; i++) {
		int taken = counters_readings_take_slot(counters, number, cpu->gaps[i].number);

		if (taken < 0)
			end_older(counters, number, cpu->gaps[i].after_ns, cpu->gaps[i].after_ns);
		else if (!taken)
			cpu->gaps[n_gaps++] = cpu->gaps[i];
	}
	cpu->n_gaps = n_gaps;
	if (cpu->head - cpu->next > counters->programs.n_slots) {
		counters_readings_note_loss(counters, number);
		cpu->next = cpu->head - counters->programs.n_slots;
	}
}

/* Up to @until_ns, about. Returns whether there was any. */
static bool counters_readings_drain_cpu(struct ky_counters *counters, uint32_t number,
					uint64_t until_ns)
{
	struct ky_counters_cpu *cpu = &counters->cpus[number];
	uint64_t first = cpu->next;

	for (; cpu->next != cpu->head && counters_readings_next_time(counters, number) <= until_ns;
	     cpu->next++) {
		int taken = counters_readings_take_slot(counters, number, cpu->next);

		if (taken < 0)
			counters_readings_note_loss(counters, number);
		if (taken)
			continue;
		if (cpu->n_gaps == KY_COUNTERS_GAPS_MAX)
			break;
		cpu->gaps[cpu->n_gaps].number = cpu->next;
		cpu->gaps[cpu->n_gaps++].after_ns = cpu->last_ns;
	}
	return cpu->next != first;
}

/*
 * All CPUs side by side: a thread that moves has readings on several, and where one CPU's were all taken before
 * the next one's, each of these would have to be put far back in its queue.
 */
void ky_counters_drain(struct ky_counters *counters)
{
	bool any = counters->programs.regions.at != NULL;

	for (uint32_t cpu = 0; any && cpu < counters->n_cpus; cpu++)
		begin_drain(counters, cpu);
	while (any) {
		uint64_t first_ns = UINT64_MAX, time_ns;

		for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++) {
			time_ns = counters_readings_next_time(counters, cpu);
			first_ns = time_ns < first_ns ? time_ns : first_ns;
		}
		any = false;
		for (uint32_t cpu = 0; first_ns != UINT64_MAX && cpu < counters->n_cpus; cpu++)
			any |= counters_readings_drain_cpu(counters, cpu, first_ns + STEP_NS);
	}
}

/* ---- events --------------------------------------------------------------------------- */

/* Of a thread's readings up to a time. */
struct past {
	struct ky_counters_reading *found;     /* the newest of the kind in question */
	struct ky_counters_reading *last_call; /* the newest of a system call */
	unsigned int n;
};

static void look_at_past(const struct ky_counters_queue *queue, uint32_t key, uint64_t time_ns,
			 struct past *past)
{
	memset(past, 0, sizeof(*past));
	for (struct ky_counters_reading *r = queue->first; r && r->time_ns <= time_ns;
	     r = r->next) {
		past->found = r->key == key ? r : past->found;
		past->last_call = is_of_syscall(r) ? r : past->last_call;
		past->n++;
	}
}

/* Whether past->found is the event's own. It may be lost, and this one belong to an event that is not recorded. */
static bool counters_readings_is_own(const struct past *past, uint32_t cpu, uint64_t time_ns)
{
	const struct ky_counters_reading *r = past->found;

	if (!r || r->over_ns <= time_ns)
		return false;
	/* A thread's next call has begun, or this one has ended. */
	return is_of_syscall(r) ? r == past->last_call : r->cpu == cpu;
}

/*
 * Those that wait no more, past->found having been taken: it and what came after it; what came before, unless an
 * interrupt brought the event; and what is more than interrupts nest. Of a thread's own call, only the next one's
 * reading says that it is over: two are not under way at once.
 */
static void drop_past(struct ky_counters *counters, struct ky_counters_queue *queue,
		      const struct past *past, bool is_call, uint64_t time_ns, bool is_interrupt)
{
	unsigned int left = past->n;
	struct ky_counters_reading *next;
	bool after = false;

	for (struct ky_counters_reading *r = queue->first; r && r->time_ns <= time_ns;
	     r = next, left--) {
		bool is_over = !is_interrupt || after || left > NESTED_MAX || is_of_syscall(r);

		next = r->next;
		after |= r == past->found;
		if (r == past->found || (r == past->last_call ? is_call : is_over))
			counters_readings_take_out(counters, queue, r);
	}
}

const uint64_t *ky_counters_last(const struct ky_counters *counters, uint32_t cpu)
{
	static const uint64_t nothing[KY_COUNTERS_MAX];

	return cpu < counters->n_cpus ? counters->cpus[cpu].given : nothing;
}

const uint64_t *ky_counters_take(struct ky_counters *counters, uint32_t key, uint32_t tid,
				 uint32_t cpu, uint64_t time_ns, bool is_interrupt)
{
	struct ky_counters_queue *queue = ky_map_get(&counters->threads, tid ? tid : IDLE_KEY(cpu));
	struct past past = {0};

	if (queue)
		look_at_past(queue, key, time_ns, &past);
	if (!counters_readings_is_own(&past, cpu, time_ns))
		past.found = NULL;
	if (past.found && cpu < counters->n_cpus)
		memcpy(counters->cpus[cpu].given, past.found->values, counters->n * 8);
	counters->missing += !past.found;
	if (past.n)
		drop_past(counters, queue, &past, key >= KY_COUNTERS_OF_SYS_ENTER, time_ns,
			  is_interrupt);
	return ky_counters_last(counters, cpu);
}

/* Threads of which nothing waits have no queue. */
static void counters_readings_sweep(struct ky_counters *counters, uint64_t before_ns)
{
	KY_VEC(uint64_t) empty = KY_VEC_INIT;
	size_t pos = 0;
	uint64_t thread;
	void *value;

	while (ky_map_next(&counters->threads, &pos, &thread, &value)) {
		struct ky_counters_queue *queue = value;

		while (queue->first && queue->first->time_ns < before_ns)
			counters_readings_take_out(counters, queue, queue->first);
		if (!queue->first)
			(void)ky_vec_push(&empty, thread);
	}
	ky_vec_foreach(&empty, key) {
		value = ky_map_del(&counters->threads, *key);
		for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++)
			if (counters->cpus[cpu].queue == value)
				counters->cpus[cpu].queue = NULL;
		free(value);
	}
	ky_vec_fini(&empty);
}

void ky_counters_expire(struct ky_counters *counters, uint64_t time_ns)
{
	if (counters->n_readings > READINGS_MAX)
		counters_readings_sweep(counters, time_ns);
	else if (time_ns > counters->swept_ns && time_ns - counters->swept_ns > EXPIRE_NS)
		counters_readings_sweep(counters, time_ns - EXPIRE_NS);
	else
		return;
	counters->swept_ns = time_ns;
}

uint64_t ky_counters_missing(const struct ky_counters *counters)
{
	return counters->missing;
}

void ky_counters_free_readings(struct ky_counters *counters)
{
	struct ky_counters_reading *next;
	size_t pos = 0;
	uint64_t key;
	void *value;

	while (ky_map_next(&counters->threads, &pos, &key, &value)) {
		struct ky_counters_queue *queue = value;

		for (struct ky_counters_reading *r = queue->first; r; r = next) {
			next = r->next;
			free(r);
		}
		free(queue);
	}
	for (struct ky_counters_reading *r = counters->unused; r; r = next) {
		next = r->next;
		free(r);
	}
	ky_map_fini(&counters->threads);
}
