/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of events, which the kernel writes as records of their own, behind the event: those of
 * programs by an option of the instance, of at most 8 frames (records of other tracers have more); its own by a trigger of the event. They are
 * put into the event's context, which then grows, in the packet in hand.
 *
 * What interrupts a thread between an event and its stack has its own stacks before the thread goes on. So
 * a stack belongs to the last event of the same thread at the same level: in the thread, in a softirq,
 * an irq, an NMI. Stacks of events that a filter has left out find no event that waits for them.
 *
 * Threads: one at a time per CPU.
 */
#ifndef KY_KERNEL_PROCESS_STACKS_H
#define KY_KERNEL_PROCESS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "ctf/encode/packet-writer.h"

/* Which an event has; in this order they lie in its context, each a length and addresses. */
enum {
	KY_STACK_KERNEL = 1,
	KY_STACK_USER = 2,
};

#define KY_STACK_KERNEL_FRAMES 512u /* at most; those beyond are left out */
#define KY_STACK_USER_FRAMES   512u /* the kernel gives 8; other tracers give more */
#define KY_STACK_PENDING       8

/* Of one CPU; zeroed is empty. */
struct ky_stacks {
	/* Events in the packet in hand that wait: the innermost last. */
	struct ky_stacks_event {
		uint32_t tid;
		uint8_t level;
		uint8_t waits;		     /* KY_STACK_* */
		uint32_t at_kernel, at_user; /* where the lengths stand in the packet */
	} pending[KY_STACK_PENDING];
	uint32_t n;
};

/* How many bytes an event with stacks @which may grow by. */
uint32_t ky_stacks_most(unsigned int which);

/*
 * The event @record (as in the ring) comes; @which: what it waits for; 0: nothing, or it is not written. Its
 * lengths, 0 for now, stand at @at_kernel and @at_user of the packet.
 */
void ky_stacks_event(struct ky_stacks *stacks, const uint8_t *record, unsigned int which,
		     uint32_t at_kernel, uint32_t at_user);

/*
 * A stack @record of kind @which: its frames, at most @n, begin at @from; a user's ends before the first
 * that is 0. It is put into the event that waits for it, if there is room.
 */
void ky_stacks_take(struct ky_stacks *stacks, struct ky_packet_writer *writer,
		    const uint8_t *record, uint32_t len, uint32_t from, uint32_t n,
		    unsigned int which);

/* The packet is closed, or events were lost: no event waits for its stack. */
void ky_stacks_forget(struct ky_stacks *stacks);

#endif
