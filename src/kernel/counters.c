/* SPDX-License-Identifier: MIT */
#include "kernel/counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "kernel/bpf.h"
#include "kernel/btf.h"
#include "kernel/counters-program.h"

/*
 * A region of memory per CPU, as large as the ring, in which events wait as long; but not beyond what older kernels
 * allow (they say so), and less where there are many CPUs.
 */
#define DATA_MIN_BYTES (256u << 10)
#define DATA_MAX_BYTES (32u << 20)
#define DATA_ALL_BYTES (256u << 20)
/* What waits for its event for longer waits for none that is recorded. */
#define EXPIRE_NS    1000000000
#define READINGS_MAX (1u << 18)
#define GAPS_MAX     16
/* So far readings are out of order at most, when several CPUs' come together. */
#define STEP_NS 500000
/* Events that have interrupted one another, with room. */
#define NESTED_MAX     8
#define CPU_LIST_BYTES 4096
/* Idle threads are told apart by their CPUs. */
#define IDLE_KEY(cpu) (UINT64_C(1) << 32 | (cpu))

/* In its thread's queue, in the order of time. */
struct reading {
	struct reading *prev, *next;
	uint64_t time_ns;
	uint32_t key;
	uint64_t values[];
};

struct queue {
	struct reading *first, *last;
};

struct cpu {
	int fds[KY_COUNTERS_MAX]; /* -1: not counted */
	bool here;
	/* Of its region: the next reading, and those before it that were still being written. */
	uint64_t next, head, gaps[GAPS_MAX];
	uint32_t n_gaps;
	/* A CPU that has been away counts from 0 again; what it had is here. */
	uint64_t base[KY_COUNTERS_MAX], last[KY_COUNTERS_MAX];
	uint64_t given[KY_COUNTERS_MAX]; /* to its last event */
};

struct counters_link {
	uint32_t key;
	int program_fd, fd;
};

struct ky_counters {
	struct ky_counter_choice choices[KY_COUNTERS_MAX];
	size_t n;
	struct ky_counters_program program;
	uint64_t ring_bytes;
	KY_VEC(struct counters_link) links;
	uint32_t n_cpus;
	struct cpu *cpus;
	uint8_t *regions; /* mapped */
	uint64_t region_bytes;
	char cpu_list[CPU_LIST_BYTES]; /* as of the last look */
	struct ky_map threads;	       /* tid, or IDLE_KEY() -> struct queue */
	struct reading *unused;
	size_t n_readings;
	uint64_t swept_ns;
	uint64_t missing;
};

/* ---- which ---------------------------------------------------------------------------- */

/* What the kernel counts for each thread anyway: one member, or the sum of two. */
static const struct {
	const char *name;
	struct {
		const char *type, *member;
	} parts[2];
} of_threads[] = {
	{"page-faults", {{"task_struct", "min_flt"}, {"task_struct", "maj_flt"}}},
	{"minor-faults", {{"task_struct", "min_flt"}}},
	{"major-faults", {{"task_struct", "maj_flt"}}},
	{"context-switches", {{"task_struct", "nvcsw"}, {"task_struct", "nivcsw"}}},
	{"cpu-migrations", {{"sched_entity", "nr_migrations"}}},
};

static int find_of_thread(const struct ky_os_counter *counter)
{
	for (size_t i = 0; i < sizeof(of_threads) / sizeof(of_threads[0]); i++)
		if (strcmp(of_threads[i].name, counter->name) == 0)
			return (int)i;
	return -1;
}

bool ky_counter_has_threads(const struct ky_os_counter *counter)
{
	return find_of_thread(counter) >= 0;
}

