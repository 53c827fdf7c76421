/* SPDX-License-Identifier: MIT */
/* Which events a session wants: its rules and filters, what hits find, and the bytes that switch events on. */
#include <stdint.h>
#include <sys/syscall.h>

#include "tracer/tracer.h"

static unsigned char session_events_bit_of(const struct ky_slot *slot)
{
	return (unsigned char)(1u << slot->number);
}

static const struct ky_session_rule *rules_of(const struct ky_session_file *file)
{
	return (const void *)((const char *)file + file->rules);
}

/*
 * The filters of all rules that take the event, as a list; an event that is taken by one without
 * a filter has none. Returns whether there is a rule at all that could be true.
 */
static bool link_filters(const struct ky_slot *slot, const struct ky_event *event,
			 struct ky_filter_linked **to, uint32_t *reason)
{
	const struct ky_session_rule *rules = rules_of(slot->file);
	struct ky_filter_linked *list = NULL, *filter;
	bool is_always = false;

	for (uint32_t i = 0; i < slot->file->n_rules && !is_always; i++) {
		if (!ky_rule_takes(slot->file, &rules[i], event))
			continue;
		/* The end of a span belongs to its begin, which was filtered. */
		if (!rules[i].n_code || event->kind == KY_EVENT_SPAN_END ||
		    event->kind == KY_EVENT_QUERY) {
			is_always = true;
			continue;
		}
		filter = NULL;
		int off = ky_filter_link(slot, &rules[i], event, &filter);

		if (off || !filter)
			*reason = off ? (uint32_t)off : KY_OFF_FIELD;
		if (filter) {
			filter->next = list;
			list = filter;
		}
	}
	*to = is_always ? NULL : list;
	return is_always || list;
}

static int session_events_make_ring(struct ky_slot *slot)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[slot->number];
	int dir_fd = ky_directory_open(slot->directory);
	int os_error = 0, result;

	if (dir_fd < 0) {
		shared->os_error = -dir_fd;
		return KY_OFF_DIRECTORY;
	}
	result = ky_directory_is_safe(dir_fd) ? ky_ring_file_make(slot, dir_fd, &os_error)
					      : KY_OFF_OWNER;
	shared->os_error = os_error;
	if (result && result != KY_OFF_OWNER)
		ky_ring_file_note(dir_fd, (uint32_t)result, os_error, NULL, 0);
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
	return result;
}

static bool has_one_test(const struct ky_event *event, const struct ky_filter_linked *filter)
{
	return filter && filter->n_tests == 1 && !filter->next && event->kind != KY_EVENT_QUERY;
}

/* The bytes of an event that is one number, where there is nothing else to do than one test. */
static uint8_t fast_bytes(const struct ky_slot *slot, const struct ky_event *event,
			  const struct ky_reservation *reservation)
{
	bool is_one = event->shape == KY_SHAPE_FIXED && event->n_fields == 1;
	bool is_easy = !reservation->filter || reservation->has_one_test;

	if (!is_one || !is_easy || slot->n_contexts || slot->clock != KY_CLOCK_RECORD_TSC ||
	    reservation->id > KY_HEADER_ID_MAX || event->kind == KY_EVENT_QUERY)
		return 0;
	return event->fixed_bytes;
}

/* Release: who finds the reservation finds it whole, and its slot. Partners: acquire in hits. */
static void session_events_publish(struct ky_event *event, uint32_t number,
				   struct ky_reservation *reservation)
{
	struct ky_reservation *only = NULL;
	uint32_t n = 0;

	if (!event->is_gone)
		__atomic_store_n(&event->site->straight, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&event->only, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&event->reservations[number], reservation, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (!event->reservations[i])
			continue;
		only = event->reservations[i];
		n++;
	}
	only = n == 1 ? only : NULL;
	__atomic_store_n(&event->only, only, __ATOMIC_RELEASE);
	if (only && only->fast_bytes == 8 && !only->filter && !event->is_gone &&
	    only->site == event->site)
		__atomic_store_n(&event->site->straight, only, __ATOMIC_RELEASE);
}

static int want(struct ky_slot *slot, struct ky_event *event, struct ky_filter_linked *filter)
{
	struct ky_reservation *reservation = ky_trace_alloc(sizeof(*reservation));

	if (!reservation)
		return KY_OFF_MEMORY;
	reservation->ring = slot->ring;
	reservation->room = slot->ring.subbuf_mask - 12;
	reservation->clock = slot->clock;
	reservation->slot = slot;
	reservation->site = event->site;
	reservation->filter = filter;
	reservation->asked_cookie = &ky_trace.control->slots[slot->number].cookie;
	reservation->cookie = slot->cookie;
	reservation->id = event->ids[slot->number];
	reservation->bit = session_events_bit_of(slot);
	reservation->has_one_test = has_one_test(event, filter);
	if (reservation->has_one_test)
		reservation->test = filter->tests[0];
	reservation->fast_bytes = fast_bytes(slot, event, reservation);
	session_events_publish(event, slot->number, reservation);
	__atomic_fetch_or(&event->mask, reservation->bit, __ATOMIC_RELEASE);
	slot->n_events += event->kind != KY_EVENT_QUERY;
	return 0;
}

