/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Conditions ("if EXPR") of BPF programs: what condition-compile.c makes, and condition.bpf.h evaluates. They are constants of a
 * loaded program: the kernel's verifier removes what a condition does not need.
 */
#ifndef KY_KERNEL_CONDITION_CONDITION_LAYOUT_H
#define KY_KERNEL_CONDITION_CONDITION_LAYOUT_H

#include <stdint.h>

#define KY_CONDITION_STEPS	24
#define KY_CONDITION_TEXT_BYTES 64 /* of a text, with its end */
/* Of an event's record that a program sees, without dynamic texts. */
#define KY_CONDITION_RECORD_BYTES 512

/* Where a value comes from. */
enum ky_condition_source {
	KY_CONDITION_NONE,    /* the event has no such field */
	KY_CONDITION_INTEGER, /* @size bytes at @offset of the record */
	KY_CONDITION_CHARS,   /* @size characters there */
	KY_CONDITION_DYNAMIC, /* a text whose place stands there (__data_loc) */
	KY_CONDITION_USER,    /* a text of the program, whose address stands there */
	KY_CONDITION_CPU,
	KY_CONDITION_TID,
	KY_CONDITION_PID,
	KY_CONDITION_UID,
	KY_CONDITION_COMM,
	KY_CONDITION_SOURCES, /* further ones belong to the program */
};

struct ky_condition_field {
	uint32_t source;
	uint32_t offset, size;
	uint32_t is_signed, is_relative;
	int32_t add;
};

enum ky_condition_op {
	KY_CONDITION_END,
	KY_CONDITION_FALSE,
	KY_CONDITION_TRUE,
	KY_CONDITION_EQUAL,
	KY_CONDITION_LESS,
	KY_CONDITION_LESS_EQUAL,
	KY_CONDITION_BEGINS, /* the text begins with @text; its end may be part of it */
	KY_CONDITION_AND,
	KY_CONDITION_OR,
	KY_CONDITION_NOT,
};

/* Pushes what a comparison says, or combines what was pushed. */
struct ky_condition_step {
	uint32_t op;
	uint32_t text_len;
	struct ky_condition_field field;
	uint64_t mask, value; /* field & mask OP value; signed, if the field is */
	uint64_t text[KY_CONDITION_TEXT_BYTES / 8];
};

struct ky_condition {
	uint32_t n_steps;      /* 0: it is always true */
	uint32_t record_bytes; /* 0: no field of the record is needed */
	struct ky_condition_step steps[KY_CONDITION_STEPS];
};

#endif
