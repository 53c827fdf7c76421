/* SPDX-License-Identifier: MIT */
/*
 * Call stacks that a trace has once.
 *
 * The context fields callstack_kernel_id and callstack_user_id number the stacks in callstack_kernel and callstack_user of the same
 * event; 0 is no number. The first event with a number has the addresses. Later ones leave the array empty. Readers of values
 * (ky_values_decode(), ky_handle_decode()) get the addresses in each event.
 *
 * A table has the stacks of a trace by number. The trace is read when the first stack is missed. Of a trace that grows, each later
 * stack is kept as it comes.
 * Threads: any.
 */
#ifndef KY_CTF_DECODE_STORED_STACKS_H
#define KY_CTF_DECODE_STORED_STACKS_H

#include "ctf/decode/decode.h"

/* Longer stacks have no number. So an event with a number is at most so many addresses longer than its bytes. */
#define KY_STORED_STACKS_FRAMES_MAX 1024

/* Where the events of a stream class have such stacks: [0] of the kernel, [1] of the program. */
struct ky_stack_fields {
	struct {
		struct ky_handle id, array; /* ->cls is NULL: it has none */
	} of[2];
};

struct ky_stored_stacks;

/* Give the events that may have stacks to ky_stored_stacks_take(). 0 or KYMO_E_MEMORY. */
typedef int (*ky_stored_stacks_load)(void *data, struct ky_stored_stacks *stacks);

/* @load: NULL: earlier events cannot be read again. @grows: later events bring more stacks. NULL when out of memory. */
struct ky_stored_stacks *ky_stored_stacks_new(ky_stored_stacks_load load, void *data, bool grows);
void ky_stored_stacks_free(struct ky_stored_stacks *stacks); /* NULL is fine */

/* Does @stream have such fields? */
bool ky_stored_stacks_are_in(const struct ky_stream_class *stream);
/* Keep the stacks in @event. 0 or KYMO_E_MEMORY. */
int ky_stored_stacks_take(struct ky_stored_stacks *stacks, const struct ky_event *event);
/* Has @event a number without the addresses? The bytes of such an event are not complete without the trace. */
bool ky_stored_stacks_miss(const struct ky_event *event);

/* Are all stacks of @event in earlier events, or in later ones? A reader that wants each stack once need not read its values. */
bool ky_stored_stacks_are_elsewhere(const struct ky_event *event);

/* For the readers of values. Put the stacks of @event that its bytes do not have into @values, which were read of it. 0 or KYMO_E_MEMORY. */
int ky_stored_stacks_fill(struct ky_values *values, const struct ky_event *event);
/* Find the fields when the plans are built; *fields is NULL where @stream has none. 0 or KYMO_E_MEMORY. */
int ky_stored_stacks_find(struct ky_trace_class *trace, const struct ky_stream_class *stream,
			  const struct ky_stack_fields **fields);

#endif
