/* SPDX-License-Identifier: MIT */
#include "analysis/causes/call-tails.h"

#include <stdlib.h>

#include "analysis/causes/causes-internal.h"

/* A tail is what is at least so many times the median, and so long, of so many calls. */
#define TAIL_TIMES  10
#define TAIL_MIN_NS 50000
#define TAIL_CALLS  20
/* So many candidates are explained, and so many kinds of calls are looked at. */
#define CANDIDATES_MAX 30
#define GROUPS_MAX     10000

struct group {
	const struct ky_thread *thread;
	uint32_t syscall;
	KY_VEC(uint64_t) ns;
	uint64_t p50_ns, p99_ns, excess_ns;
};

struct tails {
	const struct ky_causes *causes;
	const struct ky_focus *focus;
	bool chosen;
	struct ky_map places; /* process and call -> the group's place + 1 */
	KY_VEC(struct group) groups;
};

static uint64_t call_tails_key(const struct ky_thread *thread, uint32_t syscall)
{
	uint64_t process = thread->pid == KY_UNKNOWN ? UINT64_C(1) << 31 | thread->index
						     : (uint32_t)thread->pid;

	return process << 32 ^ (uint64_t)thread->host->index << 20 ^ syscall;
}

static bool call_tails_counts(const struct tails *tails, const struct ky_track_call *call)
{
	return call->done && !call->unsure && call->begin_ns != INT64_MIN &&
	       call->begin_ns <= call->end_ns && call->end_ns >= tails->focus->begin_ns &&
	       call->end_ns <= tails->focus->end_ns;
}

static int call_tails_add(struct tails *tails, const struct ky_thread *thread,
			  const struct ky_track_call *call)
{
	uint64_t key = call_tails_key(thread, call->syscall);
	uintptr_t place = (uintptr_t)ky_map_get(&tails->places, key);
	struct group group = {.thread = thread, .syscall = call->syscall};

	if (!place && tails->groups.len == GROUPS_MAX)
		return 0;
	if (!place) {
		if (ky_vec_push(&tails->groups, group) < 0)
			return KYMO_E_MEMORY;
		place = tails->groups.len;
		if (ky_map_set(&tails->places, key, (void *)place) < 0)
			return KYMO_E_MEMORY;
	}
	return ky_vec_push(&tails->groups.data[place - 1].ns,
			   (uint64_t)call->end_ns - (uint64_t)call->begin_ns);
}

