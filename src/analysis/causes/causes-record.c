/* SPDX-License-Identifier: MIT */
/* Causes: what the model tells in a pass, kept by thread, CPU and device. */
#include "analysis/causes/causes-internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const keys[] = {
#define KY_CAUSE_KEY(name, key, text) [KY_CAUSE_##name] = key,
	KY_CAUSE_LIST(KY_CAUSE_KEY)
#undef KY_CAUSE_KEY
};

static const char *const texts[] = {
#define KY_CAUSE_TEXT(name, key, text) [KY_CAUSE_##name] = text,
	KY_CAUSE_LIST(KY_CAUSE_TEXT)
#undef KY_CAUSE_TEXT
};

const char *ky_cause_key(enum ky_cause cause)
{
	return keys[cause];
}

const char *ky_cause_text(enum ky_cause cause)
{
	return texts[cause];
}

/* Element @index of a vector, which grows with empty ones. NULL: out of memory. */
#define causes_record_at(vec, index)                                                              \
	({                                                                                        \
		__typeof__((vec)->data) at_ = NULL;                                               \
		if ((index) < (vec)->len || ky_vec_reserve(vec, (index) + 1 - (vec)->len) == 0) { \
			if ((index) >= (vec)->len) {                                              \
				memset((vec)->data + (vec)->len, 0,                               \
				       ((index) + 1 - (vec)->len) * sizeof(*(vec)->data));        \
				(vec)->len = (index) + 1;                                         \
			}                                                                         \
			at_ = &(vec)->data[index];                                                \
		}                                                                                 \
		at_;                                                                              \
	})

static struct ky_track *causes_record_track(struct ky_causes *causes,
					    const struct ky_thread *thread)
{
	size_t index = thread->index;

	return causes_record_at(&causes->tracks, index);
}

/* Is there room for @n more records, at @ns? */
static bool causes_record_rooms(struct ky_causes *causes, size_t n, int64_t ns)
{
	if (n <= KY_CAUSES_MAX - causes->n) {
		causes->n += n;
		return true;
	}
	if (causes->full_ns > ns)
		causes->full_ns = ns;
	return false;
}

static bool causes_record_room(struct ky_causes *causes, int64_t ns)
{
	return causes_record_rooms(causes, 1, ns);
}

bool ky_causes_is_full(const struct ky_causes *causes, int64_t *since_ns)
{
	*since_ns = causes->full_ns;
	return causes->full_ns != INT64_MAX;
}

/* ---- threads ---------------------------------------------------------------------------- */

/* What the thread was known to do before is not told anew. */
static int causes_record_stretch(struct ky_causes *causes, const struct ky_thread *thread,
				 struct ky_stretch stretch)
{
	struct ky_track *track = causes_record_track(causes, thread);
	struct ky_stretch *last;

	if (!track)
		return KYMO_E_MEMORY;
	last = track->stretches.len ? ky_vec_last(&track->stretches) : NULL;
	if (last && stretch.begin_ns < last->end_ns)
		stretch.begin_ns = last->end_ns;
	if (stretch.begin_ns >= stretch.end_ns)
		return 0;
	if (last && last->end_ns == stretch.begin_ns && last->kind == stretch.kind &&
	    last->kind == KY_STRETCH_RUN && last->cpu == stretch.cpu) {
		last->end_ns = stretch.end_ns;
		return 0;
	}
	return causes_record_room(causes, stretch.end_ns) ? ky_vec_push(&track->stretches, stretch)
							  : 0;
}

static int causes_record_on_off(void *data, const struct ky_time_off *time)
{
	static const uint8_t kinds[] = {[KY_OFF_SLEEP] = KY_STRETCH_SLEEP,
					[KY_OFF_DISK] = KY_STRETCH_DISK,
					[KY_OFF_OTHER] = KY_STRETCH_OTHER};
	struct ky_stretch stretch = {.begin_ns = time->begin_ns, .end_ns = time->end_ns};

	if (time->kind == KY_OFF_UNKNOWN)
		return 0;
	stretch.kind = kinds[time->kind];
	if (time->kind == KY_OFF_READY)
		stretch.kind = time->thread->wait.kind == KY_WAIT_PREEMPTED ? KY_STRETCH_PREEMPTED
									    : KY_STRETCH_READY;
	if (time->woken) {
		stretch.woken = true;
		stretch.waker = time->woken->waker;
		stretch.line = time->woken->irq ? time->woken->irq->index + 1 : 0;
	}
	return causes_record_stretch(data, time->thread, stretch);
}

