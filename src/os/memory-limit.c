/* SPDX-License-Identifier: MIT */
#include "os/memory-limit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int statm_fd = -1;
static unsigned int n_users;
static struct rlimit before;
static bool is_set;

/* Of the address space, in bytes; 0: unknown. */
static uint64_t memory_limit_size(void)
{
	char text[64];
	ssize_t n;

	if (statm_fd < 0)
		statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	n = statm_fd >= 0 ? pread(statm_fd, text, sizeof(text) - 1, 0) : -1;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void memory_limit_set(size_t bytes)
{
	uint64_t size = memory_limit_size();
	struct rlimit limit;

	if (!size || getrlimit(RLIMIT_AS, &before) < 0 || before.rlim_cur < size + bytes)
		return;
	limit = (struct rlimit){.rlim_cur = size + bytes, .rlim_max = before.rlim_max};
	is_set = setrlimit(RLIMIT_AS, &limit) == 0;
}

void ky_memory_limit_begin(size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (!n_users++)
		memory_limit_set(bytes);
	pthread_mutex_unlock(&lock);
}

void ky_memory_limit_child(void)
{
	if (is_set)
		(void)setrlimit(RLIMIT_AS, &before);
}

void ky_memory_limit_end(void)
{
	pthread_mutex_lock(&lock);
	if (!--n_users) {
		ky_memory_limit_child();
		is_set = false;
	}
	pthread_mutex_unlock(&lock);
}
