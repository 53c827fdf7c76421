/* SPDX-License-Identifier: MIT */
/* Problem: a CPU is busy, and nothing gets done: "watcher" asks for input without waiting for it. */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static bool over;
static int pipe_fds[2];

static void *watch(void *data)
{
	struct pollfd input = {.fd = pipe_fds[0], .events = POLLIN};

	pthread_setname_np(pthread_self(), "watcher");
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		poll(&input, 1, 0); /* the mistake: no timeout */
	return data;
}

int main(void)
{
	pthread_t watcher;

	if (pipe(pipe_fds) < 0)
		return 1;
	pthread_create(&watcher, NULL, watch, NULL);
	nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(watcher, NULL);
	return 0;
}
