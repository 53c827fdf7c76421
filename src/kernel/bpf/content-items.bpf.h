/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Of content.bpf.c: items that are read where the call is met. The others have programs of their own. */
#ifndef KY_KERNEL_BPF_CONTENT_ITEMS_BPF_H
#define KY_KERNEL_BPF_CONTENT_ITEMS_BPF_H

#include "kernel/bpf/content-ids.bpf.h"
#include "kernel/bpf/content-messages.bpf.h"
#include "kernel/bpf/content-region.bpf.h"

/* Each of these returns how many bytes it has read to @to, or FAULT, or ABSENT; *value becomes the part's. */

static __always_inline int64_t read_text(void *to, uint64_t from, uint64_t *value)
{
	int64_t n = bpf_probe_read_user_str(to, KY_CONTENT_TEXT_BYTES, (void *)from);

	*value = n;
	if (n > 0)
		return n;
	/* A path that is too long may have nothing behind what the kernel reads of it. */
	n = bpf_probe_read_user_str(to, KY_CONTENT_PATH_BYTES, (void *)from);
	*value = KY_CONTENT_TEXT_BYTES;
	return n > 0 ? n : FAULT;
}

/* @n bytes, but @max, which is a constant. */
static __always_inline int64_t read_bytes(void *to, uint64_t from, uint64_t n, uint64_t max)
{
	n = at_most(n, max);
	if (!n)
		return ABSENT;
	return bpf_probe_read_user(to, n, (void *)from) ? FAULT : (int64_t)n;
}

/* The kernel tells how long an address is that it has written, not how much of it there was room for. */
static __always_inline int64_t read_address(struct ky_content_walk *walk, void *to, uint64_t from,
					    const uint64_t *value, bool is_output)
{
	uint64_t n = *value;

	if (is_output && n > walk->room)
		n = walk->room;
	/* There is an address, though there was no room for a byte of it. */
	if (!n && *value)
		return 0;
	return read_bytes(to, from, n, KY_CONTENT_SOCKADDR_BYTES);
}

/* @at: its length; as output, where the kernel has set that. */
static __always_inline int64_t read_sockaddr(struct ky_content_walk *walk, void *to, uint64_t from,
					     uint64_t at, uint64_t *value, bool is_output)
{
	uint32_t len = at;

	if (is_output && bpf_probe_read_user(&len, sizeof(len), (void *)at))
		return FAULT;
	*value = len;
	return read_address(walk, to, from, value, is_output);
}

static __always_inline int64_t read_message_name(struct ky_content_walk *walk, void *to,
						 uint64_t message, uint64_t *value, bool is_output)
{
	uint64_t name;

	if (!read_message_words(message, MSG_NAME_AT, walk->compat, &name, value))
		return FAULT;
	*value = (uint32_t)*value;
	return name ? read_address(walk, to, name, value, is_output) : ABSENT;
}

/* What is returned may be how long it would have been: recv() with MSG_TRUNC, getxattr() with no room. */
static __always_inline int64_t read_buffer(struct ky_content_walk *walk, void *to, uint64_t from,
					   uint64_t *value, uint64_t max, bool is_output)
{
	if (is_output && (uint64_t)walk->ret < *value)
		*value = walk->ret;
	return read_bytes(to, from, *value, max);
}

#define KIND(kind) (1u << KY_CONTENT_##kind)

/* The item is of @kind, which may stand there. */
static __always_inline bool is_kind(uint8_t kind, unsigned int which, unsigned int kinds)
{
	return (kinds & 1u << which) && kind == which;
}

static __always_inline int64_t read_item(struct ky_content_walk *walk, uint8_t kind,
					 unsigned int kinds, void *to, uint64_t pointer,
					 uint64_t *value, bool is_output)
{
	if (is_kind(kind, KY_CONTENT_TEXT, kinds))
		return read_text(to, pointer, value);
	if (is_kind(kind, KY_CONTENT_BUFFER, kinds))
		return read_buffer(walk, to, pointer, value, config.limit, is_output);
	if (is_kind(kind, KY_CONTENT_OUT_TEXT, kinds))
		return read_buffer(walk, to, pointer, value, KY_CONTENT_TEXT_BYTES, is_output);
	if (is_kind(kind, KY_CONTENT_MSG_NAME, kinds))
		return read_message_name(walk, to, pointer, value, is_output);
	if (kinds & (KIND(SOCKADDR) | KIND(VALUE)))
		return read_sockaddr(walk, to, pointer, *value, value, is_output);
	return ABSENT;
}

/* Argument @i of the call; there are always eight words. */
static __always_inline uint64_t argument(const struct ky_content_record *record, uint8_t i)
{
	return *(const uint64_t *)((const void *)record->args + (i & 7) * 8);
}

/* Is the item at @place to be read by this program? Input at exit only when it could not be at entry; output of a call that failed is not there. */
static __always_inline bool is_due(const struct ky_content_walk *walk, unsigned int place)
{
	if (place >= KY_CONTENT_IN_PLACES)
		return walk->ret >= 0;
	return !walk->is_exit || (walk->late & 1 << place);
}

/* The item at @place, when it is one of @kinds. False: no room, which cannot be. */
static __always_inline bool take_item(struct ky_content_ring *ring,
				      const struct ky_content_descriptor *call, unsigned int place,
				      unsigned int kinds)
{
	const struct ky_content_record *record = record_of(ring);
	struct ky_content_walk *walk = &ring->walk;
	uint8_t kind = call->items[place].kind;
	struct ky_content_part *part;
	uint64_t pointer, value;
	int64_t result = ABSENT;

	if (kind >= KY_CONTENT_LONG_FIRST || !(kinds & 1u << kind) || !is_due(walk, place))
		return true;
	part = next_part(ring);
	if (!part)
		return false;
	value = argument(record, call->items[place].len_arg);
	pointer = argument(record, call->items[place].arg);
	if (pointer)
		result = read_item(walk, kind, kinds, part + 1, pointer, &value,
				   place >= KY_CONTENT_IN_PLACES);
	end_part(ring, part, place, result, value);
	return true;
}

static __always_inline bool take_ids(struct ky_content_ring *ring,
				     const struct ky_content_descriptor *call)
{
	struct ky_content_part *part;

	if (!call->items[KY_CONTENT_OUT_IDS].kind || !is_due(&ring->walk, KY_CONTENT_OUT_IDS))
		return true;
	part = next_part(ring);
	if (!part)
		return false;
	read_ids((struct ky_thread_ids *)(part + 1));
	end_part(ring, part, KY_CONTENT_OUT_IDS, sizeof(struct ky_thread_ids), 0);
	return true;
}

#endif
