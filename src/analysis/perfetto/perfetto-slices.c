/* SPDX-License-Identifier: MIT */
/* What lasts: system calls, spans, block requests; and instants. */
#include <stdio.h>

#include "analysis/state/errno-name.h"
#include "analysis/perfetto/perfetto-internal.h"

static const char syscall_category[] = "syscall";

/* ---- system calls ------------------------------------------------------------------------- */

static const char *call_name(const struct ky_pf *pf, uint32_t syscall)
{
	return ky_model_syscall_name(pf->model, syscall);
}

int ky_pf_call_begin(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_pf *pf = data;
	uint64_t track = ky_pf_thread_track(pf, thread, ns);
	struct ky_pf_thread *own = ky_pf_thread(pf, thread);
	struct ky_pf_event event;
	int ret;

	if (!own || !pf->now)
		return 0;
	own->open++;
	event = ky_pf_event_begin(pf, pf->now->machine, ns, KY_PF_SLICE_BEGIN, track,
				  syscall_category, call_name(pf, thread->syscall.id));
	ret = ky_pf_annotate(pf, pf->now);
	ky_pf_event_end(pf, event);
	return ret;
}

/* What its exit tells, when that is the event at hand. */
static int annotate_exit(struct ky_pf *pf, const struct ky_call *call)
{
	const char *error = NULL;
	int ret = 0;

	if (!call->has_ret)
		return 0;
	ret = ky_pf_annotate(pf, pf->now);
	if (ky_is_error(call->ret))
		error = ky_errno_name((int)-call->ret);
	if (error)
		ky_pf_annotate_text(pf, pf->now->machine, "error", error);
	return ret;
}

int ky_pf_call(void *data, const struct ky_call *call)
{
	struct ky_pf *pf = data;
	bool begun = call->begin_ns != INT64_MIN;
	struct ky_pf_thread *own;
	struct ky_pf_event event;
	const char *outcome;
	int64_t ns;
	int ret;

	/* At the trace's end nothing ends: Perfetto shows a slice without an end as one. */
	if (!pf->now || call->outcome == KY_CALL_UNENDED || call->outcome == KY_CALL_BIRTH)
		return 0;
	ns = call->end_ns == INT64_MIN ? pf->now->event->ns : call->end_ns;
	event = ky_pf_event_begin(pf, pf->now->machine, ns, begun ? KY_PF_SLICE_END : KY_PF_INSTANT,
				  ky_pf_thread_track(pf, call->thread, ns), syscall_category,
				  call_name(pf, call->syscall));
	ret = annotate_exit(pf, call);
	outcome = ky_call_outcome_text(call->outcome);
	if (outcome)
		ky_pf_annotate_text(pf, pf->now->machine, "outcome", outcome);
	ky_pf_event_end(pf, event);
	own = ky_pf_thread(pf, call->thread);
	if (own && begun && own->open)
		own->open--;
	return ret;
}

/* ---- spans and instants ------------------------------------------------------------------- */

static uint64_t cpu_track(struct ky_pf *pf, const struct ky_pf_at *at)
{
	char name[32];

	if (!at->cpu)
		return 0;
	if (!at->cpu->track) {
		snprintf(name, sizeof(name), "CPU %u kernel", at->cpu->id);
		at->cpu->track = ky_pf_track_named(pf, at->machine, 0, name);
	}
	return at->cpu->track;
}

static uint64_t current_track(struct ky_pf *pf, const struct ky_pf_at *at)
{
	int32_t tid = ky_pf_tid(pf, at);
	const struct ky_thread *thread = tid ? ky_map_get(&at->host->threads, (uint32_t)tid) : NULL;

	return thread ? ky_pf_thread_track(pf, thread, at->event->ns) : cpu_track(pf, at);
}

static int perfetto_slices_put_event(struct ky_pf *pf, const struct ky_pf_at *at, int type)
{
	struct ky_pf_event event;
	uint64_t track;
	int ret;

	if (at->cls->track == KY_PF_TRACK_OF_USER)
		track = ky_pf_user_track(pf, at);
	else if (at->cls->track == KY_PF_TRACK_OF_THREAD)
		track = current_track(pf, at);
	else
		track = cpu_track(pf, at);
	if (!track)
		return 0;
	event = ky_pf_event_begin(pf, at->machine, at->event->ns, type, track, at->cls->category,
				  at->cls->name);
	ret = ky_pf_annotate(pf, at);
	ky_pf_event_end(pf, event);
	return ret;
}

int ky_pf_on_span_begin(struct ky_pf *pf, const struct ky_pf_at *at)
{
	return perfetto_slices_put_event(pf, at, KY_PF_SLICE_BEGIN);
}

int ky_pf_on_span_end(struct ky_pf *pf, const struct ky_pf_at *at)
{
	return perfetto_slices_put_event(pf, at, KY_PF_SLICE_END);
}

int ky_pf_on_instant(struct ky_pf *pf, const struct ky_pf_at *at)
{
	return perfetto_slices_put_event(pf, at, KY_PF_INSTANT);
}

/* ---- block requests ----------------------------------------------------------------------- */

enum {
	BLOCK_DEVICE,
	BLOCK_SECTOR,
	BLOCK_FLAGS,
};

