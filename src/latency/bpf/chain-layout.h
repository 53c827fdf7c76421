/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The chain from an interrupt to the return of the thread that it wakes up to user space, as chain.bpf.c measures it.
 * Its parts follow one another without gaps, so they add up to the whole. Which parts there are depends on where the
 * chain begins.
 */
#ifndef KY_LATENCY_CHAIN_LAYOUT_H
#define KY_LATENCY_CHAIN_LAYOUT_H

#include <stdint.h>

#include "latency/bpf/latency-layout.h"

enum ky_chain_part {
	KY_CHAIN_WHOLE,
	KY_CHAIN_TIMER, /* from when a timer was due until its function runs */
	KY_CHAIN_HANDLER, /* from the handler's (or the timer's function's) begin to its end, or the wake-up in it */
	KY_CHAIN_SOFTIRQ_WAIT, /* until the softirq begins that the handler (or other code) has raised */
	KY_CHAIN_SOFTIRQ,      /* until the wake-up in it */
	KY_CHAIN_WAKEUP,       /* until the thread runs */
	KY_CHAIN_RETURN,       /* until its system call returns */
	KY_CHAIN_PARTS,
};

/* Where it begins. */
enum ky_chain_origin {
	KY_CHAIN_OF_NOTHING,
	KY_CHAIN_OF_IRQ,     /* id: its number */
	KY_CHAIN_OF_TIMER,   /* a high-resolution timer */
	KY_CHAIN_OF_SOFTIRQ, /* raised outside of handlers that the kernel traces; id: its vector */
};

struct ky_chain_config {
	int32_t tid, pid; /* only of this thread, of this process; 0: all */
	int32_t own_pid;  /* of the program that measures, which has no chains */
	uint32_t comm_bytes;
	char comm[KY_LATENCY_COMM_BYTES]; /* the first comm_bytes are equal */
	uint32_t over_worst;
	uint32_t has_prev_state; /* as of struct ky_latency_config */
	uint64_t over_ns;
};

struct ky_chain_report {
	uint64_t parts_ns[KY_CHAIN_PARTS]; /* 0: this chain does not have it, or it took no time */
	uint64_t begin_ns;		   /* CLOCK_MONOTONIC */
	uint32_t origin, id;
	int32_t tid, pid;
	uint32_t irq_cpu, cpu; /* of the wake-up; of the thread, when it ran */
	int32_t prev_tid;      /* which thread gave it the CPU */
	uint32_t reserved;
	char comm[KY_LATENCY_COMM_BYTES], prev_comm[KY_LATENCY_COMM_BYTES];
};

struct ky_chain_shared {
	uint64_t period, worst_ns;
	uint64_t n_dropped; /* the thread went to sleep again before its call returned */
	uint64_t n_lost;    /* reports for which the ring had no room */
};

#endif
