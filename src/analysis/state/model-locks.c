/* SPDX-License-Identifier: MIT */
/*
 * The state model: who holds the locks of programs. The kernel does not see a thread take a free lock.
 * But a thread that releases a lock that others wait for calls futex() to wake one of them: up to there
 * it held the lock. So a hold is known at its end, and each waiter then knows whom it waited for.
 *
 * The hold began when the lock was released before, if others have waited since then, or if the thread
 * itself was woken by that release. Else it began at some time before the first waiter came.
 */
#include "analysis/state/model-internal.h"

#include <stdlib.h>

#define PARTS_MAX     256		  /* of one wait: what comes then is unknown */
#define PARTS_ALL_MAX (UINT64_C(1) << 19) /* of all waits at a time: the same */
/* At one futex at a time, of those whose holders are known: each release looks at them. */
#define WAITERS_MAX 4096
#define NO_WAITER   SIZE_MAX /* the index of other threads */
#define SPARE_PARTS 16	     /* room for so many is kept for the next wait */
#define OFFS_MAX    32	     /* the last times of a thread off the CPU that are kept */

#define OP_MASK	       0x7f
#define OP_WAIT	       0
#define OP_WAKE	       1
#define OP_LOCK_PI     6
#define OP_UNLOCK_PI   7
#define OP_WAKE_BITSET 10
#define OP_LOCK_PI2    13
#define LOCKED_WAITED  2 /* a mutex's word that others wait for, of glibc, Rust and Go */
#define WRITER_WAITED \
	3 /* the word of glibc's read-write lock that a writer has, with waiters; of readers it is 2 */

/* A thread that waits. */
struct waiter {
	struct ky_thread *thread;
	int64_t from_ns; /* whom it waited for is known up to there */
	struct ky_lock_parts parts;
};

struct lock {
	struct ky_lock pub;
	struct lock *next; /* of the same address in another process */
	KY_VEC(struct waiter) waiters;
	const struct ky_thread
		*owner;	     /* it was woken by the last release, and has not waited again */
	int64_t released_ns; /* INT64_MIN: never */
	int64_t given_ns;    /* the release that woke the owner */
	int64_t busy_ns;     /* since when there is a waiter */
	bool has_pi, has_handed, has_mutex, has_writer, has_other, has_bitset, has_all;
};

/* A hold, while waits know of it. */
struct hold {
	struct ky_lock_hold pub;
	struct hold *next; /* of those that are free */
	uint32_t n_refs;
	bool is_told;
};

/* ---- what a thread did --------------------------------------------------------------------- */

struct off {
	int64_t begin_ns, end_ns;
	uint32_t syscall;
	enum ky_off_kind kind;
};

/* The last times of a thread off the CPU, in a circle. */
struct ky_offs {
	uint32_t n;
	struct off at[OFFS_MAX];
};

int ky_lock_note_off(struct ky_model *model, struct ky_thread *thread, enum ky_off_kind kind,
		     int64_t begin_ns, int64_t end_ns)
{
	if (!thread->offs)
		thread->offs = ky_arena_new(&model->arena, struct ky_offs);
	if (!thread->offs)
		return KYMO_E_MEMORY;
	thread->offs->at[thread->offs->n++ % OFFS_MAX] =
		(struct off){begin_ns, end_ns, thread->syscall.id, kind};
	return 0;
}

static uint64_t overlap(const struct off *off, int64_t begin_ns, int64_t end_ns)
{
	int64_t from = off->begin_ns > begin_ns ? off->begin_ns : begin_ns;
	int64_t to = off->end_ns < end_ns ? off->end_ns : end_ns;

	return to > from ? (uint64_t)to - (uint64_t)from : 0;
}

/* The last but @i time of a thread off the CPU. */
static const struct off *last_off(const struct ky_offs *offs, uint32_t i)
{
	return &offs->at[(offs->n - 1 - i) % OFFS_MAX];
}

