/* SPDX-License-Identifier: MIT */
/*
 * Reading of a BPF ring buffer in turns. Programs of others can fill a ring faster than it is read, and libbpf reads
 * until the ring is empty. So a turn ends after a time, and the caller writes what it has and looks at its signals.
 *
 * Threads: one thread per ring.
 */
#ifndef KY_LATENCY_RING_TURN_H
#define KY_LATENCY_RING_TURN_H

#include <bpf/libbpf.h>
#include <errno.h>

#include "base/error.h"
#include "os/now.h"

#define KY_RING_TURN_NS 50000000

struct ky_ring_turn {
	int64_t until_ns; /* of CLOCK_MONOTONIC */
};

/* What the ring's callback returns after a record: an end of the turn is an error to libbpf. */
static inline int ky_ring_turn_next(const struct ky_ring_turn *turn)
{
	return ky_os_now_ns() < turn->until_ns ? 0 : -EAGAIN;
}

/* Read @ring for a turn. 1: records remain; KYMO_OK: the ring is empty; or a negative status. */
static inline int ky_ring_turn_read(struct ky_ring_turn *turn, struct ring_buffer *ring,
				    struct kymo_error *err)
{
	int ret;

	turn->until_ns = ky_os_now_ns() + KY_RING_TURN_NS;
	ret = ring_buffer__consume(ring);
	if (ret == -EAGAIN)
		return 1;
	return ret < 0 ? ky_error_set(err, KYMO_E_IO, "cannot read a BPF ring buffer") : KYMO_OK;
}

#endif
