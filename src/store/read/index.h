/* SPDX-License-Identifier: MIT */
/*
 * LTTng's packet index files: index/NAME.idx beside stream file NAME.
 *
 * Big-endian. Header {magic, major 1, minor 0 or 1, entry length}; entries {offset in bytes, packet
 * size and content size in bits, begin, end, discarded, stream class id}, and since 1.1 {stream
 * instance id, sequence number}. Of longer entries, the reader uses the known part.
 */
#ifndef KY_STORE_INDEX_H
#define KY_STORE_INDEX_H

#include "store/read/trace.h"

#define KY_INDEX_MAGIC	      0xC1F1DCC1u
#define KY_INDEX_HEADER_BYTES 16
#define KY_INDEX_ENTRY_1_0    56
#define KY_INDEX_ENTRY_1_1    72

/*
 * Read index bytes into @packets, which the function clears first and the caller frees with
 * ky_vec_fini().
 *
 * The function accepts an index only as a whole: its packets must follow each other without gaps,
 * from the first byte of the stream's file to the last one, and have the stream's class id. It sets
 * times in ns when the stream class has a clock.
 *
 * Returns 0, KYMO_E_FORMAT (@err has the contradiction) or KYMO_E_MEMORY.
 */
int ky_index_read(const uint8_t *data, size_t size_bytes, const struct ky_stream *stream,
		  struct ky_packet_list *packets, struct kymo_error *err);

#endif
