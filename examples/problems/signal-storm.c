/* SPDX-License-Identifier: MIT */
/* Problem: system calls fail with EINTR, and work takes longer than it should: a profiling timer was left on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#define N_POLLS 500

static void on_alarm(int number)
{
	(void)number;
}

int main(void)
{
	struct itimerval every_ms = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};
	struct sigaction action = {.sa_handler = on_alarm};
	int n_interrupted = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	for (int i = 0; i < N_POLLS; i++)
		n_interrupted += poll(NULL, 0, 20) < 0 && errno == EINTR;
	return n_interrupted == 0;
}
