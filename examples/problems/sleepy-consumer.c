/* SPDX-License-Identifier: MIT */
/* Problem: throughput is low, and all CPUs are idle. The consumer looks for work every 5 ms, and takes one item. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define N_ITEMS 100

static uint32_t n_items = N_ITEMS;

static void *consume(void *data)
{
	pthread_setname_np(pthread_self(), "consumer");
	while (__atomic_load_n(&n_items, __ATOMIC_RELAXED)) {
		__atomic_sub_fetch(&n_items, 1, __ATOMIC_RELAXED);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* the mistake */
	}
	return data;
}

int main(void)
{
	pthread_t consumer;

	pthread_create(&consumer, NULL, consume, NULL);
	pthread_join(consumer, NULL);
	return 0;
}
