/* SPDX-License-Identifier: MIT */
/*
 * The program's own trackers: KYMO_LATENCY_BEGIN and KYMO_LATENCY_END.
 *
 * Open pairs are in a hash table of fixed size, in private memory: a forked child has its parent's, as they were. The
 * histograms are in a file of the process (abi/latency-file.h).
 *
 * Guarantees. A begin or an end takes a bounded number of steps, whatever other threads do, and may interrupt another one at
 * any place (signal handlers). A pair whose key is used by one thread at a time is counted exactly once, or counted as
 * lost. Begins of one key at the same time may leave one more pair open.
 *
 * A slot of the table is a key and a state: 0 (free), or the tracker's number and the time of the begin. Only the one that has
 * changed the state to BUSY writes key and state:
 *
 *	beside each other	what happens
 *	begin, begin		both want the same free slot: one gets it, the other looks on
 *	begin, end		of the same key, the program orders them; of others, an end that finds a slot changed since it has
 *				looked looks on
 *	end, end		of the same key: one changes the state to BUSY, the other finds nothing
 *	a fork beside a begin	the child's copy of the slot may be BUSY for good: a slot less
 *	SIGKILL			the table goes with the process; the file has what was counted
 */
#include <string.h>

#include "abi/latency-file.h"
#include "tracer/latency.h"
#include "tracer/ring-config.h"
#include "tracer/tracer.h"

#define GROUPS_LOOKED 4u
#define TRIES	      8
#define TIME_BITS     56
#define TIME_MASK     ((UINT64_C(1) << TIME_BITS) - 1)
#define BUSY	      (UINT64_C(0xff) << TIME_BITS)
#define NONE	      UINT32_MAX /* the number of a site that can have none */

static inline uint64_t latency_now(void)
{
	return ky_latency_clock.is_tsc ? ky_clock_tsc() : ky_clock_monotonic();
}

static inline uint32_t latency_home(uint64_t number, uint64_t key)
{
	return (uint32_t)(((key ^ number << 58) * UINT64_C(0x9e3779b97f4a7c15)) >> 52);
}

_Static_assert(KY_LATENCY_GROUPS == 1u << (64 - 52), "latency_home() has a group");

/* ---- sites ------------------------------------------------------------------------------- */

/* The site gets its number, and the process its file. 0: not now, or never. */
static __attribute__((noinline, cold)) uint32_t latency_register(struct kymo_latency_site *site,
								 const char *tracker)
{
	struct ky_process *process = ky_trace.process;
	int number;

	if (!process || site->number == NONE)
		return 0;
	number = ky_latency_tracker_find(process, tracker);
	/* Where the process has no file, its children may have one. */
	if (number >= 0 || !process->has_no_latency)
		__atomic_store_n(&site->number, number < 0 ? NONE : (uint32_t)number + 1,
				 __ATOMIC_RELEASE);
	return number < 0 ? 0 : (uint32_t)number + 1;
}

/* The number of the site's tracker, and the process' file. 0: none. */
static inline uint32_t latency_number(struct kymo_latency_site *site, const char *tracker,
				      struct ky_latency_file **file)
{
	struct ky_process *process = ky_trace.process;
	uint32_t number = __atomic_load_n(&site->number, __ATOMIC_ACQUIRE);

	*file = process ? __atomic_load_n(&process->latency, __ATOMIC_ACQUIRE) : NULL;
	if (__builtin_expect(*file && number - 1 < KY_LATENCY_TRACKERS_MAX, 1))
		return number;
	number = latency_register(site, tracker);
	if (number)
		*file = __atomic_load_n(&ky_trace.process->latency, __ATOMIC_ACQUIRE);
	return *file ? number : 0;
}

/* ---- the table of open pairs --------------------------------------------------------------- */