static int causes_record_on_migrated(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_causes *causes = data;
	struct ky_track *track = causes_record_track(causes, thread);

	if (!track)
		return KYMO_E_MEMORY;
	return causes_record_room(causes, ns)
		       ? ky_vec_push(&track->moves, (struct ky_move){ns, thread->cpu})
		       : 0;
}

static int causes_record_on_exit(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_track *track = causes_record_track(data, thread);

	if (!track)
		return KYMO_E_MEMORY;
	track->exit_ns = ns;
	return 0;
}

static int causes_record_on_memory(void *data, const struct ky_memory *memory)
{
	struct ky_causes *causes = data;
	struct ky_track *track;

	if (memory->kind != KY_MEMORY_FAULT || !memory->thread)
		return 0;
	track = causes_record_track(causes, memory->thread);
	if (!track)
		return KYMO_E_MEMORY;
	return causes_record_room(causes, memory->ns) ? ky_vec_push(&track->faults, memory->ns) : 0;
}

/* ---- system calls ------------------------------------------------------------------------ */

static enum ky_call_aspect causes_record_aspect(const char *name)
{
	static const struct {
		const char *name;
		enum ky_call_aspect aspect;
	} known[] = {
		{"futex", KY_CALL_FUTEX},	  {"futex_time64", KY_CALL_FUTEX},
		{"nanosleep", KY_CALL_SLEEP},	  {"clock_nanosleep", KY_CALL_SLEEP},
		{"poll", KY_CALL_POLL},		  {"ppoll", KY_CALL_POLL},
		{"select", KY_CALL_POLL},	  {"pselect6", KY_CALL_POLL},
		{"epoll_wait", KY_CALL_POLL},	  {"epoll_pwait", KY_CALL_POLL},
		{"execve", KY_CALL_EXEC},	  {"execveat", KY_CALL_EXEC},
		{"epoll_pwait2", KY_CALL_POLL},	  {"clock_nanosleep_time64", KY_CALL_SLEEP},
		{"semtimedop", KY_CALL_TIMED},	  {"rt_sigtimedwait", KY_CALL_TIMED},
		{"recvmmsg", KY_CALL_TIMED},	  {"io_getevents", KY_CALL_TIMED},
		{"futex_wait", KY_CALL_TIMED},	  {"futex_waitv", KY_CALL_TIMED},
		{"mq_timedsend", KY_CALL_TIMED},  {"mq_timedreceive", KY_CALL_TIMED},
		{"io_pgetevents", KY_CALL_TIMED}, {"io_uring_enter", KY_CALL_TIMED},
	};

	name += strncmp(name, "compat_", 7) == 0 ? 7 : 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(name, known[i].name) == 0)
			return known[i].aspect;
	}
	return KY_CALL_PLAIN;
}

enum ky_call_aspect ky_call_aspect(const struct ky_causes *causes, uint32_t syscall)
{
	return syscall < causes->aspects.len && causes->aspects.data[syscall]
		       ? causes->aspects.data[syscall] - 1
		       : KY_CALL_PLAIN;
}

int64_t ky_track_program_ns(const struct ky_causes *causes, const struct ky_track *track)
{
	for (size_t i = track->calls.len; i-- > 0;) {
		const struct ky_track_call *call = &track->calls.data[i];

		if (call->done && call->ret == 0 && call->begin_ns != INT64_MIN &&
		    ky_call_aspect(causes, call->syscall) == KY_CALL_EXEC)
			return call->begin_ns;
	}
	return INT64_MIN;
}

