/* SPDX-License-Identifier: MIT */
/* A flight recorder's ring: it is copied, while its program overwrites it. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "record/rings/user-states.h"
#include "record/rings/user-ring-internal.h"
#include "ring/ring-reader.h"

/* Copies of what buffer @i holds. *events: is added to. */
static int copy_buffer(struct ky_user_ring *ring, uint32_t i, struct ky_user_trace *trace,
		       const struct ky_user_place *place, uint64_t *events, struct kymo_error *err)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error local;
	int ret = KYMO_OK, got;

	while (!ret && (got = kymo_ring_snapshot_next(ring->reader, i, &chunk, &local))) {
		if (got == KYMO_E_FORMAT) {
			if (!ring->n_damaged++)
				ky_log_warning(ring->log, "%s: %s", ring->name, local.message);
			continue;
		}
		if (got < 0) {
			ky_user_ring_set_broken(ring, local.message);
			break;
		}
		if (!trace->path)
			ret = ky_user_ring_make_trace(ring, trace, place, err);
		if (!ret)
			ret = ky_user_trace_packet(trace, &chunk.packet, chunk.body,
						   chunk.body_bytes, err);
		*events += ky_user_ring_records(&chunk);
	}
	return ret;
}

/* A trace with an identity of its own: readers take what has the same one for one trace. */
void ky_user_ring_set_uuid(struct ky_user_ring *ring, const uint8_t uuid[16])
{
	memcpy(((struct ky_blob *)ring->blob)->trace_uuid, uuid, 16);
}

int ky_user_ring_copy(struct ky_user_ring *ring, struct ky_user_trace *trace,
		      const struct ky_user_place *place, uint64_t *events, struct kymo_error *err)
{
	uint8_t uuid[16];
	int ret;

	*events = 0;
	trace->is_copy = true;
	if (kymo_ring_snapshot_begin(ring->reader, err) < 0) {
		ky_user_ring_set_broken(ring, err ? err->message : "it cannot be read");
		return KYMO_OK;
	}
	if (getrandom(uuid, sizeof(uuid), 0) != sizeof(uuid))
		return ky_error_errno(err, errno, "no random numbers");
	ky_user_ring_set_uuid(ring, uuid);
	ret = KYMO_OK;
	for (uint32_t i = 0; i < ring->n_buffers && !ret; i++)
		ret = copy_buffer(ring, i, trace, place, events, err);
	if (ret < 0 || !trace->packets)
		return ret;
	/* After the copies: their ids are described by now. */
	ky_user_ring_take_counts(ring);
	if (ring->is_shared)
		ky_user_states_gather(ring);
	ret = ky_user_trace_dump(trace, &ring->dump, trace->first_cycles - 1, err);
	if (!ret)
		ret = ky_user_ring_tell_losses(ring, trace, err);
	return ret ? ret : ky_user_ring_describe(ring, trace, err);
}

int ky_user_ring_snapshot(struct ky_user_ring *ring, const struct ky_user_place *place,
			  const struct ky_clock_record *clock, uint64_t *events, uint64_t *bytes,
			  struct kymo_error *err)
{
	struct ky_user_trace trace = {0};
	struct kymo_error local, of_closing;
	int ret, closed;

	*events = *bytes = 0;
	if (ring->is_broken || !ring->reader)
		return KYMO_OK;
	ring->clock = *clock;
	ret = ky_user_ring_copy(ring, &trace, place, events, &local);
	closed = ky_user_trace_close(&trace, &of_closing);
	if (ret >= 0 && closed < 0) {
		ret = closed;
		local = of_closing;
	}
	*bytes = trace.bytes;
	ky_user_trace_fini(&trace);
	if (ret == KYMO_E_LIMIT) {
		/* There may be room for the next one. */
		ky_log_warning(ring->log, "%s is not in this snapshot: %s", ring->name,
			       local.message);
		*events = *bytes = 0;
		return KYMO_OK;
	}
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

int ky_user_ring_take(struct ky_user_ring *ring, const struct ky_user_place *place,
		      const struct ky_clock_record *ended, const struct ky_clock_record *next,
		      struct kymo_error *err)
{
	uint64_t events, bytes;
	int ret = ky_user_ring_snapshot(ring, place, ended, &events, &bytes, err);

	if (ret < 0 || ring->is_broken || !ring->reader)
		return ret;
	ky_rb_forget_snapshot(ring->reader);
	ring->clock = *next;
	ring->taken_events += events;
	ring->taken_bytes += bytes;
	ky_user_ring_count(ring, events, bytes, 0);
	return KYMO_OK;
}

void ky_user_ring_forget(struct ky_user_ring *ring)
{
	struct kymo_error err;

	if (!ring->is_broken && ring->reader && kymo_ring_snapshot_forget(ring->reader, &err) < 0)
		ky_user_ring_set_broken(ring, err.message);
}
