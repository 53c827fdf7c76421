/* SPDX-License-Identifier: MIT */
/* Habits: calls that fail, that ask without waiting, that move a few bytes, that sleep again and again. */
#include "analysis/causes/causes-internal.h"
#include "analysis/causes/habits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/state/errno-name.h"

/* A call that is over so soon has not waited. */
#define CALLS_AT_ONCE_NS 100000
/* Without data, a socket has waited so long for its timeout. */
#define CALLS_TIMEOUT_NS 10000000
/* Reads and writes of so many bytes are small. */
#define CALLS_SMALL 64
/* A futex() that wakes so many. */
#define CALLS_HERD 4
/* TCP delays an acknowledgement for 40 ms at least, and a timer may be a few ms late. */
#define CALLS_DELAYED_NS      UINT64_C(39000000)
#define CALLS_DELAYED_MOST_NS UINT64_C(48000000)
/* ERESTARTSYS to ERESTART_RESTARTBLOCK */
#define CALLS_RESTART_FIRST 512
#define CALLS_RESTART_LAST  516

enum calls_class { CALLS_PLAIN, CALLS_MOVES, CALLS_GIVES, CALLS_YIELD, CALLS_SYNCS, CALLS_ACCEPTS };

struct calls_counts {
	uint64_t n, ns;
};

struct calls_pass {
	struct ky_habits *habits;
	const struct ky_focus *focus;
	const struct ky_causes *causes;
	const struct ky_thread *thread;
	struct calls_counts *counts; /* of this thread, by call */
	uint8_t *classes;	     /* by call: enum calls_class */
	size_t n_syscalls;
	int64_t first_ns, last_ns;	  /* of this thread's calls */
	const struct ky_track_call *last; /* the one before; NULL: none */
};

static enum calls_class habits_calls_class(const char *name)
{
	static const struct {
		const char *name;
		enum calls_class class;
	} known[] = {
		{"read", CALLS_MOVES},	   {"write", CALLS_MOVES},     {"pread64", CALLS_MOVES},
		{"pwrite64", CALLS_MOVES}, {"readv", CALLS_MOVES},     {"writev", CALLS_MOVES},
		{"sendto", CALLS_MOVES},   {"recvfrom", CALLS_MOVES},  {"munmap", CALLS_GIVES},
		{"madvise", CALLS_GIVES},  {"brk", CALLS_GIVES},       {"mremap", CALLS_GIVES},
		{"accept", CALLS_ACCEPTS}, {"accept4", CALLS_ACCEPTS}, {"sched_yield", CALLS_YIELD},
		{"fsync", CALLS_SYNCS},	   {"fdatasync", CALLS_SYNCS}, {"msync", CALLS_SYNCS},
		{"syncfs", CALLS_SYNCS},   {"sync", CALLS_SYNCS},
	};

	name += strncmp(name, "compat_", 7) == 0 ? 7 : 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(name, known[i].name) == 0)
			return known[i].class;
	}
	return CALLS_PLAIN;
}

static bool habits_calls_counts(const struct calls_pass *pass, const struct ky_track_call *call)
{
	return call->done && !call->unsure && call->begin_ns != INT64_MIN &&
	       call->begin_ns <= call->end_ns && call->end_ns >= pass->focus->begin_ns &&
	       call->end_ns <= pass->focus->end_ns && call->syscall < pass->n_syscalls;
}