struct ky_counters *ky_counters_new(const struct ky_counter_choice *choices, size_t n,
				    uint64_t ring_bytes)
{
	struct ky_counters *counters = calloc(1, sizeof(*counters));

	if (!counters)
		return NULL;
	counters->n = n < KY_COUNTERS_MAX ? n : KY_COUNTERS_MAX;
	memcpy(counters->choices, choices, counters->n * sizeof(*choices));
	counters->program.regions_map = -1;
	counters->ring_bytes = ring_bytes;
	for (size_t i = 0; i < KY_COUNTERS_MAX; i++)
		counters->program.counters[i].map = -1;
	ky_map_init(&counters->threads);
	return counters;
}

size_t ky_counters_count(const struct ky_counters *counters)
{
	return counters->n;
}

void ky_counters_name(const struct ky_counters *counters, size_t i,
		      char name[KY_COUNTERS_NAME_BYTES])
{
	const struct ky_counter_choice *choice = &counters->choices[i];

	snprintf(name, KY_COUNTERS_NAME_BYTES, "perf_%s_%s", choice->of_thread ? "thread" : "cpu",
		 choice->counter->name);
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

void ky_counters_detach(struct ky_counters *counters)
{
	ky_vec_foreach(&counters->links, link) {
		close(link->fd);
		close(link->program_fd);
	}
	ky_vec_fini(&counters->links);
}

static void close_cpus(struct ky_counters *counters)
{
	for (uint32_t cpu = 0; counters->cpus && cpu < counters->n_cpus; cpu++)
		for (size_t i = 0; i < counters->n; i++)
			if (counters->cpus[cpu].fds[i] >= 0)
				close(counters->cpus[cpu].fds[i]);
	free(counters->cpus);
}

void ky_counters_free(struct ky_counters *counters)
{
	struct reading *next;
	size_t pos = 0;
	uint64_t key;
	void *value;

	if (!counters)
		return;
	ky_counters_detach(counters);
	close_cpus(counters);
	if (counters->regions)
		munmap(counters->regions, counters->region_bytes * counters->n_cpus);
	for (size_t i = 0; i < counters->n; i++)
		if (counters->program.counters[i].map >= 0)
			close(counters->program.counters[i].map);
	if (counters->program.regions_map >= 0)
		close(counters->program.regions_map);
	while (ky_map_next(&counters->threads, &pos, &key, &value)) {
		struct queue *queue = value;

		for (struct reading *r = queue->first; r; r = next) {
			next = r->next;
			free(r);
		}
		free(queue);
	}
	for (struct reading *r = counters->unused; r; r = next) {
		next = r->next;
		free(r);
	}
	ky_map_fini(&counters->threads);
	free(counters);
}

/* ---- counting ------------------------------------------------------------------------- */

static int no_counter(const struct ky_os_counter *counter, int errnum, struct kymo_error *err)
{
	char names[400];
	int code;

	if (errnum == EACCES || errnum == EPERM) {
		code = ky_error_set(err, KYMO_E_PERMISSION,
				    "--context: 'perf:cpu:%s': the kernel does not let us count "
				    "that",
				    counter->name);
		ky_error_hint(err, "run as root (or with CAP_PERFMON)");
		return code;
	}
	code = ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "--context: 'perf:cpu:%s': this machine has no such counter (%s)",
			    counter->name, strerror(errnum));
	ky_os_counters_list(names, sizeof(names));
	ky_error_hint(err, "this machine has: %s", names);
	return code;
}

/* Begin to count on @cpu. 0, or -errno of the counter *which. */
static int count_on(struct ky_counters *counters, uint32_t cpu, size_t *which)
{
	for (size_t i = 0; i < counters->n; i++) {
		int map = counters->program.counters[i].map, *fd = &counters->cpus[cpu].fds[i];

		*which = i;
		if (map < 0 || *fd >= 0)
			continue;
		*fd = ky_os_counter_open(counters->choices[i].counter, (int)cpu, false);
		if (*fd < 0)
			return *fd;
		if (ky_bpf_map_update(map, &cpu, fd, NULL) < 0)
			return -EIO;
	}
	return 0;
}

