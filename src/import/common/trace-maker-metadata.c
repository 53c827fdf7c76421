/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/version.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "import/common/trace-maker-internal.h"

#define EVENTS_MAX	 65536u
#define FIELD_NAME_BYTES 256

static struct ky_field_class *trace_maker_metadata_class(struct ky_trace_class *trace,
							 enum ky_maker_kind kind)
{
	static const struct {
		uint8_t bits, base;
		bool is_signed;
	} numbers[] = {
		[KY_MAKER_U8] = {8, 10, false},	  [KY_MAKER_U16] = {16, 10, false},
		[KY_MAKER_U32] = {32, 10, false}, [KY_MAKER_U64] = {64, 10, false},
		[KY_MAKER_S32] = {32, 10, true},  [KY_MAKER_S64] = {64, 10, true},
		[KY_MAKER_HEX] = {64, 16, false},
	};
	struct ky_field_class *cls;

	if (kind == KY_MAKER_DOUBLE) {
		cls = ky_field_class_new(trace, KY_FIELD_FLOAT);
		if (cls) {
			cls->num.length_bits = 64;
			cls->num.big_endian = trace->big_endian;
			cls->align_bits = 8;
		}
		return cls;
	}
	return ky_int_new(trace, numbers[kind].bits, numbers[kind].is_signed, numbers[kind].base);
}

/* A name that the metadata language allows, and that @st has not yet. */
static void trace_maker_metadata_name(const struct ky_field_class *st, const char *from,
				      char name[FIELD_NAME_BYTES])
{
	size_t len = (size_t)snprintf(name, FIELD_NAME_BYTES - 16, "_%s", from);

	len = len < FIELD_NAME_BYTES - 16 ? len : FIELD_NAME_BYTES - 17;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) || !isascii((unsigned char)name[i]))
			name[i] = '_';
	for (unsigned int i = 2; ky_struct_member(st, name); i++)
		snprintf(name + len, 16, "_%u", i);
}

