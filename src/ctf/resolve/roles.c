/* SPDX-License-Identifier: MIT */
#include "ctf/resolve/resolve.h"

#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/model/walk.h"

static bool is_uint(const struct ky_field_class *cls, uint32_t max_bits)
{
	return cls->kind == KY_FIELD_UINT && cls->num.length_bits <= max_bits;
}

/* ---- packet header ----------------------------------------------------------------------- */

static bool roles_is_uuid(const struct ky_field_class *cls)
{
	const struct ky_field_class *element;

	if (cls->kind == KY_FIELD_TEXT)
		return !cls->text.length_ref && cls->text.length_bytes == 16;
	if (cls->kind != KY_FIELD_ARRAY || cls->array.length_ref || cls->array.length != 16)
		return false;
	element = cls->array.element;
	return ky_field_is_int(element) && element->num.length_bits == 8;
}

static int header_member(struct ky_trace_class *trace, size_t i, struct kymo_error *err)
{
	const struct ky_member *member = &trace->packet_header->st.members[i];
	struct ky_field_class *cls = member->cls;
	const char *name = member->display;

	if (!strcmp(name, "magic")) {
		if (i || !is_uint(cls, 32) || cls->num.length_bits != 32)
			return ky_error_set(err, KYMO_E_FORMAT,
					    "trace.packet.header.magic must come first and be an "
					    "unsigned integer of 32 bits");
		cls->role = KY_ROLE_MAGIC;
	} else if (!strcmp(name, "uuid")) {
		if (!roles_is_uuid(cls))
			return ky_error_set(
				err, KYMO_E_FORMAT,
				"trace.packet.header.uuid must be an array of 16 bytes");
		cls->role = KY_ROLE_TRACE_UUID;
	} else if (!strcmp(name, "stream_id")) {
		if (!is_uint(cls, 64))
			return ky_error_set(err, KYMO_E_FORMAT,
					    "trace.packet.header.stream_id must be an unsigned "
					    "integer of up to 64 bits");
		cls->role = KY_ROLE_STREAM_CLASS_ID;
	} else if (!strcmp(name, "stream_instance_id") && is_uint(cls, 64)) {
		cls->role = KY_ROLE_STREAM_ID;
	} else if (!strcmp(name, "cpu_id") && is_uint(cls, 64)) {
		cls->role = KY_ROLE_CPU_ID;
	}
	return KYMO_OK;
}

KY_DEEP2(bool, has_role, const struct ky_field_class *, enum ky_role)

static bool has_role(const struct ky_field_class *cls, enum ky_role role)
{
	if (!cls)
		return false;
	if (ky_has_role(cls, role))
		return true;
	for (size_t i = 0; i < ky_field_n_children(cls); i++) {
		if (has_role_deep(false, ky_field_child(cls, i), role))
			return true;
	}
	return false;
}

bool ky_stream_class_is_used(const struct ky_stream_class *stream)
{
	return stream->trace->major == 1 || !stream->id ||
	       has_role(stream->trace->packet_header, KY_ROLE_STREAM_CLASS_ID);
}

bool ky_event_class_is_used(const struct ky_event_class *event)
{
	return ky_stream_class_is_used(event->stream) &&
	       (event->stream->trace->major == 1 || !event->id ||
		has_role(event->stream->event_header, KY_ROLE_EVENT_ID));
}

uint64_t ky_stream_class_id_told(const struct ky_stream_class *stream)
{
	return stream->trace->major == 1 &&
			       !has_role(stream->trace->packet_header, KY_ROLE_STREAM_CLASS_ID)
		       ? 0
		       : stream->id;
}

uint64_t ky_event_class_id_told(const struct ky_event_class *event)
{
	return event->stream->trace->major == 1 &&
			       !has_role(event->stream->event_header, KY_ROLE_EVENT_ID)
		       ? 0
		       : event->id;
}

static int header_roles(struct ky_trace_class *trace, struct kymo_error *err)
{
	const struct ky_field_class *header = trace->packet_header;
	int ret;

	if (header && header->kind != KY_FIELD_STRUCT)
		return ky_error_set(err, KYMO_E_FORMAT, "trace.packet.header is not a struct");
	for (size_t i = 0; header && i < header->st.n_members; i++) {
		ret = header_member(trace, i, err);
		if (ret < 0)
			return ret;
	}
	if (trace->streams.len > 1 && !has_role(header, KY_ROLE_STREAM_CLASS_ID))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the trace has %zu streams, but its packet header has no "
				    "stream_id to tell them apart",
				    trace->streams.len);
	return KYMO_OK;
}

