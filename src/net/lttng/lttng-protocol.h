/* SPDX-License-Identifier: MIT */
/*
 * What LTTng's daemons send to a relay, versions 2.1 to 2.13 of the protocol. All integers are big-endian.
 *
 * A consumer daemon has two connections. Commands go over the control connection: a head, a payload, and
 * (except for metadata) a reply. Packets go over the data connection: a head, and the packet.
 *
 * Threads: any.
 */
#ifndef KY_NET_LTTNG_LTTNG_PROTOCOL_H
#define KY_NET_LTTNG_LTTNG_PROTOCOL_H

#include <stdint.h>

#define KY_LTTNG_CONTROL_PORT  5342
#define KY_LTTNG_DATA_PORT     5343
#define KY_LTTNG_MAJOR	       2
#define KY_LTTNG_MINOR	       13
#define KY_LTTNG_CHANNEL_BYTES 264
#define KY_LTTNG_PATH_BYTES    4096
#define KY_LTTNG_PAYLOAD_MAX   (128u << 20)

enum ky_lttng_command {
	KY_LTTNG_ADD_STREAM = 1,
	KY_LTTNG_CREATE_SESSION = 2,
	KY_LTTNG_START_DATA = 3,
	KY_LTTNG_VERSION = 5,
	KY_LTTNG_SEND_METADATA = 6,
	KY_LTTNG_CLOSE_STREAM = 7,
	KY_LTTNG_DATA_PENDING = 8,
	KY_LTTNG_QUIESCENT_CONTROL = 9,
	KY_LTTNG_BEGIN_DATA_PENDING = 10,
	KY_LTTNG_END_DATA_PENDING = 11,
	KY_LTTNG_SEND_INDEX = 13,
	KY_LTTNG_STREAMS_SENT = 16,
	KY_LTTNG_RESET_METADATA = 17,
	KY_LTTNG_ROTATE_STREAMS = 18,
	KY_LTTNG_CREATE_TRACE_CHUNK = 19,
	KY_LTTNG_CLOSE_TRACE_CHUNK = 20,
	KY_LTTNG_TRACE_CHUNK_EXISTS = 21,
	KY_LTTNG_GET_CONFIGURATION = 22,
};

/* Codes in replies. */
enum {
	KY_LTTNG_OK = 10,
	KY_LTTNG_ERROR = 11,
	KY_LTTNG_ERROR_PROTOCOL = 152,
};

/* What becomes of a chunk that is closed. */
enum ky_lttng_chunk_command {
	KY_LTTNG_CHUNK_ARCHIVE = 0,
	KY_LTTNG_CHUNK_KEEP = 1,
	KY_LTTNG_CHUNK_DELETE = 2,
};

/* Flag in the reply to KY_LTTNG_GET_CONFIGURATION. */
#define KY_LTTNG_CLEAR_ALLOWED 1

#define KY_LTTNG_PACKED __attribute__((packed))

struct ky_lttng_head {
	uint64_t circuit;
	uint64_t bytes; /* of the payload */
	uint32_t command;
	uint32_t version;
} KY_LTTNG_PACKED;

struct ky_lttng_data_head {
	uint64_t circuit;
	uint64_t stream;
	uint64_t number; /* of the packet in its stream, from 0 on */
	uint32_t bytes;
	uint32_t padding_bytes; /* zeros that belong to the packet, but are not sent */
} KY_LTTNG_PACKED;

struct ky_lttng_optional {
	uint8_t is_set;
	uint64_t value;
} KY_LTTNG_PACKED;

struct ky_lttng_version {
	uint32_t major, minor;
} KY_LTTNG_PACKED;

struct ky_lttng_create_session_2_4 {
	char name[255];
	char host[64];
	uint32_t live_timer_us, is_snapshot;
} KY_LTTNG_PACKED;

/* The names follow, each with a zero at its end. */
struct ky_lttng_create_session_2_11 {
	uint32_t name_bytes, host_bytes, path_bytes;
	uint32_t live_timer_us;
	uint8_t is_snapshot, has_time_in_name;
	uint8_t daemon[16]; /* a number of the session daemon */
	uint64_t session;
	uint64_t created_s;
	struct ky_lttng_optional chunk;
} KY_LTTNG_PACKED;

struct ky_lttng_create_session_reply {
	uint64_t session;
	uint32_t code;
	uint32_t path_bytes; /* from version 2.11 on: the session's path follows, with a zero */
} KY_LTTNG_PACKED;

/* Version 2.1 ends before the sizes of files. */
struct ky_lttng_add_stream_2_2 {
	char channel[KY_LTTNG_CHANNEL_BYTES];
	char path[KY_LTTNG_PATH_BYTES];
	uint64_t file_bytes, files;
} KY_LTTNG_PACKED;

/* The names follow, each with a zero at its end. */
struct ky_lttng_add_stream_2_11 {
	uint32_t channel_bytes, path_bytes;
	uint64_t file_bytes, files;
	uint64_t chunk;
} KY_LTTNG_PACKED;

struct ky_lttng_add_stream_reply {
	uint64_t stream;
	uint32_t code;
} KY_LTTNG_PACKED;

/* KY_LTTNG_CLOSE_STREAM, KY_LTTNG_DATA_PENDING. */
struct ky_lttng_stream_number {
	uint64_t stream;
	uint64_t number; /* of the last packet */
} KY_LTTNG_PACKED;

/* The metadata follows. */
struct ky_lttng_metadata {
	uint64_t stream;
	uint32_t padding_bytes;
} KY_LTTNG_PACKED;

/* Before version 2.8, the last two are missing. Without packet_bits: no packet, but the time is known. */
struct ky_lttng_index {
	uint64_t stream;
	uint64_t number;
	uint64_t packet_bits, content_bits;
	uint64_t begin_cycles, end_cycles;
	uint64_t discarded;
	uint64_t stream_class_id;
	uint64_t stream_id, sequence;
} KY_LTTNG_PACKED;

#define KY_LTTNG_INDEX_BYTES_2_4 64

/*
 * KY_LTTNG_ROTATE_STREAMS: u32 streams, u8 whether there is a new chunk, 0, 3 or 7 bytes of padding (which depend on
 * the sender's machine), u64 chunk; then the streams' positions.
 */
#define KY_LTTNG_ROTATE_BYTES	  13
#define KY_LTTNG_ROTATE_BYTES_MAX 20

struct ky_lttng_rotate_position {
	uint64_t stream;
	uint64_t sequence; /* the first packet of the new chunk, by the tracer's number */
} KY_LTTNG_PACKED;

/* A name follows, if name_bytes is not 0: the chunk's directory. */
struct ky_lttng_create_chunk {
	uint64_t chunk;
	uint64_t created_s;
	uint32_t name_bytes;
} KY_LTTNG_PACKED;

struct ky_lttng_close_chunk {
	uint64_t chunk;
	uint64_t closed_s;
	uint8_t has_command;
	uint32_t command;
} KY_LTTNG_PACKED;

/* The path follows. */
struct ky_lttng_close_chunk_reply {
	uint32_t code;
	uint32_t path_bytes;
} KY_LTTNG_PACKED;

struct ky_lttng_chunk_exists_reply {
	uint32_t code;
	uint8_t exists;
} KY_LTTNG_PACKED;

struct ky_lttng_configuration_reply {
	uint32_t code;
	uint64_t flags;
} KY_LTTNG_PACKED;

#endif
