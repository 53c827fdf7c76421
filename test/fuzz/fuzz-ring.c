/* SPDX-License-Identifier: MIT */
/*
 * A hostile writer. The input scribbles over a ring that was good: patches of {u16 where, u8 length,
 * bytes}, where the first two bytes of it choose the ring and when it is scribbled on: before it is
 * opened, or behind the reader's back. Whatever comes out: nothing is read outside the file, what
 * is handed out lies in it, and it ends.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../race/ring-client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SUBBUF_BYTES 512u
#define SUBBUFS	     8u

static volatile uint64_t sum; /* of what is handed out: it is read */

static void touch(const struct kymo_ring_chunk *chunk)
{
	const uint8_t *body = chunk->body;

	if (chunk->body_bytes > SUBBUF_BYTES)
		abort();
	for (uint64_t i = 0; i < chunk->body_bytes; i++)
		sum += body[i];
	for (uint32_t i = 0; i < chunk->header_bytes; i++)
		sum += ((uint8_t *)chunk->header)[i];
}

/*
 * Where a patch goes: the head, the first buffers' control blocks, slots, or data. The file is sparse
 * and its parts lie far from each other; all of them are reached by 16 bits.
 */
static uint64_t place(const struct kymo_ring_writer *writer, uint16_t where)
{
	const uint8_t *file = (const uint8_t *)writer->file;
	uint64_t offset = where & 0x3fff;

	switch (where >> 14) {
	case 0:
		return offset % 320;
	case 1:
		return (uint64_t)((const uint8_t *)writer->control - file) + offset % 512;
	case 2:
		return (uint64_t)((const uint8_t *)writer->slots - file) +
		       offset % (2 * SUBBUFS * sizeof(struct kymo_ring_slot));
	default:
		return (uint64_t)(writer->data - file) + offset % (2 * SUBBUFS * SUBBUF_BYTES);
	}
}

static void scribble(struct kymo_ring_writer *writer, const uint8_t *data, size_t size)
{
	while (size > 3) {
		uint64_t at = place(writer, (uint16_t)(data[0] | data[1] << 8));
		size_t bytes = data[2] % 64;

		data += 3;
		size -= 3;
		if (bytes > size)
			bytes = size;
		if (at + bytes <= writer->map_bytes)
			memcpy((uint8_t *)writer->file + at, data, bytes);
		data += bytes;
		size -= bytes;
	}
}

static void read_all(struct kymo_ring_reader *reader)
{
	struct kymo_ring_stats stats;
	struct kymo_ring_chunk chunk;
	unsigned int n = 0;
	int status;

	for (uint32_t i = 0; i < kymo_ring_reader_buffers(reader) && i < 4; i++)
		while ((status = kymo_ring_reader_next(reader, i, KYMO_RING_PARTIAL, &chunk,
						       NULL)) != 0 &&
		       status != KYMO_E_STATE && status != KYMO_E_IO) {
			if (status > 0) {
				touch(&chunk);
				kymo_ring_reader_release(reader, &chunk);
			}
			if (++n > 1000)
				abort();
		}
	kymo_ring_reader_stats(reader, KYMO_RING_ALL, &stats);
	if (kymo_ring_snapshot_begin(reader, NULL) < 0)
		return;
	for (uint32_t i = 0; i < kymo_ring_reader_buffers(reader) && i < 4; i++)
		while ((status = kymo_ring_snapshot_next(reader, i, &chunk, NULL)) != 0 &&
		       status != KYMO_E_IO) {
			if (status > 0)
				touch(&chunk);
			if (++n > 2000)
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .subbuf_bytes = SUBBUF_BYTES,
					    .n_subbufs = SUBBUFS,
					    .n_buffers = 1};
	struct kymo_ring_writer writer;
	struct kymo_ring_reader *reader;
	int fd;

	if (size < 2)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	options.flags = KYMO_RING_LOCKED | (data[0] & KYMO_RING_OVERWRITE);
	if (fd < 0 || kymo_ring_create(&writer, fd, &client_config, NULL, &options) < 0)
		abort();
	for (uint64_t i = 0; i < data[1]; i++)
		client_write(&writer, i);
	if (data[0] & 2)
		scribble(&writer, data + 2, size - 2);
	if (kymo_ring_reader_open(&reader, fd,
				  client_reader_options(data[0] & 4 ? KYMO_RING_READ_ONLY : 0),
				  NULL) == 0) {
		if (data[0] & 8)
			read_all(reader);
		if (!(data[0] & 2))
			scribble(&writer, data + 2, size - 2);
		if (data[0] & 16 && ftruncate(fd, (off_t)writer.map_bytes / 2) < 0)
			abort();
		read_all(reader);
		kymo_ring_reader_close(reader);
	}
	kymo_ring_unmap(&writer);
	close(fd);
	return 0;
}
