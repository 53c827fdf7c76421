/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Of content.bpf.c: its maps; how a record begins, grows by parts, and ends. */
#ifndef KY_KERNEL_BPF_CONTENT_REGION_BPF_H
#define KY_KERNEL_BPF_CONTENT_REGION_BPF_H

#include "kernel/bpf/content-layout.h"
#include "kernel/bpf/kernel.bpf.h"

const volatile struct ky_content_config config = {};

/* By number. The recorder writes them at any time. */
struct ky_content_descriptor calls[KY_CONTENT_ALL_CALLS];

/* Regions, by CPU. The recorder says how large they are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, 4096);
	__uint(max_entries, 1);
} kymo_content SEC(".maps");

/* What is known of a call since its entry, at its exit: by thread. */
struct kept {
	uint32_t faults, room;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, uint32_t);
	__type(value, struct kept);
	__uint(max_entries,
	       16384); /* threads whose calls could not be read at entry and have not returned */
} kymo_faults SEC(".maps");

/* Programs of those items that have their own: KY_CONTENT_NEXT_*. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, KY_CONTENT_NEXT);
} kymo_next SEC(".maps");

/* What became of an item, where it is not how many bytes of it were read. */
#define FAULT  (-1)
#define ABSENT (-2)

#define HEADER_BYTES sizeof(struct ky_content_record)
#define PART_BYTES   sizeof(struct ky_content_part)

static __always_inline uint64_t up8(uint64_t n)
{
	return (n + 7) & -8ul;
}

static __always_inline struct ky_content_ring *this_ring(void)
{
	uint32_t cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&kymo_content, &cpu);
}

/* The record that is begun there. */
static __always_inline struct ky_content_record *record_of(struct ky_content_ring *ring)
{
	return (void *)ring + KY_CONTENT_DATA_OFFSET + (ring->head & (config.data_bytes - 8));
}

/* Where the next part goes; its content comes behind it. NULL: there is no room, which cannot be. */
static __always_inline struct ky_content_part *next_part(struct ky_content_ring *ring)
{
	uint64_t len = ring->walk.len;

	if (len > config.record_max)
		return NULL;
	return (void *)record_of(ring) + len;
}

/* @result: the bytes of content, or FAULT, or ABSENT. */
static __always_inline void end_part(struct ky_content_ring *ring, struct ky_content_part *part,
				     unsigned int place, int64_t result, uint64_t value)
{
	part->place = place;
	part->status = result >= 0	 ? KY_CONTENT_OK
		       : result == FAULT ? KY_CONTENT_UNREADABLE
					 : KY_CONTENT_ABSENT;
	part->reserved = 0;
	part->len = result >= 0 ? result : 0;
	part->value = value;
	if (result == FAULT)
		ring->walk.faults |= 1 << place;
	ring->walk.len += PART_BYTES + up8(result >= 0 ? result : 0);
}

/* At entry: the call itself may bring in the pages that could not be read. */
static __always_inline void keep(struct ky_content_walk *walk)
{
	uint32_t tid = walk->id;
	struct kept kept = {walk->faults, walk->room};

	if (kept.faults || kept.room != KY_CONTENT_ANY_ROOM)
		bpf_map_update_elem(&kymo_faults, &tid, &kept, BPF_ANY);
}

static __always_inline void finish(struct ky_content_ring *ring)
{
	struct ky_content_walk *walk = &ring->walk;
	uint64_t len = walk->len;

	if (!walk->is_exit)
		keep(walk);
	record_of(ring)->bytes = len;
	/* Whole before it is there: x86 keeps the order of stores, and so must the compiler. */
	barrier();
	ring->head += len;
	ring->busy = 0;
}

#endif