/* The kernel has ended its counters; the next ones take their places in the maps. */
static void stop_on(struct ky_counters *counters, uint32_t number)
{
	struct cpu *cpu = &counters->cpus[number];

	for (size_t i = 0; i < counters->n; i++) {
		if (cpu->fds[i] >= 0)
			close(cpu->fds[i]);
		cpu->fds[i] = -1;
		cpu->base[i] = cpu->last[i];
	}
}

/* "0-3,8" as the kernel lists CPUs. */
static bool is_listed(const char *list, uint32_t cpu)
{
	unsigned int first, last;
	int n;

	while (sscanf(list, "%u%n", &first, &n) == 1) {
		list += n;
		last = first;
		if (*list == '-' && sscanf(list + 1, "%u%n", &last, &n) == 1)
			list += n + 1;
		if (cpu >= first && cpu <= last)
			return true;
		list += *list == ',';
	}
	return false;
}

static bool cpus_changed(struct ky_counters *counters)
{
	char list[CPU_LIST_BYTES] = "";
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");

	if (!file)
		return false;
	if (!fgets(list, sizeof(list), file))
		list[0] = '\0';
	fclose(file);
	if (!list[0] || strcmp(list, counters->cpu_list) == 0)
		return false;
	memcpy(counters->cpu_list, list, sizeof(list));
	return true;
}

void ky_counters_follow_cpus(struct ky_counters *counters)
{
	size_t which;

	if (!cpus_changed(counters))
		return;
	ky_counters_drain(counters);
	for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++) {
		bool here = is_listed(counters->cpu_list, cpu);

		if (here == counters->cpus[cpu].here)
			continue;
		counters->cpus[cpu].here = here;
		if (here)
			(void)count_on(counters, cpu, &which);
		else
			stop_on(counters, cpu);
	}
}

static int open_cpus(struct ky_counters *counters, struct kymo_error *err)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	size_t which = 0;
	int ret;

	counters->n_cpus = n > 0 ? (uint32_t)n : 1;
	counters->cpus = calloc(counters->n_cpus, sizeof(*counters->cpus));
	if (!counters->cpus)
		return ky_error_nomem(err);
	for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++)
		for (size_t i = 0; i < KY_COUNTERS_MAX; i++)
			counters->cpus[cpu].fds[i] = -1;
	for (size_t i = 0; i < counters->n; i++) {
		if (counters->choices[i].of_thread)
			continue;
		ret = ky_bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "kymo_counter", 4, 4,
					counters->n_cpus, 0, err);
		if (ret < 0)
			return ret;
		counters->program.counters[i].map = ret;
	}
	(void)cpus_changed(counters);
	for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++) {
		counters->cpus[cpu].here = is_listed(counters->cpu_list, cpu);
		ret = counters->cpus[cpu].here ? count_on(counters, cpu, &which) : 0;
		/* One that went away just now is none. */
		if (ret < 0 && ret != -ENODEV)
			return no_counter(counters->choices[which].counter, -ret, err);
	}
	return KYMO_OK;
}

/* ---- the programs --------------------------------------------------------------------- */

static int find_members(struct ky_counters *counters, struct kymo_error *err)
{
	struct ky_btf btf;
	int ret = KYMO_OK;

	ky_btf_init(&btf, NULL);
	for (size_t i = 0; i < counters->n && !ret; i++) {
		int32_t *at = counters->program.counters[i].at;
		int which = counters->choices[i].of_thread
				    ? find_of_thread(counters->choices[i].counter)
				    : -1;

		at[0] = at[1] = -1;
		for (int k = 0; which >= 0 && k < 2 && of_threads[which].parts[k].type; k++) {
			const char *type = of_threads[which].parts[k].type;
			int inner = strcmp(type, "task_struct") == 0
					    ? 0
					    : ky_btf_member(&btf, "task_struct", "se");

			at[k] = ky_btf_member(&btf, type, of_threads[which].parts[k].member);
			if (at[k] < 0 || inner < 0)
				ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
						   "--context: 'perf:thread:%s': this kernel does "
						   "not tell where it counts that (BTF)",
						   counters->choices[i].counter->name);
			at[k] += inner;
		}
	}
	ky_btf_fini(&btf);
	return ret;
}