/* ---- clocks ------------------------------------------------------------------------------ */

static int map_clock(struct ky_trace_class *trace, struct ky_field_class *cls, const char *name,
		     struct kymo_error *err)
{
	struct ky_clock_class *clock;

	if (cls->num.clock)
		return KYMO_OK;
	if (trace->clocks.len > 1)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the trace has %zu clocks, and \"%s\" does not say which one "
				    "it uses",
				    trace->clocks.len, name);
	if (trace->clocks.len) {
		clock = trace->clocks.data[0];
	} else {
		/* The specification: without a clock, time stamps count nanoseconds. */
		clock = ky_clock_class_new(trace, "default");
		if (!clock)
			return ky_error_nomem(err);
	}
	cls->num.clock = clock;
	return KYMO_OK;
}

bool ky_clock_is_lttng_monotonic(const struct ky_trace_class *trace,
				 const struct ky_clock_class *clock)
{
	const struct ky_env *env = ky_env_find(trace, "tracer_name");

	return !strcmp(clock->name, "monotonic") && env && env->is_text &&
	       !strncmp(env->text, "lttng", strlen("lttng"));
}

static int use_clock(struct ky_stream_class *stream, struct ky_clock_class *clock,
		     struct kymo_error *err)
{
	if (stream->clock && stream->clock != clock)
		return ky_error_set(
			err, KYMO_E_FORMAT, "stream %llu uses two clocks, \"%s\" and \"%s\"",
			(unsigned long long)stream->id, stream->clock->name, clock->name);
	stream->clock = clock;
	return KYMO_OK;
}

KY_DEEP3(int, roles_find_clock, struct ky_stream_class *, const struct ky_field_class *,
	 struct kymo_error *)

static int roles_find_clock(struct ky_stream_class *stream, const struct ky_field_class *cls,
			    struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!cls)
		return KYMO_OK;
	if (ky_field_is_num(cls) && cls->num.clock)
		return use_clock(stream, cls->num.clock, err);
	for (size_t i = 0; i < ky_field_n_children(cls) && ret == KYMO_OK; i++)
		ret = roles_find_clock_deep(KYMO_E_MEMORY, stream, ky_field_child(cls, i), err);
	return ret;
}

static int stream_clock(struct ky_stream_class *stream, struct kymo_error *err)
{
	int ret = roles_find_clock(stream, stream->packet_context, err);

	if (ret == KYMO_OK)
		ret = roles_find_clock(stream, stream->event_header, err);
	if (ret == KYMO_OK)
		ret = roles_find_clock(stream, stream->event_context, err);
	for (size_t i = 0; i < stream->events.len && ret == KYMO_OK; i++) {
		ret = roles_find_clock(stream, stream->events.data[i]->context, err);
		if (ret == KYMO_OK)
			ret = roles_find_clock(stream, stream->events.data[i]->payload, err);
	}
	return ret;
}

int ky_stream_clocks(struct ky_trace_class *trace, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < trace->streams.len && ret == KYMO_OK; i++)
		ret = stream_clock(trace->streams.data[i], err);
	return ret;
}

/* ---- packet context ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum ky_role role;
	bool required_uint; /* decoding depends on it */
} context_names[] = {
	{"packet_size", KY_ROLE_PACKET_SIZE, true},
	{"content_size", KY_ROLE_CONTENT_SIZE, true},
	{"timestamp_begin", KY_ROLE_CLOCK_BEGIN, false},
	{"timestamp_end", KY_ROLE_CLOCK_END, false},
	{"events_discarded", KY_ROLE_DISCARDED, false},
	{"packet_seq_num", KY_ROLE_SEQUENCE, false},
	{"cpu_id", KY_ROLE_CPU_ID, false},
};

static int context_member(struct ky_trace_class *trace, const struct ky_member *member,
			  struct kymo_error *err)
{
	struct ky_field_class *cls = member->cls;

