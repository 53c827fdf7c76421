/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What kymo count and its BPF program share. The program is loaded once for each kind of event, with a constant config: the
 * kernel's verifier removes what the config does not need. A key is the values of the fields of --by, one behind the other, each
 * aligned to 8 bytes.
 */
#ifndef KY_KERNEL_COUNT_COUNT_LAYOUT_H
#define KY_KERNEL_COUNT_COUNT_LAYOUT_H

#include <stdint.h>

#include "kernel/condition/condition-layout.h"

#define KY_COUNT_FIELDS_MAX 6			    /* of a key */
#define KY_COUNT_TEXT_BYTES KY_CONDITION_TEXT_BYTES /* of a text in a key, with its end */
#define KY_COUNT_KEY_MAX    (8 + KY_COUNT_FIELDS_MAX * KY_COUNT_TEXT_BYTES)
#define KY_COUNT_FRAMES_MAX 127 /* of a call stack */

/* Entry and exit of each system call, in kymo_calls. */
#define KY_COUNT_CALLS 1024

/* Which tracepoint runs the program: the event's own, or that of all system calls, of which kymo_calls tells whose turn it is. */
enum ky_count_calls {
	KY_COUNT_OWN,
	KY_COUNT_ENTRIES,
	KY_COUNT_EXITS,
};

/* Where values of keys come from, beyond those of conditions. */
enum ky_count_source {
	KY_COUNT_EVENT = KY_CONDITION_SOURCES, /* the event's number */
	KY_COUNT_KERNEL_STACK,		       /* numbers in kymo_stacks; negative: none */
	KY_COUNT_USER_STACK,
};

struct ky_count_field {
	struct ky_condition_field value;
	uint32_t at, text_bytes; /* in the key; 0: a number of 8 bytes */
};

struct ky_count_config {
	uint32_t key_bytes, n_fields;
	uint32_t calls,
		program;   /* enum ky_count_calls; the program's number, from 1 on, in kymo_calls */
	uint32_t own_tgid; /* of the counting program, which does not count */
	uint32_t follows;  /* only processes of kymo_followed */
	uint32_t missing;  /* bits of fields that the event has not; */
	uint32_t has_missing; /* and whether it stands before the key, as other events have them */
	struct ky_count_field fields[KY_COUNT_FIELDS_MAX];
	struct ky_condition_field sum;
	struct ky_condition condition; /* its record_bytes are those of keys and sum, too */
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
