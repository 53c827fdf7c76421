/* SPDX-License-Identifier: MIT */
/* The compiled form of one event; between convert-plan.c, which makes it, and convert.c. */
#ifndef KY_KERNEL_CONVERT_CONVERT_PLAN_H
#define KY_KERNEL_CONVERT_CONVERT_PLAN_H

#include "kernel/convert/convert.h"

enum ky_op {
	KY_OP_COPY4,
	KY_OP_COPY8,
	KY_OP_COPY16,
	KY_OP_COPY,    /* @len bytes */
	KY_OP_ADD,     /* the 32-bit integer at @src plus @add, to @len bytes back in the output */
	KY_OP_RWBS,    /* @len characters -> u32 */
	KY_OP_TID,     /* common_pid */
	KY_OP_PID,     /* the process of the thread whose id is at @src */
	KY_OP_COMM,    /* dynamic text -> 16 characters */
	KY_OP_ADDRESS, /* u64 -> "0x", hexadecimal digits and NUL */
	KY_OP_CONTENT, /* the same, or the text it is the address of: at place @len */
	KY_OP_CONTENT_TAIL, /* the rest of the call's content */
	KY_OP_STRING,	/* dynamic text -> text and NUL; @len: what follows to the record's end */
	KY_OP_SEQUENCE, /* dynamic array -> u32 count, elements of @len bytes */
};

struct ky_convert_op {
	uint8_t code; /* enum ky_op */
	bool relative;
	uint16_t src, len;
	int32_t add;
};

struct ky_convert_plan {
	uint32_t event_id;
	bool hidden;	    /* not written */
	uint8_t role;	    /* enum ky_event_role */
	uint16_t src_bytes; /* what the operations need of a record */
	uint16_t n_dynamic; /* ADDRESS, STRING and SEQUENCE operations */
	uint32_t out_bytes; /* of the payload, without the dynamic parts */
	uint32_t n_ops;
	const struct ky_convert_op *ops;
	const struct ky_content_plan *content; /* NULL: none */
	/* Where the role's fields lie: see convert-learn.c. */
	uint16_t at[4];
	const struct ky_event_field *fields;
	size_t n_fields;
	const struct ky_filter *filter; /* NULL: all events are written */
	const struct ky_event_class *event;
	bool at_is_loc[4];
	uint8_t stacks;	       /* KY_STACK_*: which it has as context */
	uint32_t counters_key; /* of its readings; 0: it has none */
	bool learns_ids;       /* the thread's ids may be others afterwards */
};

#define KY_PLAN_MAX_DYNAMIC 64

/* convert.c: write what is in no page, with its content: @data as a record of the ring, at cpu->cycles. */
int ky_convert_call(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		    const uint8_t *data, uint32_t len, const struct ky_content_record *content,
		    struct kymo_error *err);

/* The same without content: the record says all. Threads are learnt from it. */
int ky_convert_foreign(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		       const uint8_t *data, uint32_t len, struct kymo_error *err);

/* convert-switches.c: a record of sched_switch has no more bytes. */
#define KY_SWITCH_RECORD_BYTES 128
int ky_convert_switch(struct ky_convert_cpu *cpu, const struct ky_switches_slot *slot,
		      struct kymo_error *err);
/* @data, the record of @len bytes that comes after the next switch of `switches`, may be the same switch. */
void ky_convert_compare_switch(const struct ky_convert_cpu *cpu, const uint8_t *data, uint32_t len);

/* convert-compat.c: a child of @parent has its parent's choice; a thread that ends loses it. */
void ky_convert_choose_child(const struct ky_convert *convert, uint32_t parent, uint32_t child);
void ky_convert_choose_no_more(const struct ky_convert *convert, uint32_t tid);

/*
 * convert-context.c: sizes of the context; and the bytes of the record's own flags and of
 * @counters (NULL: all are 0).
 */
void ky_convert_context_sizes(struct ky_convert *convert);
uint8_t *ky_convert_put_record_context(const struct ky_convert *convert, uint8_t flags,
				       uint8_t counts, const uint64_t *counters, uint8_t *out);

/* convert-role.c: what @plan learns from an event of @format beside its fields. */
void ky_convert_set_role(const struct ky_convert *convert, struct ky_convert_plan *plan,
			 enum ky_event_role role, const struct ky_format *format);

#endif
