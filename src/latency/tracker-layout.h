/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A tracker: the time from one event to another one with the same key. tracker.bpf.c has the programs; what they compare
 * and which fields are keys, this says, from the format of the events.
 */
#ifndef KY_LATENCY_TRACKER_LAYOUT_H
#define KY_LATENCY_TRACKER_LAYOUT_H

#include <stdint.h>

#include "latency/latency-layout.h"

#define KY_TRACKER_STEPS      24
#define KY_TRACKER_KEYS	      2
#define KY_TRACKER_TEXT_BYTES 16
#define KY_TRACKER_FRAMES     64

enum ky_tracker_source {
	KY_TRACKER_FIELD, /* of the event */
	KY_TRACKER_TID,	  /* of the current thread */
	KY_TRACKER_PID,
	KY_TRACKER_CPU,
	KY_TRACKER_COMM, /* a text */
};

struct ky_tracker_value {
	uint16_t offset; /* of a field */
	uint8_t source, size, is_signed, reserved[3];
};

/* A filter is these steps in turn, on a stack of truth values. */
enum ky_tracker_op {
	KY_TRACKER_EQ,
	KY_TRACKER_NE,
	KY_TRACKER_LT,
	KY_TRACKER_LE,
	KY_TRACKER_GT,
	KY_TRACKER_GE,
	KY_TRACKER_TEXT, /* the first text_len bytes are equal */
	KY_TRACKER_TRUE,
	KY_TRACKER_FALSE,
	KY_TRACKER_NOT,
	KY_TRACKER_AND,
	KY_TRACKER_OR,
};

struct ky_tracker_step {
	struct ky_tracker_value value;
	uint8_t op, text_len, reserved[6];
	uint64_t mask, number; /* (value & mask) OP number */
	char text[KY_TRACKER_TEXT_BYTES];
};

struct ky_tracker_side {
	uint32_t n_steps, n_keys;
	struct ky_tracker_value keys[KY_TRACKER_KEYS];
	struct ky_tracker_step steps[KY_TRACKER_STEPS];
};

struct ky_tracker_config {
	struct ky_tracker_side begin, end;
	uint64_t over_ns;    /* report what takes longer */
	uint32_t over_worst; /* report what takes longer than all before */
	uint32_t stacks;
};

struct ky_tracker_key {
	uint64_t values[KY_TRACKER_KEYS];
};

struct ky_tracker_thread {
	int32_t tid, pid;
	int32_t kernel_stack, user_stack; /* < 0: none */
	char comm[KY_LATENCY_COMM_BYTES];
};

/* A begin without an end so far. */
struct ky_tracker_open {
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	struct ky_tracker_thread begin;
};

struct ky_tracker_report {
	struct ky_tracker_key key;
	uint64_t begin_ns, end_ns;
	struct ky_tracker_thread begin, end; /* where one and the other happened */
};

struct ky_tracker_shared {
	uint64_t period, worst_ns;
	uint64_t n_full;  /* begins for which the table had no room */
	uint64_t n_again; /* begins whose key was open: the earlier one is forgotten */
	uint64_t n_lost;  /* reports for which the ring had no room */
};

#endif