/* Make @slot ours if it still has @state and @key. */
static inline bool latency_claim(struct ky_latency_slot *slot, uint64_t state, uint64_t key)
{
	if (!__atomic_compare_exchange_n(&slot->state, &state, BUSY, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	if (__atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key)
		return true;
	/* Since its key was read, it has become another pair's. */
	__atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
	return false;
}

/* The slot with the key in a group, taken; NULL. @free: one that is free, if that is NULL. */
static inline __attribute__((always_inline)) struct ky_latency_slot *
latency_find_in(struct ky_latency_group *group, uint64_t number, uint64_t key, uint64_t *state,
		struct ky_latency_slot **free)
{
#pragma GCC unroll 4
	for (uint32_t i = 0; i < KY_LATENCY_GROUP_SLOTS; i++) {
		struct ky_latency_slot *slot = &group->slots[i];
		/* Partner: the release of who filled the slot. */
		uint64_t now = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);

		if (now >> TIME_BITS == number &&
		    __atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key &&
		    latency_claim(slot, now, key)) {
			*state = now;
			return slot;
		}
		if (!now && !*free)
			*free = slot;
	}
	return NULL;
}

/* The same in all groups where it may be. @away: it, or the free slot, is not in its own group. */
static inline __attribute__((always_inline)) struct ky_latency_slot *
latency_find(uint64_t number, uint64_t key, uint64_t *state, struct ky_latency_slot **free,
	     bool *away)
{
	struct ky_latency_table *table = ky_latency_table;
	uint32_t home = latency_home(number, key);
	struct ky_latency_slot *slot =
		latency_find_in(&table->groups[home], number, key, state, free);

	*away = false;
	if (__builtin_expect(slot || (*free && !__atomic_load_n(&ky_latency_table->n_elsewhere,
								__ATOMIC_RELAXED)),
			     1))
		return slot;
	*away = !*free;
	for (uint32_t i = 1; i < GROUPS_LOOKED && !slot; i++) {
		slot = latency_find_in(&table->groups[(home + i) % KY_LATENCY_GROUPS], number, key,
				       state, free);
		*away |= slot != NULL;
	}
	return slot;
}

void kymo_latency_begin(struct kymo_latency_site *site, const char *tracker, uint64_t key)
{
	struct ky_latency_slot *slot, *free;
	struct ky_latency_file *file;
	uint64_t number = latency_number(site, tracker, &file), state;
	bool away;

	if (!number)
		return;
	for (int tries = 0; tries < TRIES; tries++) {
		free = NULL;
		slot = latency_find(number, key, &state, &free, &away);
		if (__builtin_expect(slot != NULL, 0)) {
			__atomic_fetch_add(&file->head.n_again, 1, __ATOMIC_RELAXED);
		} else if (free) {
			state = 0;
			if (!__atomic_compare_exchange_n(&free->state, &state, BUSY, false,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				continue;
			slot = free;
			__atomic_store_n(&slot->key, key, __ATOMIC_RELAXED);
			if (away)
				__atomic_fetch_add(&ky_latency_table->n_elsewhere, 1,
						   __ATOMIC_RELAXED);
		} else {
			break;
		}
		__atomic_store_n(&slot->state, number << TIME_BITS | (latency_now() & TIME_MASK),
				 __ATOMIC_RELEASE);
		return;
	}
	__atomic_fetch_add(&file->head.n_full, 1, __ATOMIC_RELAXED);
}

/* ---- histograms ---------------------------------------------------------------------------- */

/* Restartable sequences that add are there for x86-64; elsewhere all stripes are shared. */
#if KYMO_RING_HAS_RSEQ && defined(__x86_64__)
static inline bool latency_add_own(uint64_t cpu, uint64_t *counter, uint64_t n)
{
	__asm__ __volatile__ goto(KYMO_RING_RSEQ_BEGIN
				  "cmpl %k[cpu], %%fs:4(%[area])\n\t"
				  "jne %l[not_done]\n\t"
				  "addq %[n], (%[counter])\n" KYMO_RING_RSEQ_END
				  :
				  : [area] "r"(ky_latency_clock.rseq_area), [cpu] "r"(cpu),
				    [counter] "r"(counter), [n] "r"(n)
				  : "rax", "memory", "cc"
				  : not_done);
	return true;
not_done:
	return false;
}
#else
static inline bool latency_add_own(uint64_t cpu, uint64_t *counter, uint64_t n)
{
	(void)cpu, (void)counter, (void)n;
	return false;
}
#endif

/* UINT32_MAX: it is not known, or the thread shares its struct rseq (vfork). */
static inline uint64_t latency_cpu(void)
{
#if KYMO_RING_HAS_RSEQ
	if (__builtin_expect(ky_latency_clock.rseq_area != 0, 1))
		return kymo_ring_rseq_cpu(ky_latency_clock.rseq_area);
#endif
	return UINT32_MAX;
}

static inline void latency_longest(struct ky_latency_stripe *stripe, uint64_t ns)
{
	uint64_t max = __atomic_load_n(&stripe->max_ns, __ATOMIC_RELAXED);

	while (ns > max && !__atomic_compare_exchange_n(&stripe->max_ns, &max, ns, true,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/*
 * A sequence that was interrupted has added nothing: the thread may be on another CPU by now. Then the shared stripes take what is
 * left, since only threads on a CPU write to its own stripe.
 */
static inline void latency_count(struct ky_latency_tracker *tracker, uint64_t ns)
{
	uint64_t cpu = latency_cpu();
	struct ky_latency_stripe *stripe = &tracker->stripes[cpu % KY_LATENCY_SHARED];
	uint32_t bucket = ky_latency_bucket(ns);
	bool is_summed = false;

	if (__builtin_expect(cpu < KY_LATENCY_OWN, 1)) {
		struct ky_latency_stripe *own = &tracker->stripes[KY_LATENCY_SHARED + cpu];

		latency_longest(own, ns);
		is_summed = latency_add_own(cpu, &own->sum_ns, ns);
		if (__builtin_expect(is_summed && latency_add_own(cpu, &own->buckets[bucket], 1),
				     1))
			return;
	}
	latency_longest(stripe, ns);
	if (!is_summed)
		__atomic_fetch_add(&stripe->sum_ns, ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&stripe->buckets[bucket], 1, __ATOMIC_RELAXED);
}

static inline uint64_t latency_ns(uint64_t ticks)
{
	uint64_t rate = __atomic_load_n(&ky_latency_clock.rate, __ATOMIC_RELAXED);

	/* The counters of two CPUs may be some ticks apart. */
	if (ticks >> (TIME_BITS - 1))
		return 0;
	return ky_latency_clock.is_tsc ? (uint64_t)((unsigned __int128)ticks * rate >> 32) : ticks;
}

void kymo_latency_end(struct kymo_latency_site *site, const char *tracker, uint64_t key)
{
	struct ky_latency_slot *slot, *free = NULL;
	struct ky_latency_file *file;
	uint64_t number = latency_number(site, tracker, &file), now, state;
	bool away;

	if (!number)
		return;
	now = latency_now();
	slot = latency_find(number, key, &state, &free, &away);
	if (!slot)
		return;
	__atomic_store_n(&slot->state, 0, __ATOMIC_RELEASE);
	if (__builtin_expect(away, 0))
		__atomic_fetch_sub(&ky_latency_table->n_elsewhere, 1, __ATOMIC_RELAXED);
	if (ky_latency_clock.is_tsc &&
	    __builtin_expect(now > __atomic_load_n(&ky_latency_clock.next, __ATOMIC_RELAXED), 0))
		ky_latency_clock_correct(ky_trace.process);
	latency_count(&file->trackers[number - 1], latency_ns((now - state) & TIME_MASK));
}
