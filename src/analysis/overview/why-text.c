/* SPDX-License-Identifier: MIT */
/* Report why: losses as sentences. Each figure has its measure; a sentence says only what events support. */
#include "analysis/overview/why.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/tables/render-cell.h"

void ky_why_add_thread(struct ky_strbuf *out, const struct ky_thread *thread)
{
	ky_strbuf_addf(out, "%s (tid %d)", thread->comm[0] ? thread->comm : "?", (int)thread->tid);
}

void ky_why_add_share(struct ky_strbuf *out, uint64_t part, uint64_t whole)
{
	ky_strbuf_addf(out, "%.*f %%", ky_part(part, whole) < 0.0995 ? 1 : 0,
		       100 * ky_part(part, whole));
}

static void why_text_ns(struct ky_strbuf *out, uint64_t ns)
{
	ky_render_duration(out, (double)ns);
}

/* "a (tid 1)", "a (tid 1) and 3 other threads" */
static void why_text_victims(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	size_t n = loss->victims.list.len;

	ky_why_add_thread(out, loss->victims.list.data[0].thread);
	if (n > 1)
		ky_strbuf_addf(out, " and %zu other thread%s", n - 1, n > 2 ? "s" : "");
}

/* "x (tid 1) 40 %, y (tid 2) 20 %, 17 others 12 %": shares of the loss. */
static void why_text_culprits(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	uint64_t rest_ns = 0;
	size_t n = loss->culprits.list.len;

	for (size_t i = 0; i < n; i++) {
		const struct ky_why_sum *sum = &loss->culprits.list.data[i];

		if (i >= 3) {
			rest_ns += sum->ns;
			continue;
		}
		ky_strbuf_adds(out, i ? ", " : "");
		ky_why_add_thread(out, sum->thread);
		ky_strbuf_addc(out, ' ');
		ky_why_add_share(out, sum->ns, loss->ns);
	}
	if (n > 3) {
		ky_strbuf_addf(out, ", %zu other%s ", n - 3, n > 4 ? "s" : "");
		ky_why_add_share(out, rest_ns, loss->ns);
	}
}

static void why_text_call(struct ky_strbuf *out, const struct ky_breakdown *run, uint32_t syscall)
{
	if (syscall != KY_NO_SYSCALL)
		ky_strbuf_addf(out, " in %s", ky_model_syscall_name(run->model, syscall));
}

/* What a thread did, as a verb. */
static const char *why_text_verb(enum ky_cause cause)
{
	switch (cause) {
	case KY_CAUSE_RUN_USER:
		return "ran in user space";
	case KY_CAUSE_RUN_KERNEL:
		return "ran in the kernel";
	case KY_CAUSE_RUN:
		return "ran";
	case KY_CAUSE_PREEMPTED:
		return "was preempted";
	case KY_CAUSE_CPU_WAIT:
		return "waited for a CPU";
	case KY_CAUSE_IRQ:
		return "was interrupted";
	case KY_CAUSE_TIMER:
		return "slept";
	case KY_CAUSE_LOCK:
		return "waited for another lock";
	case KY_CAUSE_DISK_QUEUE:
	case KY_CAUSE_DISK_DEVICE:
	case KY_CAUSE_DISK_FLUSH:
	case KY_CAUSE_DISK:
		return "waited for a disk";
	case KY_CAUSE_NETWORK:
		return "waited for the network";
	case KY_CAUSE_SIGNAL:
		return "waited for a signal";
	case KY_CAUSE_FAULT:
		return "waited in a page fault";
	case KY_CAUSE_STOPPED:
		return "was stopped";
	case KY_CAUSE_UNKNOWN:
		return "did what is not known";
	default:
		return "waited";
	}
}

static void why_text_by(struct ky_strbuf *out, const struct ky_part_sum *sum)
{
	ky_strbuf_adds(out, " (by ");
	ky_why_add_thread(out, sum->like.who);
	ky_strbuf_addc(out, ')');
}

static void why_text_did(struct ky_strbuf *out, const struct ky_breakdown *run,
			 const struct ky_part_sum *sum)
{
	ky_strbuf_adds(out, why_text_verb(sum->like.cause));
	if (sum->like.cause != KY_CAUSE_PREEMPTED)
		why_text_call(out, run, sum->like.syscall);
	if (sum->like.who)
		why_text_by(out, sum);
	ky_strbuf_addc(out, ' ');
	why_text_ns(out, sum->total_ns);
}

/* So many deeds of a culprit are distinguished. */
#define WHY_DEEDS_MAX 64

