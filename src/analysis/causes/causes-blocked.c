/* SPDX-License-Identifier: MIT */
/*
 * Causes: for what a thread waits. What proves it is, in this order: the system call that the thread is in, the
 * interrupt that woke it, its requests at block devices, the thread that woke it. Without any proof, the reason is
 * unknown.
 */
#include "analysis/causes/causes-internal.h"

#include <errno.h>
#include <string.h>

/* An interrupt is looked for on so many CPUs. */
#define LANES_MAX 1024
/* What handles a page fault may wake others for so long. */
#define FAULT_NS 1000000
/* ERESTARTSYS to ERESTARTNOHAND, ERESTART_RESTARTBLOCK: results that the kernel has between a signal and user space. */
#define RESTART_FIRST (-512)
#define RESTART_LAST  (-516)

struct causes_blocked {
	const struct ky_stretch *stretch;
	const struct ky_track_call *call; /* NULL: none */
	const struct ky_irq_line *line;	  /* that woke; NULL: none */
	struct ky_part part;
};

/* ---- interrupts ---------------------------------------------------------------------------- */

/* Of a lane: the interrupt of @line that runs at @ns; NULL: none. */
static const struct ky_lane_irq *causes_blocked_running(const struct ky_lane *lane,
							const struct ky_irq_line *line, int64_t ns)
{
	size_t i = ky_lane_irq_find(lane, ns);

	for (; i < lane->irqs.len && lane->irqs.data[i].begin_ns <= ns; i++) {
		if (lane->irqs.data[i].line == line)
			return &lane->irqs.data[i];
	}
	return NULL;
}

/* On which CPU the interrupt of @line ran at @ns, and since when: the next one from @*cpu on. False: on none. */
static bool causes_blocked_cpu(const struct ky_causes *causes, const struct ky_irq_line *line,
			       int64_t ns, size_t *cpu, int64_t *since_ns)
{
	for (; *cpu < causes->lanes.len && *cpu < LANES_MAX; ++*cpu) {
		const struct ky_lane_irq *irq;

		if (ky_model_cpu(causes->model, *cpu)->host != line->host)
			continue;
		irq = causes_blocked_running(&causes->lanes.data[*cpu], line, ns);
		if (irq)
			*since_ns = irq->begin_ns;
		if (irq)
			return true;
	}
	return false;
}

/* The request that completed in the interrupt of @line that ran at @ns on some CPU. NULL: none is known. */
static const struct ky_disk_run *causes_blocked_request(const struct ky_causes *causes,
							const struct ky_irq_line *line, int64_t ns)
{
	int64_t since;
	size_t cpu = 0;

	return causes_blocked_cpu(causes, line, ns, &cpu, &since)
		       ? ky_disk_completed(causes, line->host, since, ns)
		       : NULL;
}

/* The same of data that came for a TCP connection: who sent it. */
static const struct ky_tcp_send *causes_blocked_tcp(const struct ky_causes *causes,
						    const struct ky_irq_line *line, int64_t ns)
{
	const struct ky_tcp_send *found = NULL;
	int64_t since;

	for (size_t cpu = 0; causes_blocked_cpu(causes, line, ns, &cpu, &since) && !found; cpu++)
		found = ky_tcp_sender(causes, ky_model_cpu(causes->model, cpu), since, ns);
	return found;
}

static enum ky_cause causes_blocked_by_line(const struct ky_irq_line *line)
{
	if (line->kind == KY_IRQ_HARD)
		return KY_CAUSE_DEVICE;
	if (strcmp(line->name, "NET_RX") == 0 || strcmp(line->name, "NET_TX") == 0)
		return KY_CAUSE_NETWORK;
	if (strcmp(line->name, "BLOCK") == 0 || strcmp(line->name, "IRQ_POLL") == 0)
		return KY_CAUSE_DISK;
	if (strcmp(line->name, "TIMER") == 0 || strcmp(line->name, "HRTIMER") == 0 ||
	    strcmp(line->name, "local_timer") == 0)
		return KY_CAUSE_TIMER;
	return KY_CAUSE_DEVICE;
}