/* How many of the last times reach beyond @begin_ns. They follow each other. */
static uint32_t count_offs(const struct ky_offs *offs, int64_t begin_ns)
{
	uint32_t most = !offs ? 0 : offs->n < OFFS_MAX ? offs->n : OFFS_MAX, n = 0;

	while (n < most && last_off(offs, n)->end_ns > begin_ns)
		n++;
	return n;
}

/* How long the thread was off the CPU as in @like, in the last @n times. */
static uint64_t alike(const struct ky_offs *offs, uint32_t n, const struct off *like,
		      int64_t begin_ns, int64_t end_ns)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct off *off = last_off(offs, i);

		if (off->syscall == like->syscall && off->kind == like->kind)
			ns += overlap(off, begin_ns, end_ns);
	}
	return ns;
}

static void add_did(struct ky_did *did, const struct off *off, uint64_t ns)
{
	if (off->kind == KY_OFF_READY)
		did->ready_ns += ns;
	else
		did->blocked_ns += ns;
}

struct ky_did ky_thread_did(const struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	const struct ky_offs *offs = thread->offs;
	uint32_t n = count_offs(offs, begin_ns);
	struct ky_did did = {.most_syscall = KY_NO_SYSCALL};
	uint64_t whole = end_ns > begin_ns ? (uint64_t)end_ns - (uint64_t)begin_ns : 0, off_ns;

	for (uint32_t i = n; i-- > 0;) {
		const struct off *off = last_off(offs, i);
		uint64_t ns = overlap(off, begin_ns, end_ns);

		add_did(&did, off, ns);
		if (!ns || off->kind == KY_OFF_READY)
			continue;
		ns = alike(offs, n, off, begin_ns, end_ns);
		if (ns > did.most_ns) {
			did.most_ns = ns;
			did.most_kind = off->kind;
			did.most_syscall = off->syscall;
		}
	}
	off_ns = did.ready_ns + did.blocked_ns;
	did.rest_ns = whole > off_ns ? whole - off_ns : 0;
	/* What it did before the circle's oldest time is forgotten. */
	did.is_partial =
		offs && offs->n > OFFS_MAX && offs->at[offs->n % OFFS_MAX].begin_ns > begin_ns;
	return did;
}

/* ---- locks --------------------------------------------------------------------------------- */

/* While a process is not known, addresses have to do. */
static struct lock *find(struct ky_thread *thread, uint64_t address)
{
	struct ky_host_state *state = thread->host->state;
	struct lock *lock = state->recent_lock, *unknown = NULL;

	if (lock && lock->pub.address == address && lock->pub.pid == thread->pid &&
	    thread->pid != KY_UNKNOWN)
		return lock;
	lock = ky_map_get(&state->locks, address);
	for (; lock && thread->pid != KY_UNKNOWN && lock->pub.pid != thread->pid; lock = lock->next)
		unknown = lock->pub.pid == KY_UNKNOWN ? lock : unknown;
	if (!lock && unknown) {
		unknown->pub.pid = thread->pid;
		lock = unknown;
	}
	state->recent_lock = lock;
	return lock;
}

static struct lock *get(struct ky_model *model, struct ky_thread *thread, uint64_t address)
{
	struct ky_map *locks = &thread->host->state->locks;
	struct lock *lock = find(thread, address);

	if (lock)
		return lock;
	lock = ky_arena_new(&model->arena, struct lock);
	if (!lock || ky_vec_push(&model->locks, &lock->pub) < 0)
		return NULL;
	lock->pub = (struct ky_lock){
		.index = (uint32_t)model->locks.len - 1,
		.host = thread->host,
		.pid = thread->pid,
		.address = address,
	};
	lock->released_ns = lock->given_ns = lock->busy_ns = INT64_MIN;
	lock->next = ky_map_get(locks, address);
	return ky_map_set(locks, address, lock) < 0 ? NULL : lock;
}

