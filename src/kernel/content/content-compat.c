/* SPDX-License-Identifier: MIT */
/*
 * Calls of 32-bit programs, and those that the kernel does not know. tracefs's events leave them out, so what the
 * programs write of them is all there is: number, arguments, result, and content behind them. They wait by CPU until
 * the CPU's other events of their time are converted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/events/compat-calls.h"
#include "kernel/content/content-internal.h"

/* How far a call's exit is looked for, to tell its entry what was read only then. */
#define LATE_RECORDS 64

void ky_content_want_compat(struct ky_content *content)
{
	content->options.compat = true;
}

void ky_content_want_unknown(struct ky_content *content, const bool unknown[KY_CONTENT_MAX_CALLS])
{
	content->options.unknown = true;
	memcpy(content->unknown, unknown, sizeof(content->unknown));
}

void ky_content_begin(struct ky_content *content, uint64_t from_ns)
{
	content->from_ns = from_ns;
}

/* ---- choosing ------------------------------------------------------------------------- */

const struct ky_content_call *ky_content_call_find_compat(const char *event, bool *is_exit)
{
	char like[80];

	return ky_compat_like(event, like, sizeof(like)) ? ky_content_call_find(like, is_exit)
							 : NULL;
}

static void set_whole(struct ky_content_descriptor *to, uint8_t bit, bool on)
{
	to->whole = (uint8_t)(on ? to->whole | bit : to->whole & ~bit);
}

static void select_unknown(struct ky_content *content, uint8_t bit, bool on)
{
	for (uint32_t nr = 0; nr < KY_CONTENT_MAX_CALLS; nr++) {
		if (!content->unknown[nr])
			continue;
		content->descriptors[nr].unknown = KY_CONTENT_UNKNOWN;
		set_whole(&content->descriptors[nr], bit, on);
		ky_content_tell(content, nr);
	}
}

static void select_multiplexed(struct ky_content *content, uint32_t number,
			       struct ky_content_descriptor same, uint32_t i)
{
	if (ky_content_multiplexed(i, &same) != number || !number)
		return;
	content->descriptors[KY_CONTENT_MULTIPLEXED_AT + i] = same;
	ky_content_tell(content, KY_CONTENT_MULTIPLEXED_AT + i);
}

static void select_number(struct ky_content *content, uint32_t number, uint8_t bit, bool on)
{
	struct ky_content_descriptor *to = &content->descriptors[KY_CONTENT_MAX_CALLS + number];

	set_whole(to, bit, on);
	ky_content_tell(content, KY_CONTENT_MAX_CALLS + number);
	for (uint32_t i = 0; i < KY_CONTENT_MULTIPLEXED; i++)
		select_multiplexed(content, number, *to, i);
}

void ky_content_select_call(struct ky_content *content, const char *system, const char *event,
			    bool on)
{
	bool is_exit, ignored;
	const struct ky_compat_call *compat = ky_compat_call_find(event, &is_exit);
	uint8_t bit = is_exit ? KY_CONTENT_WHOLE_EXIT : KY_CONTENT_WHOLE_ENTRY;
	const struct ky_content_call *call;

	if (!compat)
		return;
	if (ky_unknown_is_system(system)) {
		select_unknown(content, bit, on);
		return;
	}
	if (compat->number == KY_COMPAT_UNKNOWN) {
		for (uint16_t nr = 0; nr < KY_COMPAT_NUMBERS; nr++)
			if (nr == KY_COMPAT_UNKNOWN || !ky_compat_call_is_named(nr))
				select_number(content, nr, bit, on);
		return;
	}
	call = on ? ky_content_call_find_compat(event, &ignored) : NULL;
	if (call)
		ky_content_describe(content, call, is_exit,
				    &content->descriptors[KY_CONTENT_MAX_CALLS + compat->number]);
	select_number(content, compat->number, bit, on);
}

/* ---- what waits ----------------------------------------------------------------------- */

