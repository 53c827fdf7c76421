/* SPDX-License-Identifier: MIT */
/* Problem: one thread hardly gets on. Three readers hold a read-write lock in turns that overlap, and the writer waits for a gap. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define N_READERS 3
#define N_WRITES  6

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static uint32_t done;

static void wait_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *scan(void *data)
{
	const uint32_t *number = data;

	pthread_setname_np(pthread_self(), "scanner");
	wait_ms(2 * *number);
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		pthread_rwlock_rdlock(&table);
		wait_ms(10); /* the mistake: it waits with the lock */
		pthread_rwlock_unlock(&table);
		wait_ms(3);
	}
	return NULL;
}

static void *update(void *data)
{
	pthread_setname_np(pthread_self(), "updater");
	for (int i = 0; i < N_WRITES; i++) {
		wait_ms(10);
		pthread_rwlock_wrlock(&table);
		pthread_rwlock_unlock(&table);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	return data;
}

int main(void)
{
	pthread_t threads[N_READERS + 1];
	uint32_t numbers[N_READERS];

	for (uint32_t i = 0; i < N_READERS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, scan, &numbers[i]);
	}
	pthread_create(&threads[N_READERS], NULL, update, NULL);
	for (uint32_t i = 0; i <= N_READERS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