/* What an error tells. */
static bool habits_calls_failed(const struct calls_pass *pass, const struct ky_track_call *call,
				uint64_t ns, struct ky_habit *habit)
{
	int error = (int)-call->ret;

	if (error == EINTR || (error >= CALLS_RESTART_FIRST && error <= CALLS_RESTART_LAST)) {
		habit->kind = KY_HABIT_INTERRUPTED;
		habit->syscall = KY_NO_SYSCALL;
		return true;
	}
	if (error == EAGAIN) {
		habit->kind = ns >= CALLS_TIMEOUT_NS			      ? KY_HABIT_TIMEOUTS
			      : pass->classes[call->syscall] == CALLS_ACCEPTS ? KY_HABIT_ACCEPTS
									      : KY_HABIT_EMPTY;
		return (ns < CALLS_AT_ONCE_NS || ns >= CALLS_TIMEOUT_NS) &&
		       ky_call_aspect(pass->causes, call->syscall) != KY_CALL_FUTEX;
	}
	habit->kind = KY_HABIT_FAILING;
	habit->code = error;
	return error != EINPROGRESS && error != ETIMEDOUT;
}

static bool habits_calls_slept(const struct ky_track_call *call, enum ky_call_aspect aspect,
			       uint64_t ns, struct ky_habit *habit)
{
	habit->kind = ns < CALLS_AT_ONCE_NS ? KY_HABIT_EMPTY : KY_HABIT_SLEEPS;
	if (aspect == KY_CALL_SLEEP)
		return ns >= CALLS_AT_ONCE_NS;
	return aspect == KY_CALL_POLL && call->ret == 0;
}

/* Files were ready at once, as at the same call before, and nothing came between the two. */
static bool habits_calls_stays_ready(const struct calls_pass *pass,
				     const struct ky_track_call *call, enum ky_call_aspect aspect,
				     uint64_t ns)
{
	return aspect == KY_CALL_POLL && call->ret > 0 && ns < CALLS_AT_ONCE_NS && pass->last &&
	       pass->last->done && pass->last->syscall == call->syscall && pass->last->ret > 0 &&
	       pass->last->ret <= INT32_MAX;
}

/* What the call is an example of. False: of nothing. */
static bool habits_calls_judge(const struct calls_pass *pass, const struct ky_track_call *call,
			       uint64_t ns, struct ky_habit *habit)
{
	enum ky_call_aspect aspect = ky_call_aspect(pass->causes, call->syscall);
	uint8_t class = pass->classes[call->syscall];

	if (ky_is_error(call->ret))
		return habits_calls_failed(pass, call, ns, habit);
	if (habits_calls_slept(call, aspect, ns, habit))
		return true;
	if (habits_calls_stays_ready(pass, call, aspect, ns)) {
		habit->kind = KY_HABIT_EMPTY;
		habit->code = KY_HABIT_OF_POLL;
		return true;
	}
	if (aspect == KY_CALL_FUTEX) {
		habit->kind = KY_HABIT_HERD;
		habit->more = (uint64_t)call->ret;
		return call->ret >= CALLS_HERD && call->ret < INT32_MAX;
	}
	if (class == CALLS_YIELD) {
		habit->kind = KY_HABIT_EMPTY;
		return ns < CALLS_AT_ONCE_NS;
	}
	if (class == CALLS_SYNCS) {
		habit->kind = KY_HABIT_SYNCS;
		return true;
	}
	if (class == CALLS_GIVES) {
		*habit = (struct ky_habit){.kind = KY_HABIT_PAGES,
					   .thread = pass->thread,
					   .syscall = KY_NO_SYSCALL,
					   .ns = ns};
		return true;
	}
	habit->kind = KY_HABIT_SMALL;
	habit->more = (uint64_t)call->ret;
	return class == CALLS_MOVES && call->ret > 0 && call->ret <= CALLS_SMALL &&
	       ns < CALLS_AT_ONCE_NS && (!call->file || call->file->kind != KY_FILE_NET);
}

