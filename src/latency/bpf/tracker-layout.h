/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A tracker: the time from one event to another one with the same key. tracker.bpf.c has the programs; what they compare
 * and which fields are keys, this says, from the format of the events.
 */
#ifndef KY_LATENCY_TRACKER_LAYOUT_H
#define KY_LATENCY_TRACKER_LAYOUT_H

#include <stdint.h>

#include "kernel/condition/condition-layout.h"
#include "latency/bpf/latency-layout.h"

#define KY_TRACKER_KEYS	      2
#define KY_TRACKER_TEXT_BYTES 16 /* of a text that a probe fetches */
#define KY_TRACKER_FRAMES     64

/*
 * Probes in programs have no record: a program makes one, of fields that it fetches from registers and the program's memory.
 * The same function may be in several places, in each of which its arguments lie elsewhere.
 */
#define KY_TRACKER_PLACES  8
#define KY_TRACKER_FETCHES 10
#define KY_TRACKER_LOADS   6
#define KY_TRACKER_FETCH_BYTES \
	24 /* of a field in the record: a number of up to 8 bytes, or a text, cut */
#define KY_TRACKER_RECORD_WORDS (KY_TRACKER_FETCHES * KY_TRACKER_FETCH_BYTES / 8)

enum ky_tracker_base {
	KY_TRACKER_REGISTER,
	KY_TRACKER_CONSTANT,
	KY_TRACKER_IN_FILE, /* reg is the instruction pointer; constant an offset in the probe's file */
};

struct ky_tracker_fetch {
	uint8_t base, reg;	  /* reg: an offset in the kernel's struct pt_regs */
	uint8_t n_loads;	  /* pointers at value + offsets[i] are followed */
	uint8_t in_memory;	  /* then the value is at value + last_offset, else it is that */
	uint8_t size, is_text;	  /* bytes in memory */
	uint8_t bits, bit_offset; /* bits 0: it is no bit field */
	uint64_t constant;
	int64_t offsets[KY_TRACKER_LOADS], last_offset;
};

struct ky_tracker_place {
	uint64_t offset; /* of the probe in its file */
	struct ky_tracker_fetch fetches[KY_TRACKER_FETCHES];
};

struct ky_tracker_side {
	uint32_t n_keys;
	uint32_t n_places; /* 0: an event of the kernel */
	uint32_t used;	   /* bits of fetches that keys and condition need */
	struct ky_condition_field keys[KY_TRACKER_KEYS];
	struct ky_condition condition;
	struct ky_tracker_place places[KY_TRACKER_PLACES];
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
	uint64_t n_full;   /* begins for which the table had no room */
	uint64_t n_again;  /* begins whose key was open: the earlier one is forgotten */
	uint64_t n_lost;   /* reports for which the ring had no room */
	uint64_t n_unread; /* events of probes with an argument that could not be read */
};

#endif