/* The request that this wait was for, as the interrupt that completed it woke the thread: queue, then device. */
static int causes_blocked_tell_request(struct ky_teller *teller, struct causes_blocked *wait,
				       const struct ky_disk_run *run, int64_t ns)
{
	struct ky_part part = wait->part;
	int64_t issue = run->issue_ns == INT64_MIN ? run->end_ns : run->issue_ns;
	int64_t queue = run->queue_ns == INT64_MIN ? issue : run->queue_ns;
	int status;

	part.cause = KY_CAUSE_DISK;
	part.disk = run->disk;
	/* What held the request back before it came to the queue, its events do not tell. */
	status = ky_tell(teller, part, queue < ns ? queue : ns);
	part.cause = KY_CAUSE_DISK_QUEUE;
	part.who = run->thread != teller->thread ? run->thread : NULL;
	if (status >= 0)
		status = ky_tell(teller, part, issue < ns ? issue : ns);
	part.cause = run->is_flush ? KY_CAUSE_DISK_FLUSH : KY_CAUSE_DISK_DEVICE;
	if (status >= 0)
		status = ky_tell(teller, part, run->end_ns < ns ? run->end_ns : ns);
	part.cause = KY_CAUSE_DISK;
	part.who = NULL;
	return status < 0 ? status : ky_tell(teller, part, ns);
}

/* The thread that was in a call on a socket where the interrupt woke: it sent the packet. NULL: none did. */
static const struct ky_thread *causes_blocked_sender(const struct ky_teller *teller,
						     const struct ky_stretch *stretch)
{
	const struct ky_track *track = ky_causes_track(teller->causes, stretch->waker);
	const struct ky_track_call *call = track ? ky_track_call_at(track, stretch->end_ns) : NULL;

	return call && call->file && call->file->kind == KY_FILE_NET ? stretch->waker : NULL;
}

/* A thread is in the kernel at @ns though in no call: it ends, or stops for its debugger or by a signal. */
static bool causes_blocked_is_leaving(const struct ky_track *track, int64_t ns)
{
	const struct ky_track_call *next = ky_track_call_after(track, ns);
	size_t first = ky_track_find(track, ns);

	if (track->exit_ns && track->exit_ns <= ns)
		return true;
	for (size_t i = first; i < track->stretches.len && i - first < KY_CAUSES_LOOKS; i++) {
		const struct ky_stretch *stretch = &track->stretches.data[i];

		if (stretch->kind >= KY_STRETCH_SLEEP || (next && next->begin_ns < stretch->end_ns))
			return stretch->kind == KY_STRETCH_OTHER;
	}
	return false;
}

const struct ky_thread *ky_stretch_waker(const struct ky_causes *causes,
					 const struct ky_stretch *stretch)
{
	const struct ky_track *track = ky_causes_track(causes, stretch->waker);
	const struct ky_thread *waker = stretch->waker;

	if (!waker || stretch->line)
		return NULL;
	/* From user space nobody wakes: an interrupt that was not recorded did. */
	if (track && track->calls.len && waker->ppid != 2 && waker->tid != 2 &&
	    !ky_track_call_at(track, stretch->end_ns) &&
	    !causes_blocked_is_leaving(track, stretch->end_ns) &&
	    !(causes->abilities & KY_CAN_FAULT &&
	      ky_track_faults(track, stretch->end_ns - FAULT_NS, stretch->end_ns)))
		return NULL;
	return waker;
}

bool ky_wait_is_interrupted(const struct ky_track *track, const struct ky_stretch *stretch,
			    const struct ky_track_call *call)
{
	size_t first;

	if (!call || !call->done || call->unsure ||
	    !(call->ret == -EINTR || (call->ret <= RESTART_FIRST && call->ret >= RESTART_LAST)))
		return false;
	/* It ended the last wait of the call. */
	first = ky_track_find(track, stretch->end_ns);
	for (size_t i = first; i < track->stretches.len; i++) {
		if (track->stretches.data[i].begin_ns >= call->end_ns)
			break;
		if (track->stretches.data[i].kind >= KY_STRETCH_SLEEP ||
		    i - first == KY_CAUSES_LOOKS)
			return false;
	}
	return true;
}

