/* SPDX-License-Identifier: MIT */
/*
 * Writing a record when the fast path did not: the sub-buffer is full, the thread was interrupted,
 * the record has an unusual shape, or there is no rseq. Everything is tried a bounded number of
 * times; then the record is lost, and counted. A writer that waits for its reader does so outside of
 * all that, with nothing held, and then begins anew.
 */
#include <sched.h>
#include <sys/syscall.h>

#include "ring/ring-writer.h"

/* A sequence that was interrupted so often in a row is being single-stepped, or copies longer than
 * its time slice. */
#define RSEQ_TRIES 64
/* Two are enough: see write_holding(). */
#define HOLDING_TRIES 8
#define LOCK_SPINS    256
#define LOCK_YIELDS   64

struct job {
	const struct kymo_ring_config *config;
	struct kymo_ring_writer *writer;
	const void *record;
	const struct kymo_ring_part *parts;
	uint32_t n_parts;
	bool waits; /* a full buffer is no loss yet */
};

/* Makes a commit; 0: done, 1: not. */
typedef int commit_fn(const struct kymo_ring_writer *writer, const struct kymo_ring_commit *commit);

enum result {
	WRITTEN = 0,
	AGAIN = -1,
	/* > 0: 1 + enum kymo_ring_loss */
};

/* Of write_rseq() and write_locked(): the buffer is full, which is not counted. */
#define STALLED 1

static bool is_stalled(const struct job *job, int result)
{
	return job->waits && result == 1 + KYMO_RING_LOST_FULL;
}

/* With the lock held. What rseq does with ordered stores is done with fences here. */
static int commit_locked(const struct kymo_ring_writer *writer,
			 const struct kymo_ring_commit *commit)
{
	if (commit->claim) {
		__atomic_store_n(commit->claim, commit->claim_value, __ATOMIC_RELAXED);
		/* Partner: the fence of a snapshot between copying and reading the claim. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	for (const struct kymo_ring_move *move = commit->moves; move < commit->moves_end; move++)
		if (commit->claim) /* headers and slots: a reader may be looking at them */
			ky_rb_copy_racing(move->to, move->from, move->bytes);
		else
			memcpy(move->to, move->from, move->bytes);
	/* Release: a reader that still sees the head before does not see these (it looks again). */
	__atomic_store_n(&commit->point->stamp, commit->point_value.stamp, __ATOMIC_RELEASE);
	__atomic_store_n(&commit->point->records, commit->point_value.records, __ATOMIC_RELEASE);
	__atomic_store_n(commit->head, commit->next, __ATOMIC_RELEASE);
	return 0;
}

#if KYMO_RING_HAS_RSEQ
static int commit_rseq(const struct kymo_ring_writer *writer, const struct kymo_ring_commit *commit)
{
	return kymo_ring_rseq_commit(writer->rseq_area, commit);
}
#endif

/* The length of a record at the beginning of a sub-buffer, where its header may be a shorter one. */
static uint64_t bytes_at_best(const struct job *job, struct kymo_ring_spot spot)
{
	union kymo_ring_header header;
	uint64_t bytes;

	spot.last = spot.now;
	spot.at_bytes = job->config->subbuf_header_bytes;
	bytes = job->config->record_header(job->record, &spot, &header);
	for (uint32_t i = 0; i < job->n_parts; i++)
		bytes += job->parts[i].bytes;
	return bytes;
}

/* One try to write to buffer @i: the record, or a switch of sub-buffers on the way to it. */
static int try_buffer(const struct job *job, uint32_t i, commit_fn *commit_it)
{
	const struct kymo_ring_config *config = job->config;
	struct kymo_ring_move moves[KYMO_RING_PARTS_MAX + 1];
	struct kymo_ring_commit commit;
	union kymo_ring_header header;
	struct ky_rb_switch plan;
	struct kymo_ring_spot spot;
	uint64_t bytes;
	int loss;

	kymo_ring_look(config, job->writer, i, &spot);
	bytes = kymo_ring_prepare(config, job->writer, &spot, job->record, job->parts, job->n_parts,
				  &header, moves, &commit);
	if (kymo_ring_fits(job->writer, spot.at_bytes, bytes)) {
		if (commit_it(job->writer, &commit))
			return AGAIN;
		kymo_ring_end_idle(config, job->writer, &spot);
		return WRITTEN;
	}
	if (bytes_at_best(job, spot) > job->writer->subbuf_bytes - config->subbuf_header_bytes)
		return 1 + KYMO_RING_LOST_TOO_LARGE;
	loss = ky_rb_plan_switch(config, job->writer, &spot, &plan);
	if (loss)
		return loss;
	if (!commit_it(job->writer, &plan.commit))
		kymo_ring_wake(job->writer, KYMO_RING_WAKE_SWITCH);
	return AGAIN;
}

static void ring_write_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/*
 * In a buffer whose lock we have, nothing comes between: a switch, and then the record. What does not
 * respect the lock may write there all the same, and must not keep us for ever.
 */
static int write_holding(const struct job *job, uint32_t i)
{
	struct kymo_ring_control *control = kymo_ring_control_of(job->writer, i);
	int result = AGAIN;

	for (unsigned int k = 0; k < HOLDING_TRIES && result == AGAIN; k++)
		result = try_buffer(job, i, commit_locked);
	if (result == AGAIN)
		result = 1 + KYMO_RING_LOST_BUSY;
	if (result > 0 && !is_stalled(job, result))
		ring_write_count(&control->lost[result - 1]);
	ky_rb_unlock(control);
	if (is_stalled(job, result))
		return STALLED;
	return result == WRITTEN ? KYMO_OK : KYMO_E_LIMIT;
}

/* The buffers that are written under locks: [first, first + n). */
static void locked_buffers(const struct kymo_ring_writer *writer, uint32_t *first, uint32_t *n)
{
	*first = writer->flags & KYMO_RING_LOCKED ? 0 : writer->n_buffers - 1;
	*n = writer->n_buffers - *first;
}

static uint32_t ring_write_home_of(uint32_t n)
{
	int cpu = n > 1 ? sched_getcpu() : 0;

	return cpu < 0 ? 0 : (uint32_t)cpu % n;
}

/* The lock of any buffer, the own CPU's first. Returns its number, or UINT32_MAX: all taken. */
static uint32_t lock_one(const struct kymo_ring_writer *writer, uint64_t self,
			 bool (*lock)(struct kymo_ring_control *control, uint64_t self))
{
	uint32_t first, n, home;

	locked_buffers(writer, &first, &n);
	home = ring_write_home_of(n);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = first + (home + k) % n;

		if (lock(kymo_ring_control_of(writer, i), self))
			return i;
	}
	return UINT32_MAX;
}

