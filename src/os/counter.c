/* SPDX-License-Identifier: MIT */
#include "os/counter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CACHE(cache, op, result)                                                    \
	(PERF_COUNT_HW_CACHE_##cache | (uint64_t)PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct ky_os_counter counters[] = {
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"L1-dcache-loads", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS)},
	{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS)},
	{"L1-icache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS)},
	{"LLC-loads", PERF_TYPE_HW_CACHE, CACHE(LL, READ, ACCESS)},
	{"LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS)},
	{"dTLB-loads", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, ACCESS)},
	{"dTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS)},
	{"iTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS)},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
};

#define N_COUNTERS (sizeof(counters) / sizeof(counters[0]))

const struct ky_os_counter *ky_os_counter_at(size_t i)
{
	return i < N_COUNTERS ? &counters[i] : NULL;
}

const struct ky_os_counter *ky_os_counter_find(const char *name, size_t len)
{
	for (size_t i = 0; i < N_COUNTERS; i++)
		if (strlen(counters[i].name) == len && !strncmp(counters[i].name, name, len))
			return &counters[i];
	return NULL;
}

bool ky_os_counter_is_software(const struct ky_os_counter *counter)
{
	return counter->type == PERF_TYPE_SOFTWARE;
}

int ky_os_counter_open(const struct ky_os_counter *counter, int cpu, bool without_kernel)
{
	struct perf_event_attr attr = {
		.type = counter->type,
		.size = sizeof(attr),
		.config = counter->config,
		.read_format = cpu < 0 ? 0 : PERF_FORMAT_TOTAL_TIME_ENABLED,
		.exclude_hv = cpu < 0,
		.exclude_kernel = without_kernel,
		/* A count, or none: no share of one that was measured now and then. */
		.pinned = cpu >= 0 && !ky_os_counter_is_software(counter),
	};
	long fd = syscall(SYS_perf_event_open, &attr, cpu < 0 ? 0 : -1, cpu, -1,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

bool ky_os_counter_read(int fd, uint64_t *count, uint64_t *enabled_ns)
{
	uint64_t said[2]; /* the count, the time */

	if (read(fd, said, sizeof(said)) != (ssize_t)sizeof(said))
		return false;
	*count = said[0];
	*enabled_ns = said[1];
	return true;
}

void ky_os_counters_list(char *text, size_t size)
{
	int cpu = sched_getcpu();
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < N_COUNTERS && len < size; i++) {
		int fd = ky_os_counter_open(&counters[i], cpu < 0 ? 0 : cpu, false);

		if (fd < 0)
			continue;
		close(fd);
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
					counters[i].name);
	}
}