bool ky_lock_is_lock(const struct ky_lock *pub)
{
	const struct lock *lock = (const struct lock *)pub;

	return lock->has_pi || (lock->has_mutex && !lock->has_other && !lock->has_writer) ||
	       (lock->has_handed && !lock->has_bitset) || ky_lock_is_shared(pub);
}

bool ky_lock_is_shared(const struct ky_lock *pub)
{
	const struct lock *lock = (const struct lock *)pub;

	return lock->has_all && (lock->has_mutex || lock->has_writer) && !lock->has_other;
}

size_t ky_model_n_locks(const struct ky_model *model)
{
	return model->locks.len;
}

const struct ky_lock *ky_model_lock(const struct ky_model *model, size_t index)
{
	return model->locks.data[index];
}

/* ---- holds --------------------------------------------------------------------------------- */

static struct hold *model_locks_new_hold(struct ky_model *model)
{
	struct hold *hold = model->free_holds;

	if (!hold)
		return ky_arena_new(&model->arena, struct hold);
	model->free_holds = hold->next;
	return hold;
}

/* One wait less knows of the hold; of the last one, listeners get it. */
static int put_hold(struct ky_model *model, struct hold *hold)
{
	int status = 0;

	if (!hold || --hold->n_refs)
		return 0;
	if (hold->is_told)
		status = ky_model_notify(model, lock_hold, &hold->pub);
	hold->next = model->free_holds;
	model->free_holds = hold;
	return status;
}

static int model_locks_put_parts(struct ky_model *model, struct waiter *waiter)
{
	int status = 0;

	ky_vec_foreach(&waiter->parts, part) {
		int put = put_hold(model, (struct hold *)part->hold);

		status = status < 0 ? status : put;
	}
	model->n_lock_parts -= waiter->parts.len;
	ky_vec_clear(&waiter->parts);
	return status;
}

/* @parts has none any more: its memory is for the next wait. */
static void model_locks_keep_spare(struct ky_model *model, struct ky_lock_parts *parts)
{
	if (parts->cap && parts->cap <= SPARE_PARTS && model->n_spare_parts < KY_SPARE_PARTS_MAX)
		model->spare_parts[model->n_spare_parts++] = *parts;
	else
		ky_vec_fini(parts);
}

static int model_locks_add_waiter(struct ky_model *model, struct lock *lock,
				  struct ky_thread *thread, int64_t ns)
{
	struct waiter waiter = {.thread = thread, .from_ns = ns};

	if (ky_vec_reserve(&lock->waiters, 1) < 0)
		return KYMO_E_MEMORY;
	if (model->n_spare_parts)
		waiter.parts = model->spare_parts[--model->n_spare_parts];
	thread->waiter = lock->waiters.len;
	lock->waiters.data[lock->waiters.len++] = waiter;
	return 0;
}

static int drop_waiter(struct ky_model *model, struct ky_thread *thread)
{
	struct lock *lock = (struct lock *)thread->waits_at;
	size_t i = thread->waiter;
	struct waiter waiter;
	int status;

	thread->waits_at = NULL;
	if (i == NO_WAITER)
		return 0;
	waiter = lock->waiters.data[i];
	lock->waiters.data[i] = *ky_vec_last(&lock->waiters);
	lock->waiters.data[i].thread->waiter = i;
	lock->waiters.len--;
	status = model_locks_put_parts(model, &waiter);
	model_locks_keep_spare(model, &waiter.parts);
	return status;
}

int ky_lock_lose(struct ky_model *model, struct ky_thread *thread)
{
	return thread->waits_at ? drop_waiter(model, thread) : 0;
}

