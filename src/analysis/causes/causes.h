/* SPDX-License-Identifier: MIT */
/*
 * Causes: what every thread and CPU did, as a pass over the events told it, and the questions that this answers: of
 * which parts a time of a thread consists, and for whom the thread waited.
 *
 *	causes = ky_causes_new(model);		before the first event; the model tells of all threads
 *	ky_model_run(model, flow, err);
 *	ky_causes_explain(causes, thread, begin_ns, end_ns, part, data);
 *
 * The parts of a time lie one after the other, without gap and overlap: their sum is the time, exactly. What no event
 * tells is a part as well: KY_CAUSE_UNKNOWN.
 *
 * Memory grows with the switches, calls and interrupts of the pass, up to a limit (ky_causes_is_full()).
 * Threads: one at a time.
 *
 * Files: causes-record.c listens to the model, causes-explain.c makes parts, causes-blocked.c tells for what a thread
 * waits, causes-futex.c who holds a lock, causes-disk.c whose requests a device has; critical-path.c walks from
 * waiters to wakers; members.c selects the times that a report explains.
 */
#ifndef KY_ANALYSIS_CAUSES_CAUSES_H
#define KY_ANALYSIS_CAUSES_CAUSES_H

#include "analysis/state/model.h"

struct ky_causes;

/* What a thread does, or waits for. X(name, key, text) */
/* clang-format off */
#define KY_CAUSE_LIST(X)                                                       \
	X(RUN_USER, "user", "running in user space")                           \
	X(RUN_KERNEL, "kernel", "running in the kernel")                       \
	X(RUN, "running", "running")                                           \
	X(IRQ, "interrupted", "interrupted")                                   \
	X(PREEMPTED, "preempted", "preempted")                                 \
	X(CPU_WAIT, "cpu-wait", "waiting for a CPU")                           \
	X(LOCK, "lock", "blocked: lock")                                       \
	X(FUTEX, "futex", "blocked: futex")                                    \
	X(DISK_QUEUE, "disk-queue", "blocked: disk, in the queue")             \
	X(DISK_DEVICE, "disk-device", "blocked: disk, in the device")          \
	X(DISK_FLUSH, "disk-flush", "blocked: disk, flush of its cache")             \
	X(DISK, "disk", "blocked: disk")                                       \
	X(NETWORK, "network", "blocked: network")                              \
	X(TIMER, "timer", "blocked: timer")                                    \
	X(PIPE, "pipe", "blocked: pipe")                                       \
	X(FAULT, "fault", "blocked: page fault")                               \
	X(DEVICE, "device", "blocked: interrupt of a device")                  \
	X(SIGNAL, "signal", "blocked: ended by a signal")                      \
	X(STOPPED, "stopped", "blocked: stopped by a signal or a debugger")    \
	X(THREAD, "thread", "blocked: another thread")                         \
	X(BLOCKED, "blocked", "blocked, reason unknown")                       \
	X(RAISED, "raised", "raised, not yet running")                         \
	X(HANDLER, "handler", "the handler ran")                               \
	X(UNKNOWN, "unknown", "unknown")
/* clang-format on */

enum ky_cause {
#define KY_CAUSE_ENUM(name, key, text) KY_CAUSE_##name,
	KY_CAUSE_LIST(KY_CAUSE_ENUM)
#undef KY_CAUSE_ENUM
		KY_CAUSES,
};

/* "cpu-wait", "waiting for a CPU"; static. */
const char *ky_cause_key(enum ky_cause cause);
const char *ky_cause_text(enum ky_cause cause);
static inline bool ky_cause_is_blocked(enum ky_cause cause)
{
	return cause >= KY_CAUSE_LOCK && cause <= KY_CAUSE_BLOCKED;
}

/* One part of a time. */
struct ky_part {
	int64_t begin_ns, end_ns;
	enum ky_cause cause;
	const struct ky_thread *thread; /* whose time; NULL: a request's or an interrupt's */
	/* The preemptor, who ran meanwhile, held the lock, woke, or had a request before; NULL: nobody, or unknown. */
	const struct ky_thread *who;
	/* Of a wait: the thread that ended it, and when; the critical path goes on there. NULL: something else did. */
	const struct ky_thread *waker;
	int64_t woken_ns;
	const struct ky_irq_line *line; /* that interrupted, or woke; NULL: none */
	const struct ky_disk *disk;	/* NULL: none */
	const struct ky_file *file;	/* that the call is about; NULL: none, or unknown */
	uint64_t address;		/* of the futex; 0: none */
	uint32_t syscall;		/* that the thread was in; KY_NO_SYSCALL: none */
	int32_t cpu;   /* where it ran, or waited; KY_UNKNOWN: nowhere, or unknown */
	bool idle;     /* the CPU that it waited for was idle: on its way out of sleep */
	bool shared;   /* several threads may have held the lock: @who was the last of them */
	bool in_fault; /* a wait in a page fault, outside of calls */
	/* An interrupt that was not recorded may have ended the wait, on top of @waker. */
	bool doubtful;
};

