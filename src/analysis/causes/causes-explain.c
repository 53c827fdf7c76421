/* SPDX-License-Identifier: MIT */
/*
 * Causes: the parts of a time. A teller goes over the stretches of a thread, from the begin to the end; each part begins
 * where the last one ended, so that there is no gap, and the time after the last one is unknown.
 */
#include "analysis/causes/causes-internal.h"

/* ---- finding ------------------------------------------------------------------------------- */

const struct ky_track *ky_causes_track(const struct ky_causes *causes,
				       const struct ky_thread *thread)
{
	return thread && thread->index < causes->tracks.len ? &causes->tracks.data[thread->index]
							    : NULL;
}

const struct ky_lane *ky_causes_lane(const struct ky_causes *causes, uint32_t cpu)
{
	return cpu < causes->lanes.len ? &causes->lanes.data[cpu] : NULL;
}

size_t ky_track_find(const struct ky_track *track, int64_t ns)
{
	return ky_causes_find(&track->stretches, end_ns, ns);
}

size_t ky_lane_irq_find(const struct ky_lane *lane, int64_t ns)
{
	return ky_causes_find(&lane->irqs, end_ns, ns);
}

const struct ky_track_call *ky_track_call_at(const struct ky_track *track, int64_t ns)
{
	size_t i = ky_causes_find(&track->calls, end_ns, ns);
	const struct ky_track_call *call = track->calls.data + i;

	return i < track->calls.len && call->begin_ns <= ns ? call : NULL;
}

const struct ky_track_call *ky_track_call_after(const struct ky_track *track, int64_t ns)
{
	size_t i = ky_causes_find(&track->calls, end_ns, ns);

	while (i < track->calls.len && track->calls.data[i].begin_ns <= ns)
		i++;
	return i < track->calls.len ? track->calls.data + i : NULL;
}