/* The waiter waited for @hold (NULL: it is not known for whom) up to @end_ns. */
static int add_part(struct ky_model *model, struct waiter *waiter, struct hold *hold, bool is_free,
		    int64_t end_ns)
{
	struct ky_lock_part part = {hold ? &hold->pub : NULL, is_free, waiter->from_ns, end_ns};

	if (end_ns <= waiter->from_ns)
		return 0;
	if (waiter->parts.len >= PARTS_MAX || model->n_lock_parts >= PARTS_ALL_MAX) {
		struct ky_lock_part *last = waiter->parts.len ? ky_vec_last(&waiter->parts) : NULL;

		if (last && !last->hold) {
			last->end_ns = waiter->from_ns = end_ns;
			return 0;
		}
		part.hold = NULL;
		hold = NULL;
	}
	if (ky_vec_push(&waiter->parts, part) < 0)
		return KYMO_E_MEMORY;
	model->n_lock_parts++;
	waiter->from_ns = end_ns;
	if (hold) {
		hold->n_refs++;
		hold->pub.delay_ns += (uint64_t)(part.end_ns - part.begin_ns);
	}
	return 0;
}

/* @thread held the lock up to @ns, and others wait for it. */
static int end_hold(struct ky_model *model, struct lock *lock, struct ky_thread *thread, int64_t ns)
{
	struct hold *hold = model_locks_new_hold(model);
	bool given = lock->owner == thread && lock->given_ns != INT64_MIN;
	int status = 0;

	if (!hold)
		return KYMO_E_MEMORY;
	hold->n_refs = 1;
	hold->is_told = false;
	hold->pub = (struct ky_lock_hold){
		.lock = &lock->pub, .thread = thread, .begin_ns = lock->busy_ns, .end_ns = ns};
	if (given || lock->released_ns > lock->busy_ns) {
		hold->pub.begin_ns = given ? lock->given_ns : lock->released_ns;
		hold->pub.is_whole = true;
	}
	if (model->subjects & KY_ABOUT_DID)
		hold->pub.did = ky_thread_did(thread, hold->pub.begin_ns, ns);
	for (size_t i = 0; i < lock->waiters.len && status >= 0; i++) {
		struct waiter *waiter = &lock->waiters.data[i];

		if (waiter->thread != thread)
			status = add_part(model, waiter, hold, false, ns);
	}
	if (status < 0)
		return status;
	return put_hold(model, hold);
}

static int release(struct ky_model *model, struct lock *lock, struct ky_thread *thread, int64_t ns)
{
	int status = 0;

	/* What was lost may have been a release. */
	if (lock->released_ns < thread->host->torn_until_ns)
		lock->released_ns = INT64_MIN;
	if (lock->given_ns < thread->host->torn_until_ns)
		lock->given_ns = INT64_MIN;
	lock->has_handed |= lock->owner == thread;
	if (lock->waiters.len)
		status = end_hold(model, lock, thread, ns);
	lock->owner = NULL;
	lock->released_ns = ns;
	return status;
}

/* ---- waits --------------------------------------------------------------------------------- */

static bool releases(int64_t op, int64_t n)
{
	op &= OP_MASK;
	return op == OP_UNLOCK_PI || ((op == OP_WAKE || op == OP_WAKE_BITSET) && n == 1);
}

static bool wakes_all(int64_t op, int64_t n)
{
	op &= OP_MASK;
	return (op == OP_WAKE || op == OP_WAKE_BITSET) && n > 1;
}

static void note_kind(struct lock *lock, int64_t op, int64_t value)
{
	op &= OP_MASK;
	if (op == OP_LOCK_PI || op == OP_LOCK_PI2)
		lock->has_pi = true;
	else if ((uint32_t)value == LOCKED_WAITED)
		lock->has_mutex = true;
	else if ((uint32_t)value == WRITER_WAITED)
		lock->has_writer = true;
	else
		lock->has_other = true;
	lock->has_bitset |= op != OP_WAIT && op != OP_LOCK_PI && op != OP_LOCK_PI2;
}