/* Whether waiting for the only lock there is would be for ourselves, below in the stack. */
static bool ring_write_is_nested(const struct kymo_ring_writer *writer, uint64_t self)
{
	uint32_t first, n;

	locked_buffers(writer, &first, &n);
	return n == 1 && __atomic_load_n(&kymo_ring_control_of(writer, first)->owner,
					 __ATOMIC_RELAXED) == self;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

static int write_under_lock(const struct job *job)
{
	struct kymo_ring_writer *writer = job->writer;
	uint64_t self = ky_rb_self(writer->process);
	uint32_t i = lock_one(writer, self, ky_rb_trylock);

	for (unsigned int k = 0; i == UINT32_MAX && k < LOCK_SPINS + LOCK_YIELDS; k++) {
		if (ring_write_is_nested(writer, self))
			break;
		if (k < LOCK_SPINS)
			relax();
		else
			ky_rb_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		i = lock_one(writer, self, ky_rb_trylock);
	}
	if (i == UINT32_MAX)
		i = lock_one(writer, self, ky_rb_steal);
	if (i != UINT32_MAX)
		return write_holding(job, i);
	ring_write_count(&writer->file->lost[KYMO_RING_LOST_BUSY]);
	return KYMO_E_LIMIT;
}

/*
 * Signals wait: a handler that jumps away would leave the lock taken, one that forks two writers that have it.
 * Where there is no rseq each record comes here, and the two system calls are several times its price.
 */
static int write_locked(const struct job *job)
{
	uint64_t signals;
	int status;

	if (job->writer->flags & KYMO_RING_LOCKED)
		return write_under_lock(job);
	signals = kymo_ring_signals_block();
	status = write_under_lock(job);
	kymo_ring_signals_restore(signals);
	return status;
}

#if KYMO_RING_HAS_RSEQ
/* 0, or KYMO_E_LIMIT: lost and counted; KYMO_E_AGAIN, STALLED: not done, nor counted. */
static int write_rseq(const struct job *job)
{
	struct kymo_ring_writer *writer = job->writer;

	for (unsigned int k = 0; k < RSEQ_TRIES; k++) {
		uint32_t cpu = kymo_ring_rseq_cpu(writer->rseq_area);
		int result;

		if (cpu >= writer->rseq_buffers)
			break;
		result = try_buffer(job, cpu, commit_rseq);
		if (result == WRITTEN)
			return KYMO_OK;
		if (is_stalled(job, result))
			return STALLED;
		if (result > 0 &&
		    !kymo_ring_rseq_count(writer->rseq_area, cpu,
					  &kymo_ring_control_of(writer, cpu)->lost[result - 1]))
			return KYMO_E_LIMIT;
	}
	return KYMO_E_AGAIN;
}
#else
static int write_rseq(const struct job *job)
{
	return KYMO_E_AGAIN;
}
#endif

static int write_once(const struct job *job)
{
	int status = write_rseq(job);

	return status == KYMO_E_AGAIN ? write_locked(job) : status;
}

/* Apart, for the stack of those that do not wait. */
static __attribute__((noinline, cold)) int write_waiting(struct job *job)
{
	struct ky_rb_stall stall = {.began_ns = 0};
	int status;

	do {
		job->waits = ky_rb_wait(job->writer, &stall);
		status = write_once(job);
	} while (status == STALLED);
	return status;
}

int kymo_ring_write_slow(const struct kymo_ring_config *config, struct kymo_ring_writer *writer,
			 const void *record, const struct kymo_ring_part *parts, uint32_t n_parts)
{
	struct job job = {config, writer, record, parts, n_parts, writer->wait_ns != 0};
	int status;

	if (n_parts > KYMO_RING_PARTS_MAX) {
		ring_write_count(&writer->file->lost[KYMO_RING_LOST_TOO_LARGE]);
		return KYMO_E_LIMIT;
	}
	status = write_once(&job);
	return status == STALLED ? write_waiting(&job) : status;
}

void kymo_ring_count_loss(struct kymo_ring_writer *writer)
{
	uint32_t first, n;

#if KYMO_RING_HAS_RSEQ
	for (unsigned int k = 0; k < RSEQ_TRIES; k++) {
		uint32_t cpu = kymo_ring_rseq_cpu(writer->rseq_area);

		if (cpu >= writer->rseq_buffers)
			break;
		if (!kymo_ring_rseq_count(
			    writer->rseq_area, cpu,
			    &kymo_ring_control_of(writer, cpu)->lost[KYMO_RING_LOST_CLIENT]))
			return;
	}
#endif
	locked_buffers(writer, &first, &n);
	ring_write_count(&kymo_ring_control_of(writer, first + ring_write_home_of(n))
				  ->lost[KYMO_RING_LOST_CLIENT]);
}