int ky_content_make_calls(struct ky_content *content, struct kymo_error *err)
{
	if (!content->options.compat && !content->options.unknown)
		return KYMO_OK;
	content->calls = calloc(content->programs.regions.n, sizeof(*content->calls));
	return content->calls ? KYMO_OK : ky_error_nomem(err);
}

static struct call_queue *content_compat_queue_of(const struct ky_content *content, uint32_t cpu)
{
	return content->calls && cpu < content->programs.regions.n ? &content->calls[cpu] : NULL;
}

static const struct ky_content_descriptor *descriptor_of(const struct ky_content *content,
							 const struct ky_content_record *record)
{
	uint32_t key = record->number < KY_CONTENT_BEYOND ? record->number : KY_CONTENT_BEYOND;

	if (record->flags & KY_CONTENT_COMPAT)
		key += KY_CONTENT_MAX_CALLS;
	return &content->descriptors[key];
}

void ky_content_push_call(struct ky_content *content, uint32_t cpu,
			  const struct ky_content_record *record)
{
	size_t size = sizeof(struct pending) - sizeof(*record) + record->bytes;
	struct call_queue *queue = content_compat_queue_of(content, cpu);
	const struct ky_content_descriptor *to = descriptor_of(content, record);
	bool is_exit = (record->flags & KY_CONTENT_EXIT) != 0;
	struct pending *p;

	/* Before the recording; or an exit that only tells what its entry could not. */
	if (!queue || record->time_ns < content->from_ns ||
	    !(to->whole & (is_exit ? KY_CONTENT_WHOLE_EXIT : KY_CONTENT_WHOLE_ENTRY)))
		return;
	p = queue->bytes + size > KY_CONTENT_PENDING_BYTES ? NULL : malloc(size);
	if (!p) {
		queue->lost++;
		return;
	}
	memcpy(&p->record, record, record->bytes);
	p->size = size;
	p->next = NULL;
	*(queue->last ? &queue->last->next : &queue->first) = p;
	queue->last = p;
	queue->bytes += size;
}

static struct pending *take_first(struct call_queue *queue)
{
	struct pending *p = queue->first;

	queue->first = p->next;
	if (!queue->first)
		queue->last = NULL;
	queue->bytes -= p->size;
	return p;
}

void ky_content_free_calls(struct ky_content *content)
{
	for (uint32_t cpu = 0; content->calls && cpu < content->programs.regions.n; cpu++)
		while (content->calls[cpu].first)
			free(take_first(&content->calls[cpu]));
	free(content->calls);
}

uint64_t ky_content_next_call(const struct ky_content *content, uint32_t cpu)
{
	const struct call_queue *queue = content_compat_queue_of(content, cpu);

	return queue && queue->first ? queue->first->record.time_ns : UINT64_MAX;
}

/* What was read only at exit goes to the entry, too, when the call did not leave the CPU. */
static struct pending *content_compat_add_late(const struct call_queue *queue,
					       struct pending *entry)
{
	struct pending *p = queue->first;

	for (int n = 0; p && n < LATE_RECORDS && p->record.tid != entry->record.tid; n++)
		p = p->next;
	if (!p || p->record.tid != entry->record.tid)
		return entry;
	for (unsigned int place = 0; place < KY_CONTENT_IN_PLACES; place++)
		entry = ky_content_add_late(entry, &p->record, place);
	return entry;
}

const struct ky_content_record *ky_content_take_call(struct ky_content *content, uint32_t cpu)
{
	struct call_queue *queue = content_compat_queue_of(content, cpu);
	struct pending *p;

	free(content->held);
	content->held = NULL;
	if (!queue || !queue->first)
		return NULL;
	p = take_first(queue);
	if (!(p->record.flags & KY_CONTENT_EXIT))
		p = content_compat_add_late(queue, p);
	content->held = p;
	return &p->record;
}

uint64_t ky_content_lost_calls(const struct ky_content *content, uint32_t cpu)
{
	const struct call_queue *queue = content_compat_queue_of(content, cpu);

	return queue ? queue->lost + ky_content_ring_of(content, cpu)->lost_calls : 0;
}