/* Looks at it, where that was not done yet. 0 or KYMO_E_MEMORY. */
static int causes_record_look(struct ky_causes *causes, uint32_t syscall)
{
	uint8_t *aspect;

	if (syscall == KY_NO_SYSCALL || syscall >= ky_model_n_syscalls(causes->model))
		return 0;
	aspect = causes_record_at(&causes->aspects, (size_t)syscall);
	if (aspect && !*aspect)
		*aspect = 1 + causes_record_aspect(ky_model_syscall_name(causes->model, syscall));
	return aspect ? 0 : KYMO_E_MEMORY;
}

static bool causes_record_is_futex(const struct ky_causes *causes, uint32_t syscall)
{
	return ky_call_aspect(causes, syscall) == KY_CALL_FUTEX;
}

static int causes_record_on_call_begin(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_causes *causes = data;
	struct ky_track *track = causes_record_track(causes, thread);
	const struct ky_syscall *syscall = &thread->syscall;
	bool is_futex = causes_record_look(causes, syscall->id) == 0 &&
			causes_record_is_futex(causes, syscall->id);
	struct ky_track_call call = {
		.begin_ns = ns,
		.end_ns = INT64_MAX,
		.file = syscall->file,
		.syscall = syscall->id,
		.address = is_futex ? (uint64_t)syscall->args[0] : 0,
	};

	if (!track)
		return KYMO_E_MEMORY;
	if (!causes_record_room(causes, ns))
		return 0;
	return ky_vec_push(&track->calls, call);
}

/* When a call that is over ended, as far as is known. */
static int64_t causes_record_call_end(const struct ky_call *call)
{
	switch (call->outcome) {
	case KY_CALL_DONE:
	case KY_CALL_HEADLESS:
	case KY_CALL_BIRTH:
	case KY_CALL_TORN:
		return call->end_ns;
	case KY_CALL_NO_RETURN: /* soon after its begin, as rt_sigreturn does */
		return call->begin_ns;
	default:
		return INT64_MAX;
	}
}

static int causes_record_on_call(void *data, const struct ky_call *call)
{
	struct ky_causes *causes = data;
	struct ky_track *track = causes_record_track(causes, call->thread);
	struct ky_track_call *last;
	int64_t end = causes_record_call_end(call);

	if (!track)
		return KYMO_E_MEMORY;
	last = track->calls.len ? ky_vec_last(&track->calls) : NULL;
	if (!last || last->end_ns != INT64_MAX || last->begin_ns != call->begin_ns) {
		struct ky_track_call headless = {.begin_ns = INT64_MIN, .syscall = call->syscall};

		/* Only the first one of all may have begun at any time before. */
		if (last || call->begin_ns != INT64_MIN || end == INT64_MIN ||
		    !causes_record_room(causes, end))
			return 0;
		if (ky_vec_push(&track->calls, headless) < 0)
			return KYMO_E_MEMORY;
		last = ky_vec_last(&track->calls);
	}
	last->end_ns = end == INT64_MIN ? INT64_MAX : end;
	last->done = call->outcome == KY_CALL_DONE && call->has_ret;
	last->ret = call->ret;
	last->unsure = call->outcome == KY_CALL_TORN;
	return 0;
}

/* The model follows files only for listeners that have this hook. */
static int causes_record_on_io(void *data, const struct ky_io *io)
{
	(void)data;
	(void)io;
	return 0;
}

