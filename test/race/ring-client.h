/* SPDX-License-Identifier: MIT */
/*
 * The ring's client in tests and benchmarks. Records have LTTng's compact header (5-bit id, 27-bit
 * stamp; 13 bytes when that does not do) and say who wrote them, and as which of his; so a
 * reader can tell whether anything is missing, doubled, torn or out of order.
 *
 *   id 1: u64 value                    value = writer << 40 | number
 *   id 2: u64 value, u32 length, so many bytes that follow from the value
 */
#ifndef KY_TEST_RING_CLIENT_H
#define KY_TEST_RING_CLIENT_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <kymo/ring.h>

#define CLIENT_MAGIC 0x74657374u
#define HANDLERS     4000u /* writers from this number on are signal handlers */
#define WRITERS_MAX  4096u
#define TEXT_MAX     4096u

struct client_header {
	uint32_t magic;
	uint32_t buffer;
	uint64_t sequence;
	uint64_t begin;
	uint64_t end;
	uint64_t content_bytes;
	uint64_t lost;
};

#define CLIENT_IS_BIG	  (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define CLIENT_STAMP_MASK ((UINT64_C(1) << 27) - 1)
#define CLIENT_EXTENDED	  31 /* the id of a header of 13 bytes */

static inline uint64_t client_clock(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static inline __attribute__((always_inline)) uint32_t
client_record_header(const void *record, const struct kymo_ring_spot *spot,
		     union kymo_ring_header *header)
{
	uint32_t id = *(const uint32_t *)record;

	if (__builtin_expect(spot->now - spot->last < 1u << 27, 1)) {
		/* The id is in the first byte, whatever the byte order: that tells one header from the other. */
		header->word32 = CLIENT_IS_BIG
					 ? id << 27 | (uint32_t)(spot->now & CLIENT_STAMP_MASK)
					 : (uint32_t)(spot->now << 5) | id;
		return 4;
	}
	header->bytes[0] = CLIENT_IS_BIG ? CLIENT_EXTENDED << 3 : CLIENT_EXTENDED;
	memcpy(header->bytes + 1, &id, 4);
	memcpy(header->bytes + 5, &spot->now, 8);
	return 13;
}

static void client_subbuf_open(const void *client, const struct kymo_ring_packet *packet,
			       void *header)
{
	struct client_header open = {CLIENT_MAGIC,	  packet->buffer,    packet->sequence,
				     packet->begin_stamp, packet->end_stamp, packet->content_bytes,
				     packet->lost};

	memcpy(header, &open, sizeof(open));
}

static void client_subbuf_close(const void *client, const struct kymo_ring_packet *packet,
				void *header)
{
	struct client_header *close = header;

	close->end = packet->end_stamp;
	close->content_bytes = packet->content_bytes;
	close->lost = packet->lost;
}

static const struct kymo_ring_config client_config __attribute__((unused)) = {
	sizeof(struct client_header), client_clock,	   client_record_header,
	client_subbuf_open,	      client_subbuf_close,
};

/* ---- writing ---- */

KYMO_RING_INLINE int client_write(struct kymo_ring_writer *writer, uint64_t value)
{
	static const uint32_t id = 1;

	return kymo_ring_write(&client_config, writer, &id, &value, sizeof(value));
}

static inline uint8_t client_byte(uint64_t value, uint32_t i)
{
	return (uint8_t)(value * 31 + i * 7);
}

static inline int client_write_text(struct kymo_ring_writer *writer, uint64_t value,
				    uint32_t length)
{
	struct __attribute__((packed)) {
		uint64_t value;
		uint32_t length;
	} head = {value, length};
	uint8_t text[TEXT_MAX];
	struct kymo_ring_part parts[] = {{&head, sizeof(head)}, {text, length}};
	static const uint32_t id = 2;

	for (uint32_t i = 0; i < length; i++)
		text[i] = client_byte(value, i);
	return kymo_ring_write_parts(&client_config, writer, &id, parts, 2);
}

static inline uint64_t client_value(uint64_t who, uint64_t number)
{
	return who << 40 | number;
}

/* ---- checking ---- */

struct client_check {
	uint64_t records;	    /* seen */
	uint64_t from[WRITERS_MAX]; /* per writer */
	uint64_t last[WRITERS_MAX]; /* per writer: its last number plus one, in this buffer */
	uint64_t chunks;
	uint64_t stamp; /* of the last record */
	uint64_t end;	/* of the last chunk */
	uint64_t lost;	/* as the last chunk says */
	char why[600];	/* what is wrong, when a check fails */
};

/* To the next buffer: order holds within one. */
static inline void client_check_next_buffer(struct client_check *check)
{
	memset(check->last, 0, sizeof(check->last));
	check->stamp = check->end = check->lost = 0;
}

#define CLIENT_FAIL(check, ...)                                            \
	do {                                                               \
		snprintf((check)->why, sizeof((check)->why), __VA_ARGS__); \
		return false;                                              \
	} while (0)

static inline uint64_t client_get(const uint8_t *at, unsigned int bytes, bool swap)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		value |= (uint64_t)at[swap ? bytes - 1 - i : i] << (8 * i);
#else
		value |= (uint64_t)at[swap ? i : bytes - 1 - i] << (8 * i);
#endif
	}
	return value;
}

