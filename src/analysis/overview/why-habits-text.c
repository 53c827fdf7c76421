/* SPDX-License-Identifier: MIT */
/* Report why: habits as sentences. */
#include "analysis/overview/why-habits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/state/errno-name.h"
#include "analysis/tables/render-cell.h"

static void why_habits_text_rate(struct ky_strbuf *out, double rate)
{
	ky_strbuf_addf(out, "%.*f per second", rate < 9.95 ? 1 : 0, rate);
}

static void why_habits_text_mib(struct ky_strbuf *out, uint64_t pages)
{
	ky_strbuf_addf(out, "%.1f MiB", (double)pages / 256);
}

/* "That took 3 ms, 40 % of the time in which it ran." */
static void why_habits_text_cost(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	ky_strbuf_adds(out, ". That took ");
	ky_render_duration(out, (double)it->habit.ns);
	if (it->ran_ns) {
		ky_strbuf_adds(out, ", of ");
		ky_render_duration(out, (double)it->ran_ns);
		ky_strbuf_adds(out, " in which it ran");
	}
	ky_strbuf_addc(out, '.');
}

/* What has run out. NULL: nothing that the error tells. */
static const char *why_habits_text_short(int error)
{
	switch (error) {
	case EMFILE:
		return "the process has as many files open as it may (RLIMIT_NOFILE): it may not "
		       "close them all";
	case ENFILE:
		return "the machine has as many files open as it can (fs.file-max)";
	case ENOSPC:
		return "no space is left";
	case EDQUOT:
		return "the user's quota is used up";
	case ENOMEM:
		return "the kernel has no memory for that, or a limit is reached";
	case ENOBUFS:
		return "the network has no buffers left";
	case EIO:
		return "the device failed";
	}
	return NULL;
}

static void why_habits_text_failing(struct ky_strbuf *out, const struct ky_why_habit *it,
				    const char *call)
{
	const char *error = ky_errno_name(it->habit.code);

	ky_strbuf_addf(out,
		       " called %s %" PRIu64 " times, and %" PRIu64 " of the calls failed with ",
		       call, it->calls, it->habit.n);
	if (error)
		ky_strbuf_adds(out, error);
	else
		ky_strbuf_addf(out, "error %d", (int)it->habit.code);
	if (why_habits_text_short(it->habit.code))
		ky_strbuf_addf(out, ": %s", why_habits_text_short(it->habit.code));
	why_habits_text_cost(out, it);
}

static void why_habits_text_empty(struct ky_strbuf *out, const struct ky_why_habit *it,
				  const char *call)
{
	ky_strbuf_addf(out, " called %s %" PRIu64 " times (", call, it->habit.n);
	why_habits_text_rate(out, it->rate);
	ky_strbuf_adds(out, ") without waiting");
	if (it->habit.code == KY_HABIT_OF_POLL)
		ky_strbuf_adds(
			out,
			", as files were ready, and made no other call in between: a file may stay "
			"ready (EPOLLOUT, or unread data)");
	else
		ky_strbuf_adds(out, strcmp(call, "sched_yield") == 0
					    ? ": it gives the CPU away, and takes it again"
					    : ", and got nothing: it asks again and again");
	why_habits_text_cost(out, it);
}

static void why_habits_text_accepts(struct ky_strbuf *out, const struct ky_why_habit *it,
				    const char *call)
{
	ky_strbuf_addf(out,
		       " called %s %" PRIu64 " times, and %" PRIu64 " of the calls got nothing",
		       call, it->calls, it->habit.n);
	ky_strbuf_adds(
		out,
		": more threads wake for a connection than there are connections (EPOLLEXCLUSIVE "
		"wakes one).");
}

static void why_habits_text_timeouts(struct ky_strbuf *out, const struct ky_why_habit *it,
				     const char *call)
{
	ky_strbuf_addf(out, " waited %" PRIu64 " times in %s for what did not come, ", it->habit.n,
		       call);
	ky_render_duration(out, (double)it->habit.ns / (double)it->habit.n);
	ky_strbuf_adds(out, " in the mean: ");
	ky_why_add_share(out, it->habit.ns, it->seen_ns);
	if (it->habit.code != KY_HABIT_OF_POLL) {
		ky_strbuf_adds(
			out, " of its time. The calls ended with EAGAIN, by the socket's timeout.");
		return;
	}
	ky_strbuf_addf(out,
		       " of its time. The calls ended at their timeout; %" PRIu64
		       " other calls of %s got something.",
		       it->calls - it->habit.n, call);
}

