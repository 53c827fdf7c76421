/* SPDX-License-Identifier: MIT */
/* Report why: parts of times become losses, by their reasons. */
#include "analysis/overview/why.h"

#include <stdlib.h>
#include <string.h>

/* ---- sums by thread ------------------------------------------------------------------------ */

static int why_add_sum(struct ky_why_sums *sums, const struct ky_thread *thread, uint64_t ns,
		       uint64_t preempted_ns)
{
	uintptr_t place;

	if (!thread)
		return 0;
	place = (uintptr_t)ky_map_get(&sums->places, thread->index);
	if (place) {
		sums->list.data[place - 1].ns += ns;
		sums->list.data[place - 1].preempted_ns += preempted_ns;
		return 0;
	}
	if (ky_vec_push(&sums->list, (struct ky_why_sum){thread, ns, preempted_ns}) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&sums->places, thread->index, (void *)(uintptr_t)sums->list.len);
}

static int why_compare_sums(const void *a, const void *b)
{
	const struct ky_why_sum *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? 1 : -1;
	return left->thread->index < right->thread->index ? -1 : 1;
}

static void why_sort_sums(struct ky_why_sums *sums)
{
	if (sums->list.len)
		qsort(sums->list.data, sums->list.len, sizeof(*sums->list.data), why_compare_sums);
	ky_map_fini(&sums->places);
}

static void why_fini_sums(struct ky_why_sums *sums)
{
	ky_map_fini(&sums->places);
	ky_vec_fini(&sums->list);
}

/* ---- losses -------------------------------------------------------------------------------- */

/* Another thread of the process ended a page fault, or a call that changes its mappings: that thread changed them, too. */
static bool why_is_space(const struct ky_model *model, const struct ky_part *part)
{
	static const char *const calls[] = {"mmap",    "munmap", "mprotect",
					    "madvise", "brk",	 "mremap"};
	const char *name;

	if (!part->who || part->who == part->thread || part->who->pid != part->thread->pid ||
	    part->who->host != part->thread->host || part->thread->pid < 0)
		return false;
	if (part->cause == KY_CAUSE_FAULT)
		return true;
	if (part->cause != KY_CAUSE_THREAD || part->syscall == KY_NO_SYSCALL)
		return false;
	name = ky_model_syscall_name(model, part->syscall);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (strcmp(name, calls[i]) == 0)
			return true;
	}
	return false;
}

/* What a part is a loss to. False: to nothing; or it only counts where the user chose the thread. */
static bool why_reason(const struct ky_model *model, const struct ky_part *part, bool chosen,
		       enum ky_why *why)
{
	if (why_is_space(model, part)) {
		*why = KY_WHY_SPACE;
		return true;
	}
	switch (part->cause) {
	case KY_CAUSE_PREEMPTED:
	case KY_CAUSE_CPU_WAIT:
		*why = KY_WHY_CPU;
		return true;
	case KY_CAUSE_LOCK:
		*why = KY_WHY_LOCK;
		return true;
	case KY_CAUSE_DISK_QUEUE:
	case KY_CAUSE_DISK_DEVICE:
	case KY_CAUSE_DISK_FLUSH:
	case KY_CAUSE_DISK:
		*why = KY_WHY_DISK;
		return true;
	case KY_CAUSE_FAULT:
		*why = KY_WHY_FAULT;
		return true;
	case KY_CAUSE_IRQ:
		*why = KY_WHY_IRQ;
		return true;
	case KY_CAUSE_TIMER:
		*why = KY_WHY_SLEEP;
		return chosen;
	case KY_CAUSE_SIGNAL:
		*why = KY_WHY_SIGNAL;
		return chosen;
	case KY_CAUSE_STOPPED:
		*why = KY_WHY_STOPPED;
		return chosen;
	case KY_CAUSE_RUN_USER:
	case KY_CAUSE_RUN_KERNEL:
	case KY_CAUSE_RUN:
	case KY_CAUSE_HANDLER:
	case KY_CAUSE_UNKNOWN:
		return false;
	default:
		*why = part->who ? KY_WHY_THREAD : KY_WHY_EVENT;
		return chosen;
	}
}

