/* SPDX-License-Identifier: MIT */
#include "store/read/trace-stacks.h"

#include <stdlib.h>

#include "base/error.h"
#include "ctf/decode/stored-stacks.h"
#include "store/read/feed.h"
#include "store/read/walk.h"

#define EVENTS_MAX 64

static int trace_stacks_take(struct ky_walk *walk, struct ky_stored_stacks *stacks)
{
	struct ky_event events[EVENTS_MAX];
	int n, ret = KYMO_OK;

	while (!ret && (n = ky_decoder_next(walk->decoder, events, EVENTS_MAX, NULL)) > 0)
		for (int i = 0; i < n && !ret; i++)
			ret = ky_stored_stacks_take(stacks, &events[i]);
	return ret;
}

/* Up to damage; the reader of the events reports it. */
static int trace_stacks_read(const struct ky_stream *stream, struct ky_stored_stacks *stacks)
{
	struct ky_walk walk;
	int ret = ky_walk_init(&walk, stream, NULL);

	if (ret < 0)
		return ret;
	while (!ret && ky_walk_next(&walk, NULL) > 0) {
		ret = trace_stacks_take(&walk, stacks);
		if (!ret && ky_walk_leave(&walk, NULL) < 0)
			break;
	}
	ky_walk_fini(&walk);
	return ret;
}

static int trace_stacks_load(void *data, struct ky_stored_stacks *stacks)
{
	const struct ky_trace *trace = data;
	int ret = KYMO_OK;

	ky_vec_foreach(&trace->streams, stream)
		if (!ret && (*stream)->cls && ky_stored_stacks_are_in((*stream)->cls))
			ret = trace_stacks_read(*stream, stacks);
	return ret;
}

int ky_trace_stacks_attach(struct ky_trace *trace, bool grows)
{
	bool any = false;

	if (!trace->cls || trace->stacks)
		return KYMO_OK;
	ky_vec_foreach(&trace->cls->streams, stream)
		any |= ky_stored_stacks_are_in(*stream);
	if (!any)
		return KYMO_OK;
	if (trace->feed) {
		if (!trace->feed->stacks)
			trace->feed->stacks = ky_stored_stacks_new(NULL, NULL, true);
		trace->cls->stacks = trace->feed->stacks;
		return trace->cls->stacks ? KYMO_OK : KYMO_E_MEMORY;
	}
	trace->stacks = ky_stored_stacks_new(trace_stacks_load, trace, grows);
	trace->cls->stacks = trace->stacks;
	return trace->stacks ? KYMO_OK : KYMO_E_MEMORY;
}
