/* SPDX-License-Identifier: MIT */
/* Report why: how sure a loss is, and which command shows more of it. */
#include "analysis/overview/why.h"

const char *ky_why_sure(const struct ky_breakdown *run, const struct ky_why_loss *loss)
{
	unsigned int abilities = ky_model_abilities(run->model);

	switch (loss->why) {
	case KY_WHY_CPU:
		return "certain: switches and wake-ups show it";
	case KY_WHY_LOCK:
		if (loss->shared_ns > loss->ns / 2)
			return "certain that it waited, and who let it go on; how long each thread "
			       "had held the lock, events do not tell";
		return loss->culprits.list.len
			       ? "certain that it waited; the holder follows from the futex calls "
				 "that release the lock"
			       : "certain that it waited; the holder is not known";
	case KY_WHY_DISK:
		return loss->disk
			       ? "certain: requests of the thread, or the interrupt of their "
				 "completion, show it"
			       : "likely: a block device's interrupt woke it; the request is not "
				 "known";
	case KY_WHY_SPACE:
		return "likely: threads of the same process woke them; the kernel's lock (mmap_lock) is "
		       "not in the trace";
	case KY_WHY_FAULT:
		return abilities & KY_CAN_FAULT
			       ? "certain: page fault events show it"
			       : "likely: it waited outside of a system call; the trace has no page "
				 "fault events";
	case KY_WHY_IRQ:
		return "certain: the handlers' events show it";
	case KY_WHY_THREAD:
		if (abilities & KY_CAN_IRQ && loss->doubtful_ns)
			return "likely, not certain: the trace has no events of the local timer "
			       "(irq_vectors), so an interrupt on its CPU may have woken it on top "
			       "of this thread";
		return abilities & KY_CAN_IRQ
			       ? "certain that this thread woke it; whether it waited for that "
				 "alone, events do not tell"
			       : "possible: the trace has no interrupts, so one of them may have "
				 "woken it on top of this thread";
	case KY_WHY_STOPPED:
		return "certain: the state of its switches shows it";
	case KY_WHY_SIGNAL:
		return "certain: the result of the call shows it";
	case KY_WHY_SLEEP:
		return "certain: the call, or its timeout, shows it";
	default:
		return "certain that it waited; the reason is not certain";
	}
}

void ky_why_more(struct ky_strbuf *out, const struct ky_why_loss *loss, const char *of)
{
	const struct ky_why_sum *worst = &loss->victims.list.data[0];
	const struct ky_thread *victim = worst->thread;

	if (of)
		ky_strbuf_addf(out, "kymo report breakdown --of '%s'", of);
	else if (loss->why == KY_WHY_CPU)
		ky_strbuf_addf(out, "kymo report breakdown --of %s --tid %d",
			       worst->preempted_ns > worst->ns / 2 ? "preemption" : "wakeup",
			       (int)victim->tid);
	else if (loss->why == KY_WHY_LOCK)
		ky_strbuf_addf(out, "kymo report locks%s --pid %d",
			       loss->shared_ns > loss->ns / 2 ? " -t pairs" : "",
			       (int)loss->partner->pid);
	else if (loss->why == KY_WHY_DISK)
		ky_strbuf_adds(out, "kymo report block");
	else if (loss->why == KY_WHY_IRQ)
		ky_strbuf_addf(out, "kymo report %s",
			       loss->line && loss->line->kind == KY_IRQ_SOFT ? "softirq" : "irq");
	else if (loss->why == KY_WHY_STOPPED)
		ky_strbuf_addf(out, "kymo report signals -t signals --pid %d", (int)victim->pid);
	else if (loss->why == KY_WHY_THREAD || loss->why == KY_WHY_SPACE)
		ky_strbuf_addf(out, "kymo report critical-path --tid %d", (int)victim->tid);
	else
		ky_strbuf_addf(out, "kymo report breakdown --tid %d", (int)victim->tid);
}
