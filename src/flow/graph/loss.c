/* SPDX-License-Identifier: MIT */
#include "flow/graph/loss.h"

#include <stdlib.h>

#include "base/bits.h"

void ky_loss_tracker_init(struct ky_loss_tracker *tracker)
{
	*tracker = (struct ky_loss_tracker){.end_ns = INT64_MIN};
}

/* Width of the discarded counter: 32-bit ones wrap. */
static unsigned int counter_bits(const struct ky_stream_class *cls)
{
	const struct ky_field_class *st = cls->packet_context;

	for (size_t i = 0; st && i < st->st.n_members; i++) {
		const struct ky_field_class *member = st->st.members[i].cls;

		if (ky_has_role(member, KY_ROLE_DISCARDED) && member->num.length_bits)
			return member->num.length_bits;
	}
	return 64;
}

/* A counter that went back was reset, or has wrapped: then it did not count far. */
static uint64_t newly_discarded(const struct ky_loss_tracker *tracker,
				const struct ky_packet *packet)
{
	uint64_t lost = packet->discarded - tracker->discarded;

	if (!tracker->has_discarded || !packet->has_discarded)
		return 0;
	if (packet->discarded >= tracker->discarded)
		return lost;
	lost &= ky_mask_bits(counter_bits(packet->stream_class));
	return lost < UINT64_C(1) << 31 ? lost : 0;
}

bool ky_loss_tracker_packet(struct ky_loss_tracker *tracker, const struct ky_stream *stream,
			    const struct ky_packet *packet, struct ky_loss *loss)
{
	bool gap = tracker->has_sequence && packet->has_sequence &&
		   packet->sequence > tracker->sequence;

	*loss = (struct ky_loss){
		.stream = stream,
		.events = newly_discarded(tracker, packet),
		.packets = gap ? packet->sequence - tracker->sequence - 1 : 0,
		.begin_ns = tracker->end_ns,
		.end_ns = packet->end_ns,
	};
	*tracker = (struct ky_loss_tracker){
		.has_discarded = packet->has_discarded,
		.discarded = packet->discarded,
		.has_sequence = packet->has_sequence,
		.sequence = packet->sequence,
		.end_ns = packet->end_ns,
	};
	return loss->events || loss->packets;
}

int ky_loss_keep(struct ky_loss *loss)
{
	struct kymo_error *copy;

	if (!loss->damage)
		return KYMO_OK;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return KYMO_E_MEMORY;
	*copy = *loss->damage;
	loss->damage = copy;
	return KYMO_OK;
}

void ky_loss_drop(struct ky_loss *loss)
{
	free((void *)(uintptr_t)loss->damage);
	loss->damage = NULL;
}
