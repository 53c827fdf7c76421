/* SPDX-License-Identifier: MIT */
#include "tracer/preload/mcount.h"

#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tracer/preload/call-filter.h"
#include "tracer/preload/preload.h"

#define CALLS_MAX ((size_t)1 << 17) /* of a thread, at a time: deeper ones are not recorded */
#define PAGE	  4096u
#define NOWHERE	  ((uintptr_t *)UINTPTR_MAX)

/* The compilers' names; their arguments are in no registers. */
KY_PRELOAD_API void __monstartup(unsigned long low, unsigned long high); // NOLINT: glibc's name
KY_PRELOAD_API void _mcleanup(void);					 // NOLINT

struct call {
	uintptr_t *place; /* of its return address; NOWHERE: not used */
	uintptr_t original;
	uintptr_t function, site;
};

/* @n counts up before an entry is written, and down after it is NOWHERE again: a signal handler may come in between. */
struct thread_calls {
	struct call *calls;
	size_t n;
	bool is_unhooked; /* all have their original addresses */
};

static __thread struct thread_calls own __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static bool has_key;
uint32_t ky_mcount_vectors __attribute__((visibility("hidden")));

/* The enable bytes of the two events: an entry that is off is not hooked. */
enum { ENTRY_BYTE = KYMO_BYTE_("entry"), EXIT_BYTE = KYMO_BYTE_("exit") };

/* KY_PRELOAD_EVENT(), with the byte. */
#define EVENT(byte, ip, ...)                                                              \
	do {                                                                              \
		KYMO_CHECK_(__VA_ARGS__)                                                  \
		if (KYMO_IS_ON_(byte)) {                                                  \
			struct kymo_site *site_;                                          \
			KYMO_SITE_(site_, byte, KYMO_DEBUG_FUNCTION, PLAIN, #__VA_ARGS__, \
				   __VA_ARGS__);                                          \
			kymo_hit_from(site_, KYMO_VALUES_(__VA_ARGS__), ip);              \
		}                                                                         \
	} while (0)

static void mcount_tell_exit(uintptr_t function, uintptr_t from)
{
	void *addr = (void *)function, *call_site = (void *)from; // NOLINT: addresses

	EVENT(EXIT_BYTE, function, lttng_ust_cyg_profile, func_exit, addr, call_site);
}

static void mcount_tell_entry(uintptr_t function, uintptr_t from)
{
	void *addr = (void *)function, *call_site = (void *)from; // NOLINT: addresses

	EVENT(ENTRY_BYTE, function, lttng_ust_cyg_profile, func_entry, addr, call_site);
}

/* ---- the list ------------------------------------------------------------------------------ */