static bool why_is_same(const struct ky_why_loss *loss, enum ky_why why, const struct ky_part *part)
{
	if (loss->why != why)
		return false;
	switch (why) {
	case KY_WHY_LOCK:
		return loss->address == part->address && loss->partner->pid == part->thread->pid &&
		       loss->partner->host == part->thread->host;
	case KY_WHY_SPACE:
		return loss->partner->pid == part->thread->pid &&
		       loss->partner->host == part->thread->host;
	case KY_WHY_DISK:
		return loss->disk == part->disk && loss->in_fault == part->in_fault;
	case KY_WHY_IRQ:
	case KY_WHY_EVENT:
		return loss->line == part->line;
	case KY_WHY_THREAD:
		return loss->partner == part->who ||
		       (part->who->comm[0] && strcmp(loss->partner->comm, part->who->comm) == 0 &&
			loss->partner->host == part->who->host);
	default:
		return true;
	}
}

/* So many losses are distinguished: later ones have no findings. */
#define WHY_LOSSES_MAX 1000

static struct ky_why_loss *why_get(struct ky_why_losses *losses, enum ky_why why,
				   const struct ky_part *part)
{
	struct ky_why_loss loss = {
		.why = why,
		.disk = part->disk,
		.line = part->line,
		.in_fault = part->in_fault,
		.partner = why == KY_WHY_THREAD ? part->who : part->thread,
		.address = part->address,
		.syscall = KY_NO_SYSCALL,
		.longest_syscall = KY_NO_SYSCALL,
	};

	ky_vec_foreach(&losses->list, it) {
		if (why_is_same(it, why, part))
			return it;
	}
	return ky_vec_push(&losses->list, loss) == 0 ? ky_vec_last(&losses->list) : NULL;
}

static int why_add(struct ky_why_losses *losses, const struct ky_part_sum *sum, enum ky_why why)
{
	struct ky_why_loss *loss = losses->list.len < WHY_LOSSES_MAX
					   ? why_get(losses, why, &sum->like)
					   : ky_vec_last(&losses->list);
	uint64_t preempted_ns = sum->like.cause == KY_CAUSE_PREEMPTED ? sum->total_ns : 0;

	if (!loss)
		return KYMO_E_MEMORY;
	if (losses->list.len >= WHY_LOSSES_MAX && !why_is_same(loss, why, &sum->like))
		return 0;
	loss->ns += sum->total_ns;
	loss->count += sum->count;
	if (loss->longest_ns < sum->longest_ns) {
		loss->longest_ns = sum->longest_ns;
		loss->longest_syscall = sum->like.syscall;
	}
	loss->idle_ns += sum->like.idle && !preempted_ns ? sum->total_ns : 0;
	loss->stopped_ns += sum->like.idle ? preempted_ns : 0;
	loss->flush_ns += sum->like.cause == KY_CAUSE_DISK_FLUSH ? sum->total_ns : 0;
	loss->held_ns += sum->like.cause == KY_CAUSE_DISK && sum->like.disk ? sum->total_ns : 0;
	loss->shared_ns += sum->like.shared ? sum->total_ns : 0;
	loss->doubtful_ns += sum->doubtful_ns;
	loss->queue_ns += sum->like.cause == KY_CAUSE_DISK_QUEUE ? sum->total_ns : 0;
	if (sum->total_ns > loss->syscall_ns) {
		loss->syscall_ns = sum->total_ns;
		loss->syscall = sum->like.syscall;
	}
	if (why_add_sum(&loss->victims, sum->like.thread, sum->total_ns, preempted_ns) < 0)
		return KYMO_E_MEMORY;
	return why_add_sum(&loss->culprits, sum->like.who, sum->total_ns, 0);
}

static uint64_t why_sum_of(const struct ky_why_sums *sums, const struct ky_thread *thread)
{
	uintptr_t place = (uintptr_t)ky_map_get(&sums->places, thread->index);

	return place ? sums->list.data[place - 1].ns : 0;
}

static int why_add_running(struct ky_why_losses *losses, const struct ky_part_sum *sum)
{
	uint32_t syscall = sum->like.syscall;

	if (sum->like.cause > KY_CAUSE_RUN)
		return 0;
	while (syscall != KY_NO_SYSCALL && losses->calls.len <= syscall) {
		if (ky_vec_push(&losses->calls, 0) < 0)
			return KYMO_E_MEMORY;
	}
	if (syscall != KY_NO_SYSCALL)
		losses->calls.data[syscall] += sum->total_ns;
	return why_add_sum(&losses->runners, sum->like.thread, sum->total_ns, 0);
}

/* What loses less than this part of the whole does not stand out; but what takes so much of its victims' time does. */
#define WHY_LEAST	 0.005
#define WHY_LEAST_OF_OWN 0.2
#define WHY_LEAST_NS	 10000000

