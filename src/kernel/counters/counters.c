/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/bpf/bpf.h"
#include "kernel/bpf/btf.h"
#include "kernel/counters/counters-internal.h"

/*
 * A region of memory per CPU, as large as the ring, in which events wait as long; but not beyond what older kernels
 * allow (they say so), and less where there are many CPUs.
 */
#define DATA_MIN_BYTES (256u << 10)
#define DATA_MAX_BYTES (32u << 20)
#define DATA_ALL_BYTES (256u << 20)

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
	ky_counters_free_readings(counters);
	free(counters);
}

/* ---- counting ------------------------------------------------------------------------- */

static int no_counter(const struct ky_os_counter *counter, int errnum, struct kymo_error *err)
{
	char names[400];
	int code;

	if (errnum == EACCES || errnum == EPERM) {
		code = ky_error_set(err, KYMO_E_PERMISSION,
				    "the kernel does not let this process count 'perf:cpu:%s'",
				    counter->name);
		ky_error_input(err, "context");
		ky_error_hint(err, "run as root (or with CAP_PERFMON)");
		return code;
	}
	code = ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "'perf:cpu:%s': this machine has no such counter (%s)", counter->name,
			    strerror(errnum));
	ky_error_input(err, "context");
	ky_os_counters_list(names, sizeof(names));
	ky_error_hint(err, "this machine has: %s", names);
	return code;
}

/* As the programs stamp readings. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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
	counters->cpus[cpu].enabled_ns = 0;
	counters->cpus[cpu].replaced_ns = now_ns();
	return 0;
}

/*
 * A CPU that goes away takes its counters with it, also when it is back before anybody looks: they are on no more, and
 * so is the time that the kernel says they were on.
 */
static bool stands_still(struct ky_counters *counters, uint32_t number)
{
	struct ky_counters_cpu *cpu = &counters->cpus[number];
	uint64_t before_ns = cpu->enabled_ns, count;

	for (size_t i = 0; i < counters->n; i++)
		if (cpu->fds[i] >= 0)
			return ky_os_counter_read(cpu->fds[i], &count, &cpu->enabled_ns) &&
			       cpu->enabled_ns == before_ns;
	return false;
}

/* The kernel has ended its counters; the next ones take their places in the maps. */
static void stop_on(struct ky_counters *counters, uint32_t number)
{
	struct ky_counters_cpu *cpu = &counters->cpus[number];

	for (size_t i = 0; i < counters->n; i++) {
		uint64_t count, on_ns, raw = cpu->last[i] - cpu->base[i];

		cpu->raw_before[i] = raw;
		cpu->base_before[i] = cpu->base[i];
		/* It may have counted since the last reading, while the CPU was on its way. */
		if (cpu->fds[i] >= 0 && ky_os_counter_read(cpu->fds[i], &count, &on_ns) &&
		    count > raw)
			raw = count;
		cpu->base[i] += raw;
		if (cpu->fds[i] >= 0)
			close(cpu->fds[i]);
		cpu->fds[i] = -1;
	}
	cpu->replaced_ns = UINT64_MAX; /* not yet */
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
	char list[KY_COUNTERS_CPU_LIST_BYTES] = "";
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
	bool changed = cpus_changed(counters), drained = false;
	size_t which;

	for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++) {
		bool *here = &counters->cpus[cpu].here;
		bool is_here = changed ? is_listed(counters->cpu_list, cpu) : *here;
		bool was_away = *here && stands_still(counters, cpu);

		if (is_here == *here && !was_away)
			continue;
		if (!drained)
			ky_counters_drain(counters);
		drained = true;
		if (*here)
			stop_on(counters, cpu);
		*here = is_here && count_on(counters, cpu, &which) == 0;
		if (is_here && !*here)
			counters->cpu_list[0] = '\0'; /* once more, next time */
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
			if (at[k] < 0 || inner < 0) {
				ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
						   "'perf:thread:%s': this kernel does not tell "
						   "where it counts that (BTF)",
						   counters->choices[i].counter->name);
				ky_error_input(err, "context");
			}
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
	struct ky_counters_link link = {.key = key};

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