/* Decide whether @slot wants @event. A reason why not, or 0. */
static uint32_t session_events_decide(struct ky_slot *slot, struct ky_event *event)
{
	struct ky_filter_linked *filter;
	uint32_t reason = 0;

	if (!link_filters(slot, event, &filter, &reason))
		return reason;
	/* Another rule takes it. */
	reason = reason == KY_OFF_FIELD ? 0 : reason;
	if (!slot->ring.file)
		reason = (uint32_t)session_events_make_ring(slot);
	if (slot->ring.file && event->kind != KY_EVENT_QUERY &&
	    !(event->has_id & session_events_bit_of(slot)))
		reason = (uint32_t)ky_ring_file_id(slot, event);
	if (slot->ring.file &&
	    (event->kind == KY_EVENT_QUERY || (event->has_id & session_events_bit_of(slot)))) {
		int off = want(slot, event, filter);

		reason = off ? (uint32_t)off : reason;
	}
	return reason;
}

/* Not from the record, which lies in memory that others may write to: pages are aligned. */
static uint32_t byte_of(const struct ky_event *event)
{
	return (uint32_t)((uintptr_t)event->enable % KY_ENABLE_BYTES);
}

static void session_events_expect(const struct ky_module *module, unsigned char bit,
				  const uint8_t *wanted, struct ky_event *event)
{
	uint32_t byte;

	if (event->module != module || event->is_gone)
		return;
	byte = byte_of(event);
	if (wanted[byte / 8] >> byte % 8 & 1)
		__atomic_fetch_or(&event->expected, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&event->expected, (unsigned char)~bit, __ATOMIC_RELEASE);
}

/* Hits that find other bits than these in their byte ask. */
static void expect(const struct ky_module *module, unsigned char bit, const uint8_t *wanted)
{
	for (struct ky_event *event = ky_trace.events; event; event = event->next)
		session_events_expect(module, bit, wanted, event);
}

void ky_session_correct_enable_bytes(const struct ky_slot *slot)
{
	unsigned char bit = session_events_bit_of(slot), *page;
	uint8_t wanted[KY_ENABLE_BYTES / 8];
	/* A child may have unloaded what its parent, whose pages these are, has still. */
	bool may_clear = ky_trace.pid == ky_trace_pid() || !ky_trace.slots[slot->number];

	for (struct ky_module *module = ky_trace.modules; module; module = module->next) {
		memset(wanted, 0, sizeof(wanted));
		for (struct ky_event *event = ky_trace.events; event; event = event->next) {
			if (event->module != module || event->is_gone || !(event->mask & bit))
				continue;
			wanted[byte_of(event) / 8] |= (uint8_t)(1u << byte_of(event) % 8);
		}
		expect(module, bit, wanted);
		page = (unsigned char *)ky_trace.control + KY_ENABLE_OFFSET(module->page, 0);
		for (uint32_t i = 0; i < KY_ENABLE_BYTES; i++) {
			bool is_wanted = wanted[i / 8] >> i % 8 & 1;

			if (is_wanted && !(page[i] & bit))
				__atomic_fetch_or(&page[i], bit, __ATOMIC_RELEASE);
			else if (!is_wanted && may_clear && (page[i] & bit))
				__atomic_fetch_and(&page[i], (unsigned char)~bit, __ATOMIC_RELAXED);
		}
	}
}

void ky_session_report(const struct ky_slot *slot)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[slot->number];

	shared->n_events = slot->n_events;
	shared->reason = slot->reason;
}

/* Events that could be wanted, but for what the filter is about. */
struct lacking {
	const struct ky_event *events[KY_NOTE_EVENTS_MAX];
	uint32_t n;
};

static void note_lacking(const struct ky_slot *slot, const struct lacking *lacking)
{
	int dir_fd = lacking->n ? ky_directory_open(slot->directory) : -1;

	if (dir_fd < 0)
		return;
	if (ky_directory_is_safe(dir_fd))
		ky_ring_file_note(dir_fd, KY_OFF_FIELD, 0, lacking->events, lacking->n);
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
}

void ky_session_ask(struct ky_slot *slot)
{
	unsigned char bit = session_events_bit_of(slot);
	uint32_t reason = slot->reason;
	struct lacking lacking = {.n = 0};
	bool is_new = false;

	for (struct ky_event *event = ky_trace.events; event; event = event->next) {
		uint32_t now;

		if (event->is_gone || (event->known & bit))
			continue;
		is_new = true;
		now = slot->file ? session_events_decide(slot, event) : 0;
		if (now == KY_OFF_FIELD && lacking.n < KY_NOTE_EVENTS_MAX)
			lacking.events[lacking.n++] = event;
		reason = now ? now : reason;
		event->known |= bit;
	}
	if (!is_new)
		return;
	ky_session_correct_enable_bytes(slot);
	note_lacking(slot, &lacking);
	if (slot->file && !slot->n_events)
		reason = reason ? reason : KY_OFF_NO_EVENT;
	else if (reason == KY_OFF_NO_EVENT || reason == KY_OFF_FIELD)
		reason = 0;
	__atomic_store_n(&slot->reason, reason, __ATOMIC_RELAXED);
	ky_session_report(slot);
}

void ky_sessions_new_events(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (ky_trace.slots[i])
			ky_session_ask(ky_trace.slots[i]);
	}
}

static void session_event_forget(uint32_t number, bool keep_ids, unsigned char keep,
				 struct ky_event *event)
{
	/* First of all: a hit from now on asks. Partner: wanted_by(). */
	__atomic_fetch_and(&event->expected, keep, __ATOMIC_RELEASE);
	__atomic_fetch_and(&event->mask, keep, __ATOMIC_RELEASE);
	event->known &= keep;
	event->has_id &= keep_ids ? 0xff : keep;
	session_events_publish(event, number, NULL);
}

void ky_session_forget_events(uint32_t number, bool keep_ids)
{
	unsigned char keep = (unsigned char)~(1u << number);

	for (struct ky_event *event = ky_trace.events; event; event = event->next)
		session_event_forget(number, keep_ids, keep, event);
}