/* LTTng's bits of "rwbs"; the kernel writes letters. */
enum {
	RWBS_WRITE = 1,
	RWBS_DISCARD = 2,
	RWBS_READ = 4,
	RWBS_FLUSH = 256,
};

bool ky_pf_block_fields(const char *name, const struct ky_event_class *cls,
			struct ky_pf_class *info)
{
	bool issue = strcmp(name, "block_rq_issue") == 0;

	if (!issue && strcmp(name, "block_rq_complete") != 0)
		return false;
	if (!ky_handle_find(&info->fields[BLOCK_DEVICE], cls, KY_SCOPE_PAYLOAD, "dev") ||
	    !ky_handle_find(&info->fields[BLOCK_SECTOR], cls, KY_SCOPE_PAYLOAD, "sector"))
		return false;
	ky_handle_find(&info->fields[BLOCK_FLAGS], cls, KY_SCOPE_PAYLOAD, "rwbs");
	info->category = "block";
	info->handle = issue ? ky_pf_on_block_issue : ky_pf_on_block_complete;
	return true;
}

static const char *block_name(const struct ky_pf_at *at)
{
	const struct ky_handle *handle = &at->cls->fields[BLOCK_FLAGS];
	uint64_t bits;
	size_t len;
	const char *text = ky_get_text(at->event, handle, &len);

	if (len && *text == 'F' && len > 1)
		text++;
	if (len)
		return *text == 'W'   ? "write"
		       : *text == 'R' ? "read"
		       : *text == 'D' ? "discard"
		       : *text == 'F' ? "flush"
				      : "request";
	bits = ky_get_u64(at->event, handle, 0);
	return bits & RWBS_WRITE     ? "write"
	       : bits & RWBS_DISCARD ? "discard"
	       : bits & RWBS_READ    ? "read"
	       : bits & RWBS_FLUSH   ? "flush"
				     : "request";
}

static uint32_t block_device(const struct ky_pf_at *at)
{
	return (uint32_t)ky_get_u64(at->event, &at->cls->fields[BLOCK_DEVICE], 0);
}

static uint64_t request_key(const struct ky_pf_at *at)
{
	uint64_t sector = ky_get_u64(at->event, &at->cls->fields[BLOCK_SECTOR], 0);

	return ky_hash_u64((uint64_t)at->machine->id << 32 | block_device(at)) ^ sector;
}

static struct ky_pf_device *get_device(struct ky_pf *pf, const struct ky_pf_at *at)
{
	uint64_t key = (uint64_t)at->machine->id << 32 | block_device(at);
	struct ky_pf_device *device = ky_map_get(&pf->devices, key);

	if (device)
		return device;
	device = ky_arena_new(&pf->arena, struct ky_pf_device);
	if (!device || ky_map_set(&pf->devices, key, device) < 0) {
		pf->out.failed = true;
		return NULL;
	}
	return device;
}

static uint64_t lane_track(struct ky_pf *pf, const struct ky_pf_at *at, struct ky_pf_device *device,
			   unsigned int lane)
{
	uint32_t number = block_device(at);
	char name[48];

	if (!device->lanes[lane]) {
		/* Perfetto shows tracks with the same name as one. */
		snprintf(name, sizeof(name), "block %u:%u", number >> 20, number & 0xfffff);
		device->lanes[lane] = ky_pf_track_named(pf, at->machine, 0, name);
	}
	return device->lanes[lane];
}

int ky_pf_on_block_issue(struct ky_pf *pf, const struct ky_pf_at *at)
{
	struct ky_pf_device *device = get_device(pf, at);
	uint64_t key = request_key(at);
	struct ky_pf_event event;
	unsigned int lane;
	int ret;

	/* Issued again (its completion was lost), or more under way than there are lanes. */
	if (!device || ky_map_get(&pf->requests, key) || !~device->used)
		return ky_pf_on_generic(pf, at);
	lane = (unsigned int)__builtin_ctzll(~device->used);
	if (ky_map_set(&pf->requests, key, (void *)(uintptr_t)(lane + 1)) < 0) {
		pf->out.failed = true;
		return 0;
	}
	device->used |= UINT64_C(1) << lane;
	event = ky_pf_event_begin(pf, at->machine, at->event->ns, KY_PF_SLICE_BEGIN,
				  lane_track(pf, at, device, lane), at->cls->category,
				  block_name(at));
	ret = ky_pf_annotate(pf, at);
	ky_pf_event_end(pf, event);
	return ret;
}

int ky_pf_on_block_complete(struct ky_pf *pf, const struct ky_pf_at *at)
{
	uintptr_t lane = (uintptr_t)ky_map_del(&pf->requests, request_key(at));
	struct ky_pf_device *device = lane ? get_device(pf, at) : NULL;
	struct ky_pf_event event;
	int ret;

	if (!device)
		return ky_pf_on_generic(pf, at);
	device->used &= ~(UINT64_C(1) << (lane - 1));
	event = ky_pf_event_begin(pf, at->machine, at->event->ns, KY_PF_SLICE_END,
				  lane_track(pf, at, device, (unsigned int)lane - 1),
				  at->cls->category, NULL);
	ret = ky_pf_annotate(pf, at);
	ky_pf_event_end(pf, event);
	return ret;
}