struct why_deeds {
	struct ky_part_sum sums[WHY_DEEDS_MAX];
	size_t n;
};

/* Parts of which the sentence says the same are one. */
static void why_text_add_deed(struct why_deeds *deeds, const struct ky_part_sum *sum)
{
	const char *verb = why_text_verb(sum->like.cause);
	size_t i;

	for (i = 0; i < deeds->n; i++) {
		struct ky_part_sum *deed = &deeds->sums[i];

		if (why_text_verb(deed->like.cause) == verb && deed->like.who == sum->like.who &&
		    (deed->like.syscall == sum->like.syscall ||
		     sum->like.cause == KY_CAUSE_PREEMPTED)) {
			deed->total_ns += sum->total_ns;
			return;
		}
	}
	if (i < WHY_DEEDS_MAX)
		deeds->sums[deeds->n++] = *sum;
}

/* Is it the first culprit, or one of several with its name? */
static bool why_text_is_culprit(const struct ky_why_loss *loss, const struct ky_thread *thread)
{
	const struct ky_thread *first = loss->culprits.list.data[0].thread;

	if (thread == first || loss->why != KY_WHY_THREAD || loss->culprits.list.len == 1)
		return thread == first;
	return first->comm[0] && strcmp(first->comm, thread->comm) == 0 &&
	       first->host == thread->host;
}

/* What the culprit, or those of its name, did while others waited for it: the largest two parts. */
static void why_text_meanwhile(struct ky_strbuf *out, const struct ky_breakdown *run,
			       const struct ky_why_loss *loss)
{
	const struct ky_part_sum *most[2] = {NULL, NULL};
	bool of_lock = loss->why == KY_WHY_LOCK;
	struct why_deeds deeds = {.n = 0};

	for (int cause = 0; cause < KY_CAUSES; cause++) {
		if ((cause == KY_CAUSE_LOCK) != of_lock)
			continue;
		ky_vec_foreach(&run->meanwhile[cause].list, sum) {
			if (sum->like.thread && why_text_is_culprit(loss, sum->like.thread))
				why_text_add_deed(&deeds, sum);
		}
	}
	for (size_t i = 0; i < deeds.n; i++) {
		if (!most[0] || deeds.sums[i].total_ns > most[0]->total_ns) {
			most[1] = most[0];
			most[0] = &deeds.sums[i];
		} else if (!most[1] || deeds.sums[i].total_ns > most[1]->total_ns) {
			most[1] = &deeds.sums[i];
		}
	}
	if (!most[0])
		return;
	ky_strbuf_adds(out, ". Meanwhile ");
	if (loss->why == KY_WHY_THREAD && loss->culprits.list.len > 1)
		ky_strbuf_adds(out, "that thread");
	else
		ky_why_add_thread(out, loss->culprits.list.data[0].thread);
	ky_strbuf_addc(out, ' ');
	why_text_did(out, run, most[0]);
	if (most[1] && most[1]->total_ns > most[0]->total_ns / 10) {
		ky_strbuf_adds(out, ", and ");
		why_text_did(out, run, most[1]);
	}
}

/* So much of the loss must be a culprit's for its priority to be told. */
#define WHY_URGENT_LEAST 0.05

/* Culprits that run before all others. LTTng's scale: below 0 are the policies for real time. */
static void why_text_urgent(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	size_t n = 0;

	ky_vec_foreach(&loss->culprits.list, sum) {
		if (n == 3 || ky_part(sum->ns, loss->ns) < WHY_URGENT_LEAST)
			break;
		if (sum->thread->prio == KY_UNKNOWN || sum->thread->prio >= 0)
			continue;
		ky_strbuf_adds(out,
			       n++ ? ", " : ". Before all others, by a real-time priority, ran ");
		ky_why_add_thread(out, sum->thread);
	}
}

/* Less of a loss than that does not stand out of it. */
#define WHY_IDLE_LEAST	  5
#define WHY_IDLE_LEAST_NS 10000000

/* One of the threads came back in a rhythm. */
static void why_text_rhythm(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, ". ");
	ky_why_add_thread(out, loss->rhythmic);
	ky_strbuf_addf(out, " came back %zu times at regular intervals of ", loss->rhythm.n);
	why_text_ns(out, loss->rhythm.period_ns);
	ky_strbuf_adds(
		out,
		", after others had the CPU for longer than a time slice: a limit of a control "
		"group (cpu.max) does that, and its events are not in the trace");
}