static __attribute__((noinline)) bool mcount_make(struct thread_calls *thread)
{
	void *memory = mmap(NULL, CALLS_MAX * sizeof(struct call), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	if (has_key)
		(void)pthread_setspecific(key, memory);
	thread->n = 0;
	thread->calls = memory;
	return true;
}

static void mcount_end_call(const struct call *call)
{
	if (call->place != NOWHERE)
		mcount_tell_exit(call->function, call->site);
}

/* At the end of a thread: it is in no function any more. */
static void mcount_end_thread(void *memory)
{
	struct thread_calls *thread = &own;

	while (thread->n)
		mcount_end_call(&thread->calls[--thread->n]);
	thread->calls = NULL;
	munmap(memory, CALLS_MAX * sizeof(struct call));
}

/* The stack that the place is in may be gone. @known: a page that is there. */
static bool mcount_is_mapped(const uintptr_t *place, uintptr_t *known)
{
	uintptr_t page = (uintptr_t)place & ~(uintptr_t)(PAGE - 1);
	unsigned char resident;

	if (page == *known)
		return true;
	if (mincore((void *)page, PAGE, &resident) != 0) // NOLINT: an address
		return false;
	*known = page;
	return true;
}

static uintptr_t mcount_trampoline(void)
{
	return (uintptr_t)ky_mcount_return;
}

static void mcount_push(struct thread_calls *thread, const struct call *call)
{
	struct call *to = &thread->calls[thread->n];

	/* A new page is zeroes. */
	to->place = NOWHERE;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->n++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	to->original = call->original;
	to->function = call->function;
	to->site = call->site;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	to->place = call->place;
}

/* Call @at is over. */
static void mcount_remove(struct thread_calls *thread, size_t at)
{
	for (; at + 1 < thread->n; at++)
		thread->calls[at] = thread->calls[at + 1];
	thread->calls[at].place = NOWHERE;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->n--;
}

/* The calls at the list's end whose places are below the stack's end, which is @place, are over. */
static __attribute__((noinline)) void mcount_drop(struct thread_calls *thread,
						  const uintptr_t *place)
{
	uintptr_t known = 0;

	while (thread->n) {
		const struct call call = thread->calls[thread->n - 1];

		if (call.place > place || (call.place == place && *place == mcount_trampoline()))
			break;
		/* If it was another stack, the call returns as if nothing had hooked it. */
		if (mcount_is_mapped(call.place, &known) && *call.place == mcount_trampoline())
			*call.place = call.original;
		mcount_remove(thread, thread->n - 1);
		mcount_tell_exit(call.function, call.site);
	}
}

static inline void mcount_settle(struct thread_calls *thread, const uintptr_t *place)
{
	const struct call *last = thread->n ? &thread->calls[thread->n - 1] : NULL;

	if (last && __builtin_expect(last->place <= place, 0))
		mcount_drop(thread, place);
}

void ky_mcount_unhook(void)
{
	struct thread_calls *thread = &own;
	uintptr_t known = 0;

	for (size_t i = thread->calls ? thread->n : 0; i-- > 0;) {
		const struct call *call = &thread->calls[i];

		if (call->place != NOWHERE && mcount_is_mapped(call->place, &known) &&
		    *call->place == mcount_trampoline())
			*call->place = call->original;
	}
	thread->is_unhooked = thread->n > 0;
}

void ky_mcount_rehook(const uintptr_t *place)
{
	struct thread_calls *thread = &own;
	uintptr_t known = 0;

	if (!thread->calls)
		return;
	mcount_settle(thread, place);
	thread->is_unhooked = false;
	for (size_t i = 0; i < thread->n; i++) {
		const struct call *call = &thread->calls[i];

		if (call->place != NOWHERE && call->place >= place &&
		    mcount_is_mapped(call->place, &known) && *call->place == call->original)
			*call->place = mcount_trampoline();
	}
}

/* ---- hooks --------------------------------------------------------------------------------- */

/* Where the caller goes on: of a tail call, where its caller's caller goes on. */
static uintptr_t mcount_site(const struct thread_calls *thread, uintptr_t original)
{
	return original == mcount_trampoline() && thread->n ? thread->calls[thread->n - 1].site
							    : original;
}

void ky_mcount_enter(uintptr_t *place, uintptr_t function)
{
	struct thread_calls *thread = &own;
	struct call call = {.place = place, .function = function};
	int saved;

	if (!KYMO_IS_ON_(ENTRY_BYTE) || !ky_call_filter_chooses(function))
		return;
	saved = errno;
	if (__builtin_expect(!thread->calls, 0) && !mcount_make(thread))
		return;
	mcount_settle(thread, place);
	if (__builtin_expect(thread->is_unhooked, 0))
		ky_mcount_rehook(place);
	if (thread->n < CALLS_MAX) {
		call.original = *place;
		call.site = mcount_site(thread, call.original);
		mcount_push(thread, &call);
		*place = mcount_trampoline();
		mcount_tell_entry(call.function, call.site);
	}
	errno = saved;
}

/* The place in the list; the last one nearly always. */
static size_t mcount_find(const struct thread_calls *thread, const uintptr_t *place)
{
	size_t at = thread->n;

	while (at && thread->calls[at - 1].place != place)
		at--;
	/* The stack is damaged: nobody knows where to go. */
	if (!at)
		__builtin_trap();
	return at - 1;
}

uintptr_t ky_mcount_leave(uintptr_t *place)
{
	struct thread_calls *thread = &own;
	int saved = errno;
	struct call call;
	size_t at;

	if (thread->n && thread->calls[thread->n - 1].place < place) {
		/* So that its place counts as one that is still there. */
		*place = mcount_trampoline();
		mcount_drop(thread, place);
	}
	at = mcount_find(thread, place);
	call = thread->calls[at];
	mcount_remove(thread, at);
	mcount_tell_exit(call.function, call.site);
	errno = saved;
	return call.original;
}

/* ---- load ---------------------------------------------------------------------------------- */

/* gcc's start-up code calls these in programs with -pg: without a profile of glibc's there is no file gmon.out. */
void __monstartup(unsigned long low, unsigned long high) // NOLINT
{
	(void)low;
	(void)high;
}

void _mcleanup(void) // NOLINT
{
}

static uint32_t mcount_vectors(void)
{
	unsigned int a, b, c, d;

	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx"))
		return KY_MCOUNT_SSE;
	if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a & 4)
		return KY_MCOUNT_ASK;
	return KY_MCOUNT_AVX;
}

static __attribute__((constructor)) void mcount_load(void)
{
	ky_mcount_vectors = mcount_vectors();
	has_key = pthread_key_create(&key, mcount_end_thread) == 0;
	ky_call_filter_init();
	ky_mcount_patch();
}
