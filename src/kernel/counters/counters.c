/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/counters/counters-internal.h"
#include "os/now.h"

/* ---- which ---------------------------------------------------------------------------- */

/* What the kernel counts for each thread anyway. */
static const struct {
	const char *name;
	enum ky_counter_of of;
} of_threads[] = {
	{"page-faults", KY_COUNTER_PAGE_FAULTS},
	{"minor-faults", KY_COUNTER_MINOR_FAULTS},
	{"major-faults", KY_COUNTER_MAJOR_FAULTS},
	{"context-switches", KY_COUNTER_CONTEXT_SWITCHES},
	{"cpu-migrations", KY_COUNTER_CPU_MIGRATIONS},
};

/* KY_COUNTER_OF_CPU: it counts that for none. */
static enum ky_counter_of find_of_thread(const struct ky_os_counter *counter)
{
	for (size_t i = 0; i < sizeof(of_threads) / sizeof(of_threads[0]); i++)
		if (strcmp(of_threads[i].name, counter->name) == 0)
			return of_threads[i].of;
	return KY_COUNTER_OF_CPU;
}

bool ky_counter_has_threads(const struct ky_os_counter *counter)
{
	return find_of_thread(counter) != KY_COUNTER_OF_CPU;
}

struct ky_counters *ky_counters_new(const struct ky_counter_choice *choices, size_t n,
				    uint64_t ring_bytes)
{
	struct ky_counters *counters = calloc(1, sizeof(*counters));

	if (!counters)
		return NULL;
	counters->n = n < KY_COUNTERS_MAX ? n : KY_COUNTERS_MAX;
	memcpy(counters->choices, choices, counters->n * sizeof(*choices));
	counters->ring_bytes = ring_bytes;
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
	ky_vec_foreach(&counters->links, link)
		close(link->fd);
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
	ky_bpf_counters_unload(&counters->programs);
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

/* Begin to count on @cpu. 0, or -errno of the counter *which. */
static int count_on(struct ky_counters *counters, uint32_t cpu, size_t *which)
{
	for (size_t i = 0; i < counters->n; i++) {
		int *fd = &counters->cpus[cpu].fds[i];

		*which = i;
		if (counters->choices[i].of_thread || *fd >= 0)
			continue;
		*fd = ky_os_counter_open(counters->choices[i].counter, (int)cpu, false);
		if (*fd < 0)
			return *fd;
		if (ky_bpf_counters_set(&counters->programs, cpu, i, *fd, NULL) < 0)
			return -EIO;
	}
	counters->cpus[cpu].enabled_ns = 0;
	counters->cpus[cpu].replaced_ns = ky_os_now_ns();
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
static bool counters_counters_is_listed(const char *list, uint32_t cpu)
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
		bool is_here =
			changed ? counters_counters_is_listed(counters->cpu_list, cpu) : *here;
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
	size_t which = 0;

	counters->n_cpus = counters->programs.regions.n;
	counters->cpus = calloc(counters->n_cpus, sizeof(*counters->cpus));
	if (!counters->cpus)
		return ky_error_nomem(err);
	for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++)
		for (size_t i = 0; i < KY_COUNTERS_MAX; i++)
			counters->cpus[cpu].fds[i] = -1;
	(void)cpus_changed(counters);
	for (uint32_t cpu = 0; cpu < counters->n_cpus; cpu++) {
		bool is_here = counters_counters_is_listed(counters->cpu_list, cpu);
		int ret = is_here ? count_on(counters, cpu, &which) : 0;

		counters->cpus[cpu].here = is_here;
		/* A thread that ended meanwhile has no reading. */
		if (ret < 0 && ret != -ENODEV)
			return no_counter(counters->choices[which].counter, -ret, err);
	}
	return KYMO_OK;
}

/* ---- the programs --------------------------------------------------------------------- */

int ky_counters_load(struct ky_counters *counters, struct kymo_error *err)
{
	struct ky_bpf_counters_options options = {
		.n = counters->n,
		.ring_bytes = counters->ring_bytes,
	};
	int ret;

	for (size_t i = 0; i < counters->n; i++)
		if (counters->choices[i].of_thread)
			options.of[i] = (uint8_t)find_of_thread(counters->choices[i].counter);
	ret = ky_bpf_counters_load(&counters->programs, &options, err);
	return ret < 0 ? ret : open_cpus(counters, err);
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
	link.fd = ky_bpf_counters_attach(&counters->programs, event, key, err);
	if (link.fd < 0)
		return link.fd;
	return ky_vec_push(&counters->links, link) < 0 ? ky_error_nomem(err) : KYMO_OK;
}
