/* SPDX-License-Identifier: MIT */
#include "net/files/relay-block.h"

/* Where the file ends when so many bytes have come since the begin of the first packet. */
static uint64_t relay_block_end(const struct ky_relay_place *place, uint64_t came_bytes)
{
	uint64_t packet_bytes = place->head_bytes + place->data_bytes;
	uint64_t last_bytes = came_bytes % packet_bytes;

	return place->offset_bytes + came_bytes / packet_bytes * place->data_bytes +
	       (last_bytes > place->head_bytes ? last_bytes - place->head_bytes : 0);
}

size_t ky_relay_block_bytes(const struct ky_relay_place *place, uint64_t came_bytes, size_t most)
{
	uint64_t end, data_bytes, last_bytes;

	if (!place->data_bytes)
		return most;
	end = relay_block_end(place, came_bytes + most);
	end -= end % KY_RELAY_BLOCK_BYTES;
	if (end <= relay_block_end(place, came_bytes))
		return most;
	data_bytes = end - place->offset_bytes;
	last_bytes = data_bytes % place->data_bytes;
	return (size_t)(data_bytes / place->data_bytes * (place->head_bytes + place->data_bytes) +
			(last_bytes ? place->head_bytes + last_bytes : 0) - came_bytes);
}
