/* SPDX-License-Identifier: MIT */
/* kymo/model.h: traces, data streams, classes, clocks. Fields are in field-class.c. */
#include <string.h>

#include "api/api.h"

#define SAME(name) ((int)KYMO_##name == (int)KY_##name)

_Static_assert(SAME(SCOPE_PACKET_HEADER) && SAME(SCOPE_PACKET_CONTEXT) &&
		       SAME(SCOPE_EVENT_HEADER) && SAME(SCOPE_STREAM_CONTEXT) &&
		       SAME(SCOPE_EVENT_CONTEXT) && SAME(SCOPE_PAYLOAD) && SAME(SCOPE_COUNT),
	       "scopes");

/* ---- traces ---------------------------------------------------------------------------- */

const char *kymo_trace_path(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->path : NULL;
}

void kymo_trace_version(const struct kymo_trace *trace, unsigned int *major, unsigned int *minor)
{
	const struct ky_trace_class *cls = trace ? trace_in(trace)->cls : NULL;

	if (major)
		*major = cls ? cls->major : 0;
	if (minor)
		*minor = cls ? cls->minor : 0;
}

const char *kymo_trace_name(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->cls->name : NULL;
}

const char *kymo_trace_attributes(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->cls->attributes : NULL;
}

bool kymo_trace_is_big_endian(const struct kymo_trace *trace)
{
	return trace && trace_in(trace)->cls->big_endian;
}

const uint8_t *kymo_trace_uuid(const struct kymo_trace *trace)
{
	return trace && trace_in(trace)->cls->has_uuid ? trace_in(trace)->cls->uuid : NULL;
}

size_t kymo_trace_n_env(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->cls->env.len : 0;
}

const char *kymo_trace_env(const struct kymo_trace *trace, size_t i, const char **text,
			   int64_t *number)
{
	const struct ky_env *env;

	if (i >= kymo_trace_n_env(trace))
		return NULL;
	env = &trace_in(trace)->cls->env.data[i];
	if (text)
		*text = env->is_text ? env->text : NULL;
	if (number && !env->is_text)
		*number = env->number;
	return env->name;
}

const char *kymo_trace_env_text(const struct kymo_trace *trace, const char *name)
{
	const struct ky_env *env = NULL;

	if (trace && name)
		env = ky_env_find(trace_in(trace)->cls, name);
	return env && env->is_text ? env->text : NULL;
}

size_t kymo_trace_n_clocks(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->cls->clocks.len : 0;
}

const struct kymo_clock *kymo_trace_clock(const struct kymo_trace *trace, size_t i)
{
	if (i >= kymo_trace_n_clocks(trace))
		return NULL;
	return clock_out(trace_in(trace)->cls->clocks.data[i]);
}

size_t kymo_trace_n_stream_classes(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->cls->streams.len : 0;
}

const struct kymo_stream_class *kymo_trace_stream_class(const struct kymo_trace *trace, size_t i)
{
	if (i >= kymo_trace_n_stream_classes(trace))
		return NULL;
	return stream_class_out(trace_in(trace)->cls->streams.data[i]);
}

size_t kymo_trace_n_event_classes(const struct kymo_trace *trace)
{
	return trace ? trace_in(trace)->cls->events.len : 0;
}

const struct kymo_event_class *kymo_trace_event_class(const struct kymo_trace *trace, size_t i)
{
	if (i >= kymo_trace_n_event_classes(trace))
		return NULL;
	return event_class_out(trace_in(trace)->cls->events.data[i]);
}

const struct kymo_event_class *kymo_trace_find_event_class(const struct kymo_trace *trace,
							   const char *name)
{
	for (size_t i = 0; name && i < kymo_trace_n_event_classes(trace); i++) {
		const struct ky_event_class *cls = trace_in(trace)->cls->events.data[i];

		if (!strcmp(cls->name, name))
			return event_class_out(cls);
	}
	return NULL;
}

/* ---- data streams ------------------------------------------------------------------------ */

const struct kymo_trace *kymo_stream_trace(const struct kymo_stream *stream)
{
	return stream ? trace_out(stream_in(stream)->trace) : NULL;
}

const struct kymo_stream_class *kymo_stream_stream_class(const struct kymo_stream *stream)
{
	return stream ? stream_class_out(stream_in(stream)->cls) : NULL;
}

const char *kymo_stream_name(const struct kymo_stream *stream)
{
	return stream ? stream_in(stream)->name : NULL;
}

const char *kymo_stream_path(const struct kymo_stream *stream)
{
	return stream ? stream_in(stream)->file.path : NULL;
}

uint64_t kymo_stream_size_bytes(const struct kymo_stream *stream)
{
	return stream ? stream_in(stream)->file.size_bytes : 0;
}