bool ky_waker_is_doubtful(const struct ky_causes *causes, const struct ky_stretch *stretch,
			  const struct ky_track *track, const struct ky_track_call *call)
{
	if (causes->abilities & KY_CAN_VECTORS || !call)
		return false;
	if (ky_wait_is_interrupted(track, stretch, call))
		return true;
	switch (ky_call_aspect(causes, call->syscall)) {
	case KY_CALL_POLL:
	case KY_CALL_TIMED:
	case KY_CALL_SLEEP:
		return true;
	case KY_CALL_FUTEX: /* a result says who: a timeout, or a thread */
		return !call->done;
	default:
		return false;
	}
}

/*
 * The wait is for the thread that sent the data, of any host, until it has sent it; then the data is on its way. What
 * is not known of TCP may be a packet to the same machine, which wakes the receiver on top of the sender on its way out.
 */
static int causes_blocked_tell_network(struct ky_teller *teller, struct causes_blocked *wait,
				       int64_t ns)
{
	int64_t woken = wait->stretch->end_ns;
	const struct ky_tcp_send *send = causes_blocked_tcp(teller->causes, wait->line, woken);
	int status;

	wait->part.cause = KY_CAUSE_NETWORK;
	if (!send || send->thread == teller->thread) {
		wait->part.who = wait->part.waker = causes_blocked_sender(teller, wait->stretch);
		return ky_tell(teller, wait->part, ns);
	}
	wait->part.who = wait->part.waker = send->thread;
	wait->part.woken_ns = send->end_ns < woken ? send->end_ns : woken;
	wait->part.doubtful = false;
	status = ky_tell(teller, wait->part, wait->part.woken_ns < ns ? wait->part.woken_ns : ns);
	wait->part.who = wait->part.waker = NULL;
	wait->part.woken_ns = woken;
	return status < 0 ? status : ky_tell(teller, wait->part, ns);
}

