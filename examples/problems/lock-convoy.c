/* SPDX-License-Identifier: MIT */
/*
 * Problem: throughput is low, and all workers wait. The thread "saver" sleeps while it holds the
 * mutex that four workers need for a microsecond each.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define N_WORKERS 4
#define N_SAVES	  20

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t table[64];
static bool over;

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *work(void *data)
{
	pthread_setname_np(pthread_self(), "worker");
	for (uint64_t i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
		pthread_mutex_lock(&table_lock);
		table[i % 64] += i;
		pthread_mutex_unlock(&table_lock);
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	return data;
}

/* The mistake: it waits for its "disk" with the lock held. */
static void *save(void *data)
{
	pthread_setname_np(pthread_self(), "saver");
	for (int i = 0; i < N_SAVES; i++) {
		pthread_mutex_lock(&table_lock);
		pause_ms(8);
		pthread_mutex_unlock(&table_lock);
		pause_ms(20);
	}
	return data;
}

int main(void)
{
	pthread_t workers[N_WORKERS], saver;

	for (int i = 0; i < N_WORKERS; i++)
		pthread_create(&workers[i], NULL, work, NULL);
	pthread_create(&saver, NULL, save, NULL);
	pthread_join(saver, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i], NULL);
	return 0;
}