uint32_t kymo_stream_cpu(const struct kymo_stream *stream)
{
	return stream && stream_in(stream)->has_cpu_id ? stream_in(stream)->cpu_id : KYMO_NO_CPU;
}

size_t kymo_stream_index(const struct kymo_stream *stream)
{
	return stream ? stream_in(stream)->index : 0;
}

/* ---- clocks ------------------------------------------------------------------------------ */

const char *kymo_clock_name(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->name : NULL;
}

const char *kymo_clock_description(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->description : NULL;
}

const char *kymo_clock_attributes(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->attributes : NULL;
}

const uint8_t *kymo_clock_uuid(const struct kymo_clock *clock)
{
	return clock && clock_in(clock)->has_uuid ? clock_in(clock)->uuid : NULL;
}

uint64_t kymo_clock_frequency_hz(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->frequency_hz : 0;
}

uint64_t kymo_clock_precision_cycles(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->precision_cycles : 0;
}

int64_t kymo_clock_offset_s(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->offset_s : 0;
}

int64_t kymo_clock_offset_cycles(const struct kymo_clock *clock)
{
	return clock ? clock_in(clock)->offset_cycles : 0;
}

bool kymo_clock_is_unix_epoch(const struct kymo_clock *clock)
{
	return clock && clock_in(clock)->is_unix_epoch;
}

int64_t kymo_clock_to_ns(const struct kymo_clock *clock, uint64_t cycles)
{
	return clock ? ky_clock_to_ns(clock_in(clock), cycles) : 0;
}

/* ---- stream and event classes ------------------------------------------------------------- */

uint64_t kymo_stream_class_id(const struct kymo_stream_class *cls)
{
	return cls ? stream_class_in(cls)->id : 0;
}

const char *kymo_stream_class_name(const struct kymo_stream_class *cls)
{
	return cls ? stream_class_in(cls)->name : NULL;
}

const char *kymo_stream_class_attributes(const struct kymo_stream_class *cls)
{
	return cls ? stream_class_in(cls)->attributes : NULL;
}

const struct kymo_clock *kymo_stream_class_clock(const struct kymo_stream_class *cls)
{
	return cls ? clock_out(stream_class_in(cls)->clock) : NULL;
}

size_t kymo_stream_class_n_event_classes(const struct kymo_stream_class *cls)
{
	return cls ? stream_class_in(cls)->events.len : 0;
}

const struct kymo_event_class *kymo_stream_class_event_class(const struct kymo_stream_class *cls,
							     size_t i)
{
	if (i >= kymo_stream_class_n_event_classes(cls))
		return NULL;
	return event_class_out(stream_class_in(cls)->events.data[i]);
}

const struct kymo_field_class *kymo_stream_class_scope(const struct kymo_stream_class *cls,
						       enum kymo_scope scope)
{
	const struct ky_stream_class *in = stream_class_in(cls);

	if (!in)
		return NULL;
	switch (scope) {
	case KYMO_SCOPE_PACKET_HEADER:
		return field_class_out(in->trace->packet_header);
	case KYMO_SCOPE_PACKET_CONTEXT:
		return field_class_out(in->packet_context);
	case KYMO_SCOPE_EVENT_HEADER:
		return field_class_out(in->event_header);
	case KYMO_SCOPE_STREAM_CONTEXT:
		return field_class_out(in->event_context);
	default:
		return NULL;
	}
}

const char *kymo_event_class_emf_uri(const struct kymo_event_class *cls)
{
	return cls ? event_class_in(cls)->emf_uri : NULL;
}

const char *kymo_event_class_attributes(const struct kymo_event_class *cls)
{
	return cls ? event_class_in(cls)->attributes : NULL;
}

const char *kymo_event_class_name(const struct kymo_event_class *cls)
{
	return cls ? event_class_in(cls)->name : NULL;
}

uint64_t kymo_event_class_id(const struct kymo_event_class *cls)
{
	return cls ? event_class_in(cls)->id : 0;
}

size_t kymo_event_class_index(const struct kymo_event_class *cls)
{
	return cls ? event_class_in(cls)->index : 0;
}

const struct kymo_stream_class *kymo_event_class_stream_class(const struct kymo_event_class *cls)
{
	return cls ? stream_class_out(event_class_in(cls)->stream) : NULL;
}

bool kymo_event_class_loglevel(const struct kymo_event_class *cls, int64_t *loglevel)
{
	if (!cls || !loglevel || !event_class_in(cls)->has_loglevel)
		return false;
	*loglevel = event_class_in(cls)->loglevel;
	return true;
}

const struct kymo_field_class *kymo_event_class_scope(const struct kymo_event_class *cls,
						      enum kymo_scope scope)
{
	return cls ? field_class_out(ky_scope_root(event_class_in(cls), (enum ky_scope)scope))
		   : NULL;
}
