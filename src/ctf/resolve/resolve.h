/* SPDX-License-Identifier: MIT */
/* The parts of ky_trace_class_finish(), for the files that share the work. */
#ifndef KY_CTF_RESOLVE_RESOLVE_H
#define KY_CTF_RESOLVE_RESOLVE_H

#include "ctf/model/model.h"

/* Effective alignment and fixed size of @cls and all below it. 0 or KYMO_E_MEMORY. */
int ky_field_layout(struct ky_field_class *cls);

/* The same for @cls alone, when all below it is known. */
void ky_field_layout_one(struct ky_field_class *cls);
/*
 * Add a member to a struct's layout so far: @align_bits (begin with 1 or the struct's minimum) and
 * @bits, one past its last bit (begin with 0; -1: that varies).
 */
void ky_struct_layout_add(struct ky_field_class *member, uint32_t *align_bits, int64_t *bits);

/* Comparisons of labels and options that one trace may cost; real ones need thousands. */
#define KY_VARIANT_BUDGET     (UINT64_C(1) << 26)
#define KY_VARIANT_LIMIT_TEXT "the variants of this trace have too many labels and options"

/*
 * Give the options of a CTF 1.8 variant, whose selector leads to an enumeration, the ranges of
 * the labels that they are named after. Takes the work off @budget.
 * 0, KYMO_E_LIMIT when the budget is used up, or KYMO_E_MEMORY.
 */
int ky_variant_ranges(struct ky_trace_class *trace, struct ky_field_class *variant,
		      uint64_t *budget);

/*
 * CTF 1.8 gives fields a meaning by their names: set the roles, refuse headers that cannot be
 * meant so, and map timestamps without a clock to the only clock (or to an implicit
 * one of 1 GHz when the trace has none).
 * Returns 0, KYMO_E_FORMAT or KYMO_E_MEMORY.
 */
int ky_roles_by_name(struct ky_trace_class *trace, struct kymo_error *err);
/* CTF 2 has no role for it either: the packet's field named cpu_id is its CPU. */
void ky_cpu_roles(struct ky_trace_class *trace);

/* Find the clock of each stream class; KYMO_E_FORMAT when its fields use several. */
int ky_stream_clocks(struct ky_trace_class *trace, struct kymo_error *err);

/*
 * LTTng's clock "monotonic" counts from the Unix epoch, although its metadata does not say so:
 * is @clock that one, by its name and the environment's tracer_name?
 */
bool ky_clock_is_lttng_monotonic(const struct ky_trace_class *trace,
				 const struct ky_clock_class *clock);

#endif