static int make_regions(struct ky_counters *counters, struct kymo_error *err)
{
	struct ky_counters_program *p = &counters->program;
	uint64_t data = DATA_MAX_BYTES;
	void *at;

	while (data > DATA_MIN_BYTES &&
	       (data * counters->n_cpus > DATA_ALL_BYTES || data / 2 >= counters->ring_bytes))
		data /= 2;
	p->n = counters->n;
	p->slot_bytes = ky_counters_slot_bytes(p->n);
	for (; p->regions_map < 0 && data >= DATA_MIN_BYTES; data /= 2) {
		p->n_slots = (uint32_t)data / p->slot_bytes;
		counters->region_bytes = KY_COUNTERS_DATA_OFFSET + data;
		p->regions_map = ky_bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_readings", 4,
						   (uint32_t)counters->region_bytes,
						   counters->n_cpus, BPF_F_MMAPABLE, err);
	}
	if (p->regions_map < 0)
		return p->regions_map;
	at = mmap(NULL, counters->region_bytes * counters->n_cpus, PROT_READ | PROT_WRITE,
		  MAP_SHARED, p->regions_map, 0);
	if (at == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map the buffers of BPF");
	counters->regions = at;
	return KYMO_OK;
}

int ky_counters_load(struct ky_counters *counters, struct kymo_error *err)
{
	int ret = open_cpus(counters, err);

	if (!ret)
		ret = find_members(counters, err);
	if (!ret)
		ret = make_regions(counters, err);
	if (ret < 0)
		return ret;
	/* Where the verifier refuses it, better now. */
	ret = ky_counters_load_program(&counters->program, 0, err);
	if (ret < 0)
		return ret;
	close(ret);
	return KYMO_OK;
}

uint32_t ky_counters_key(const char *system, const char *event, uint16_t id)
{
	if (strcmp(system, "syscalls") != 0)
		return id;
	return strncmp(event, "sys_exit", 8) == 0 ? KY_COUNTERS_OF_SYS_EXIT
						  : KY_COUNTERS_OF_SYS_ENTER;
}