static int causes_blocked_tell_irq(struct ky_teller *teller, struct causes_blocked *wait,
				   int64_t ns)
{
	enum ky_cause cause = causes_blocked_by_line(wait->line);
	const struct ky_disk_run *run = NULL;

	if (cause == KY_CAUSE_DEVICE || cause == KY_CAUSE_DISK)
		run = causes_blocked_request(teller->causes, wait->line, wait->stretch->end_ns);
	if (run && run->thread == teller->thread) {
		wait->part.cause = KY_CAUSE_DISK;
		wait->part.disk = run->disk;
		return ky_tell_disk(teller, wait->part, wait->stretch, ns);
	}
	if (run)
		return causes_blocked_tell_request(teller, wait, run, ns);
	if (cause == KY_CAUSE_NETWORK)
		return causes_blocked_tell_network(teller, wait, ns);
	wait->part.cause = cause;
	return ky_tell(teller, wait->part, ns);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* By the call that the thread is in. KY_CAUSE_UNKNOWN: the call alone does not tell. */
static enum ky_cause causes_blocked_by_call(const struct ky_teller *teller,
					    const struct ky_stretch *stretch,
					    const struct ky_track_call *call)
{
	enum ky_call_aspect aspect = ky_call_aspect(teller->causes, call->syscall);

	if (ky_wait_is_interrupted(teller->track, stretch, call))
		return KY_CAUSE_SIGNAL;
	if (aspect == KY_CALL_SLEEP || (aspect == KY_CALL_POLL && call->done && call->ret == 0))
		return KY_CAUSE_TIMER;
	if (call->file && strstr(call->file->name, "[timerfd]"))
		return KY_CAUSE_TIMER;
	if (call->file && call->file->kind == KY_FILE_PIPE)
		return KY_CAUSE_PIPE;
	if (call->file && call->file->kind == KY_FILE_NET)
		return KY_CAUSE_NETWORK;
	return KY_CAUSE_UNKNOWN;
}

/* A page fault: it waits, and not in a call. A kernel thread, or one whose calls are not known, may wait for anything. */
static bool causes_blocked_is_fault(const struct ky_teller *teller, int64_t ns)
{
	const struct ky_track *track = teller->track;
	size_t i;

	if (!track->calls.len || teller->thread->ppid == 2 || ky_track_call_at(track, ns))
		return false;
	if (!(teller->causes->abilities & KY_CAN_FAULT))
		return true;
	i = ky_track_find(track, ns - 1); /* the run before: the fault is its last deed */
	return i < track->stretches.len &&
	       ky_track_faults(track, track->stretches.data[i].begin_ns, ns);
}

static int causes_blocked_tell_rest(struct ky_teller *teller, struct causes_blocked *wait,
				    int64_t ns)
{
	wait->part.cause = KY_CAUSE_BLOCKED;
	if (wait->part.waker) {
		wait->part.cause = KY_CAUSE_THREAD;
		wait->part.who = wait->part.waker;
	}
	if (wait->part.in_fault)
		wait->part.cause = KY_CAUSE_FAULT;
	/* Requests of its own that it may wait for. */
	if (wait->stretch->kind == KY_STRETCH_DISK)
		return ky_tell_disk(teller, wait->part, wait->stretch, ns);
	return ky_tell(teller, wait->part, ns);
}

/* The state of the switch says so. Who lets it go on, wakes it: by SIGCONT, or as its debugger. */
static int causes_blocked_tell_stopped(struct ky_teller *teller, struct causes_blocked *wait,
				       int64_t ns)
{
	if (wait->call && !wait->call->unsure)
		wait->part.syscall = wait->call->syscall;
	wait->part.cause = KY_CAUSE_STOPPED;
	wait->part.waker = ky_stretch_waker(teller->causes, wait->stretch);
	wait->part.who = wait->part.waker;
	wait->part.woken_ns = wait->stretch->end_ns;
	return ky_tell(teller, wait->part, ns);
}

int ky_tell_blocked(struct ky_teller *teller, const struct ky_stretch *stretch, int64_t ns)
{
	struct causes_blocked wait = {
		.stretch = stretch,
		.call = ky_track_call_at(teller->track, stretch->begin_ns),
		.line = stretch->line ? ky_model_irq_line(teller->causes->model, stretch->line - 1)
				      : NULL,
		.part = ky_part_of(teller, KY_CAUSE_BLOCKED),
	};
	enum ky_cause cause = KY_CAUSE_UNKNOWN;

	if (wait.call && wait.call->unsure)
		wait.call = NULL;
	if (stretch->kind == KY_STRETCH_OTHER && teller->thread->ppid != 2)
		return causes_blocked_tell_stopped(teller, &wait, ns);
	wait.part.in_fault = !wait.call && causes_blocked_is_fault(teller, stretch->begin_ns);
	if (wait.call) {
		wait.part.syscall = wait.call->syscall;
		wait.part.file = wait.call->file;
		if (ky_call_aspect(teller->causes, wait.call->syscall) == KY_CALL_FUTEX)
			return ky_tell_futex(teller, stretch, wait.call, ns);
		cause = causes_blocked_by_call(teller, stretch, wait.call);
	}
	wait.part.line = wait.line;
	wait.part.waker = ky_stretch_waker(teller->causes, stretch);
	wait.part.doubtful = wait.part.waker && ky_waker_is_doubtful(teller->causes, stretch,
								     teller->track, wait.call);
	wait.part.woken_ns = stretch->end_ns;
	if (cause == KY_CAUSE_UNKNOWN && wait.line)
		return causes_blocked_tell_irq(teller, &wait, ns);
	if (cause == KY_CAUSE_UNKNOWN)
		return causes_blocked_tell_rest(teller, &wait, ns);
	if (cause == KY_CAUSE_NETWORK && wait.line)
		return causes_blocked_tell_network(teller, &wait, ns);
	wait.part.cause = cause;
	if (cause == KY_CAUSE_TIMER)
		wait.part.waker = NULL;
	else if (wait.line)
		wait.part.waker = causes_blocked_sender(teller, stretch);
	wait.part.who = wait.part.waker;
	return ky_tell(teller, wait.part, ns);
}