static void why_habits_text_small(struct ky_strbuf *out, const struct ky_why_habit *it,
				  const char *call)
{
	ky_strbuf_addf(out, " called %s %" PRIu64 " times for %.1f bytes in the mean", call,
		       it->habit.n, (double)it->habit.more / (double)it->habit.n);
	if (it->habit.file)
		ky_strbuf_addf(out, ", first of %s", it->habit.file->name);
	ky_strbuf_adds(out, ": each call costs more than its bytes");
	why_habits_text_cost(out, it);
}

static void why_habits_text_herd(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	ky_strbuf_addf(out,
		       " woke %.1f threads in the mean with each of %" PRIu64 " calls of futex (",
		       (double)it->habit.more / (double)it->habit.n, it->habit.n);
	why_habits_text_rate(out, it->rate);
	ky_strbuf_adds(out, "): many threads wake for one event.");
}

/* A start that runs for so long copies much. */
#define WHY_START_NS 1000000

/* How long the starters ran in the calls, for each start; 0: not long. */
static uint64_t why_habits_text_start_ns(const struct ky_model *model,
					 const struct ky_why_losses *losses,
					 const struct ky_why_habit *it)
{
	static const char *const names[] = {"clone", "clone3", "fork"};
	uint64_t ran_ns = 0;

	for (size_t i = 0; i < losses->calls.len; i++) {
		const char *call = ky_model_syscall_name(model, (uint32_t)i);

		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			ran_ns += strcmp(call, names[k]) == 0 ? losses->calls.data[i] : 0;
	}
	ran_ns = it->starts ? ran_ns / it->starts : 0;
	return ran_ns < WHY_START_NS ? 0 : ran_ns;
}

static void why_habits_text_copies(struct ky_strbuf *out, uint64_t start_ns)
{
	ky_strbuf_adds(out, " The call that starts one ran ");
	ky_render_duration(out, (double)start_ns);
	ky_strbuf_adds(out, " in the mean: that is long. The process may have much memory, whose "
			    "page tables fork() copies (vfork() and posix_spawn() do not).");
}

static void why_habits_text_starts(struct ky_strbuf *out, const struct ky_model *model,
				   const struct ky_why_habit *it,
				   const struct ky_why_losses *losses)
{
	uint64_t start_ns = why_habits_text_start_ns(model, losses, it);

	ky_strbuf_addf(out, " started %" PRIu64 " processes", it->habit.n - it->habit.more);
	if (it->habit.more)
		ky_strbuf_addf(out, " and %" PRIu64 " threads", it->habit.more);
	ky_strbuf_adds(out, " (");
	why_habits_text_rate(out, it->rate);
	ky_strbuf_adds(out, "), such as ");
	ky_why_add_thread(out, it->habit.by);
	ky_strbuf_adds(out, ". They ran ");
	ky_render_duration(out, (double)it->habit.ns);
	ky_strbuf_adds(out, ", ");
	ky_why_add_share(out, it->habit.ns, losses->total_ns);
	ky_strbuf_adds(out, losses->chosen ? " as much as the whole time that was selected."
					   : " of the time in which threads ran or lost time.");
	if (start_ns)
		why_habits_text_copies(out, start_ns);
}

static void why_habits_text_moves(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	ky_strbuf_addf(out, " moved to another CPU %" PRIu64 " times (", it->habit.n);
	why_habits_text_rate(out, it->rate);
	ky_strbuf_adds(out, ") ");
	if (it->habit.code == KY_MIGRATION_BALANCER)
		ky_strbuf_adds(out, "while it could run, as the load balancer does");
	else
		ky_strbuf_adds(out, "by calls of sched_setaffinity()");
	if (it->habit.by) {
		ky_strbuf_adds(out, " of ");
		ky_why_add_thread(out, it->habit.by);
	}
	ky_strbuf_adds(out, ". Each move costs a thread its caches; how much, events do not tell.");
}