bool ky_why_matters(const struct ky_why_losses *losses, const struct ky_why_loss *loss)
{
	return ky_part(loss->ns, losses->total_ns) >= WHY_LEAST ||
	       (loss->ns >= WHY_LEAST_NS &&
		ky_part(loss->ns, loss->victims_ns) >= WHY_LEAST_OF_OWN);
}

static int why_compare(const void *a, const void *b)
{
	const struct ky_why_loss *left = a, *right = b;

	/* What a thread chose itself comes last. */
	if ((left->why == KY_WHY_SLEEP) != (right->why == KY_WHY_SLEEP))
		return left->why == KY_WHY_SLEEP ? 1 : -1;
	if (left->ns != right->ns)
		return left->ns < right->ns ? 1 : -1;
	return left->why < right->why ? -1 : left->why > right->why;
}

/* Did they wait beside an idle CPU? */
static int why_look_beside(struct ky_why_loss *loss, const struct ky_breakdown *run)
{
	size_t n = loss->victims.list.len;
	const struct ky_thread **threads = calloc(n + 1, sizeof(*threads));
	int status;

	if (!threads)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++)
		threads[i] = loss->victims.list.data[i].thread;
	status = ky_causes_beside_idle(run->members->causes, threads, n, &loss->beside_ns,
				       &loss->beside);
	free(threads);
	return status;
}

/* So many victims are looked at. */
#define WHY_RHYTHMS 64

/* Who of them waited in a rhythm, the longest? */
static void why_look_for_rhythm(struct ky_why_loss *loss, const struct ky_breakdown *run)
{
	struct ky_rhythm rhythm;

	for (size_t i = 0; i < loss->victims.list.len && i < WHY_RHYTHMS; i++) {
		const struct ky_thread *thread = loss->victims.list.data[i].thread;

		if (!ky_causes_rhythm(run->members->causes, thread, &rhythm) ||
		    rhythm.ns <= loss->rhythm.ns)
			continue;
		loss->rhythm = rhythm;
		loss->rhythmic = thread;
	}
}

int ky_why_find(struct ky_why_losses *losses, const struct ky_breakdown *run, bool chosen)
{
	int status = 0;

	*losses = (struct ky_why_losses){.chosen = chosen};
	ky_vec_foreach(&run->parts.list, sum) {
		enum ky_why why = KY_WHY_EVENT;
		bool lost;

		if (!sum->like.thread || (!chosen && sum->like.thread->ppid == 2))
			continue;
		losses->running_ns += sum->like.cause <= KY_CAUSE_RUN ? sum->total_ns : 0;
		losses->unknown_ns += sum->like.cause == KY_CAUSE_UNKNOWN ? sum->total_ns : 0;
		if (status >= 0)
			status = why_add_running(losses, sum);
		/* Without a choice, threads that wait for work have no part in the whole. */
		lost = why_reason(run->model, &sum->like, chosen, &why);
		if (!lost && !chosen && sum->like.cause > KY_CAUSE_RUN)
			continue;
		losses->total_ns += sum->total_ns;
		if (status >= 0)
			status = why_add_sum(&losses->threads, sum->like.thread, sum->total_ns, 0);
		if (lost && status >= 0)
			status = why_add(losses, sum, why);
	}
	ky_vec_foreach(&losses->list, loss) {
		ky_vec_foreach(&loss->victims.list, victim) {
			loss->victims_ns += why_sum_of(&losses->threads, victim->thread);
		}
		why_sort_sums(&loss->victims);
		why_sort_sums(&loss->culprits);
		if (loss->why == KY_WHY_CPU && status >= 0)
			status = why_look_beside(loss, run);
		if (loss->why == KY_WHY_CPU)
			why_look_for_rhythm(loss, run);
	}
	why_sort_sums(&losses->threads);
	why_sort_sums(&losses->runners);
	if (losses->list.len)
		qsort(losses->list.data, losses->list.len, sizeof(*losses->list.data), why_compare);
	return status;
}

void ky_why_fini(struct ky_why_losses *losses)
{
	ky_vec_foreach(&losses->list, loss) {
		why_fini_sums(&loss->victims);
		why_fini_sums(&loss->culprits);
	}
	why_fini_sums(&losses->threads);
	why_fini_sums(&losses->runners);
	ky_vec_fini(&losses->calls);
	ky_vec_fini(&losses->list);
}
