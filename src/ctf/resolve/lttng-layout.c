/* SPDX-License-Identifier: MIT */
#include "ctf/resolve/lttng-layout.h"

#include <string.h>

#include "ctf/model/arena-append.h"

/* ---- constructors ------------------------------------------------------------------------ */

struct ky_field_class *ky_struct_new(struct ky_trace_class *trace)
{
	return ky_field_class_new(trace, KY_FIELD_STRUCT);
}

struct ky_field_class *ky_int_new(struct ky_trace_class *trace, uint32_t bits, bool is_signed,
				  uint8_t base)
{
	struct ky_field_class *cls =
		ky_field_class_new(trace, is_signed ? KY_FIELD_SINT : KY_FIELD_UINT);

	if (!cls)
		return NULL;
	cls->align_bits = bits % 8 ? 1 : 8;
	cls->num.length_bits = bits;
	cls->num.base = base;
	cls->num.big_endian = trace->big_endian;
	return cls;
}

int ky_struct_add(struct ky_trace_class *trace, struct ky_field_class *st, const char *name,
		  struct ky_field_class *cls)
{
	struct ky_member member = {.cls = cls};

	if (ky_name_copy(trace, name, &member.name, &member.display) < 0)
		return KYMO_E_MEMORY;
	return ky_arena_append(&trace->arena, (void **)&st->st.members, &st->st.n_members, &member,
			       sizeof(member));
}

/* Append @cls unless it is NULL; NULL when that fails. */
static struct ky_field_class *added(struct ky_trace_class *trace, struct ky_field_class *st,
				    const char *name, struct ky_field_class *cls)
{
	return cls && ky_struct_add(trace, st, name, cls) == KYMO_OK ? cls : NULL;
}

struct ky_field_class *ky_struct_add_int(struct ky_trace_class *trace, struct ky_field_class *st,
					 const char *name, uint32_t bits, bool is_signed,
					 uint8_t base)
{
	return added(trace, st, name, ky_int_new(trace, bits, is_signed, base));
}

struct ky_field_class *ky_string_new(struct ky_trace_class *trace)
{
	struct ky_field_class *cls = ky_field_class_new(trace, KY_FIELD_STRING);

	if (!cls)
		return NULL;
	cls->align_bits = 8;
	cls->text.encoding = KY_ENCODING_UTF8;
	return cls;
}

struct ky_field_class *ky_struct_add_string(struct ky_trace_class *trace, struct ky_field_class *st,
					    const char *name)
{
	return added(trace, st, name, ky_string_new(trace));
}

static struct ky_field_class *text_new(struct ky_trace_class *trace)
{
	struct ky_field_class *cls = ky_field_class_new(trace, KY_FIELD_TEXT);

	if (!cls)
		return NULL;
	cls->align_bits = 8;
	cls->text.encoding = KY_ENCODING_UTF8;
	return cls;
}

struct ky_field_class *ky_struct_add_text(struct ky_trace_class *trace, struct ky_field_class *st,
					  const char *name, uint64_t size_bytes)
{
	struct ky_field_class *cls = text_new(trace);

	if (!cls)
		return NULL;
	cls->text.length_bytes = size_bytes;
	return added(trace, st, name, cls);
}

/* A reference to a member of the same struct. */
static struct ky_field_ref *ref_to(struct ky_trace_class *trace, const struct ky_field_class *st,
				   struct ky_field_class *target)
{
	struct ky_field_ref *ref = ky_arena_new(&trace->arena, struct ky_field_ref);

	if (!ref)
		return NULL;
	ref->target = target;
	for (size_t i = 0; i < st->st.n_members; i++) {
		if (st->st.members[i].cls == target)
			ref->text = st->st.members[i].name;
	}
	return ref;
}

struct ky_field_class *ky_struct_add_dynamic_text(struct ky_trace_class *trace,
						  struct ky_field_class *st, const char *name,
						  struct ky_field_class *length)
{
	struct ky_field_class *cls = text_new(trace);