/* A CPU had nothing to do, and the threads did not run. */
static void why_text_stopped(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	if (loss->stopped_ns > loss->ns / WHY_IDLE_LEAST && loss->stopped_ns > WHY_IDLE_LEAST_NS) {
		ky_strbuf_adds(out, ". In ");
		why_text_ns(out, loss->stopped_ns);
		ky_strbuf_adds(
			out,
			" of that they had been taken off a CPU that had nothing else to do: a limit of "
			"a control group (cpu.max) does that, and its events are not in the trace");
	} else if (loss->rhythm.n) {
		why_text_rhythm(out, loss);
	} else if (loss->beside && loss->beside_ns > loss->ns / 2 &&
		   loss->beside_ns > WHY_IDLE_LEAST_NS) {
		ky_strbuf_adds(out, ". In ");
		why_text_ns(out, loss->beside_ns);
		ky_strbuf_adds(out, " of that another CPU was idle, for ");
		ky_why_add_thread(out, loss->beside);
		ky_strbuf_adds(
			out,
			" the longest: they may be bound to their CPU (sched_setaffinity, cpusets)");
	}
}

static void why_text_cpu(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, " could run, but waited ");
	why_text_ns(out, loss->ns);
	ky_strbuf_adds(out, " for a CPU");
	if (loss->culprits.list.len) {
		ky_strbuf_adds(out, ". Meanwhile the CPU ran ");
		why_text_culprits(out, loss);
		why_text_urgent(out, loss);
	}
	why_text_stopped(out, loss);
	if (loss->idle_ns > loss->ns / 20) {
		ky_strbuf_adds(out, ". In ");
		why_text_ns(out, loss->idle_ns);
		ky_strbuf_adds(out, " of that, the CPU was idle: it was on its way out of sleep");
	}
}

static void why_text_lock(struct ky_strbuf *out, const struct ky_breakdown *run,
			  const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, " waited ");
	why_text_ns(out, loss->ns);
	ky_strbuf_addf(out, " for the lock at 0x%" PRIx64 " of process %d", loss->address,
		       (int)loss->partner->pid);
	if (!loss->culprits.list.len) {
		ky_strbuf_adds(out, ". Who held it is not known");
		return;
	}
	ky_strbuf_adds(out,
		       loss->shared_ns > loss->ns / 2
			       ? ". Several threads may hold it at once, as readers do; the last "
				 "to let it go was "
			       : ". It was held by ");
	why_text_culprits(out, loss);
	why_text_meanwhile(out, run, loss);
}

/* A smaller part of a loss is not told. */
#define WHY_TOLD 100

static void why_text_disk(struct ky_strbuf *out, const struct ky_breakdown *run,
			  const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, " waited ");
	why_text_ns(out, loss->ns);
	ky_strbuf_addf(out, " for %s%s", loss->disk ? "block device " : "a disk",
		       loss->disk ? loss->disk->name : "");
	why_text_call(out, run, loss->syscall);
	if (loss->in_fault)
		ky_strbuf_adds(out, " in page faults, of a mapped file or of swapped memory");
	if (loss->queue_ns > loss->ns / WHY_TOLD) {
		ky_strbuf_adds(out, ", of which ");
		why_text_ns(out, loss->queue_ns);
		ky_strbuf_adds(out, " in the device's queue");
	}
	if (loss->flush_ns > loss->ns / WHY_TOLD) {
		ky_strbuf_adds(out, loss->queue_ns > loss->ns / WHY_TOLD ? " and " : ", of which ");
		why_text_ns(out, loss->flush_ns);
		ky_strbuf_adds(out, " until it had flushed its cache");
	}
	if (loss->held_ns > loss->ns / 5) {
		ky_strbuf_adds(out, ". In ");
		why_text_ns(out, loss->held_ns);
		ky_strbuf_adds(
			out,
			" of that its request was neither at the device nor in its queue: "
			"something held it back, as a limit of its control group does, or a thread "
			"of the kernel (kworker) that had no CPU to send it");
	}
	if (loss->culprits.list.len) {
		ky_strbuf_adds(out, ". Meanwhile the device had requests of ");
		why_text_culprits(out, loss);
	}
}

/* A wait for a connection that is so long was for TCP's second try at least. */
#define WHY_CONNECT_NS 900000000

