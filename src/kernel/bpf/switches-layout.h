/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Switches from the idle task, as a BPF program (switches.bpf.c) leaves them: in a region of shared memory per CPU,
 *
 *	page 0	struct ky_switches_head
 *	data	KY_SWITCHES_SLOTS slots; switch N is in slot N % KY_SWITCHES_SLOTS
 *
 * The program runs in the scheduler with interrupts off, and so never beside itself on one CPU. It does not wait for the
 * reader, who may be overtaken: where the head is more than all slots ahead, switches were lost. After each
 * KY_SWITCHES_NOTICE switches of a CPU, the program wakes the reader by a notice in a BPF ring buffer: the CPU's number.
 */
#ifndef KY_KERNEL_BPF_SWITCHES_LAYOUT_H
#define KY_KERNEL_BPF_SWITCHES_LAYOUT_H

#include <stdint.h>

#define KY_SWITCHES_SLOTS	  8192u /* a power of two */
#define KY_SWITCHES_NOTICE	  (KY_SWITCHES_SLOTS / 2)
#define KY_SWITCHES_DATA_OFFSET	  4096u
#define KY_SWITCHES_NOTICES_BYTES 65536u /* a multiple of any page size */

struct ky_switches_head {
	uint64_t n;	/* switches until now */
	uint64_t is_on; /* set by the reader: write them, and count; 0: the CPU is left alone */
};

struct ky_switches_slot {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	int32_t next_tid, next_prio;
	int32_t prev_prio, reserved;
	char prev_comm[16], next_comm[16];
	uint64_t reserved2;
};

#endif
