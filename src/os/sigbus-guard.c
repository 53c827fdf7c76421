/* SPDX-License-Identifier: MIT */
#include "os/sigbus-guard.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kymo/error.h>

#include "base/vec.h"

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
static void *by_begin; /* tsearch()'s tree of the slots in use */
KY_VEC_TYPE(slots, struct slot *);
static struct slots unused; /* has room for every slot there is */
/* Written before the handler is installed. */
static struct sigaction before;

/* ---- the handler -------------------------------------------------------------------------- */

static struct slot *sigbus_guard_find(uintptr_t at)
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

static void sigbus_guard_hand_on(int number, siginfo_t *info, void *context)
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
	struct slot *slot =
		info->si_code == BUS_ADRERR ? sigbus_guard_find((uintptr_t)info->si_addr) : NULL;

	if (slot && put_zeros(slot, (uintptr_t)info->si_addr)) {
		atomic_store_explicit(&slot->hit, true, memory_order_relaxed);
		/* The interrupted thread, or a later one, reads the zeros and then the counter. */
		atomic_fetch_add_explicit(&n_hits, 1, memory_order_release);
	} else {
		sigbus_guard_hand_on(number, info, context);
	}
	errno = errnum;
}

static bool sigbus_guard_is_ours(void)
{
	struct sigaction now;

	return sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & (int)SA_SIGINFO) &&
	       now.sa_sigaction == on_bus;
}

static void sigbus_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	if (!sigbus_guard_is_ours() && sigaction(SIGBUS, NULL, &before) == 0)
		(void)sigaction(SIGBUS, &action, NULL);
}

static void uninstall(void)
{
	if (sigbus_guard_is_ours())
		(void)sigaction(SIGBUS, &before, NULL);
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* Make the free slots of @chunk, the newest of @n_slots slots, known. */
static int add_unused(struct chunk *chunk, size_t n_slots)
{
	if (ky_vec_reserve(&unused, n_slots) < 0)
		return -1;
	for (size_t i = CHUNK_SLOTS; i-- > 0;)
		(void)ky_vec_push(&unused, &chunk->slots[i]);
	return 0;
}

/* One more chunk; the handler finds it once it is whole. */
static int add_chunk(void)
{
	static struct chunk *last;
	static size_t n_slots;
	struct chunk *chunk = last ? calloc(1, sizeof(*chunk)) : &first_chunk;

	if (!chunk)
		return -1;
	if (add_unused(chunk, n_slots + CHUNK_SLOTS) < 0) {
		if (last)
			free(chunk);
		return -1;
	}
	if (last)
		atomic_store_explicit(&last->next, chunk, memory_order_release);
	last = chunk;
	n_slots += CHUNK_SLOTS;
	return 0;
}

static uintptr_t sigbus_guard_begin_of(const struct slot *slot)
{
	return atomic_load_explicit(&slot->begin, memory_order_relaxed);
}

static int compare_slots(const void *a, const void *b)
{
	uintptr_t x = sigbus_guard_begin_of(a), y = sigbus_guard_begin_of(b);

	/* Two guards that begin at one place are two all the same. */
	if (x == y) {
		x = (uintptr_t)a;
		y = (uintptr_t)b;
	}
	return (x > y) - (x < y);
}

struct range {
	uintptr_t begin;
	size_t size_bytes;
};

/* 0: @slot begins in @range. */
static int compare_range(const void *range, const void *slot)
{
	const struct range *r = range;
	uintptr_t at = sigbus_guard_begin_of(slot);

	return at < r->begin ? 1 : at - r->begin < r->size_bytes ? 0 : -1;
}

int ky_sigbus_guard_add(const void *data, size_t size_bytes)
{
	uintptr_t begin = (uintptr_t)data, end;
	struct slot *slot = NULL;

	pthread_mutex_lock(&lock);
	if (unused.len || add_chunk() == 0) {
		slot = *ky_vec_last(&unused);
		atomic_store_explicit(&slot->hit, false, memory_order_relaxed);
		atomic_store_explicit(&slot->begin, begin, memory_order_relaxed);
		if (!tsearch(slot, &by_begin, compare_slots))
			slot = NULL;
	}
	if (slot) {
		unused.len--;
		if (!n_guards++)
			sigbus_guard_install();
		end = (begin + size_bytes + page_bytes - 1) & ~(page_bytes - 1);
		atomic_store_explicit(&slot->end, end, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return slot ? KYMO_OK : KYMO_E_MEMORY;
}

static void unguard_slot(struct slot *slot)
{
	(void)tdelete(slot, &by_begin, compare_slots);
	atomic_store_explicit(&slot->end, 0, memory_order_release);
	(void)ky_vec_push(&unused, slot);
	if (!--n_guards)
		uninstall();
}

void ky_sigbus_guard_remove(const void *data, size_t size_bytes)
{
	const struct range range = {.begin = (uintptr_t)data, .size_bytes = size_bytes};
	struct slot *const *node;

	pthread_mutex_lock(&lock);
	while ((node = tfind(&range, &by_begin, compare_range)))
		unguard_slot(*node);
	pthread_mutex_unlock(&lock);
}

bool ky_sigbus_guard_hit(const void *data, size_t size_bytes)
{
	const struct range range = {.begin = (uintptr_t)data, .size_bytes = size_bytes};

	if (!atomic_load_explicit(&n_hits, memory_order_acquire))
		return false;
	for (struct chunk *c = &first_chunk; c;
	     c = atomic_load_explicit(&c->next, memory_order_acquire)) {
		for (size_t i = 0; i < CHUNK_SLOTS; i++) {
			struct slot *slot = &c->slots[i];

			if (atomic_load_explicit(&slot->end, memory_order_acquire) &&
			    compare_range(&range, slot) == 0 &&
			    atomic_load_explicit(&slot->hit, memory_order_relaxed))
				return true;
		}
	}
	return false;
}