static void why_habits_text_signals(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	const char *name = sigabbrev_np(it->habit.code);

	ky_strbuf_addf(out, " got %" PRIu64 " signals (", it->habit.n);
	why_habits_text_rate(out, it->rate);
	if (name)
		ky_strbuf_addf(out, ") SIG%s ", name);
	else
		ky_strbuf_addf(out, ") of number %d ", (int)it->habit.code);
	if (it->habit.by) {
		ky_strbuf_adds(out, "from ");
		ky_why_add_thread(out, it->habit.by);
	} else {
		ky_strbuf_adds(out, "from a timer or another part of the kernel");
	}
	if (it->interrupted)
		ky_strbuf_addf(out, ". %" PRIu64 " calls ended with EINTR", it->interrupted);
	ky_strbuf_addc(out, '.');
}

static void why_habits_text_pages(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	ky_strbuf_adds(out, " got ");
	why_habits_text_mib(out, it->habit.more);
	ky_strbuf_adds(out, " of memory, and gave ");
	why_habits_text_mib(out, it->habit.n);
	ky_strbuf_adds(out,
		       " back with munmap, madvise or brk: it gets new memory again and again, and "
		       "the kernel clears each page. Giving it back took ");
	ky_render_duration(out, (double)it->habit.ns);
	ky_strbuf_addc(out, '.');
}

static void why_habits_text_reclaims(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	ky_strbuf_addf(out, " had to free memory itself %" PRIu64 " times (", it->habit.n);
	why_habits_text_rate(out, it->rate);
	ky_strbuf_adds(out, "), ");
	why_habits_text_mib(out, it->habit.more);
	ky_strbuf_adds(out, " in all, before the kernel gave it some: ");
	ky_strbuf_adds(out, it->habit.code ? "its control group has reached its limit (memory.max)"
					   : "the machine has no free memory");
	ky_strbuf_adds(out, ". That took ");
	ky_render_duration(out, (double)it->habit.ns);
	ky_strbuf_adds(out, ", with its waits; the thread ran ");
	ky_render_duration(out, (double)it->ran_ns);
	ky_strbuf_adds(out, " in all.");
}

static void why_habits_text_delayed(struct ky_strbuf *out, const struct ky_why_habit *it,
				    const char *call)
{
	ky_strbuf_addf(out,
		       " waited 39 ms to 48 ms in each of %" PRIu64 " of %" PRIu64 " calls of %s",
		       it->habit.n, it->calls, call);
	if (it->habit.file)
		ky_strbuf_addf(out, ", first of %s", it->habit.file->name);
	ky_strbuf_adds(
		out, ". TCP delays an acknowledgement for 40 ms: a sender of small pieces may wait "
		     "for it (TCP_NODELAY, or one call for all pieces, avoids that).");
}

static void why_habits_text_syncs(struct ky_strbuf *out, const struct ky_why_habit *it,
				  const char *call)
{
	ky_strbuf_addf(out, " called %s %" PRIu64 " times (", call, it->habit.n);
	why_habits_text_rate(out, it->rate);
	ky_strbuf_adds(out, "), ");
	ky_render_duration(out, (double)it->habit.ns / (double)it->habit.n);
	ky_strbuf_adds(out, " in the mean: ");
	ky_why_add_share(out, it->habit.ns, it->seen_ns);
	ky_strbuf_adds(out, " of its time. Each call waits until the data is durable.");
}

static void why_habits_text_sleeps(struct ky_strbuf *out, const struct ky_why_habit *it,
				   const char *call)
{
	ky_strbuf_addf(out, " slept %" PRIu64 " times, ", it->habit.n);
	ky_render_duration(out, (double)it->habit.ns / (double)it->habit.n);
	ky_strbuf_addf(out, " in the mean, in %s: ", call);
	ky_why_add_share(out, it->habit.ns, it->seen_ns);
	ky_strbuf_adds(out, " of its time. It may look for work in place of waiting for it.");
	if (it->others)
		ky_strbuf_addf(out, " So may %zu other thread%s that sleep%s again and again.",
			       it->others, it->others > 1 ? "s" : "", it->others > 1 ? "" : "s");
}

