/* SPDX-License-Identifier: MIT */
#include "os/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kymo/error.h>

#define CHUNK_SLOTS 64

/*
 * A guarded range. ->end is stored last (release) and read first (acquire), so a range that the
 * handler sees is whole; 0: free.
 */
struct slot {
	_Atomic uintptr_t begin, end;
	_Atomic bool hit;
};

/* Chunks are never freed: the handler may be looking at them. */
struct chunk {
	struct slot slots[CHUNK_SLOTS];
	struct chunk *_Atomic next; /* release when appended, acquire in the handler */
};

static struct chunk first_chunk;
static _Atomic unsigned int n_hits; /* of all times: zero answers at once */
static uintptr_t page_bytes;

/* Under the lock: */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t n_guards;
/* Written before the handler is installed. */
static struct sigaction before;

/* ---- the handler -------------------------------------------------------------------------- */

static struct slot *find(uintptr_t at)
{
	for (struct chunk *c = &first_chunk; c;
	     c = atomic_load_explicit(&c->next, memory_order_acquire)) {
		for (size_t i = 0; i < CHUNK_SLOTS; i++) {
			struct slot *slot = &c->slots[i];
			uintptr_t end = atomic_load_explicit(&slot->end, memory_order_acquire);

			if (at < end &&
			    at >= atomic_load_explicit(&slot->begin, memory_order_relaxed))
				return slot;
		}
	}
	return NULL;
}

#ifdef __SANITIZE_THREAD__
/* Of libtsan. It takes mmap() for a write, but what is replaced could not be read by any thread. */
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#else
#define AnnotateIgnoreWritesBegin(file, line) ((void)0)
#define AnnotateIgnoreWritesEnd(file, line)   ((void)0)
#endif

/* What follows the end of a file is gone as well: zeros up to the end of the range. */
static bool put_zeros(const struct slot *slot, uintptr_t at)
{
	uintptr_t page = at & ~(page_bytes - 1);
	size_t size = atomic_load_explicit(&slot->end, memory_order_relaxed) - page;

	void *zeros;

	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	zeros = mmap((void *)page, size, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	return zeros != MAP_FAILED;
}

static void hand_on(int number, siginfo_t *info, void *context)
{
	if (before.sa_flags & (int)SA_SIGINFO)
		before.sa_sigaction(number, info, context);
	else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
		/* The access is tried again, and the process ends as it would have without us. */
		(void)signal(number, SIG_DFL);
	else
		before.sa_handler(number);
}

static void on_bus(int number, siginfo_t *info, void *context)
{
	int errnum = errno;
	struct slot *slot = info->si_code == BUS_ADRERR ? find((uintptr_t)info->si_addr) : NULL;

	if (slot && put_zeros(slot, (uintptr_t)info->si_addr)) {
		atomic_store_explicit(&slot->hit, true, memory_order_relaxed);
		/* Whoever reads zeros and then asks is the thread that was interrupted, or later. */
		atomic_fetch_add_explicit(&n_hits, 1, memory_order_release);
	} else {
		hand_on(number, info, context);
	}
	errno = errnum;
}

static bool is_ours(void)
{
	struct sigaction now;

	return sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & (int)SA_SIGINFO) &&
	       now.sa_sigaction == on_bus;
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	if (!is_ours() && sigaction(SIGBUS, NULL, &before) == 0)
		(void)sigaction(SIGBUS, &action, NULL);
}

static void uninstall(void)
{
	if (is_ours())
		(void)sigaction(SIGBUS, &before, NULL);
}

/* ---- ranges ------------------------------------------------------------------------------- */

static struct slot *free_slot(void)
{
	struct chunk *c = &first_chunk, *next;

	for (;;) {
		for (size_t i = 0; i < CHUNK_SLOTS; i++) {
			if (!atomic_load_explicit(&c->slots[i].end, memory_order_relaxed))
				return &c->slots[i];
		}
		next = atomic_load_explicit(&c->next, memory_order_relaxed);
		if (!next) {
			next = calloc(1, sizeof(*next));
			if (!next)
				return NULL;
			atomic_store_explicit(&c->next, next, memory_order_release);
		}
		c = next;
	}
}

int ky_guard_add(const void *data, size_t size_bytes)
{
	uintptr_t begin = (uintptr_t)data, end;
	struct slot *slot;

	pthread_mutex_lock(&lock);
	slot = free_slot();
	if (slot) {
		if (!n_guards++)
			install();
		end = (begin + size_bytes + page_bytes - 1) & ~(page_bytes - 1);
		atomic_store_explicit(&slot->hit, false, memory_order_relaxed);
		atomic_store_explicit(&slot->begin, begin, memory_order_relaxed);
		atomic_store_explicit(&slot->end, end, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return slot ? KYMO_OK : KYMO_E_MEMORY;
}

/* Calls for each slot that begins in the range; true: go on. */
static void each_slot(const void *data, size_t size_bytes, bool (*each)(struct slot *slot))
{
	uintptr_t begin = (uintptr_t)data;

	for (struct chunk *c = &first_chunk; c;
	     c = atomic_load_explicit(&c->next, memory_order_acquire)) {
		for (size_t i = 0; i < CHUNK_SLOTS; i++) {
			struct slot *slot = &c->slots[i];
			uintptr_t at = atomic_load_explicit(&slot->begin, memory_order_relaxed);

			if (atomic_load_explicit(&slot->end, memory_order_acquire) && at >= begin &&
			    at - begin < size_bytes && !each(slot))
				return;
		}
	}
}

static bool clear(struct slot *slot)
{
	atomic_store_explicit(&slot->end, 0, memory_order_release);
	if (!--n_guards)
		uninstall();
	return true;
}

void ky_guard_remove(const void *data, size_t size_bytes)
{
	pthread_mutex_lock(&lock);
	each_slot(data, size_bytes, clear);
	pthread_mutex_unlock(&lock);
}

static __thread bool found_hit;

static bool note_hit(struct slot *slot)
{
	found_hit = atomic_load_explicit(&slot->hit, memory_order_relaxed);
	return !found_hit;
}

bool ky_guard_hit(const void *data, size_t size_bytes)
{
	if (!atomic_load_explicit(&n_hits, memory_order_acquire))
		return false;
	found_hit = false;
	each_slot(data, size_bytes, note_hit);
	return found_hit;
}
