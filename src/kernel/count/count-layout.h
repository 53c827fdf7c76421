/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What kymo count and its BPF program share. The program is loaded once for each kind of event, with a constant config: the
 * kernel's verifier removes what the config does not need. A key is the values of the fields of --by, one behind the other, each
 * aligned to 8 bytes.
 */
#ifndef KY_KERNEL_COUNT_COUNT_LAYOUT_H
#define KY_KERNEL_COUNT_COUNT_LAYOUT_H

#include <stdint.h>

#define KY_COUNT_FIELDS_MAX 6  /* of a key */
#define KY_COUNT_STEPS_MAX  16 /* of the filter */
#define KY_COUNT_TEXT_BYTES 64 /* of a text in a key, with its end */
#define KY_COUNT_KEY_MAX    (8 + KY_COUNT_FIELDS_MAX * KY_COUNT_TEXT_BYTES)
#define KY_COUNT_FRAMES_MAX 127 /* of a call stack */
#define KY_COUNT_RECORD_BYTES \
	512 /* of an event's record that the program sees, without dynamic texts */

/* Entry and exit of each system call, in kymo_calls. */
#define KY_COUNT_CALLS 1024

/* Which tracepoint runs the program: the event's own, or that of all system calls, of which kymo_calls tells whose turn it is. */
enum ky_count_calls {
	KY_COUNT_OWN,
	KY_COUNT_ENTRIES,
	KY_COUNT_EXITS,
};

/* Where a value comes from. */
enum ky_count_source {
	KY_COUNT_NONE,	  /* the event has no such field */
	KY_COUNT_INTEGER, /* @size bytes at @offset of the record */
	KY_COUNT_CHARS,	  /* @size characters there */
	KY_COUNT_DYNAMIC, /* a text whose place stands there (__data_loc) */
	KY_COUNT_USER,	  /* a text of the program, whose address stands there */
	KY_COUNT_EVENT,	  /* the event's number */
	KY_COUNT_CPU,
	KY_COUNT_TID,
	KY_COUNT_PID,
	KY_COUNT_UID,
	KY_COUNT_COMM,
	KY_COUNT_KERNEL_STACK, /* numbers in kymo_stacks; negative: none */
	KY_COUNT_USER_STACK,
};

struct ky_count_field {
	uint32_t source;
	uint32_t offset, size;
	uint32_t is_signed, is_relative;
	int32_t add;
	uint32_t at, text_bytes; /* in the key; 0: a number of 8 bytes */
};

enum ky_count_op {
	KY_COUNT_END,
	KY_COUNT_FALSE,
	KY_COUNT_TRUE,
	KY_COUNT_EQUAL,
	KY_COUNT_LESS,
	KY_COUNT_LESS_EQUAL,
	KY_COUNT_BEGINS, /* the text begins with @text; its end may be part of it */
	KY_COUNT_AND,
	KY_COUNT_OR,
	KY_COUNT_NOT,
};

/* A step of the filter: pushes what a comparison says, or combines what was pushed. */
struct ky_count_step {
	uint32_t op;
	uint32_t text_len;
	struct ky_count_field field;
	uint64_t mask, value; /* field & mask OP value; signed, if the field is */
	uint64_t text[KY_COUNT_TEXT_BYTES / 8];
};

struct ky_count_config {
	uint32_t record_bytes; /* 0: no field of the record is needed */
	uint32_t key_bytes, n_fields, n_steps;
	uint32_t calls,
		program;   /* enum ky_count_calls; the program's number, from 1 on, in kymo_calls */
	uint32_t own_tgid; /* of the counting program, which does not count */
	uint32_t follows;  /* only processes of kymo_followed */
	uint32_t missing;  /* bits of fields that the event has not; */
	uint32_t has_missing; /* and whether it stands before the key, as other events have them */
	struct ky_count_field fields[KY_COUNT_FIELDS_MAX], sum;
	struct ky_count_step steps[KY_COUNT_STEPS_MAX];
};

struct ky_count_value {
	uint64_t count;
	int64_t sum;
};

/* In kymo_calls: the program and the event that count a call. */
#define KY_COUNT_CALL(program, event) ((uint32_t)(program) << 16 | (uint32_t)(event))

/* In kymo_shared, of all programs. */
enum {
	KY_COUNT_IS_ON,
	KY_COUNT_LOST, /* events without room for their key */
	KY_COUNT_SHARED,
};

#endif
