/* SPDX-License-Identifier: MIT */
/*
 * Building a trace model piece by piece, for those who write traces: constructors for field classes,
 * and the standard pieces of LTTng's layout, which match packet-writer.h byte for byte.
 *
 *	trace = ky_trace_class_new();			uuid, env
 *	clock = ky_clock_class_new(trace, "monotonic");	frequency, offset
 *	ky_lttng_layout_trace(trace);
 *	stream = ky_lttng_layout_stream(trace, 0, clock, false);
 *	event = ky_event_class_new(stream, id, "sched_switch");
 *	event->payload = ky_struct_new(trace);
 *	ky_struct_add_int(trace, event->payload, "_prev_tid", 32, true, 10);
 *	ky_trace_class_finish(trace, true, err);	then ky_tsdl_write()
 *
 * All return NULL (or a negative status) when out of memory; what they return belongs to the
 * trace. Integers are in the trace's byte order, aligned to 8 bits when their size is
 * whole bytes, else to 1 bit. Names are copied. Payload and context fields bear a leading '_'
 * in LTTng's traces, so that no field name is a keyword of the metadata language.
 * Threads: one at a time per trace.
 */
#ifndef KY_CTF_RESOLVE_LTTNG_LAYOUT_H
#define KY_CTF_RESOLVE_LTTNG_LAYOUT_H

#include "ctf/model/model.h"

/* The packet header {magic, uuid[16], stream_id, stream_instance_id}. 0 or KYMO_E_MEMORY. */
int ky_lttng_layout_trace(struct ky_trace_class *trace);

/*
 * A stream class with the packet context {timestamp_begin, timestamp_end, content_size,
 * packet_size, packet_seq_num, events_discarded, cpu_id} and the compact or large event header.
 * @clock: what its time stamps count.
 */
struct ky_stream_class *ky_lttng_layout_stream(struct ky_trace_class *trace, uint64_t id,
					       struct ky_clock_class *clock, bool compact_header);

/* Take cpu_id out of the packet context of @stream, whose streams are of no CPU. Before the trace is finished. */
void ky_lttng_layout_without_cpu(struct ky_stream_class *stream);

/* Give @stream the other event header, before its trace is finished. 0 or KYMO_E_MEMORY. */
int ky_lttng_layout_header(struct ky_stream_class *stream, struct ky_clock_class *clock,
			   bool compact_header);

struct ky_field_class *ky_struct_new(struct ky_trace_class *trace);
/* @base: 2, 8, 10 or 16, to show it in. */
struct ky_field_class *ky_int_new(struct ky_trace_class *trace, uint32_t bits, bool is_signed,
				  uint8_t base);

/* NUL-terminated, UTF-8. */
struct ky_field_class *ky_string_new(struct ky_trace_class *trace);

/* Append @cls, a class that stands nowhere else yet. 0 or KYMO_E_MEMORY. */
int ky_struct_add(struct ky_trace_class *trace, struct ky_field_class *st, const char *name,
		  struct ky_field_class *cls);

/* Each appends a new member and returns its class. */
struct ky_field_class *ky_struct_add_int(struct ky_trace_class *trace, struct ky_field_class *st,
					 const char *name, uint32_t bits, bool is_signed,
					 uint8_t base);
struct ky_field_class *ky_struct_add_string(struct ky_trace_class *trace, struct ky_field_class *st,
					    const char *name);
/* @size_bytes characters of UTF-8, cut at a NUL (LTTng's comm[16]). */
struct ky_field_class *ky_struct_add_text(struct ky_trace_class *trace, struct ky_field_class *st,
					  const char *name, uint64_t size_bytes);
/* Characters whose number @length holds: an unsigned integer added to the same struct before. */
struct ky_field_class *ky_struct_add_dynamic_text(struct ky_trace_class *trace,
						  struct ky_field_class *st, const char *name,
						  struct ky_field_class *length);
struct ky_field_class *ky_struct_add_array(struct ky_trace_class *trace, struct ky_field_class *st,
					   const char *name, struct ky_field_class *element,
					   uint64_t length);
/* As ky_struct_add_dynamic_text(), with any element. */
struct ky_field_class *ky_struct_add_sequence(struct ky_trace_class *trace,
					      struct ky_field_class *st, const char *name,
					      struct ky_field_class *element,
					      struct ky_field_class *length);
struct ky_field_class *ky_struct_add_struct(struct ky_trace_class *trace, struct ky_field_class *st,
					    const char *name);

/* An enumeration without labels; ky_enum_add() gives it some. */
struct ky_field_class *ky_struct_add_enum(struct ky_trace_class *trace, struct ky_field_class *st,
					  const char *name, uint32_t bits, bool is_signed);
/* @begin .. @end (inclusive, signed as the class) is shown as @label. 0 or KYMO_E_MEMORY. */
int ky_enum_add(struct ky_trace_class *trace, struct ky_field_class *cls, const char *label,
		int64_t begin, int64_t end);

/* A variant chosen by @tag: an enumeration added to the same struct before. */
struct ky_field_class *ky_struct_add_variant(struct ky_trace_class *trace,
					     struct ky_field_class *st, const char *name,
					     struct ky_field_class *tag);
/* Append option @name: the label of @tag that selects it. 0 or KYMO_E_MEMORY. */
int ky_variant_add(struct ky_trace_class *trace, struct ky_field_class *variant, const char *name,
		   struct ky_field_class *cls);

#endif
