/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Of content.bpf.c: lists of texts, as execve gets them. */
#ifndef KY_KERNEL_BPF_CONTENT_TEXTS_BPF_H
#define KY_KERNEL_BPF_CONTENT_TEXTS_BPF_H

#include "kernel/bpf/content-region.bpf.h"
#include "kernel/bpf/repeat.bpf.h"

/* Of a text at the list's end there is room for 8 bytes at least. */
#define TEXTS_FULL (KY_CONTENT_TEXT_BYTES - 24)

/* The next address: 0 behind the last one. False: it cannot be read. */
static __always_inline bool next_address(struct ky_content_walk *walk, uint64_t *address)
{
	uint64_t from = walk->pointer;
	uint32_t narrow;

	if (!walk->compat) {
		walk->pointer = from + sizeof(*address);
		return bpf_probe_read_user(address, sizeof(*address), (void *)from) == 0;
	}
	walk->pointer = from + sizeof(narrow);
	if (bpf_probe_read_user(&narrow, sizeof(narrow), (void *)from))
		return false;
	*address = narrow;
	return true;
}

/* One that could not be read is its address. */
static __always_inline bool take_bad_text(struct ky_content_walk *walk, uint64_t *to,
					  uint64_t address)
{
	*to = ~address;
	walk->texts_bytes += 8;
	walk->texts_bad = 1;
	return true;
}

/* False: the list has no room for more, or there are no more. */
static __always_inline bool take_text(struct ky_content_ring *ring, uint64_t i)
{
	struct ky_content_walk *walk = &ring->walk;
	struct ky_content_part *part;
	uint64_t address, at, room;
	uint64_t *to;
	int64_t n;

	if (!next_address(walk, &address)) {
		walk->status = KY_CONTENT_UNREADABLE;
		return false;
	}
	if (!address)
		return false;
	at = walk->texts_bytes;
	part = next_part(ring);
	if (i >= KY_CONTENT_TEXTS_MAX || at > TEXTS_FULL || !part) {
		walk->texts_cut = 1;
		return false;
	}
	to = (void *)(part + 1) + at;
	room = KY_CONTENT_TEXT_BYTES - 8 - at;
	n = bpf_probe_read_user_str(to + 1, room, (void *)address);
	if (n <= 0)
		return take_bad_text(walk, to, address);
	*to = n;
	walk->texts_bytes = at + 8 + up8(n);
	/* As long as there was room for: so it was cut. */
	walk->texts_cut = n >= (int64_t)room;
	return !walk->texts_cut;
}
REPEATABLE(take_text, struct ky_content_ring)

/* The list at walk->place, with walk->pointer. */
static __always_inline void take_texts(struct ky_content_ring *ring, bool has_loop)
{
	struct ky_content_walk *walk = &ring->walk;
	struct ky_content_part *part = next_part(ring);
	bool is_absent = !walk->pointer;
	int64_t result;

	if (!part)
		return;
	walk->status = KY_CONTENT_OK;
	walk->texts_bytes = walk->texts_bad = walk->texts_cut = 0;
	/* Once more than there may be: to see whether there are more. */
	if (!is_absent)
		REPEAT(has_loop, KY_CONTENT_TEXTS_MAX + 1, take_text, ring);
	result = walk->status == KY_CONTENT_OK ? (int64_t)walk->texts_bytes : FAULT;
	if (is_absent)
		result = ABSENT;
	/* Of those that could be read there is something in any case. */
	end_part(ring, part, walk->place, result, walk->texts_cut);
	if (walk->texts_bad && result >= 0) {
		part->status = KY_CONTENT_UNREADABLE;
		walk->faults |= 1 << (walk->place & 7);
	}
}

#endif
