/* SPDX-License-Identifier: MIT */
/* What the state model tells: system calls, what CPUs did, interrupts, requests of disks, samples. */
#include "analysis/export/tracks-internal.h"
#include "analysis/state/errno-name.h"

/* Slices begin where the trace does. */
static int tracks_model_whole(struct ky_tracks *tracks, struct ky_track_item *item)
{
	if (!item->track)
		return KYMO_E_MEMORY;
	if (tracks->origin_ns == INT64_MIN || item->end_ns < tracks->origin_ns)
		return KYMO_OK;
	if (item->ns < tracks->origin_ns)
		item->ns = tracks->origin_ns;
	item->what = KY_TRACK_WHOLE;
	return tracks->form->item(tracks, item, tracks->err);
}

static int tracks_model_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
			    struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_tracks *tracks = data;
	struct ky_track_item item = {
		.name = "(unknown)",
		.category = "sched",
		.ns = begin_ns,
		.end_ns = end_ns,
		.ran = thread,
	};

	if (state != KY_CPU_BUSY || !thread)
		return KYMO_OK;
	if (thread->comm[0])
		item.name = thread->comm;
	item.track = ky_tracks_of_cpu(tracks, cpu->host, KY_TRACK_CPU, cpu->id);
	return tracks_model_whole(tracks, &item);
}

static int tracks_model_irq(void *data, const struct ky_irq *irq)
{
	static const char *const kinds[] = {"interrupt", "softirq", "vector"};
	struct ky_tracks *tracks = data;
	struct ky_track_item item = {
		.name = irq->line->name[0] ? irq->line->name : kinds[irq->line->kind],
		.category = "irq",
		.ns = irq->begin_ns,
		.end_ns = irq->end_ns,
	};

	item.track = ky_tracks_of_cpu(tracks, irq->line->host, KY_TRACK_INTERRUPTS, irq->cpu->id);
	return tracks_model_whole(tracks, &item);
}

static int tracks_model_request(void *data, const struct ky_request *request)
{
	struct ky_tracks *tracks = data;
	struct ky_track_item item = {
		.name = request->rwbs & KY_RWBS_WRITE	  ? "write"
			: request->rwbs & KY_RWBS_DISCARD ? "discard"
			: request->rwbs & KY_RWBS_READ	  ? "read"
			: request->rwbs & KY_RWBS_FLUSH	  ? "flush"
							  : "request",
		.category = "block",
		.ns = request->issue_ns,
		.end_ns = request->end_ns,
		.ran = request->thread,
	};

	if (request->issue_ns == INT64_MIN || request->end_ns < request->issue_ns)
		return KYMO_OK;
	item.track = ky_tracks_of_disk(tracks, request->disk, item.ns, item.end_ns);
	return tracks_model_whole(tracks, &item);
}

/* ---- system calls ----------------------------------------------------------------------- */

/* The fields of the event at hand. */
static int tracks_model_fields(struct ky_tracks *tracks, struct ky_track_item *item)
{
	int n = tracks->now ? ky_values_decode(&tracks->values, tracks->now, KY_SCOPE_PAYLOAD,
					       tracks->err)
			    : 0;

	if (n > 0)
		item->fields = tracks->values.list.data;
	return n < 0 ? n : 0;
}

static int tracks_model_call_begin(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_tracks *tracks = data;
	struct ky_track_item item = {
		.what = KY_TRACK_BEGIN,
		.track = ky_tracks_of_thread(tracks, thread),
		.name = ky_model_syscall_name(tracks->model, thread->syscall.id),
		.category = "syscall",
		.ns = ns,
	};
	int ret = tracks_model_fields(tracks, &item);

	if (!item.track)
		return KYMO_E_MEMORY;
	return ret < 0 || !tracks->now ? ret : tracks->form->item(tracks, &item, tracks->err);
}

static int tracks_model_call(void *data, const struct ky_call *call)
{
	struct ky_tracks *tracks = data;
	struct ky_track_item item = {
		.what = call->begin_ns == INT64_MIN ? KY_TRACK_INSTANT : KY_TRACK_END,
		.track = ky_tracks_of_thread(tracks, call->thread),
		.name = ky_model_syscall_name(tracks->model, call->syscall),
		.category = "syscall",
		.ns = call->end_ns,
		.outcome = ky_call_outcome_text(call->outcome),
	};
	int ret = KYMO_OK;

	/* At the trace's end nothing ends: a slice without an end is shown as one. */
	if (!tracks->now || call->outcome == KY_CALL_UNENDED || call->outcome == KY_CALL_BIRTH)
		return KYMO_OK;
	if (!item.track)
		return KYMO_E_MEMORY;
	if (item.ns == INT64_MIN)
		item.ns = tracks->now->ns;
	if (call->has_ret)
		ret = tracks_model_fields(tracks, &item);
	if (call->has_ret && ky_is_error(call->ret))
		item.error = ky_errno_name((int)-call->ret);
	return ret < 0 ? ret : tracks->form->item(tracks, &item, tracks->err);
}

/* ---- samples ---------------------------------------------------------------------------- */

static int tracks_model_stack(void *data, const struct ky_stack_seen *stack)
{
	struct ky_tracks *tracks = data;
	struct ky_track_item item = {
		.what = KY_TRACK_INSTANT,
		.name = stack->source,
		.category = "sample",
		.ns = stack->event->ns,
		.stack = stack,
	};

	if (!stack->source || !stack->thread)
		return KYMO_OK;
	item.track = ky_tracks_of_thread(tracks, stack->thread);
	return item.track ? tracks->form->item(tracks, &item, tracks->err) : KYMO_E_MEMORY;
}

int ky_tracks_listen(struct ky_tracks *tracks)
{
	struct ky_listener listener = {.data = tracks};

	if (tracks->form->wants_calls) {
		listener.call_begin = tracks_model_call_begin;
		listener.call = tracks_model_call;
	}
	if (tracks->form->wants_model) {
		listener.ran = tracks_model_ran;
		listener.irq = tracks_model_irq;
		listener.request = tracks_model_request;
		listener.flush = tracks_model_request;
	}
	if (tracks->form->wants_stacks)
		listener.stack = tracks_model_stack;
	return ky_model_listen(tracks->model, &listener);
}
