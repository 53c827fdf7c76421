/* SPDX-License-Identifier: MIT */
#include "kernel/process/stacks.h"

#include <string.h>

/* Bits of common_flags. */
enum {
	FLAG_HARDIRQ = 0x08,
	FLAG_SOFTIRQ = 0x10,
	FLAG_NMI = 0x40,
};

static uint8_t level_of(const uint8_t *record)
{
	uint8_t flags = record[2];

	if (flags & FLAG_NMI)
		return 3;
	if (flags & FLAG_HARDIRQ)
		return 2;
	return flags & FLAG_SOFTIRQ ? 1 : 0;
}

static uint32_t tid_of(const uint8_t *record)
{
	uint32_t tid;

	memcpy(&tid, record + 4, 4);
	return tid;
}

uint32_t ky_stacks_most(unsigned int which)
{
	return (which & KY_STACK_KERNEL ? KY_STACK_KERNEL_FRAMES * 8 : 0) +
	       (which & KY_STACK_USER ? KY_STACK_USER_FRAMES * 8 : 0);
}

/* Those at this level and above it are over. */
static void end_levels(struct ky_stacks *stacks, unsigned int level)
{
	while (stacks->n && stacks->pending[stacks->n - 1].level >= level)
		stacks->n--;
}

void ky_stacks_event(struct ky_stacks *stacks, const uint8_t *record, unsigned int which,
		     uint32_t at_kernel, uint32_t at_user)
{
	uint8_t level = level_of(record);

	end_levels(stacks, level);
	if (!which || stacks->n == KY_STACK_PENDING)
		return;
	stacks->pending[stacks->n++] = (struct ky_stacks_event){
		.tid = tid_of(record),
		.level = level,
		.waits = (uint8_t)which,
		.at_kernel = at_kernel,
		.at_user = at_user,
	};
}

static void stacks_move_event(struct ky_stacks_event *event, uint32_t at, uint32_t bytes)
{
	event->at_kernel += event->at_kernel > at ? bytes : 0;
	event->at_user += event->at_user > at ? bytes : 0;
}

/* Put @n frames behind the length at @at. What stands behind that, and is waited for, has moved. */
static void stacks_insert(struct ky_stacks *stacks, struct ky_packet_writer *writer, uint32_t at,
			  const uint8_t *frames, uint32_t n)
{
	uint8_t *to = writer->data + at;
	uint32_t bytes = n * 8;

	memcpy(to, &n, 4);
	memmove(to + 4 + bytes, to + 4, writer->used_bytes - at - 4);
	memcpy(to + 4, frames, bytes);
	writer->used_bytes += bytes;
	for (uint32_t i = 0; i < stacks->n; i++)
		stacks_move_event(&stacks->pending[i], at, bytes);
}

void ky_stacks_take(struct ky_stacks *stacks, struct ky_packet_writer *writer,
		    const uint8_t *record, uint32_t len, uint32_t from, uint32_t n,
		    unsigned int which)
{
	static const uint8_t none[8];
	uint8_t level = level_of(record);
	struct ky_stacks_event *event;

	/* What has interrupted the event, and got no stack, is over. */
	end_levels(stacks, level + 1u);
	event = stacks->n ? &stacks->pending[stacks->n - 1] : NULL;
	if (!event || event->level != level || event->tid != tid_of(record) ||
	    !(event->waits & which) || len < from)
		return;
	event->waits &= (uint8_t)~which;
	if (n > (len - from) / 8)
		n = (len - from) / 8;
	if (which == KY_STACK_KERNEL && n > KY_STACK_KERNEL_FRAMES)
		n = KY_STACK_KERNEL_FRAMES;
	for (uint32_t i = 0; which == KY_STACK_USER && i < n; i++)
		if (memcmp(record + from + i * 8, none, 8) == 0)
			n = i;
	/* No room: only where something came in between at a packet's very end. */
	if (n && n * 8 <= writer->size_bytes - writer->used_bytes)
		stacks_insert(stacks, writer,
			      which == KY_STACK_KERNEL ? event->at_kernel : event->at_user,
			      record + from, n);
}

void ky_stacks_forget(struct ky_stacks *stacks)
{
	stacks->n = 0;
}
