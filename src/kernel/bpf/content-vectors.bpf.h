/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Of content.bpf.c: struct msghdr, and vectors of bytes. In the memory of 32-bit programs their words are half as long.
 */
#ifndef KY_KERNEL_BPF_CONTENT_VECTORS_BPF_H
#define KY_KERNEL_BPF_CONTENT_VECTORS_BPF_H

#include "kernel/bpf/content-region.bpf.h"
#include "kernel/bpf/repeat.bpf.h"

/* Members of struct msghdr: two words from there on. */
enum {
	MSG_NAME_AT = 0,
	MSG_IOV_AT = 2,
};

struct words {
	uint64_t first, second;
};

struct compat_words {
	uint32_t first, second;
};

/* The two words that are @at words behind @from. False: they cannot be read. */
static __always_inline bool read_message_words(uint64_t from, uint64_t at, bool compat,
					       uint64_t *first, uint64_t *second)
{
	struct compat_words narrow;
	struct words wide;

	if (!compat) {
		if (bpf_probe_read_user(&wide, sizeof(wide), (void *)(from + at * 8)))
			return false;
		*first = wide.first;
		*second = wide.second;
		return true;
	}
	if (bpf_probe_read_user(&narrow, sizeof(narrow), (void *)(from + at * 4)))
		return false;
	*first = narrow.first;
	*second = narrow.second;
	return true;
}

/*
 * What @n vectors take; @narrow: all bits, or none. Kernels before 6.12 know nothing of a product of two numbers that they
 * do not know.
 */
static __always_inline uint64_t vectors_bytes(uint64_t n, uint64_t narrow)
{
	uint64_t bytes = n * sizeof(struct compat_words);

	return bytes + (bytes & ~narrow);
}

/*
 * Vector @i of those that were copied. Of 32 bits, both of its words are in the first one here. Without a branch, which
 * the verifier would go through for each of them.
 */
static __always_inline struct words vector(struct ky_content_ring *ring, uint64_t i)
{
	uint64_t narrow = ring->walk.narrow;
	const struct words *v = (void *)ring + config.iovecs_at + vectors_bytes(i, narrow);
	uint64_t first = v->first, second = v->second;

	return (struct words){first & ~(narrow & -1ul << 32),
			      (second & ~narrow) | (first >> 32 & narrow)};
}

/* False: that was the last one. */
static __always_inline bool add_vector(struct ky_content_ring *ring, uint64_t i)
{
	if (i >= KY_CONTENT_IOVECS || i >= ring->walk.n_vectors)
		return false;
	ring->walk.total += vector(ring, i).second;
	return true;
}
REPEATABLE(add_vector, struct ky_content_ring)

/* What vector @i points at goes behind what was gathered to @to. False: that was all, or is unreadable: *result. */
static __always_inline bool gather(struct ky_content_ring *ring, void *to, uint64_t i,
				   int64_t *result)
{
	struct ky_content_walk *walk = &ring->walk;
	uint64_t done = walk->gathered, n;
	struct words piece;

	if (i >= walk->n_vectors || done >= config.limit || done >= walk->wanted)
		return false;
	piece = vector(ring, i);
	n = walk->wanted - done;
	n = at_most(n > piece.second ? piece.second : n, config.limit);
	done = at_most(done, config.limit);
	walk->gathered = done + n;
	if (bpf_probe_read_user(to + done, n, (void *)piece.first) == 0)
		return true;
	*result = FAULT;
	return false;
}

/* Copy @count vectors from @from, but @max. False: they cannot be read. */
static __always_inline bool copy_vectors(struct ky_content_ring *ring, uint64_t from,
					 uint64_t count, uint64_t max)
{
	uint64_t bytes;

	count = at_most(count, max);
	ring->walk.n_vectors = count;
	ring->walk.narrow = ring->walk.compat ? -1ul : 0;
	bytes = vectors_bytes(count, ring->walk.narrow);
	return !bpf_probe_read_user((void *)ring + config.iovecs_at, bytes, (void *)from);
}

/*
 * @count vectors at @from, of which @max are looked at: walk->total becomes the bytes of all. Their contents, as far
 * as they are wanted, go to @to. Returns the bytes there, or FAULT.
 */
static __always_inline int64_t read_vectors(struct ky_content_ring *ring, void *to, uint64_t from,
					    uint64_t count, uint64_t max, uint64_t wanted,
					    bool has_loop)
{
	struct ky_content_walk *walk = &ring->walk;
	int64_t result = 0;

	walk->total = 0;
	walk->gathered = 0;
	walk->wanted = wanted > config.limit ? config.limit : wanted;
	if (!copy_vectors(ring, from, count, max))
		return FAULT;
	REPEAT(has_loop, max, add_vector, ring);
	if (!config.limit)
		return 0;
	for (uint64_t i = 0; i < KY_CONTENT_GATHERED; i++)
		if (!gather(ring, to, i, &result))
			break;
	if (result || walk->gathered > config.limit)
		return FAULT;
	return walk->gathered;
}

#endif