int ky_counters_attach(struct ky_counters *counters, const char *system, const char *event,
		       uint16_t id, struct kymo_error *err)
{
	uint32_t key = ky_counters_key(system, event, id);
	struct counters_link link = {.key = key};

	ky_vec_foreach(&counters->links, other)
		if (other->key == key)
			return KYMO_OK;
	if (key >= KY_COUNTERS_OF_SYS_ENTER)
		event = key == KY_COUNTERS_OF_SYS_EXIT ? "sys_exit" : "sys_enter";
	if (ky_vec_reserve(&counters->links, 1) < 0)
		return ky_error_nomem(err);
	link.program_fd = ky_counters_load_program(&counters->program, key, err);
	if (link.program_fd < 0)
		return link.program_fd;
	link.fd = ky_bpf_attach_raw(link.program_fd, event, err);
	if (link.fd < 0) {
		close(link.program_fd);
		return link.fd;
	}
	return ky_vec_push(&counters->links, link) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- what waits for its event --------------------------------------------------------- */

static void take_out(struct ky_counters *counters, struct queue *queue, struct reading *r)
{
	*(r->prev ? &r->prev->next : &queue->first) = r->next;
	*(r->next ? &r->next->prev : &queue->last) = r->prev;
	r->next = counters->unused;
	counters->unused = r;
	counters->n_readings--;
}

static struct reading *new_reading(struct ky_counters *counters)
{
	struct reading *r = counters->unused;

	if (r)
		counters->unused = r->next;
	else
		r = malloc(sizeof(*r) + counters->n * sizeof(r->values[0]));
	return r;
}

static struct queue *queue_of(struct ky_counters *counters, uint64_t thread)
{
	struct queue *queue = ky_map_get(&counters->threads, thread);

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
static void insert(struct queue *queue, struct reading *r)
{
	struct reading *before = queue->last;

	while (before && before->time_ns > r->time_ns)
		before = before->prev;
	r->prev = before;
	r->next = before ? before->next : queue->first;
	*(r->prev ? &r->prev->next : &queue->first) = r;
	*(r->next ? &r->next->prev : &queue->last) = r;
}

static void push(struct ky_counters *counters, uint32_t number, const struct ky_counters_slot *slot)
{
	uint64_t thread = slot->tid ? slot->tid : IDLE_KEY(number);
	struct queue *queue = queue_of(counters, thread);
	struct reading *r = queue ? new_reading(counters) : NULL;
	struct cpu *cpu = &counters->cpus[number];

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
			cpu->last[i] = cpu->base[i] + slot->values[i];
		r->values[i] = cpu->last[i];
	}
	insert(queue, r);
	counters->n_readings++;
}

/* ---- the regions ---------------------------------------------------------------------- */

static const struct ky_counters_slot *slot_of(const struct ky_counters *counters, uint32_t cpu,
					      uint64_t number)
{
	const struct ky_counters_program *p = &counters->program;
	const uint8_t *region = counters->regions + cpu * counters->region_bytes;

	return (const void *)(region + KY_COUNTERS_DATA_OFFSET +
			      (number & (p->n_slots - 1)) * (uint64_t)p->slot_bytes);
}

/* 1: taken; 0: it is being written; -1: it is gone. */
static int take_slot(struct ky_counters *counters, uint32_t cpu, uint64_t number)
{
	const struct ky_counters_slot *slot = slot_of(counters, cpu, number);
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
	push(counters, cpu, (const void *)copy);
	return 1;
}

/* When the next one was taken, about; UINT64_MAX: there is none. */
static uint64_t next_time(const struct ky_counters *counters, uint32_t number)
{
	const struct cpu *cpu = &counters->cpus[number];

	return cpu->next == cpu->head
		       ? UINT64_MAX
		       : __atomic_load_n(&slot_of(counters, number, cpu->next)->time_ns,
					 __ATOMIC_RELAXED);
}

static void begin_drain(struct ky_counters *counters, uint32_t number)
{
	const uint8_t *region = counters->regions + number * counters->region_bytes;
	struct cpu *cpu = &counters->cpus[number];
	uint32_t n_gaps = 0;

	/* Pairs with the program's addition. */
	cpu->head = __atomic_load_n((const uint64_t *)(const void *)region, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < cpu->n_gaps; i++)
		if (take_slot(counters, number, cpu->gaps[i]) == 0)
			cpu->gaps[n_gaps++] = cpu->gaps[i];
	cpu->n_gaps = n_gaps;
	if (cpu->head - cpu->next > counters->program.n_slots)
		cpu->next = cpu->head - counters->program.n_slots;
}

/* Up to @until_ns, about. Returns whether there was any. */
static bool drain_cpu(struct ky_counters *counters, uint32_t number, uint64_t until_ns)
{
	struct cpu *cpu = &counters->cpus[number];
	uint64_t first = cpu->next;

	for (; cpu->next != cpu->head && next_time(counters, number) <= until_ns; cpu->next++) {
		if (take_slot(counters, number, cpu->next) != 0)
			continue;
		if (cpu->n_gaps == GAPS_MAX)
			break;
		cpu->gaps[cpu->n_gaps++] = cpu->next;
	}
	return cpu->next != first;
}

/*
 * All CPUs side by side: a thread that moves has readings on several, and where one CPU's were all taken before
 * the next one's, each of these would have to be put far back in its queue.
 */
void ky_counters_drain(struct ky_counters *counters)
{
	bool any = counters->regions != NULL;

	for (uint32_t cpu = 0; any && cpu < counters->n_cpus; cpu++)
		begin_drain(counters, cpu);
	while (any) {
		uint64_t first_ns = UINT64_MAX, time_ns;

		for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++) {
			time_ns = next_time(counters, cpu);
			first_ns = time_ns < first_ns ? time_ns : first_ns;
		}
		any = false;
		for (uint32_t cpu = 0; first_ns != UINT64_MAX && cpu < counters->n_cpus; cpu++)
			any |= drain_cpu(counters, cpu, first_ns + STEP_NS);
	}
}

