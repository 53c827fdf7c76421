/* SPDX-License-Identifier: MIT */
#include "cli/reading/join-marks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mark.h"
#include "base/strbuf.h"
#include "flow/graph/flow.h"
#include "store/read/clocks.h"

#define SUFFIX "mark"

/* "TRACE:mark", or "mark": the length of TRACE, or 0. Negative: it asks for no mark. */
static int join_marks_wants(const char *offset)
{
	size_t len = strlen(offset), suffix = strlen(SUFFIX);

	if (strcmp(offset, SUFFIX) == 0)
		return 0;
	if (len <= suffix + 1 || strcmp(offset + len - suffix, SUFFIX) != 0 ||
	    offset[len - suffix - 1] != ':')
		return -1;
	return (int)(len - suffix - 1);
}

bool ky_join_has_marks(const struct ky_text_list *offsets)
{
	for (size_t i = 0; i < offsets->len; i++) {
		if (join_marks_wants(offsets->items[i]) >= 0)
			return true;
	}
	return false;
}

/* ---- marks of a trace --------------------------------------------------------------------- */

struct join_found {
	bool any;
	int64_t offset_ns; /* what takes the event's time to the mark's */
};

/* A mark is written a little after its time: the least delay counts. */
static void join_marks_event(struct join_found *found, struct ky_values *values,
			     const struct ky_event *event)
{
	struct kymo_error ignored;
	int n = ky_values_decode(values, event, KY_SCOPE_PAYLOAD, &ignored);
	int64_t ns, offset_ns;

	for (int i = 0; i < (int)values->list.len && n > 0; i++) {
		const struct ky_value *v = &values->list.data[i];

		if ((v->cls->kind != KY_FIELD_STRING && v->cls->kind != KY_FIELD_TEXT) ||
		    !ky_mark_find(v->str.data, v->str.len_bytes, &ns) ||
		    __builtin_sub_overflow(ns, event->ns, &offset_ns))
			continue;
		if (!found->any || offset_ns > found->offset_ns)
			found->offset_ns = offset_ns;
		found->any = true;
	}
}

/* Does an event of the class have texts? */
static bool join_marks_may_have(const struct ky_event_class *cls)
{
	const struct ky_field_class *payload = cls->payload;

	for (size_t i = 0; payload && i < payload->st.n_members; i++) {
		enum ky_field_kind kind = payload->st.members[i].cls->kind;

		if (kind != KY_FIELD_UINT && kind != KY_FIELD_SINT && kind != KY_FIELD_FLOAT)
			return true;
	}
	return false;
}

static int join_marks_stream(struct join_found *found, const struct ky_stream *stream,
			     struct ky_values *values)
{
	uint8_t *wanted = calloc(stream->trace->cls->events.len + 1, 1);
	struct kymo_error ignored;
	struct ky_batch batch;
	struct ky_flow *flow;

	if (!wanted)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < stream->cls->events.len; i++) {
		const struct ky_event_class *cls = stream->cls->events.data[i];

		wanted[cls->index] = join_marks_may_have(cls);
	}
	/* The command that reads the events reports damage. */
	if (ky_source_open(stream, &flow, &ignored) == 0) {
		ky_source_want(flow, wanted);
		while (ky_flow_next(flow, &batch, &ignored) > 0) {
			for (size_t i = 0; i < batch.n_events; i++) {
				if (batch.events[i].ns != INT64_MIN)
					join_marks_event(found, values, &batch.events[i]);
			}
		}
		ky_flow_close(flow);
	}
	free(wanted);
	return KYMO_OK;
}

/* The traces that @pattern means (NULL: all) have one offset: they are of one file. */
static int join_marks_search(const struct ky_trace_set *set, const char *pattern,
			     struct join_found *found)
{
	struct ky_values values;
	int ret = KYMO_OK;

	ky_values_init(&values);
	ky_vec_foreach(&set->streams, it) {
		const struct ky_stream *stream = *it;

		if (ret < 0 || !stream->cls ||
		    (pattern && !ky_clocks_is_meant(stream->trace, pattern)))
			continue;
		ret = join_marks_stream(found, stream, &values);
	}
	ky_values_fini(&values);
	return ret;
}

/* ---- offsets ------------------------------------------------------------------------------ */

static int join_marks_add(struct ky_joined_offsets *joined, const char *text,
			  struct kymo_error *err)
{
	char *copy = strdup(text);

	if (!copy || ky_vec_push(&joined->items, copy) < 0) {
		free(copy);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static int join_marks_resolve(const struct ky_trace_set *set, const char *offset, int pattern_len,
			      struct ky_joined_offsets *joined, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *pattern = pattern_len ? strndup(offset, (size_t)pattern_len) : NULL;
	struct join_found found = {.any = false};
	int ret;

	if (pattern_len && !pattern)
		return ky_error_nomem(err);
	ret = join_marks_search(set, pattern, &found);
	if (ret < 0) {
		ret = ky_error_nomem(err);
	} else if (!found.any) {
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "--clock-offset %s: no event of it is a mark of kymo mark",
				   offset);
	} else {
		if (pattern)
			ky_strbuf_addf(&text, "%s:", pattern);
		ky_strbuf_addi(&text, found.offset_ns);
		ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
					      : join_marks_add(joined, text.data, err);
	}
	ky_strbuf_fini(&text);
	free(pattern);
	return ret;
}

int ky_join_marks(const struct ky_trace_set *set, const struct ky_text_list *offsets,
		  struct ky_joined_offsets *joined, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < offsets->len && ret == KYMO_OK; i++) {
		int pattern_len = join_marks_wants(offsets->items[i]);

		if (pattern_len < 0)
			ret = join_marks_add(joined, offsets->items[i], err);
		else if (set)
			ret = join_marks_resolve(set, offsets->items[i], pattern_len, joined, err);
	}
	return ret;
}

void ky_joined_offsets_fini(struct ky_joined_offsets *joined)
{
	ky_vec_foreach(&joined->items, item)
		free(*item);
	ky_vec_fini(&joined->items);
}