/* What a call tells besides: a wait as long as a delayed acknowledgement, or up to its timeout. 0 or KYMO_E_MEMORY. */
static int habits_calls_add_wait(struct calls_pass *pass, const struct ky_track_call *call,
				 struct ky_habit habit)
{
	if (habit.ns >= CALLS_DELAYED_NS && habit.ns <= CALLS_DELAYED_MOST_NS && call->ret > 0 &&
	    call->file && call->file->kind == KY_FILE_NET) {
		habit.kind = KY_HABIT_DELAYED;
	} else if (habit.ns >= CALLS_TIMEOUT_NS && call->ret == 0 &&
		   ky_call_aspect(pass->causes, call->syscall) == KY_CALL_POLL) {
		habit.kind = KY_HABIT_TIMEOUTS;
		habit.code = KY_HABIT_OF_POLL;
	} else {
		return 0;
	}
	return ky_habits_add(pass->habits, &habit);
}

static int habits_calls_add(struct calls_pass *pass, const struct ky_track_call *call)
{
	uint64_t ns = (uint64_t)call->end_ns - (uint64_t)call->begin_ns;
	struct ky_habit habit = {.thread = pass->thread,
				 .syscall = call->syscall,
				 .file = call->file,
				 .n = 1,
				 .ns = ns};

	pass->counts[call->syscall].n++;
	pass->counts[call->syscall].ns += ns;
	if (pass->first_ns > call->begin_ns)
		pass->first_ns = call->begin_ns;
	pass->last_ns = call->end_ns;
	if (habits_calls_add_wait(pass, call, habit) < 0)
		return KYMO_E_MEMORY;
	if (!habits_calls_judge(pass, call, ns, &habit))
		return 0;
	return ky_habits_add(pass->habits, &habit);
}

/* Sums of the thread: its calls, and how long it was seen. */
static int habits_calls_end_thread(struct calls_pass *pass)
{
	int status = 0;

	for (size_t i = 0; i < pass->n_syscalls && status >= 0; i++) {
		struct ky_habit habit = {.kind = KY_HABIT_CALLS,
					 .thread = pass->thread,
					 .syscall = (uint32_t)i,
					 .n = pass->counts[i].n,
					 .ns = pass->counts[i].ns,
					 .threads = 1};

		if (!habit.n)
			continue;
		habit.more = (uint64_t)pass->last_ns - (uint64_t)pass->first_ns;
		status = ky_habits_add(pass->habits, &habit);
		pass->counts[i] = (struct calls_counts){0};
	}
	return status;
}

static int habits_calls_thread(struct calls_pass *pass, const struct ky_track *track)
{
	/* What was before is another program. */
	int64_t since_ns = ky_track_program_ns(pass->causes, track);
	int status = 0;

	pass->first_ns = INT64_MAX;
	pass->last = NULL;
	ky_vec_foreach(&track->calls, call) {
		if (status >= 0 && call->begin_ns > since_ns && habits_calls_counts(pass, call))
			status = habits_calls_add(pass, call);
		pass->last = call;
	}
	return status < 0 ? status : habits_calls_end_thread(pass);
}

int ky_habits_add_calls(struct ky_habits *habits, const struct ky_focus *focus,
			const struct ky_causes *causes)
{
	struct calls_pass pass = {.habits = habits, .focus = focus, .causes = causes};
	int status = 0;

	pass.n_syscalls = ky_model_n_syscalls(causes->model);
	pass.counts = calloc(pass.n_syscalls + 1, sizeof(*pass.counts));
	pass.classes = calloc(pass.n_syscalls + 1, sizeof(*pass.classes));
	if (!pass.counts || !pass.classes)
		status = KYMO_E_MEMORY;
	for (size_t i = 0; i < pass.n_syscalls && status >= 0; i++)
		pass.classes[i] = (uint8_t)habits_calls_class(
			ky_model_syscall_name(causes->model, (uint32_t)i));
	for (size_t t = 0; t < causes->tracks.len && status >= 0; t++) {
		pass.thread = ky_model_thread(causes->model, t);
		if (ky_focus_has_thread(focus, pass.thread))
			status = habits_calls_thread(&pass, &causes->tracks.data[t]);
	}
	free(pass.counts);
	free(pass.classes);
	return status;
}
