/* SPDX-License-Identifier: MIT */
/*
 * consume RING OUT: everything that a ring file of a traced program holds, as files in directory OUT:
 * channel0_N, the packets of buffer N, and blob, the client's region as far as it is valid.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/ring.h>

#include "abi/control.h"
#include "abi/user-packet.h"

static void packet_open(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	ky_user_packet_open(client, packet, header);
}

static void packet_close(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	ky_user_packet_close(packet, header);
}

static void fail(const char *what, const struct kymo_error *err)
{
	fprintf(stderr, "consume: %s: %s\n", what, err ? err->message : strerror(errno));
	exit(1);
}

static int create(const char *directory, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail(path, NULL);
	return fd;
}

static void put(int fd, const void *data, uint64_t bytes)
{
	if (write(fd, data, bytes) != (ssize_t)bytes)
		fail("write", NULL);
}

static void read_buffer(struct kymo_ring_reader *reader, uint32_t buffer, const char *out)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error err;
	char name[32];
	int fd = -1, got;

	while ((got = kymo_ring_reader_next(reader, buffer, KYMO_RING_PARTIAL, &chunk, &err)) > 0) {
		struct ky_packet_prolog *prolog = chunk.header;

		if (fd < 0) {
			snprintf(name, sizeof(name), "channel0_%u", buffer);
			fd = create(out, name);
		}
		prolog->packet_bits = prolog->content_bits =
			8 * (uint64_t)(chunk.header_bytes + chunk.body_bytes);
		put(fd, chunk.header, chunk.header_bytes);
		put(fd, chunk.body, chunk.body_bytes);
		kymo_ring_reader_release(reader, &chunk);
	}
	if (got < 0)
		fail("next", &err);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	static struct kymo_ring_config config = {
		.subbuf_header_bytes = KY_PACKET_PROLOG_BYTES,
		.subbuf_open = packet_open,
		.subbuf_close = packet_close,
	};
	struct kymo_ring_reader_options options = {.size_bytes = sizeof(options),
						   .config = &config};
	struct kymo_ring_reader *reader;
	const struct ky_blob *blob;
	uint8_t uuid[16];
	struct kymo_error err;
	int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0 || pread(fd, uuid, 0, 0) < 0)
		fail("usage: consume RING OUT", NULL);
	options.client = uuid;
	if (kymo_ring_reader_open(&reader, fd, &options, &err) < 0)
		fail(argv[1], &err);
	blob = kymo_ring_reader_info(reader)->client_region;
	memcpy(uuid, blob->trace_uuid, sizeof(uuid));
	for (uint32_t i = 0; i < kymo_ring_reader_buffers(reader); i++)
		read_buffer(reader, i, argv[2]);
	put(create(argv[2], "blob"), blob, blob->bytes);
	kymo_ring_reader_close(reader);
	return 0;
}
