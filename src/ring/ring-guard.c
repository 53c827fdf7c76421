/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "ring/ring-guard.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* changes to the list */
static struct ky_rb_guard *guards;
static unsigned int n_handlers; /* running now: a guard that is removed may be in use by them */
static struct sigaction previous;

static bool ring_guard_replace(struct ky_rb_guard *guard, const uint8_t *at)
{
	if (at < guard->start || at >= guard->start + guard->bytes)
		return false;
	__atomic_store_n(&guard->was_hit, 1, __ATOMIC_RELEASE);
	return mmap(guard->start, guard->bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* A handler that was there before may hand on to ours in turn: the second time is the last. */
static void ring_guard_hand_on(int number, siginfo_t *info, void *context)
{
	static __thread int depth;
	struct sigaction none = {.sa_handler = SIG_DFL};

	depth++;
	if (depth > 1 || previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
		sigaction(number, &none, NULL); /* the fault comes again, and is the program's */
	else if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(number, info, context);
	else
		previous.sa_handler(number);
	depth--;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool is_done = false;

	__atomic_fetch_add(&n_handlers, 1, __ATOMIC_SEQ_CST);
	for (struct ky_rb_guard *guard = __atomic_load_n(&guards, __ATOMIC_SEQ_CST);
	     guard && !is_done; guard = __atomic_load_n(&guard->next, __ATOMIC_SEQ_CST))
		is_done = ring_guard_replace(guard, info->si_addr);
	__atomic_fetch_sub(&n_handlers, 1, __ATOMIC_SEQ_CST);
	if (!is_done)
		ring_guard_hand_on(number, info, context);
	errno = saved;
}

/* Other code may have replaced this handler since the last time. */
static void ring_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, current;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, NULL, &current) == 0 && current.sa_sigaction != on_sigbus) {
		previous = current;
		sigaction(SIGBUS, &action, NULL);
	}
}

void ky_rb_guard_add(struct ky_rb_guard *guard, void *start, uint64_t bytes)
{
	*guard = (struct ky_rb_guard){.start = start, .bytes = bytes};
	pthread_mutex_lock(&lock);
	ring_guard_install();
	guard->next = guards;
	__atomic_store_n(&guards, guard, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
}

void ky_rb_guard_remove(struct ky_rb_guard *guard)
{
	pthread_mutex_lock(&lock);
	for (struct ky_rb_guard **at = &guards; *at; at = &(*at)->next)
		if (*at == guard) {
			__atomic_store_n(at, guard->next, __ATOMIC_SEQ_CST);
			break;
		}
	while (__atomic_load_n(&n_handlers, __ATOMIC_SEQ_CST))
		;
	pthread_mutex_unlock(&lock);
}

bool ky_rb_guard_was_hit(const struct ky_rb_guard *guard)
{
	return __atomic_load_n(&guard->was_hit, __ATOMIC_ACQUIRE);
}
