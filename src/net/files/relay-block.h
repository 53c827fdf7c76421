/* SPDX-License-Identifier: MIT */
/*
 * Where reads of a connection end, so that writes end at blocks of their file. The page cache takes an aligned block as one
 * folio, where other writes cost one per power of two.
 *
 *	bytes = ky_relay_block_bytes(&place, came_bytes, sizeof(buffer));
 *
 * Threads: any.
 */
#ifndef KY_NET_FILES_RELAY_BLOCK_H
#define KY_NET_FILES_RELAY_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* A buffer is best a little larger: heads come between the packets. */
#define KY_RELAY_BLOCK_BYTES (256u << 10)

/* A packet in a connection: a head, then the bytes that are in the file from offset_bytes on. */
struct ky_relay_place {
	uint64_t offset_bytes;
	uint64_t head_bytes, data_bytes;
};

/*
 * How many bytes of the connection to take, @most at most. @came_bytes of the packet have come, with its head. Packets of the
 * same size are expected behind it, in the same file; others cost only the alignment. @most: no block ends within it, or
 * @place is zeroed.
 */
size_t ky_relay_block_bytes(const struct ky_relay_place *place, uint64_t came_bytes, size_t most);

#endif