static int trace_maker_metadata_add_enum(struct ky_trace_class *trace, struct ky_field_class *st,
					 const char *name, const struct ky_maker_field *field)
{
	struct ky_field_class *cls = ky_struct_add_enum(trace, st, name, 8, false);

	if (!cls)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < field->n_labels; i++)
		if (ky_enum_add(trace, cls, field->labels[i], (int64_t)i, (int64_t)i) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

static int trace_maker_metadata_field(struct ky_trace_class *trace, struct ky_field_class *st,
				      const struct ky_maker_field *field)
{
	char name[FIELD_NAME_BYTES], length_name[FIELD_NAME_BYTES + 16];
	struct ky_field_class *length, *element;

	trace_maker_metadata_name(st, field->name, name);
	switch (field->kind) {
	case KY_MAKER_TEXT:
		return ky_struct_add_string(trace, st, name) ? KYMO_OK : KYMO_E_MEMORY;
	case KY_MAKER_COMM:
		return ky_struct_add_text(trace, st, name, KY_MAKER_COMM_BYTES) ? KYMO_OK
										: KYMO_E_MEMORY;
	case KY_MAKER_HEXES:
	case KY_MAKER_BYTES:
		snprintf(length_name, sizeof(length_name), "_%s_length", name);
		length = ky_struct_add_int(trace, st, length_name, 32, false, 10);
		element = field->kind == KY_MAKER_HEXES ? ky_int_new(trace, 64, false, 16)
							: ky_int_new(trace, 8, false, 16);
		return length && element && ky_struct_add_sequence(trace, st, name, element, length)
			       ? KYMO_OK
			       : KYMO_E_MEMORY;
	case KY_MAKER_ENUM:
		return trace_maker_metadata_add_enum(trace, st, name, field);
	default: {
		struct ky_field_class *cls = trace_maker_metadata_class(trace, field->kind);

		return cls ? ky_struct_add(trace, st, name, cls) : KYMO_E_MEMORY;
	}
	}
}

static int trace_maker_metadata_fields(struct ky_trace_class *trace, struct ky_field_class *st,
				       const struct ky_maker_field *fields, size_t n,
				       enum ky_maker_kind *kinds)
{
	for (size_t i = 0; i < n; i++) {
		if (trace_maker_metadata_field(trace, st, &fields[i]) < 0)
			return KYMO_E_MEMORY;
		kinds[i] = fields[i].kind;
	}
	return KYMO_OK;
}

static int trace_maker_metadata_environment(struct ky_trace_class *trace,
					    const struct ky_maker_about *about)
{
	const char *name = about->name ? strrchr(about->name, '/') : NULL;
	int ret = ky_env_add_text(trace, "domain", about->domain);

	name = name && name[1] ? name + 1 : about->name;
	if (!ret && about->hostname)
		ret = ky_env_add_text(trace, "hostname", about->hostname);
	if (!ret && about->release)
		ret = ky_env_add_text(trace, "kernel_release", about->release);
	if (!ret && about->boot_id)
		ret = ky_env_add_text(trace, "boot_id", about->boot_id);
	if (!ret)
		ret = ky_env_add_text(trace, "tracer_name", about->tracer);
	if (!ret && name)
		ret = ky_env_add_text(trace, "trace_name", name);
	if (!ret)
		ret = ky_env_add_text(trace, "kymo_version", KYMO_VERSION);
	return ret;
}

static struct ky_clock_class *trace_maker_metadata_clock(struct ky_trace_class *trace,
							 const struct ky_maker_about *about)
{
	struct ky_clock_class *clock = ky_clock_class_new(trace, about->clock);

	if (!clock)
		return NULL;
	clock->description = about->description;
	clock->frequency_hz = 1000000000;
	clock->offset_s = about->offset_ns / 1000000000;
	clock->offset_cycles = about->offset_ns % 1000000000;
	if (clock->offset_cycles < 0) {
		clock->offset_cycles += 1000000000;
		clock->offset_s--;
	}
	clock->is_unix_epoch = true;
	if (about->clock_uuid) {
		clock->has_uuid = true;
		memcpy(clock->uuid, about->clock_uuid, sizeof(clock->uuid));
	}
	return ky_clock_finish(clock, NULL) < 0 ? NULL : clock;
}

int ky_maker_build(struct ky_maker *maker, const struct ky_maker_about *about)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_clock_class *clock;

	maker->trace = trace;
	if (!trace)
		return KYMO_E_MEMORY;
	trace->has_uuid = true;
	memcpy(trace->uuid, maker->uuid, sizeof(trace->uuid));
	trace->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	if (trace_maker_metadata_environment(trace, about) < 0)
		return KYMO_E_MEMORY;
	clock = trace_maker_metadata_clock(trace, about);
	if (!clock || ky_lttng_layout_trace(trace) < 0)
		return KYMO_E_MEMORY;
	maker->stream = ky_lttng_layout_stream(trace, 0, clock, false);
	if (!maker->stream)
		return KYMO_E_MEMORY;
	if (!about->has_cpus)
		ky_lttng_layout_without_cpu(maker->stream);
	if (!about->n_context)
		return KYMO_OK;
	maker->stream->event_context = ky_struct_new(trace);
	maker->context_kinds = calloc(about->n_context, sizeof(*maker->context_kinds));
	if (!maker->stream->event_context || !maker->context_kinds)
		return KYMO_E_MEMORY;
	maker->n_context = about->n_context;
	return trace_maker_metadata_fields(trace, maker->stream->event_context, about->context,
					   about->n_context, maker->context_kinds);
}

int ky_maker_event(struct ky_maker *maker, const char *name, const struct ky_maker_field *fields,
		   size_t n_fields, struct kymo_error *err)
{
	size_t n = maker->n_context + n_fields;
	struct ky_maker_event event = {.kinds = calloc(n ? n : 1, sizeof(*event.kinds)), .n = n};
	struct ky_event_class *cls;

	if (maker->events.len >= EVENTS_MAX) {
		free(event.kinds);
		return ky_error_set(err, KYMO_E_LIMIT, "there are more than %u kinds of events",
				    EVENTS_MAX);
	}
	cls = ky_event_class_new(maker->stream, maker->events.len, name);
	if (cls)
		cls->payload = ky_struct_new(maker->trace);
	if (!event.kinds || !cls || !cls->payload ||
	    trace_maker_metadata_fields(maker->trace, cls->payload, fields, n_fields,
					event.kinds + maker->n_context) < 0 ||
	    ky_vec_push(&maker->events, event) < 0) {
		free(event.kinds);
		return ky_error_nomem(err);
	}
	if (maker->n_context)
		memcpy(event.kinds, maker->context_kinds, maker->n_context * sizeof(*event.kinds));
	return (int)maker->events.len - 1;
}