/* The record at @at; its length, or 0: it is not one. */
static inline uint64_t client_check_record(struct client_check *check, const uint8_t *at,
					   uint64_t left, bool swap)
{
	uint64_t head_bytes = 4, bytes, value, who, stamp;
	bool is_big = CLIENT_IS_BIG != swap;
	uint32_t id;

	if (left < 12)
		CLIENT_FAIL(check, "%llu bytes left over", (unsigned long long)left);
	id = (uint32_t)client_get(at, 4, swap);
	if ((is_big ? at[0] >> 3 : at[0] & 31) == CLIENT_EXTENDED) {
		head_bytes = 13;
		id = (uint32_t)client_get(at + 1, 4, swap);
		stamp = client_get(at + 5, 8, swap);
	} else {
		stamp = (check->stamp & ~CLIENT_STAMP_MASK) |
			(is_big ? id & CLIENT_STAMP_MASK : id >> 5);
		if (stamp < check->stamp)
			stamp += CLIENT_STAMP_MASK + 1;
		id = is_big ? id >> 27 : id & 31;
	}
	if (id < 1 || id > 2)
		CLIENT_FAIL(check, "record %llu has id %u", (unsigned long long)check->records, id);
	if (stamp < check->stamp)
		CLIENT_FAIL(check, "record %llu: time goes back",
			    (unsigned long long)check->records);
	check->stamp = stamp;
	bytes = head_bytes + 8;
	value = client_get(at + head_bytes, 8, swap);
	if (id == 2) {
		uint32_t length = (uint32_t)client_get(at + bytes, 4, swap);

		bytes += 4;
		if (length > TEXT_MAX || bytes + length > left)
			CLIENT_FAIL(check, "text of %u bytes", length);
		for (uint32_t i = 0; i < length; i++)
			if (at[bytes + i] != client_byte(value, i))
				CLIENT_FAIL(check, "text differs at %u", i);
		bytes += length;
	}
	if (bytes > left)
		CLIENT_FAIL(check, "the last record is cut");
	who = value >> 40;
	value &= (UINT64_C(1) << 40) - 1;
	if (who >= WRITERS_MAX)
		CLIENT_FAIL(check, "there is no writer %llu", (unsigned long long)who);
	/* Handlers may nest between taking a number and writing it. */
	if (value < check->last[who] && who < HANDLERS)
		CLIENT_FAIL(check, "writer %llu: %llu after %llu", (unsigned long long)who,
			    (unsigned long long)value, (unsigned long long)check->last[who] - 1);
	check->last[who] = value + 1;
	check->from[who]++;
	check->records++;
	return bytes;
}

/* A chunk, header and all. False: @check->why says what is wrong with it. */
static inline bool client_check_chunk(struct client_check *check,
				      const struct kymo_ring_chunk *chunk)
{
	const struct kymo_ring_packet *packet = &chunk->packet;
	const struct client_header *header = chunk->header;
	const uint8_t *at = chunk->body, *end = at + chunk->body_bytes;
	uint64_t records = check->records;

	check->chunks++;
	if (!packet->is_foreign && chunk->header_bytes &&
	    (header->magic != CLIENT_MAGIC || header->buffer != packet->buffer ||
	     header->begin != packet->begin_stamp || header->end != packet->end_stamp ||
	     header->content_bytes != packet->content_bytes || header->lost != packet->lost))
		CLIENT_FAIL(check, "header of sub-buffer %llu",
			    (unsigned long long)packet->sequence);
	if (packet->begin_stamp < check->end)
		CLIENT_FAIL(check, "chunk begins before the one before it ends");
	if (packet->lost < check->lost)
		CLIENT_FAIL(check, "losses went back");
	check->lost = packet->lost;
	check->stamp = packet->begin_stamp;
	while (at < end) {
		uint64_t bytes =
			client_check_record(check, at, (uint64_t)(end - at), packet->is_foreign);

		if (!bytes)
			return false;
		at += bytes;
	}
	if (check->stamp > packet->end_stamp)
		CLIENT_FAIL(check, "a record after the chunk's end");
	check->end = packet->end_stamp;
	if (check->records - records != packet->records)
		CLIENT_FAIL(check, "%llu records and not %llu",
			    (unsigned long long)(check->records - records),
			    (unsigned long long)packet->records);
	return true;
}

/* Read all there is of every buffer, and check it. */
static inline bool client_check_all(struct client_check *check, struct kymo_ring_reader *reader,
				    uint32_t flags)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error err;
	int status;

	for (uint32_t i = 0; i < kymo_ring_reader_buffers(reader); i++) {
		client_check_next_buffer(check);
		while ((status = kymo_ring_reader_next(reader, i, flags, &chunk, &err)) > 0) {
			if (!client_check_chunk(check, &chunk))
				return false;
			kymo_ring_reader_release(reader, &chunk);
		}
		if (status < 0)
			CLIENT_FAIL(check, "%s", err.message);
	}
	return true;
}

static inline const struct kymo_ring_reader_options *client_reader_options(uint32_t flags)
{
	static struct kymo_ring_reader_options options;

	options = (struct kymo_ring_reader_options){sizeof(options), flags, &client_config, NULL};
	return &options;
}

/* ---- a ring of this process, with its two ends ---- */

struct client_ring {
	int fd;
	struct kymo_ring_writer writer;
	struct kymo_ring_reader *reader;
};

/* As TAP says it. */
static inline void client_die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}

static inline void client_ring_open(struct client_ring *ring,
				    const struct kymo_ring_options *options)
{
	struct kymo_error err;

	ring->fd = memfd_create("ring", MFD_CLOEXEC);
	if (kymo_ring_create(&ring->writer, ring->fd, &client_config, NULL, options) < 0)
		client_die("cannot make a ring");
	if (kymo_ring_reader_open(&ring->reader, ring->fd, client_reader_options(0), &err) < 0)
		client_die(err.message);
}

static inline void client_ring_close(struct client_ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	kymo_ring_unmap(&ring->writer);
	close(ring->fd);
}

static inline void client_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

#endif
