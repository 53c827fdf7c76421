/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Of content.bpf.c: the messages of sendmmsg and recvmmsg. */
#ifndef KY_KERNEL_BPF_CONTENT_MESSAGES_BPF_H
#define KY_KERNEL_BPF_CONTENT_MESSAGES_BPF_H

#include "kernel/bpf/content-vectors.bpf.h"

#define MESSAGE_BYTES sizeof(struct ky_content_message)
#define FIRST_AT      (HEADER_BYTES + PART_BYTES)
#define LAST_AT	      (FIRST_AT + KY_CONTENT_MESSAGES_BYTES)

/* struct mmsghdr. */
struct message {
	uint64_t name;
	uint32_t name_len, padding;
	uint64_t vectors, n_vectors;
	uint64_t control, control_len;
	uint32_t flags, padding2;
	uint32_t len, padding3;
};

struct compat_message {
	uint32_t name, name_len, vectors, n_vectors, control, control_len, flags, len;
};

/* The next message's header. False: it cannot be read. */
static __always_inline bool read_header(struct ky_content_walk *walk, struct message *message)
{
	struct compat_message narrow;
	uint64_t from = walk->pointer;

	if (!walk->compat) {
		walk->pointer = from + sizeof(*message);
		return bpf_probe_read_user(message, sizeof(*message), (void *)from) == 0;
	}
	walk->pointer = from + sizeof(narrow);
	if (bpf_probe_read_user(&narrow, sizeof(narrow), (void *)from))
		return false;
	message->name = narrow.name;
	message->name_len = narrow.name_len;
	message->vectors = narrow.vectors;
	message->n_vectors = narrow.n_vectors;
	message->len = narrow.len;
	return true;
}

/* Its address goes to @to: the bytes. */
static __always_inline uint64_t read_name(struct ky_content_walk *walk, void *to,
					  const struct message *from)
{
	uint64_t n = from->name_len;

	if (!from->name || !n)
		return 0;
	n = at_most(n, KY_CONTENT_SOCKADDR_BYTES);
	if (bpf_probe_read_user(to, n, (void *)from->name) == 0)
		return n;
	walk->bad = 1;
	return 0;
}

static __always_inline uint64_t max_vectors(bool has_loop)
{
	return has_loop ? KY_CONTENT_MESSAGE_IOVECS : KY_CONTENT_MESSAGE_IOVECS_OLD;
}

/* What it consists of, to where walk->data_at says. The bytes, or FAULT. */
static __always_inline int64_t read_data(struct ky_content_ring *ring, const struct message *from,
					 bool has_loop)
{
	struct ky_content_walk *walk = &ring->walk;
	uint64_t at = walk->data_at;

	if (at > LAST_AT + MESSAGE_BYTES + KY_CONTENT_SOCKADDR_BYTES)
		return FAULT;
	return read_vectors(ring, (void *)record_of(ring) + at, from->vectors, from->n_vectors,
			    max_vectors(has_loop),
			    walk->place < KY_CONTENT_IN_PLACES ? config.limit : from->len,
			    has_loop);
}

/* False: none exists, or no room, or it cannot be read. */
static __always_inline bool take_message(struct ky_content_ring *ring, bool has_loop)
{
	struct ky_content_walk *walk = &ring->walk;
	struct ky_content_message *to;
	struct message from;
	uint64_t at = walk->len, name_len;
	int64_t result;

	if (!walk->left || at > LAST_AT)
		return false;
	walk->left--;
	if (!read_header(walk, &from)) {
		walk->bad = 1;
		return false;
	}
	to = (void *)record_of(ring) + at;
	name_len = read_name(walk, to + 1, &from);
	to->name_len = name_len;
	walk->data_at = at + MESSAGE_BYTES + up8(name_len);
	result = read_data(ring, &from, has_loop);
	if (result < 0) {
		walk->bad = 1;
		walk->total = result = 0;
	}
	to->data_len = result;
	to->bytes = walk->total;
	to->len = from.len;
	to->flags = from.n_vectors > max_vectors(has_loop) ? KY_CONTENT_MESSAGE_LONGER : 0;
	walk->len = walk->data_at + up8(result);
	return true;
}

static __always_inline bool next_message(struct ky_content_ring *ring, uint64_t i)
{
	(void)i;
	return take_message(ring, true);
}
REPEATABLE(next_message, struct ky_content_ring)

/* The first run of the program finds them; what it finds nothing of is absent. */
static __always_inline bool begin_messages(struct ky_content_ring *ring)
{
	struct ky_content_walk *walk = &ring->walk;
	struct ky_content_part *part = next_part(ring);

	/* Their number is an unsigned int; what the call returns was looked at. */
	walk->count =
		walk->place < KY_CONTENT_IN_PLACES ? (uint32_t)walk->count : (uint64_t)walk->ret;
	if (!part)
		return false;
	if (!walk->pointer || !walk->count) {
		end_part(ring, part, walk->place, ABSENT, walk->count);
		return false;
	}
	walk->left = walk->count < KY_CONTENT_MESSAGES_MAX ? walk->count : KY_CONTENT_MESSAGES_MAX;
	walk->bad = 0;
	walk->len += PART_BYTES;
	return true;
}

/* The part's header. Messages are alone in their record. */
static __always_inline void end_messages(struct ky_content_ring *ring)
{
	struct ky_content_walk *walk = &ring->walk;
	struct ky_content_part *part = (void *)record_of(ring) + HEADER_BYTES;

	part->place = walk->place;
	part->status = walk->bad ? KY_CONTENT_UNREADABLE : KY_CONTENT_OK;
	part->reserved = 0;
	part->len = walk->len - FIRST_AT;
	part->value = walk->count;
	if (walk->bad)
		walk->faults |= 1 << (walk->place & 7);
}

#endif