static void why_text_event(struct ky_strbuf *out, const struct ky_breakdown *run,
			   const struct ky_why_loss *loss)
{
	ky_strbuf_addf(out, " until interrupt %s woke it",
		       loss->line->name[0] ? loss->line->name : "(without name)");
	if (loss->longest_ns < WHY_CONNECT_NS || loss->longest_syscall == KY_NO_SYSCALL ||
	    strcmp(ky_model_syscall_name(run->model, loss->longest_syscall), "connect") != 0)
		return;
	ky_strbuf_adds(out, ", at most ");
	why_text_ns(out, loss->longest_ns);
	ky_strbuf_adds(
		out,
		" for a connection. TCP sends the first packet again after 1 s, so the other side "
		"did not answer at first: its queue of connections (listen()) may be full, or a "
		"packet was lost");
}

/* Other calls wait for something else, too. */
static bool why_text_only_sleeps(const struct ky_breakdown *run, uint32_t syscall)
{
	return syscall == KY_NO_SYSCALL ||
	       strstr(ky_model_syscall_name(run->model, syscall), "nanosleep");
}

static void why_text_other(struct ky_strbuf *out, const struct ky_breakdown *run,
			   const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, loss->why == KY_WHY_SLEEP ? " slept " : " waited ");
	why_text_ns(out, loss->ns);
	why_text_call(out, run, loss->syscall);
	if (loss->why == KY_WHY_SLEEP)
		ky_strbuf_adds(out, why_text_only_sleeps(run, loss->syscall)
					    ? " until a time that it chose itself"
					    : " until the call's timeout, or until a timer");
	else if (loss->why == KY_WHY_FAULT)
		ky_strbuf_adds(out, " in page faults");
	else if (loss->why == KY_WHY_SIGNAL)
		ky_strbuf_adds(out, " until a signal ended the call");
	else if (loss->why == KY_WHY_THREAD) {
		ky_strbuf_adds(out, " until ");
		ky_why_add_thread(out, loss->culprits.list.data[0].thread);
		if (loss->culprits.list.len > 1)
			ky_strbuf_addf(out, " or %zu other%s of this name",
				       loss->culprits.list.len - 1,
				       loss->culprits.list.len > 2 ? "s" : "");
		ky_strbuf_adds(out, " woke it");
		why_text_meanwhile(out, run, loss);
	} else if (loss->line)
		why_text_event(out, run, loss);
	else
		ky_strbuf_adds(out, "; events do not tell for what");
}

/* The culprits let them go on; events of signals tell who stops them. */
static void why_text_halted(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, " was stopped ");
	why_text_ns(out, loss->ns);
	ky_strbuf_adds(out, ", by a signal or a debugger");
	if (loss->culprits.list.len) {
		ky_strbuf_adds(out, ", until it could go on by ");
		why_text_culprits(out, loss);
	}
}

static void why_text_space(struct ky_strbuf *out, const struct ky_breakdown *run,
			   const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, " waited ");
	why_text_ns(out, loss->ns);
	ky_strbuf_addf(
		out, " for the address space of process %d, in page faults or calls such as munmap",
		(int)loss->partner->pid);
	ky_strbuf_adds(out, ". They went on when other threads of it had changed it: ");
	why_text_culprits(out, loss);
	why_text_meanwhile(out, run, loss);
}

static void why_text_irq(struct ky_strbuf *out, const struct ky_why_loss *loss)
{
	ky_strbuf_adds(out, " lost ");
	why_text_ns(out, loss->ns);
	ky_strbuf_addf(out, " to interrupt %s, which ran %" PRIu64 " times on top, at most ",
		       loss->line && loss->line->name[0] ? loss->line->name : "(without name)",
		       loss->count);
	why_text_ns(out, loss->longest_ns);
}

void ky_why_say(struct ky_strbuf *out, const struct ky_breakdown *run,
		const struct ky_why_losses *losses, const struct ky_why_loss *loss)
{
	why_text_victims(out, loss);
	switch (loss->why) {
	case KY_WHY_CPU:
		why_text_cpu(out, loss);
		break;
	case KY_WHY_LOCK:
		why_text_lock(out, run, loss);
		break;
	case KY_WHY_DISK:
		why_text_disk(out, run, loss);
		break;
	case KY_WHY_IRQ:
		why_text_irq(out, loss);
		break;
	case KY_WHY_STOPPED:
		why_text_halted(out, loss);
		break;
	case KY_WHY_SPACE:
		why_text_space(out, run, loss);
		break;
	default:
		why_text_other(out, run, loss);
		break;
	}
	ky_strbuf_adds(out, ". That is ");
	ky_why_add_share(out, loss->ns, losses->total_ns);
	ky_strbuf_adds(out, losses->chosen ? " of the whole time that was selected."
					   : " of the time in which threads ran or lost time.");
}