static int call_tails_compare_ns(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static int call_tails_compare_groups(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	if (left->excess_ns != right->excess_ns)
		return left->excess_ns < right->excess_ns ? 1 : -1;
	return left->thread->index < right->thread->index ? -1 : 1;
}

/* Its percentiles, and by how much the slow ones exceed the median; 0: it has no tail. */
static void call_tails_measure(struct group *group)
{
	size_t n = group->ns.len, first = n - 1 - (n - 1) / 100;

	if (n < TAIL_CALLS)
		return;
	qsort(group->ns.data, n, sizeof(*group->ns.data), call_tails_compare_ns);
	group->p50_ns = group->ns.data[(n - 1) / 2];
	group->p99_ns = group->ns.data[first];
	if (group->p99_ns < TAIL_MIN_NS || group->p99_ns / TAIL_TIMES < group->p50_ns)
		return;
	for (size_t i = first; i < n; i++)
		group->excess_ns += group->ns.data[i] - group->p50_ns;
}

static int call_tails_part(void *data, const struct ky_part *part)
{
	return ky_part_sums_add(data, part, 0, true);
}

/* The parts of the group's slow calls. */
static int call_tails_explain(const struct tails *tails, const struct group *group,
			      struct ky_part_sums *slow)
{
	int status = 0;

	for (size_t t = 0; t < tails->causes->tracks.len && status >= 0; t++) {
		const struct ky_thread *thread = ky_model_thread(tails->causes->model, t);

		if (call_tails_key(thread, group->syscall) !=
			    call_tails_key(group->thread, group->syscall) ||
		    !ky_focus_has_thread(tails->focus, thread))
			continue;
		ky_vec_foreach(&tails->causes->tracks.data[t].calls, call) {
			if (status >= 0 && call->syscall == group->syscall &&
			    call_tails_counts(tails, call) &&
			    (uint64_t)call->end_ns - (uint64_t)call->begin_ns >= group->p99_ns)
				status = ky_causes_explain(tails->causes, thread, call->begin_ns,
							   call->end_ns, call_tails_part, slow);
		}
	}
	ky_part_sums_sort(slow);
	return status;
}

/* Did most of the time go to what nobody calls it for? Waiting for data or an event is what many calls are for. */
static bool call_tails_is_lost(const struct ky_part_sums *slow, bool chosen)
{
	uint64_t lost_ns = 0;

	ky_vec_foreach(&slow->list, sum) {
		switch (sum->like.cause) {
		case KY_CAUSE_PREEMPTED:
		case KY_CAUSE_CPU_WAIT:
			lost_ns += chosen ? sum->total_ns : 0;
			break;
		case KY_CAUSE_LOCK:
		case KY_CAUSE_DISK:
		case KY_CAUSE_DISK_QUEUE:
		case KY_CAUSE_DISK_DEVICE:
		case KY_CAUSE_DISK_FLUSH:
		case KY_CAUSE_FAULT:
		case KY_CAUSE_IRQ:
		case KY_CAUSE_RUN_KERNEL:
			lost_ns += sum->total_ns;
			break;
		default:
			break;
		}
	}
	return lost_ns > slow->total_ns / 2;
}

static int call_tails_choose(struct tails *tails, size_t max, struct ky_call_tails *found)
{
	int status = 0;

	for (size_t i = 0;
	     i < tails->groups.len && i < CANDIDATES_MAX && found->list.len < max && status >= 0;
	     i++) {
		const struct group *group = &tails->groups.data[i];
		struct ky_call_tail tail = {
			.thread = group->thread,
			.syscall = group->syscall,
			.n = group->ns.len,
			.p50_ns = group->p50_ns,
			.p99_ns = group->p99_ns,
			.excess_ns = group->excess_ns,
			.slow = {.details = KY_PART_WHO},
		};

		if (!group->excess_ns)
			break;
		tail.max_ns = *ky_vec_last(&group->ns);
		status = call_tails_explain(tails, group, &tail.slow);
		if (status >= 0 && call_tails_is_lost(&tail.slow, tails->chosen))
			status = ky_vec_push(&found->list, tail);
		else
			ky_part_sums_fini(&tail.slow);
	}
	return status;
}

int ky_call_tails_find(const struct ky_causes *causes, const struct ky_focus *focus, bool chosen,
		       size_t max, struct ky_call_tails *found)
{
	struct tails tails = {.causes = causes, .focus = focus, .chosen = chosen};
	int status = 0;

	*found = (struct ky_call_tails){.list = KY_VEC_INIT};
	for (size_t t = 0; t < causes->tracks.len; t++) {
		const struct ky_thread *thread = ky_model_thread(causes->model, t);

		if (!ky_focus_has_thread(focus, thread))
			continue;
		ky_vec_foreach(&causes->tracks.data[t].calls, call) {
			if (status >= 0 && call_tails_counts(&tails, call))
				status = call_tails_add(&tails, thread, call);
		}
	}
	ky_vec_foreach(&tails.groups, group)
		call_tails_measure(group);
	if (tails.groups.len)
		qsort(tails.groups.data, tails.groups.len, sizeof(*tails.groups.data),
		      call_tails_compare_groups);
	if (status >= 0)
		status = call_tails_choose(&tails, max, found);
	ky_vec_foreach(&tails.groups, group)
		ky_vec_fini(&group->ns);
	ky_vec_fini(&tails.groups);
	ky_map_fini(&tails.places);
	return status;
}

void ky_call_tails_fini(struct ky_call_tails *tails)
{
	ky_vec_foreach(&tails->list, tail)
		ky_part_sums_fini(&tail->slow);
	ky_vec_fini(&tails->list);
}