/* ---- events --------------------------------------------------------------------------- */

static bool is_of_syscall(const struct reading *r)
{
	return r->key >= KY_COUNTERS_OF_SYS_ENTER;
}

/* Of a thread's readings up to a time. */
struct past {
	struct reading *found;	   /* the newest of the kind in question */
	struct reading *last_call; /* the newest of a system call */
	unsigned int n;
};

static void look_at_past(const struct queue *queue, uint32_t key, uint64_t time_ns,
			 struct past *past)
{
	memset(past, 0, sizeof(*past));
	for (struct reading *r = queue->first; r && r->time_ns <= time_ns; r = r->next) {
		past->found = r->key == key ? r : past->found;
		past->last_call = is_of_syscall(r) ? r : past->last_call;
		past->n++;
	}
}

/*
 * Those that wait no more, past->found having been taken: it and what came after it; what came before, unless an
 * interrupt brought the event; and what is more than interrupts nest. Of a thread's own call, only the next one's
 * reading says that it is over: two are not under way at once.
 */
static void drop_past(struct ky_counters *counters, struct queue *queue, const struct past *past,
		      bool is_call, uint64_t time_ns, bool is_interrupt)
{
	unsigned int left = past->n;
	struct reading *next;
	bool after = false;

	for (struct reading *r = queue->first; r && r->time_ns <= time_ns; r = next, left--) {
		bool is_over = !is_interrupt || after || left > NESTED_MAX || is_of_syscall(r);

		next = r->next;
		after |= r == past->found;
		if (r == past->found || (r == past->last_call ? is_call : is_over))
			take_out(counters, queue, r);
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
	struct queue *queue = ky_map_get(&counters->threads, tid ? tid : IDLE_KEY(cpu));
	struct past past = {0};

	if (queue)
		look_at_past(queue, key, time_ns, &past);
	if (past.found && cpu < counters->n_cpus)
		memcpy(counters->cpus[cpu].given, past.found->values, counters->n * 8);
	counters->missing += !past.found;
	if (past.n)
		drop_past(counters, queue, &past, key >= KY_COUNTERS_OF_SYS_ENTER, time_ns,
			  is_interrupt);
	return ky_counters_last(counters, cpu);
}

/* Threads of which nothing waits have no queue. */
static void sweep(struct ky_counters *counters, uint64_t before_ns)
{
	KY_VEC(uint64_t) empty = KY_VEC_INIT;
	size_t pos = 0;
	uint64_t thread;
	void *value;

	while (ky_map_next(&counters->threads, &pos, &thread, &value)) {
		struct queue *queue = value;

		while (queue->first && queue->first->time_ns < before_ns)
			take_out(counters, queue, queue->first);
		if (!queue->first)
			(void)ky_vec_push(&empty, thread);
	}
	ky_vec_foreach(&empty, key)
		free(ky_map_del(&counters->threads, *key));
	ky_vec_fini(&empty);
}

void ky_counters_expire(struct ky_counters *counters, uint64_t time_ns)
{
	if (counters->n_readings > READINGS_MAX)
		sweep(counters, time_ns);
	else if (time_ns > counters->swept_ns && time_ns - counters->swept_ns > EXPIRE_NS)
		sweep(counters, time_ns - EXPIRE_NS);
	else
		return;
	counters->swept_ns = time_ns;
}

uint64_t ky_counters_missing(const struct ky_counters *counters)
{
	return counters->missing;
}