static int causes_record_on_lock_wait(void *data, const struct ky_lock_wait *wait)
{
	struct ky_causes *causes = data;
	struct ky_track *track = causes_record_track(causes, wait->call->thread);

	if (!track)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < wait->n_parts; i++) {
		const struct ky_lock_part *part = &wait->parts[i];
		struct ky_track_lock lock = {part->begin_ns, part->end_ns, wait->lock,
					     part->hold ? part->hold->thread : NULL, part->is_free};

		if (lock.begin_ns < lock.end_ns && causes_record_room(causes, lock.end_ns) &&
		    ky_vec_push(&track->locks, lock) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

/* ---- CPUs -------------------------------------------------------------------------------- */

static int causes_record_lane_run(struct ky_causes *causes, const struct ky_cpu *cpu,
				  const struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_lane *lane = causes_record_at(&causes->lanes, cpu->index);
	struct ky_lane_run *last;

	if (!lane)
		return KYMO_E_MEMORY;
	last = lane->runs.len ? ky_vec_last(&lane->runs) : NULL;
	if (last && last->end_ns == begin_ns && last->thread == thread) {
		last->end_ns = end_ns;
		return 0;
	}
	if (!causes_record_room(causes, end_ns))
		return 0;
	return ky_vec_push(&lane->runs, (struct ky_lane_run){begin_ns, end_ns, thread, !thread});
}

static int causes_record_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
				struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_stretch stretch = {.begin_ns = begin_ns,
				     .end_ns = end_ns,
				     .kind = KY_STRETCH_RUN,
				     .cpu = (uint16_t)cpu->index};

	if (state == KY_CPU_UNKNOWN || cpu->index > UINT16_MAX)
		return 0;
	if (causes_record_lane_run(data, cpu, thread, begin_ns, end_ns) < 0)
		return KYMO_E_MEMORY;
	return thread ? causes_record_stretch(data, thread, stretch) : 0;
}

/*
 * The tail of the lane from @first on ran on top of @irq: what is between is its own. How many pieces are that? All
 * interrupts together have fewer than two for each, as each is between those of one other at most.
 */
static size_t causes_record_own(const struct ky_lane *lane, size_t first,
				const struct ky_lane_irq *irq)
{
	int64_t at = irq->begin_ns;
	size_t n = 0;

	for (size_t i = first; i < lane->irqs.len; i++) {
		n += at < lane->irqs.data[i].begin_ns;
		at = lane->irqs.data[i].end_ns;
	}
	return n + (at < irq->end_ns);
}

/* Puts these @n pieces there. From the last one to the first, as the tail moves back. */
static void causes_record_nest(struct ky_lane *lane, size_t first, const struct ky_lane_irq *irq,
			       size_t n)
{
	struct ky_lane_irq *irqs = lane->irqs.data;
	size_t to = lane->irqs.len + n;
	int64_t end = irq->end_ns;

	for (size_t from = lane->irqs.len;; from--) {
		int64_t begin = from > first ? irqs[from - 1].end_ns : irq->begin_ns;

		if (begin < end)
			irqs[--to] = (struct ky_lane_irq){begin, end, irq->line};
		if (from == first)
			break;
		irqs[--to] = irqs[from - 1];
		end = irqs[to].begin_ns;
	}
	lane->irqs.len += n;
}

static int causes_record_on_irq(void *data, const struct ky_irq *irq)
{
	struct ky_causes *causes = data;
	struct ky_lane *lane = causes_record_at(&causes->lanes, irq->cpu->index);
	struct ky_lane_irq own = {irq->begin_ns, irq->end_ns, irq->line};
	size_t first, n;

	if (!lane)
		return KYMO_E_MEMORY;
	if (own.begin_ns == INT64_MIN || own.begin_ns >= own.end_ns)
		return 0;
	for (first = lane->irqs.len; first > 0; first--) {
		if (lane->irqs.data[first - 1].begin_ns < own.begin_ns)
			break;
	}
	if (first && lane->irqs.data[first - 1].end_ns > own.begin_ns)
		own.begin_ns = lane->irqs.data[first - 1].end_ns;
	n = own.begin_ns < own.end_ns ? causes_record_own(lane, first, &own) : 0;
	if (!n || !causes_record_rooms(causes, n, own.end_ns))
		return 0;
	if (ky_vec_reserve(&lane->irqs, n) < 0)
		return KYMO_E_MEMORY;
	causes_record_nest(lane, first, &own, n);
	return 0;
}

/* ---- devices ------------------------------------------------------------------------------ */

static int causes_record_place(struct ky_disk_lane *lane, uint32_t place, uint64_t ns)
{
	if (lane->longest_ns < ns)
		lane->longest_ns = ns;
	return ky_vec_push(&lane->places, place);
}

static int causes_record_disk(struct ky_causes *causes, const struct ky_request *request,
			      bool is_flush)
{
	struct ky_disk_lane *lane = causes_record_at(&causes->disks, request->disk->index);
	struct ky_track *track =
		request->thread ? causes_record_track(causes, request->thread) : NULL;
	struct ky_disk_run run = {request->queue_ns, request->issue_ns, request->end_ns,
				  request->disk,     request->thread,	is_flush};
	int64_t begin = run.queue_ns != INT64_MIN ? run.queue_ns : run.issue_ns;
	uint32_t place = (uint32_t)causes->requests.len;
	uint64_t ns = (uint64_t)run.end_ns - (uint64_t)begin;

	if (!lane || (request->thread && !track))
		return KYMO_E_MEMORY;
	if (begin == INT64_MIN || begin > run.end_ns || !causes_record_room(causes, run.end_ns))
		return 0;
	/* Times of several CPUs may go back a little; the order is needed. */
	if (place && run.end_ns < causes->requests.data[place - 1].end_ns)
		return 0;
	if (ky_vec_push(&causes->requests, run) < 0 || causes_record_place(lane, place, ns) < 0)
		return KYMO_E_MEMORY;
	return track ? causes_record_place(&track->requests, place, ns) : 0;
}

static int causes_record_on_request(void *data, const struct ky_request *request)
{
	return causes_record_disk(data, request, false);
}

static int causes_record_on_flush(void *data, const struct ky_request *flush)
{
	return causes_record_disk(data, flush, true);
}

static int causes_record_on_tcp(void *data, const struct ky_tcp_seen *seen)
{
	struct ky_causes *causes = data;

	return causes_record_room(causes, seen->ns) ? ky_tcp_record(&causes->tcp, seen) : 0;
}

static int causes_record_on_fs(void *data, const struct ky_fs_seen *seen)
{
	struct ky_causes *causes = data;
	struct ky_track *track = causes_record_track(causes, seen->thread);

	if (!track)
		return KYMO_E_MEMORY;
	return causes_record_room(causes, seen->end_ns) ? ky_vec_push(&track->steps, *seen) : 0;
}

/* ---- the whole ---------------------------------------------------------------------------- */

struct ky_causes *ky_causes_new(struct ky_model *model)
{
	struct ky_causes *causes = calloc(1, sizeof(*causes));
	const struct ky_listener listener = {
		.data = causes,
		.ran = causes_record_on_ran,
		.migrated = causes_record_on_migrated,
		.thread_exit = causes_record_on_exit,
		.call_begin = causes_record_on_call_begin,
		.call = causes_record_on_call,
		.off = causes_record_on_off,
		.io = causes_record_on_io,
		.lock_wait = causes_record_on_lock_wait,
		.irq = causes_record_on_irq,
		.request = causes_record_on_request,
		.flush = causes_record_on_flush,
		.tcp = causes_record_on_tcp,
		.fs = causes_record_on_fs,
		.memory = causes_record_on_memory,
	};

	if (!causes)
		return NULL;
	causes->model = model;
	causes->full_ns = INT64_MAX;
	causes->abilities = ky_model_abilities(model);
	if (ky_model_listen(model, &listener) == 0)
		return causes;
	ky_causes_free(causes);
	return NULL;
}

void ky_causes_free(struct ky_causes *causes)
{
	if (!causes)
		return;
	ky_vec_foreach(&causes->tracks, track) {
		ky_vec_fini(&track->stretches);
		ky_vec_fini(&track->calls);
		ky_vec_fini(&track->locks);
		ky_vec_fini(&track->faults);
		ky_vec_fini(&track->requests.places);
		ky_vec_fini(&track->moves);
		ky_vec_fini(&track->steps);
	}
	ky_vec_foreach(&causes->lanes, lane) {
		ky_vec_fini(&lane->runs);
		ky_vec_fini(&lane->irqs);
	}
	ky_vec_foreach(&causes->disks, disk)
		ky_vec_fini(&disk->places);
	ky_vec_fini(&causes->tracks);
	ky_vec_fini(&causes->aspects);
	ky_vec_fini(&causes->lanes);
	ky_vec_fini(&causes->disks);
	ky_vec_fini(&causes->requests);
	ky_tcp_fini(&causes->tcp);
	free(causes);
}
