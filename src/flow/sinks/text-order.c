/* SPDX-License-Identifier: MIT */
/* The order of events of several machines, as far as `kymo sync` knows their clocks. */
#include "flow/sinks/text-internal.h"

#include "store/read/sync-file.h"

/* Traces of one machine have one line. */
static bool text_order_is_same(const struct ky_sync *a, const struct ky_sync *b)
{
	return a->group == b->group && strcmp(a->machine, b->machine) == 0;
}

static int64_t text_order_later(int64_t ns, uint64_t bound)
{
	int64_t sum;

	return __builtin_add_overflow(ns, bound, &sum) ? INT64_MAX : sum;
}

int ky_text_is_uncertain(struct ky_text *text, const struct ky_event *event,
			 const struct ky_trace *trace)
{
	const struct ky_sync *sync = trace->sync;
	uint64_t bound = ky_sync_bound_after(sync, event->ns);
	struct text_order *own = NULL;
	int is_uncertain = 0;

	if (!sync)
		return 0;
	ky_vec_foreach(&text->order, other) {
		if (other->sync == sync || text_order_is_same(other->sync, sync))
			own = other;
		else if (text_order_later(other->until_ns, bound) >= event->ns)
			is_uncertain = 1;
	}
	if (!own) {
		if (ky_vec_push(&text->order, (struct text_order){.sync = sync}) < 0)
			return KYMO_E_MEMORY;
		own = &text->order.data[text->order.len - 1];
	}
	own->until_ns = text_order_later(event->ns, bound);
	return is_uncertain;
}
