/* SPDX-License-Identifier: MIT */
/* The file with the histograms of a process' own trackers (abi/latency-file.h), and the names of the trackers. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/latency-file.h"
#include "tracer/latency.h"
#include "tracer/tracer.h"

struct ky_latency_table *ky_latency_table;

#define PLACES (2 * KY_LATENCY_TRACKERS_MAX)

/* NULL: no memory. */
static struct ky_latency_table *latency_file_table(void)
{
	struct ky_latency_table *table = __atomic_load_n(&ky_latency_table, __ATOMIC_ACQUIRE);
	struct ky_latency_table *first = NULL;
	long map;

	if (table)
		return table;
	map = ky_sys(SYS_mmap, 0, sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map < 0)
		return NULL;
	table = (struct ky_latency_table *)map; // NOLINT(performance-no-int-to-ptr)
	if (__atomic_compare_exchange_n(&ky_latency_table, &first, table, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return table;
	/* Another thread was first, or a signal's handler in this one. */
	ky_sys(SYS_munmap, map, sizeof(*table), 0, 0, 0, 0);
	return first;
}

static long latency_file_new(void)
{
	struct rlimit limit;
	long fd;

	/* Making a file larger than that raises SIGXFSZ. */
	if (ky_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
	    limit.rlim_cur < sizeof(struct ky_latency_file))
		return -1;
	fd = ky_sys(SYS_memfd_create, (long)KY_LATENCY_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0,
		    0, 0);
	if (fd < 0)
		return fd;
	if (ky_sys(SYS_fchmod, fd, 0600, 0, 0, 0, 0) < 0 ||
	    ky_sys(SYS_ftruncate, fd, sizeof(struct ky_latency_file), 0, 0, 0, 0) < 0 ||
	    ky_sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, 0, 0) <
		    0) {
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
		return -1;
	}
	return fd;
}

/* The file tells the name of tracker @i, if it has one. Two threads may do so beside each other. */
static void latency_file_name(struct ky_latency_file *file, uint32_t i)
{
	const char *name = __atomic_load_n(&ky_latency_table->numbered[i], __ATOMIC_ACQUIRE);
	uint32_t n = __atomic_load_n(&file->head.n_trackers, __ATOMIC_RELAXED);

	if (!name)
		return;
	memcpy(file->trackers[i].name, name, KY_LATENCY_NAME_BYTES);
	while (n <= i && !__atomic_compare_exchange_n(&file->head.n_trackers, &n, i + 1, true,
						      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static struct ky_latency_file *latency_file_make(void)
{
	struct ky_latency_file *file;
	long fd = latency_file_new(), map;

	if (fd < 0)
		return NULL;
	map = ky_sys(SYS_mmap, 0, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		     fd, 0);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	if (map < 0)
		return NULL;
	file = (struct ky_latency_file *)map; // NOLINT(performance-no-int-to-ptr)
	file->head.version = KY_LATENCY_FILE_VERSION;
	file->head.pid = ky_trace_pid();
	file->head.created_ns = (uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < KY_LATENCY_TRACKERS_MAX; i++)
		latency_file_name(file, i);
	/* Partner: the reader's load; the rest is there. */
	__atomic_store_n(&file->head.magic, KY_LATENCY_FILE_MAGIC, __ATOMIC_RELEASE);
	return file;
}

static bool latency_file_is_name(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++) {
		char c = name[len];

		if (len + 1 == KY_LATENCY_NAME_BYTES ||
		    !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_'))
			return false;
	}
	return len;
}

/* The process' file. NULL: none can be had. */
static struct ky_latency_file *latency_file_get(struct ky_process *process)
{
	struct ky_latency_file *file = __atomic_load_n(&process->latency, __ATOMIC_ACQUIRE);
	struct ky_latency_file *first = NULL;

	if (file || process->has_no_latency)
		return file;
	file = latency_file_make();
	if (!file) {
		process->has_no_latency = true;
		return NULL;
	}
	/* Partner: the load in begins and ends. */
	if (__atomic_compare_exchange_n(&process->latency, &first, file, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return file;
	ky_sys(SYS_munmap, (long)file, sizeof(*file), 0, 0, 0, 0);
	return first;
}

/* A copy of @name: its module may be unloaded. NULL: there is no place. */
static const char *latency_file_copy(const char *name)
{
	struct ky_latency_table *table = ky_latency_table;
	uint32_t place = __atomic_fetch_add(&table->n_places, 1, __ATOMIC_RELAXED);

	if (place >= PLACES) {
		__atomic_store_n(&table->n_places, PLACES, __ATOMIC_RELAXED);
		return NULL;
	}
	memcpy(table->places[place], name, strlen(name) + 1);
	return table->places[place];
}

/* The number of @name, a new one if it has none. < 0: there is no room. */
static int latency_file_number(const char *name)
{
	const char *copy = NULL;

	for (int i = 0; i < KY_LATENCY_TRACKERS_MAX; i++) {
		const char *there =
			__atomic_load_n(&ky_latency_table->numbered[i], __ATOMIC_ACQUIRE);

		if (!there) {
			copy = copy ? copy : latency_file_copy(name);
			if (!copy)
				return -1;
			if (__atomic_compare_exchange_n(&ky_latency_table->numbered[i], &there,
							copy, false, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE))
				return i;
		}
		if (strcmp(there, name) == 0)
			return i;
	}
	return -1;
}

int ky_latency_tracker_find(struct ky_process *process, const char *name)
{
	struct ky_latency_file *file;
	int number;

	if (!latency_file_table())
		return -1;
	ky_latency_clock_begin(process);
	file = latency_file_get(process);
	if (!file)
		return -1;
	number = latency_file_is_name(name) ? latency_file_number(name) : -1;
	if (number >= 0)
		latency_file_name(file, (uint32_t)number);
	else
		__atomic_fetch_add(&file->head.n_refused, 1, __ATOMIC_RELAXED);
	return number;
}