	for (size_t i = 0; i < sizeof(context_names) / sizeof(context_names[0]); i++) {
		if (strcmp(member->display, context_names[i].name) != 0)
			continue;
		if (!is_uint(cls, 64)) {
			if (!context_names[i].required_uint)
				return KYMO_OK;
			return ky_error_set(err, KYMO_E_FORMAT,
					    "stream.packet.context.%s must be an unsigned integer "
					    "of up to 64 bits",
					    member->name);
		}
		cls->role = context_names[i].role;
		if (cls->role == KY_ROLE_CLOCK_BEGIN || cls->role == KY_ROLE_CLOCK_END)
			return map_clock(trace, cls, member->name, err);
	}
	return KYMO_OK;
}

static int context_roles(struct ky_stream_class *stream, struct kymo_error *err)
{
	const struct ky_field_class *context = stream->packet_context;
	int ret = KYMO_OK;

	if (context && context->kind != KY_FIELD_STRUCT)
		return ky_error_set(err, KYMO_E_FORMAT, "stream.packet.context is not a struct");
	for (size_t i = 0; context && i < context->st.n_members && ret == KYMO_OK; i++)
		ret = context_member(stream->trace, &context->st.members[i], err);
	return ret;
}

/* ---- event header ------------------------------------------------------------------------ */

static int event_header_field(struct ky_trace_class *trace, struct ky_field_class *cls,
			      const char *name, struct kymo_error *err)
{
	if (!is_uint(cls, 64))
		return KYMO_OK;
	if (!strcmp(name, "id")) {
		cls->role = KY_ROLE_EVENT_ID;
	} else if (!strcmp(name, "timestamp")) {
		cls->role = KY_ROLE_CLOCK_BEGIN;
		return map_clock(trace, cls, name, err);
	} else if (cls->num.clock) {
		cls->role = KY_ROLE_CLOCK_BEGIN;
	}
	return KYMO_OK;
}

KY_DEEP3(int, event_header_roles, struct ky_trace_class *, struct ky_field_class *,
	 struct kymo_error *)

/* Wherever nested: LTTng's headers keep them in the options of a variant. */
static int event_header_roles(struct ky_trace_class *trace, struct ky_field_class *cls,
			      struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < ky_field_n_children(cls) && ret == KYMO_OK; i++) {
		struct ky_field_class *child = ky_field_child(cls, i);

		if (cls->kind == KY_FIELD_STRUCT)
			ret = event_header_field(trace, child, cls->st.members[i].display, err);
		else if (cls->kind == KY_FIELD_VARIANT)
			ret = event_header_field(trace, child, cls->var.options[i].display, err);
		if (ret == KYMO_OK)
			ret = event_header_roles_deep(KYMO_E_MEMORY, trace, child, err);
	}
	return ret;
}

static int stream_roles(struct ky_stream_class *stream, struct kymo_error *err)
{
	int ret = context_roles(stream, err);

	if (ret < 0)
		return ret;
	if (stream->event_header) {
		ret = event_header_roles(stream->trace, stream->event_header, err);
		if (ret < 0)
			return ret;
	}
	if (stream->events.len > 1 && !has_role(stream->event_header, KY_ROLE_EVENT_ID))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "stream %llu has %zu events, but its event header has no id to "
				    "tell them apart",
				    (unsigned long long)stream->id, stream->events.len);
	return KYMO_OK;
}

int ky_roles_by_name(struct ky_trace_class *trace, struct kymo_error *err)
{
	int ret = header_roles(trace, err);

	for (size_t i = 0; i < trace->streams.len && ret == KYMO_OK; i++)
		ret = stream_roles(trace->streams.data[i], err);
	return ret;
}

static void cpu_role(struct ky_field_class *root)
{
	for (size_t i = 0; root && i < root->st.n_members; i++) {
		struct ky_field_class *cls = root->st.members[i].cls;

		if (cls->role == KY_ROLE_NONE && is_uint(cls, 64) &&
		    !strcmp(root->st.members[i].display, "cpu_id"))
			cls->role = KY_ROLE_CPU_ID;
	}
}

void ky_cpu_roles(struct ky_trace_class *trace)
{
	cpu_role(trace->packet_header);
	for (size_t i = 0; i < trace->streams.len; i++)
		cpu_role(trace->streams.data[i]->packet_context);
}