	if (!cls)
		return NULL;
	cls->text.length_ref = ref_to(trace, st, length);
	return cls->text.length_ref ? added(trace, st, name, cls) : NULL;
}

struct ky_field_class *ky_struct_add_array(struct ky_trace_class *trace, struct ky_field_class *st,
					   const char *name, struct ky_field_class *element,
					   uint64_t length)
{
	struct ky_field_class *cls = ky_field_class_new(trace, KY_FIELD_ARRAY);

	if (!cls || !element)
		return NULL;
	cls->align_bits = element->align_bits;
	cls->array.element = element;
	cls->array.length = length;
	return added(trace, st, name, cls);
}

struct ky_field_class *ky_struct_add_sequence(struct ky_trace_class *trace,
					      struct ky_field_class *st, const char *name,
					      struct ky_field_class *element,
					      struct ky_field_class *length)
{
	struct ky_field_class *cls = ky_field_class_new(trace, KY_FIELD_ARRAY);

	if (!cls || !element)
		return NULL;
	cls->align_bits = element->align_bits;
	cls->array.element = element;
	cls->array.length_ref = ref_to(trace, st, length);
	return cls->array.length_ref ? added(trace, st, name, cls) : NULL;
}

struct ky_field_class *ky_struct_add_struct(struct ky_trace_class *trace, struct ky_field_class *st,
					    const char *name)
{
	return added(trace, st, name, ky_struct_new(trace));
}

struct ky_field_class *ky_struct_add_enum(struct ky_trace_class *trace, struct ky_field_class *st,
					  const char *name, uint32_t bits, bool is_signed)
{
	struct ky_field_class *cls = ky_int_new(trace, bits, is_signed, 10);

	if (!cls)
		return NULL;
	cls->num.is_enum = true;
	return added(trace, st, name, cls);
}

int ky_enum_add(struct ky_trace_class *trace, struct ky_field_class *cls, const char *label,
		int64_t begin, int64_t end)
{
	struct ky_range range = {.begin.s = begin, .end.s = end};
	struct ky_mapping mapping = {.n_ranges = 1};

	mapping.label = ky_arena_strdup(&trace->arena, label);
	mapping.ranges = ky_arena_memdup(&trace->arena, &range, sizeof(range));
	if (!mapping.label || !mapping.ranges)
		return KYMO_E_MEMORY;
	return ky_arena_append(&trace->arena, (void **)&cls->num.mappings, &cls->num.n_mappings,
			       &mapping, sizeof(mapping));
}

struct ky_field_class *ky_struct_add_variant(struct ky_trace_class *trace,
					     struct ky_field_class *st, const char *name,
					     struct ky_field_class *tag)
{
	struct ky_field_class *cls = ky_field_class_new(trace, KY_FIELD_VARIANT);

	if (!cls)
		return NULL;
	cls->var.selector = ref_to(trace, st, tag);
	return cls->var.selector ? added(trace, st, name, cls) : NULL;
}

int ky_variant_add(struct ky_trace_class *trace, struct ky_field_class *variant, const char *name,
		   struct ky_field_class *cls)
{
	struct ky_option option = {.cls = cls};

	if (!cls || ky_name_copy(trace, name, &option.name, &option.display) < 0)
		return KYMO_E_MEMORY;
	return ky_arena_append(&trace->arena, (void **)&variant->var.options,
			       &variant->var.n_options, &option, sizeof(option));
}

/* ---- LTTng's layout ---------------------------------------------------------------------- */

int ky_lttng_layout_trace(struct ky_trace_class *trace)
{
	struct ky_field_class *header = ky_struct_new(trace);

	if (!header || !ky_struct_add_int(trace, header, "magic", 32, false, 10) ||
	    !ky_struct_add_array(trace, header, "uuid", ky_int_new(trace, 8, false, 10), 16) ||
	    !ky_struct_add_int(trace, header, "stream_id", 32, false, 10) ||
	    !ky_struct_add_int(trace, header, "stream_instance_id", 64, false, 10))
		return KYMO_E_MEMORY;
	trace->packet_header = header;
	return KYMO_OK;
}