/* Listens to @model, which must tell of all threads and CPUs, from its first event. NULL: out of memory. */
struct ky_causes *ky_causes_new(struct ky_model *model);
void ky_causes_free(struct ky_causes *causes); /* NULL is fine */
/*
 * Whether there was more than memory is allowed for. Then nothing is known from @*since_ns on.
 */
bool ky_causes_is_full(const struct ky_causes *causes, int64_t *since_ns);

typedef int (*ky_part_hook)(void *data, const struct ky_part *part);
/*
 * @part for each part of the time of @thread from @begin_ns to @end_ns, in their order, without gaps.
 * 0, or the first negative status of @part.
 */
int ky_causes_explain(const struct ky_causes *causes, const struct ky_thread *thread,
		      int64_t begin_ns, int64_t end_ns, ky_part_hook part, void *data);
/* The same of a request of a block device: queue and device. */
int ky_causes_explain_request(const struct ky_causes *causes, const struct ky_request *request,
			      ky_part_hook part, void *data);
/* The same of an interrupt: raised, its handler, and others on top of it. */
int ky_causes_explain_irq(const struct ky_causes *causes, const struct ky_irq *irq,
			  ky_part_hook part, void *data);

typedef int (*ky_step_hook)(void *data, const struct ky_fs_seen *step);
/* The steps of file systems of @thread that lie between the two times, in the order of their ends. As ky_causes_explain(). */
int ky_causes_steps(const struct ky_causes *causes, const struct ky_thread *thread,
		    int64_t begin_ns, int64_t end_ns, ky_step_hook hook, void *data);

/* How long CPUs were busy and idle between the two times, as far as that is known. */
void ky_causes_load(const struct ky_causes *causes, int64_t begin_ns, int64_t end_ns,
		    uint64_t *busy_ns, uint64_t *idle_ns);

/*
 * How long @threads, of the first one's host, could run and waited, in the whole pass, while some CPU of their host was idle, and by which of
 * them the most: @most. Times of several threads add up. 0 or KYMO_E_MEMORY.
 */
int ky_causes_beside_idle(const struct ky_causes *causes, const struct ky_thread *const *threads,
			  size_t n, uint64_t *ns, const struct ky_thread **most);

/* Waits of a thread that could run, which end in a rhythm. */
struct ky_rhythm {
	uint64_t period_ns, ns; /* @ns: of all of them */
	size_t n;
};

/*
 * Does @thread come back to a CPU in a rhythm, while others without a better priority had the CPU for longer than a turn, or nobody? A limit
 * of CPU time (cpu.max) does that.
 */
bool ky_causes_rhythm(const struct ky_causes *causes, const struct ky_thread *thread,
		      struct ky_rhythm *rhythm);

/* ---- the critical path ---------------------------------------------------------------- */

/*
 * Someone woke a waiter: from there on the path is the waiter's. Before, back to the begin of its wait, it is the
 * waker's.
 */
struct ky_path_arrow {
	const struct ky_thread *from, *to;
	int64_t ns;
};

struct ky_path {
	/* In the order of time, without gaps; part->thread is the thread that the path goes over. */
	KY_VEC(struct ky_part) parts;
	KY_VEC(struct ky_path_arrow) arrows; /* sorted by time */
	uint64_t n_doubtful; /* wake-ups that an interrupt on top of the waker may have done */
	bool cut; /* a chain of wakers was too long: there, the path stays at the waiter */
};

/*
 * The critical path of @thread from @begin_ns to @end_ns. @path is empty before, and to be freed in any case.
 * 0 or KYMO_E_MEMORY.
 */
int ky_causes_path(const struct ky_causes *causes, const struct ky_thread *thread, int64_t begin_ns,
		   int64_t end_ns, struct ky_path *path);
void ky_path_fini(struct ky_path *path);

#endif