int ky_lock_begin(struct ky_model *model, struct ky_thread *thread)
{
	const struct ky_syscall *call = &thread->syscall;
	uint64_t address = (uint64_t)call->args[0];
	struct lock *lock;

	if (!thread->host->state)
		return 0;
	if (releases(call->args[1], call->args[2])) {
		lock = find(thread, address);
		return lock ? release(model, lock, thread, call->begin_ns) : 0;
	}
	lock = wakes_all(call->args[1], call->args[2]) ? find(thread, address) : NULL;
	if (lock && lock->waiters.len)
		lock->has_all = true;
	if (!ky_futex_waits(call->args[1]))
		return 0;
	lock = get(model, thread, address);
	if (!lock)
		return KYMO_E_MEMORY;
	note_kind(lock, call->args[1], call->args[2]);
	/* It was woken, and another thread was faster. */
	if (lock->owner == thread)
		lock->owner = NULL;
	if (!lock->waiters.len)
		lock->busy_ns = call->begin_ns;
	thread->waits_at = &lock->pub;
	thread->waiter = NO_WAITER;
	if (lock->waiters.len >= WAITERS_MAX)
		return 0;
	return model_locks_add_waiter(model, lock, thread, call->begin_ns);
}

/* The hold that took most of the wait; NULL: none is known. */
static struct hold *longest(const struct waiter *waiter)
{
	const struct ky_lock_part *most = NULL;

	ky_vec_foreach(&waiter->parts, part) {
		if (part->hold &&
		    (!most || part->end_ns - part->begin_ns > most->end_ns - most->begin_ns))
			most = part;
	}
	return most ? (struct hold *)most->hold : NULL;
}

static int model_locks_tell_wait(struct ky_model *model, const struct lock *lock,
				 const struct waiter *waiter, const struct ky_call *call)
{
	struct hold *hold = longest(waiter);
	const struct ky_lock_wait wait = {call, &lock->pub, hold ? &hold->pub : NULL,
					  waiter->parts.data, waiter->parts.len};

	ky_vec_foreach(&waiter->parts, part) {
		if (part->hold)
			((struct hold *)part->hold)->is_told = true;
	}
	if (hold) {
		hold->pub.n_waits++;
		hold->pub.wait_ns += (uint64_t)(call->end_ns - call->begin_ns);
	}
	return ky_model_notify(model, lock_wait, &wait);
}

int ky_lock_end(struct ky_model *model, const struct ky_call *call, bool tells)
{
	struct lock *lock = (struct lock *)call->thread->waits_at;
	struct waiter other = {.thread = call->thread, .from_ns = call->begin_ns}, *waiter = &other;
	int status;

	if (!lock)
		return 0;
	if (call->thread->waiter != NO_WAITER)
		waiter = &lock->waiters.data[call->thread->waiter];
	status = add_part(model, waiter, NULL, waiter->from_ns == lock->released_ns, call->end_ns);
	if (!call->ret) {
		lock->owner = call->thread;
		lock->given_ns =
			lock->released_ns >= call->begin_ns ? lock->released_ns : INT64_MIN;
	}
	if (status >= 0 && tells)
		status = model_locks_tell_wait(model, lock, waiter, call);
	if (waiter == &other) {
		model_locks_put_parts(model, &other);
		ky_vec_fini(&other.parts);
	}
	return status < 0 ? status : drop_waiter(model, call->thread);
}

int ky_locks_end(struct ky_model *model)
{
	int status = 0;

	ky_vec_foreach(&model->locks, pub) {
		struct lock *lock = (struct lock *)*pub;

		while (lock->waiters.len && status >= 0)
			status = drop_waiter(model, ky_vec_last(&lock->waiters)->thread);
	}
	return status;
}

void ky_locks_fini(struct ky_model *model)
{
	for (size_t i = 0; i < KY_HOOKS; i++)
		ky_vec_clear(&model->hooked[i]);
	(void)ky_locks_end(model);
	ky_vec_foreach(&model->locks, pub)
		ky_vec_fini(&((struct lock *)*pub)->waiters);
	for (size_t i = 0; i < model->n_spare_parts; i++)
		ky_vec_fini(&model->spare_parts[i]);
	model->n_spare_parts = 0;
	ky_vec_fini(&model->locks);
}