static int add_stamp(struct ky_trace_class *trace, struct ky_field_class *st, const char *name,
		     uint32_t bits, struct ky_clock_class *clock)
{
	struct ky_field_class *cls = ky_struct_add_int(trace, st, name, bits, false, 10);

	if (!cls)
		return KYMO_E_MEMORY;
	cls->num.clock = clock;
	return KYMO_OK;
}

static struct ky_field_class *lttng_layout_packet_context(struct ky_trace_class *trace,
							  struct ky_clock_class *clock)
{
	struct ky_field_class *context = ky_struct_new(trace);

	if (!context || add_stamp(trace, context, "timestamp_begin", 64, clock) < 0 ||
	    add_stamp(trace, context, "timestamp_end", 64, clock) < 0 ||
	    !ky_struct_add_int(trace, context, "content_size", 64, false, 10) ||
	    !ky_struct_add_int(trace, context, "packet_size", 64, false, 10) ||
	    !ky_struct_add_int(trace, context, "packet_seq_num", 64, false, 10) ||
	    !ky_struct_add_int(trace, context, "events_discarded", 64, false, 10) ||
	    !ky_struct_add_int(trace, context, "cpu_id", 32, false, 10))
		return NULL;
	context->type_name = "packet_context";
	return context;
}

/* @id_bits, @stamp_bits: of the short form; the largest id announces the long one. */
static struct ky_field_class *event_header(struct ky_trace_class *trace,
					   struct ky_clock_class *clock, uint32_t id_bits,
					   uint32_t stamp_bits)
{
	int64_t last = (INT64_C(1) << id_bits) - 1;
	struct ky_field_class *header = ky_struct_new(trace), *brief = ky_struct_new(trace);
	struct ky_field_class *full = ky_struct_new(trace), *id, *variant;

	if (!header || !brief || !full || add_stamp(trace, brief, "timestamp", stamp_bits, clock) ||
	    !ky_struct_add_int(trace, full, "id", 32, false, 10) ||
	    add_stamp(trace, full, "timestamp", 64, clock) < 0)
		return NULL;
	header->st.min_align_bits = 8;
	id = ky_struct_add_enum(trace, header, "id", id_bits, false);
	if (!id || ky_enum_add(trace, id, "compact", 0, last - 1) < 0 ||
	    ky_enum_add(trace, id, "extended", last, last) < 0)
		return NULL;
	variant = ky_struct_add_variant(trace, header, "v", id);
	if (!variant || ky_variant_add(trace, variant, "compact", brief) < 0 ||
	    ky_variant_add(trace, variant, "extended", full) < 0)
		return NULL;
	return header;
}

int ky_lttng_layout_header(struct ky_stream_class *stream, struct ky_clock_class *clock,
			   bool compact_header)
{
	struct ky_field_class *header;

	header = compact_header ? event_header(stream->trace, clock, 5, 27)
				: event_header(stream->trace, clock, 16, 32);
	if (!header)
		return KYMO_E_MEMORY;
	header->type_name = compact_header ? "event_header_compact" : "event_header_large";
	stream->event_header = header;
	return KYMO_OK;
}

struct ky_stream_class *ky_lttng_layout_stream(struct ky_trace_class *trace, uint64_t id,
					       struct ky_clock_class *clock, bool compact_header)
{
	struct ky_field_class *context = lttng_layout_packet_context(trace, clock);
	struct ky_stream_class *stream;

	if (!context)
		return NULL;
	stream = ky_stream_class_new(trace, id);
	if (!stream || ky_lttng_layout_header(stream, clock, compact_header) < 0)
		return NULL;
	stream->packet_context = context;
	return stream;
}

void ky_lttng_layout_without_cpu(struct ky_stream_class *stream)
{
	/* It is the last member. */
	stream->packet_context->st.n_members--;
}
