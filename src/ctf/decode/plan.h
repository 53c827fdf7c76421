/* SPDX-License-Identifier: MIT */
/*
 * Decode plans: what the decoder runs instead of walking metadata.
 *
 * A scope's field classes become one flat list of steps in pre-order. A run of members of
 * fixed size is a single jump (run_bits); an event class whose whole body is fixed is a
 * single addition (body_bits). The same list serves for skipping, for decoding all values
 * and for finding one field. Plans live in the trace's arena and are immutable.
 */
#ifndef KY_CTF_DECODE_PLAN_H
#define KY_CTF_DECODE_PLAN_H

#include "ctf/model/model.h"

struct ky_step {
	const struct ky_field_class *cls;
	const char *name;	/* the member's display name, or NULL */
	uint32_t next;		/* the step after this one and all that it contains */
	uint32_t run_next;	/* the step after the run of fixed-size siblings that begins here */
	uint64_t run_bits;	/* size of that run from this step's aligned position */
	uint32_t *option_steps; /* OPTIONAL, VARIANT: where each option begins */
};

/* No run begins at a step with run_next 0: its size varies, or something in it must be looked at. */

struct ky_scope_plan {
	const struct ky_field_class *root; /* NULL: the scope does not exist */
	struct ky_step *steps;		   /* steps[0] is the root */
	uint32_t n_steps;
	uint32_t outer_scopes; /* bit per enum ky_scope whose fields this one refers to */
};

enum ky_header_kind {
	KY_HEADER_NONE,	   /* no event header */
	KY_HEADER_GENERAL, /* anything: by its plan */
	KY_HEADER_COMPACT, /* LTTng: 5-bit id, 27-bit timestamp, little-endian */
	KY_HEADER_LARGE,   /* LTTng: 16-bit id, 32-bit timestamp, little-endian, packed */
};

/* A payload of strings of bytes, with parts of fixed size before, between and after them. */
#define KY_PLAN_STRINGS_MAX 3

struct ky_strings_plan {
	uint32_t n; /* strings; 0: the payload is something else */
	uint32_t part_bytes[KY_PLAN_STRINGS_MAX + 1];
};

struct ky_event_plan {
	struct ky_scope_plan context;
	struct ky_scope_plan payload;
	/* Stream context, context and payload together if their size never varies, else -1. */
	int64_t body_bits;
	uint32_t context_bits, payload_bits; /* where they begin in a fixed body */
	/* The payload after contexts of fixed size, which begins at payload_bits. */
	struct ky_strings_plan strings;
};

/* Event ids below this are found in a table, others in the stream class' map. */
#define KY_BY_ID_MAX 4096u

/* What the decoder's short way needs to know of an event class, close together. */
struct ky_by_id {
	struct ky_event_class *cls; /* NULL: no class has this id */
	int32_t body_bytes;	    /* -1: varies, or is not whole bytes */
	uint32_t index;		    /* of the class */
	uint32_t context_bits, payload_bits;
};

struct ky_stack_fields;

struct ky_stream_plan {
	struct ky_scope_plan packet_context;
	struct ky_scope_plan event_header;
	struct ky_scope_plan event_context;
	enum ky_header_kind header_kind;
	struct ky_event_class *only_event; /* when the header has no id and there is one class */
	struct ky_by_id *by_id;
	uint32_t n_by_id;
	const struct ky_stack_fields *stacks; /* stored-stacks.h; NULL: none */
};

/* Build the plans of everything in a linked trace; ky_trace_class_finish() calls it. */
int ky_plans_build(struct ky_trace_class *trace, struct kymo_error *err);

/* The plan of a scope for events of @event (of the packet header or context too). */
const struct ky_scope_plan *ky_scope_plan_of(const struct ky_event_class *event,
					     enum ky_scope scope);

#endif