void ky_why_habit_say(struct ky_strbuf *out, const struct ky_model *model,
		      const struct ky_why_losses *losses, const struct ky_why_habit *it)
{
	const char *call = it->habit.syscall == KY_NO_SYSCALL
				   ? ""
				   : ky_model_syscall_name(model, it->habit.syscall);

	ky_why_add_thread(out, it->habit.thread);
	if (it->habit.kind == KY_HABIT_FAILING)
		why_habits_text_failing(out, it, call);
	else if (it->habit.kind == KY_HABIT_EMPTY)
		why_habits_text_empty(out, it, call);
	else if (it->habit.kind == KY_HABIT_ACCEPTS)
		why_habits_text_accepts(out, it, call);
	else if (it->habit.kind == KY_HABIT_TIMEOUTS)
		why_habits_text_timeouts(out, it, call);
	else if (it->habit.kind == KY_HABIT_SMALL)
		why_habits_text_small(out, it, call);
	else if (it->habit.kind == KY_HABIT_HERD)
		why_habits_text_herd(out, it);
	else if (it->habit.kind == KY_HABIT_STARTS)
		why_habits_text_starts(out, model, it, losses);
	else if (it->habit.kind == KY_HABIT_MOVES)
		why_habits_text_moves(out, it);
	else if (it->habit.kind == KY_HABIT_SIGNALS)
		why_habits_text_signals(out, it);
	else if (it->habit.kind == KY_HABIT_PAGES)
		why_habits_text_pages(out, it);
	else if (it->habit.kind == KY_HABIT_RECLAIMS)
		why_habits_text_reclaims(out, it);
	else if (it->habit.kind == KY_HABIT_SYNCS)
		why_habits_text_syncs(out, it, call);
	else if (it->habit.kind == KY_HABIT_DELAYED)
		why_habits_text_delayed(out, it, call);
	else
		why_habits_text_sleeps(out, it, call);
}

const char *ky_why_habit_sure(const struct ky_model *model, const struct ky_why_losses *losses,
			      const struct ky_why_habit *it)
{
	switch (it->habit.kind) {
	case KY_HABIT_STARTS:
		return why_habits_text_start_ns(model, losses, it)
			       ? "certain that it started them, and how long the calls ran; what "
				 "the kernel did in them, events do not tell"
			       : "certain: events of the scheduler show it";
	case KY_HABIT_MOVES:
		return "certain: events of the scheduler show it";
	case KY_HABIT_SIGNALS:
		return "certain: events of signals show it";
	case KY_HABIT_PAGES:
		return "certain: events of pages show it; that it is the same memory, they do not";
	case KY_HABIT_RECLAIMS:
		return "certain: events of the kernel's memory show it";
	case KY_HABIT_DELAYED:
		return "possible: only the length of the waits says so";
	case KY_HABIT_TIMEOUTS:
		return it->habit.code == KY_HABIT_OF_POLL
			       ? "certain that nothing came in time; whether it should have, events do "
				 "not tell"
			       : "certain: entries and exits of the calls show it";
	case KY_HABIT_SLEEPS:
		return "possible: that it slept is certain; what for, events do not tell";
	default:
		return "certain: entries and exits of the calls show it";
	}
}

void ky_why_habit_more(struct ky_strbuf *out, const struct ky_why_habit *it)
{
	static const char *const reports[KY_HABIT_KINDS] = {
		[KY_HABIT_FAILING] = "syscalls -t syscalls -t log",
		[KY_HABIT_EMPTY] = "syscalls -t threads",
		[KY_HABIT_ACCEPTS] = "syscalls -t threads",
		[KY_HABIT_TIMEOUTS] = "syscalls -t threads -t log",
		[KY_HABIT_SMALL] = "io -t files",
		[KY_HABIT_HERD] = "locks",
		[KY_HABIT_STARTS] = "threads --group-by name -s threads",
		[KY_HABIT_MOVES] = "cpu -t migrations",
		[KY_HABIT_SIGNALS] = "signals -t signals",
		[KY_HABIT_PAGES] = "memory -t processes",
		[KY_HABIT_RECLAIMS] = "memory -t processes",
		[KY_HABIT_DELAYED] = "syscalls -t threads",
		[KY_HABIT_SYNCS] = "breakdown --of 'syscall:*sync*'",
		[KY_HABIT_SLEEPS] = "critical-path",
	};
	bool is_of_thread = it->habit.kind == KY_HABIT_MOVES || it->habit.kind == KY_HABIT_SLEEPS ||
			    it->habit.thread->pid < 0;

	ky_strbuf_addf(out, "kymo report %s", reports[it->habit.kind]);
	if (it->habit.kind == KY_HABIT_STARTS)
		return;
	ky_strbuf_addf(out, " --%s %d", is_of_thread ? "tid" : "pid",
		       (int)(is_of_thread ? it->habit.thread->tid : it->habit.thread->pid));
}
