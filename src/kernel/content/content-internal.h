/* SPDX-License-Identifier: MIT */
/* What the files share that keep system calls' content until its calls come. */
#ifndef KY_KERNEL_CONTENT_CONTENT_INTERNAL_H
#define KY_KERNEL_CONTENT_CONTENT_INTERNAL_H

#include "base/hash.h"
#include "kernel/bpf/content.h"
#include "kernel/content/content.h"

/* What waits for its call: more than that is let go, the oldest first. */
#define KY_CONTENT_PENDING_BYTES (128u << 20)

/* What became of an event's content: the worst of its items. */
enum ky_content_state {
	KY_CONTENT_STATE_READ,
	KY_CONTENT_STATE_LATE,
	KY_CONTENT_STATE_TRUNCATED,
	KY_CONTENT_STATE_UNREADABLE,
	KY_CONTENT_STATE_LOST,
};

/* A record that waits for its call: in its thread's queue, and in the queue of all. */
struct pending {
	struct pending *prev, *next; /* of the thread, in the order of time */
	struct pending *older, *newer;
	size_t size;
	struct ky_content_record record;
};

struct thread_queue {
	struct pending *first, *last;
};

/* Calls that the ring does not have, on one CPU, in the order of time. */
struct call_queue {
	struct pending *first, *last; /* by `next` */
	size_t bytes;
	uint64_t lost; /* for want of memory */
};

struct ky_content {
	struct ky_bpf_content_options options;
	struct ky_bpf_content programs;
	struct ky_content_descriptor descriptors[KY_CONTENT_ALL_CALLS];
	struct ky_map threads; /* tid -> struct thread_queue */
	struct pending *oldest, *newest;
	size_t pending_bytes;
	struct pending *held; /* what ky_content_take() gave last */
	struct call_queue
		*calls; /* of 32-bit programs, and unknown ones, by CPU; NULL: none are recorded */
	bool unknown[KY_CONTENT_MAX_CALLS]; /* 64-bit calls that the kernel has no event for */
	uint64_t from_ns;		    /* earlier ones are left out */
	struct ky_content_stats stats;
};

/* content-address.c: what of a socket address stands in no field of its own, in @to, of as many bytes. Its length. */
#define KY_CONTENT_ADDRESS_BYTES 128
uint32_t ky_content_say_address(uint16_t family, const uint8_t *data, uint32_t len, char *to);

/* content.c: put the items that are wanted of @call's entry or exit into @to. */
void ky_content_describe(const struct ky_content *content, const struct ky_content_call *call,
			 bool is_exit, struct ky_content_descriptor *to);
/* The programs, when they are loaded, see descriptor @key as it is now. */
void ky_content_tell(struct ky_content *content, uint32_t key);
struct ky_content_ring *ky_content_ring_of(const struct ky_content *content, uint32_t cpu);
/*
 * content-join.c: entry @p gets the part at @place as @exit_record has it, if it was read only then. Returns @p, or what
 * replaces it.
 */
struct pending *ky_content_add_late(struct pending *p, struct ky_content_record *exit_record,
				    unsigned int place);

/*
 * content-multiplexed.c: @to becomes the descriptor of socketcall's @i-th call, of KY_CONTENT_MULTIPLEXED, but for what is
 * that call's own. Returns its number; 0: none exists.
 */
uint32_t ky_content_multiplexed(uint32_t i, struct ky_content_descriptor *to);

/* content-compat.c: a queue for the calls of each CPU, where calls are recorded. 0 or KYMO_E_MEMORY. */
int ky_content_make_calls(struct ky_content *content, struct kymo_error *err);
/* A call of @cpu whose record is the event. */
void ky_content_push_call(struct ky_content *content, uint32_t cpu,
			  const struct ky_content_record *record);
void ky_content_free_calls(struct ky_content *content);

#endif