bool ky_track_faults(const struct ky_track *track, int64_t begin_ns, int64_t end_ns)
{
	size_t low = 0, high = track->faults.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (track->faults.data[mid] < begin_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low < track->faults.len && track->faults.data[low] <= end_ns;
}

/* ---- telling ------------------------------------------------------------------------------- */

int ky_tell(struct ky_teller *teller, struct ky_part like, int64_t ns)
{
	if (ns > teller->end_ns)
		ns = teller->end_ns;
	if (ns <= teller->at_ns)
		return 0;
	like.begin_ns = teller->at_ns;
	like.end_ns = teller->at_ns = ns;
	return teller->hook(teller->data, &like);
}

static int64_t causes_explain_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What a thread that runs does now, and until when that is so, by its calls. */
static struct ky_part causes_explain_mode(const struct ky_teller *teller, int64_t *until_ns)
{
	const struct ky_track_call *call = ky_track_call_at(teller->track, teller->at_ns);
	struct ky_part part = ky_part_of(teller, KY_CAUSE_RUN_USER);

	if (call) {
		part.cause = call->unsure ? KY_CAUSE_RUN : KY_CAUSE_RUN_KERNEL;
		part.syscall = call->unsure ? KY_NO_SYSCALL : call->syscall;
		part.file = call->unsure ? NULL : call->file;
		*until_ns = call->end_ns;
		return part;
	}
	call = ky_track_call_after(teller->track, teller->at_ns);
	*until_ns = call ? call->begin_ns : INT64_MAX;
	if (!teller->track->calls.len)
		part.cause = KY_CAUSE_RUN;
	if (teller->thread->ppid == 2 || teller->thread->tid == 2)
		part.cause = KY_CAUSE_RUN_KERNEL; /* kthreadd and its children have no user space */
	return part;
}

static int causes_explain_run(struct ky_teller *teller, const struct ky_stretch *stretch,
			      int64_t end_ns)
{
	const struct ky_lane *lane = ky_causes_lane(teller->causes, stretch->cpu);
	size_t i = lane ? ky_lane_irq_find(lane, teller->at_ns) : 0;
	int32_t cpu = (int32_t)ky_model_cpu(teller->causes->model, stretch->cpu)->id;
	int status = 0;

	while (teller->at_ns < end_ns && status >= 0) {
		int64_t until = INT64_MAX;
		const struct ky_lane_irq *irq =
			lane && i < lane->irqs.len ? &lane->irqs.data[i] : NULL;
		struct ky_part part;

		if (irq && irq->end_ns <= teller->at_ns) {
			i++;
			continue;
		}
		part = causes_explain_mode(teller, &until);
		part.cpu = cpu;
		if (irq && irq->begin_ns <= teller->at_ns) {
			part.cause = KY_CAUSE_IRQ;
			part.line = irq->line;
			until = irq->end_ns;
		} else if (irq) {
			until = causes_explain_least(until, irq->begin_ns);
		}
		status = ky_tell(teller, part, causes_explain_least(until, end_ns));
	}
	return status;
}

/* ---- waiting for a CPU ----------------------------------------------------------------------- */

/*
 * The CPU of the next stretch in which the thread runs, by index; -1: unknown. It is close: only where a thread ran for
 * no time at all are there waits between.
 */
static int64_t causes_explain_next_cpu(const struct ky_track *track, int64_t ns)
{
	size_t i = ky_track_find(track, ns);

	for (size_t looks = 0; i < track->stretches.len && looks < KY_CAUSES_LOOKS; i++, looks++) {
		if (track->stretches.data[i].kind == KY_STRETCH_RUN)
			return track->stretches.data[i].cpu;
		if (track->stretches.data[i].kind >= KY_STRETCH_SLEEP)
			break;
	}
	return -1;
}

/* The same of the last one, before a move. */
static int64_t causes_explain_last_cpu(const struct ky_track *track, int64_t ns)
{
	size_t i = ky_track_find(track, ns);

	for (size_t looks = 0; i-- > 0 && looks < KY_CAUSES_LOOKS; looks++) {
		if (track->stretches.data[i].kind == KY_STRETCH_RUN)
			return track->stretches.data[i].cpu;
	}
	return -1;
}

/*
 * The CPU that the thread waits for now, by index, and until when it does so; -1: unknown. Without events of migrations,
 * that may be another one than the one that it gets.
 */
static int64_t causes_explain_queue(const struct ky_teller *teller, int64_t *until_ns)
{
	const struct ky_track *track = teller->track;
	size_t move = ky_causes_find(&track->moves, ns, teller->at_ns);
	const struct ky_cpu *cpu;

	if (!(teller->causes->abilities & KY_CAN_MIGRATE) || move == track->moves.len ||
	    track->moves.data[move].ns >= *until_ns)
		return causes_explain_next_cpu(track, teller->at_ns);
	*until_ns = track->moves.data[move].ns;
	if (!move)
		return causes_explain_last_cpu(track, teller->at_ns);
	cpu = ky_map_get(&teller->thread->host->cpus, (uint32_t)track->moves.data[move - 1].cpu);
	return cpu ? (int64_t)cpu->index : -1;
}

/* Who runs there now, and until when. */
static void causes_explain_who(const struct ky_lane *lane, struct ky_part *part, int64_t ns,
			       int64_t *until_ns)
{
	size_t i = ky_causes_find(&lane->runs, end_ns, ns);
	const struct ky_lane_run *run = lane->runs.data + i;

	if (i == lane->runs.len)
		return;
	if (run->begin_ns > ns) {
		*until_ns = causes_explain_least(*until_ns, run->begin_ns);
		return;
	}
	*until_ns = causes_explain_least(*until_ns, run->end_ns);
	/* Its own time there would be a contradiction: then nobody is accused. */
	part->who = run->thread == part->thread ? NULL : run->thread;
	part->idle = run->idle;
}

static int causes_explain_ready(struct ky_teller *teller, const struct ky_stretch *stretch,
				int64_t end_ns)
{
	enum ky_cause cause =
		stretch->kind == KY_STRETCH_READY ? KY_CAUSE_CPU_WAIT : KY_CAUSE_PREEMPTED;
	int status = 0;

	while (teller->at_ns < end_ns && status >= 0) {
		const struct ky_track_call *call = ky_track_call_at(teller->track, teller->at_ns);
		struct ky_part part = ky_part_of(teller, cause);
		int64_t until = end_ns, cpu = causes_explain_queue(teller, &until);
		const struct ky_lane *lane =
			cpu < 0 ? NULL : ky_causes_lane(teller->causes, (uint32_t)cpu);

		if (call && !call->unsure)
			part.syscall = call->syscall;
		if (lane) {
			part.cpu = (int32_t)ky_model_cpu(teller->causes->model, (size_t)cpu)->id;
			causes_explain_who(lane, &part, teller->at_ns, &until);
		}
		status = ky_tell(teller, part, causes_explain_least(until, end_ns));
	}
	return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int causes_explain_stretch(struct ky_teller *teller, const struct ky_stretch *stretch)
{
	int64_t end = causes_explain_least(stretch->end_ns, teller->end_ns);

	switch (stretch->kind) {
	case KY_STRETCH_RUN:
		return causes_explain_run(teller, stretch, end);
	case KY_STRETCH_PREEMPTED:
	case KY_STRETCH_READY:
		return causes_explain_ready(teller, stretch, end);
	default:
		return ky_tell_blocked(teller, stretch, end);
	}
}

int ky_causes_explain(const struct ky_causes *causes, const struct ky_thread *thread,
		      int64_t begin_ns, int64_t end_ns, ky_part_hook part, void *data)
{
	struct ky_teller teller = {
		.causes = causes,
		.track = ky_causes_track(causes, thread),
		.thread = thread,
		.at_ns = begin_ns,
		.end_ns = end_ns,
		.hook = part,
		.data = data,
	};
	const struct ky_track *track = teller.track;
	int status = 0;

	for (size_t i = track ? ky_track_find(track, begin_ns) : 0;
	     track && i < track->stretches.len && status >= 0; i++) {
		const struct ky_stretch *stretch = &track->stretches.data[i];

		if (stretch->begin_ns >= end_ns)
			break;
		status = ky_tell(&teller, ky_part_of(&teller, KY_CAUSE_UNKNOWN), stretch->begin_ns);
		if (status >= 0)
			status = causes_explain_stretch(&teller, stretch);
	}
	return status < 0 ? status
			  : ky_tell(&teller, ky_part_of(&teller, KY_CAUSE_UNKNOWN), end_ns);
}

int ky_causes_explain_request(const struct ky_causes *causes, const struct ky_request *request,
			      ky_part_hook hook, void *data)
{
	int64_t queue = request->queue_ns, issue = request->issue_ns, end = request->end_ns;
	struct ky_teller teller = {
		.causes = causes,
		.at_ns = queue != INT64_MIN ? queue : issue,
		.end_ns = end,
		.hook = hook,
		.data = data,
	};
	struct ky_part part = ky_part_of(&teller, KY_CAUSE_DISK_QUEUE);
	int status;

	part.disk = request->disk;
	part.who = ky_disk_others(causes, request->disk, request->thread, teller.at_ns, issue);
	status = issue == INT64_MIN ? 0 : ky_tell(&teller, part, issue);
	part.cause = KY_CAUSE_DISK_DEVICE;
	part.who = ky_disk_others(causes, request->disk, request->thread, issue, end);
	return status < 0 ? status : ky_tell(&teller, part, end);
}

int ky_causes_explain_irq(const struct ky_causes *causes, const struct ky_irq *irq,
			  ky_part_hook hook, void *data)
{
	const struct ky_lane *lane = ky_causes_lane(causes, irq->cpu->index);
	struct ky_teller teller = {
		.causes = causes,
		.at_ns = irq->raise_ns != INT64_MIN ? irq->raise_ns : irq->begin_ns,
		.end_ns = irq->end_ns,
		.hook = hook,
		.data = data,
	};
	struct ky_part part = ky_part_of(&teller, KY_CAUSE_RAISED);
	int status = ky_tell(&teller, part, irq->begin_ns);

	part.cpu = (int32_t)irq->cpu->id;
	for (size_t i = lane ? ky_lane_irq_find(lane, teller.at_ns) : 0;
	     lane && i < lane->irqs.len && teller.at_ns < teller.end_ns && status >= 0; i++) {
		const struct ky_lane_irq *other = &lane->irqs.data[i];

		if (other->begin_ns >= teller.end_ns)
			break;
		if (other->line == irq->line)
			continue;
		part.cause = KY_CAUSE_HANDLER;
		part.line = irq->line;
		status = ky_tell(&teller, part, other->begin_ns);
		part.cause = KY_CAUSE_IRQ;
		part.line = other->line;
		if (status >= 0)
			status = ky_tell(&teller, part, other->end_ns);
	}
	part.cause = KY_CAUSE_HANDLER;
	part.line = irq->line;
	return status < 0 ? status : ky_tell(&teller, part, teller.end_ns);
}

int ky_causes_steps(const struct ky_causes *causes, const struct ky_thread *thread,
		    int64_t begin_ns, int64_t end_ns, ky_step_hook hook, void *data)
{
	const struct ky_track *track = ky_causes_track(causes, thread);
	int status = 0;

	for (size_t i = track ? ky_causes_find(&track->steps, end_ns, begin_ns) : 0;
	     track && i < track->steps.len && status >= 0; i++) {
		const struct ky_fs_seen *step = &track->steps.data[i];

		if (step->end_ns > end_ns)
			break;
		if (step->begin_ns >= begin_ns)
			status = hook(data, step);
	}
	return status;
}

void ky_causes_load(const struct ky_causes *causes, int64_t begin_ns, int64_t end_ns,
		    uint64_t *busy_ns, uint64_t *idle_ns)
{
	ky_vec_foreach(&causes->lanes, lane) {
		ky_vec_foreach(&lane->runs, run) {
			int64_t from = run->begin_ns > begin_ns ? run->begin_ns : begin_ns;
			int64_t to = causes_explain_least(run->end_ns, end_ns);

			if (from < to)
				*(run->idle ? idle_ns : busy_ns) += (uint64_t)to - (uint64_t)from;
		}
	}
}
