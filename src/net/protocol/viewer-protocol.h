/* SPDX-License-Identifier: MIT */
/*
 * LTTng's live protocol between a relay and a viewer, versions 2.4 to 2.15: requests of the viewer,
 * each with one answer. All integers are big-endian, all structs without padding.
 *
 * A request is a head, then what belongs to its command. The answer has no head.
 *
 *	CONNECT		the same struct: the versions; both sides use the lower minor version
 *	LIST_SESSIONS	u32 count, then sessions (struct ky_viewer_session, or from version 2.15 on
 *			struct ky_viewer_session_15 with its texts)
 *	CREATE_SESSION	u32 status (1); before ATTACH
 *	ATTACH		u32 status, u32 count, streams
 *	GET_NEXT_INDEX	struct ky_viewer_index: the next packet of a stream
 *	GET_PACKET	u32 status, u32 bytes, u32 flags, bytes
 *	GET_METADATA	u64 bytes, u32 status, bytes: what is new
 *	GET_NEW_STREAMS u32 status, u32 count, streams
 *	DETACH		u32 status
 *
 * Threads: any.
 */
#ifndef KY_NET_PROTOCOL_VIEWER_PROTOCOL_H
#define KY_NET_PROTOCOL_VIEWER_PROTOCOL_H

#include <stdint.h>

#define KY_VIEWER_PORT	     5344
#define KY_VIEWER_MAJOR	     2
#define KY_VIEWER_MINOR	     15
#define KY_VIEWER_MINOR_CTF2 15 /* from this version on, sessions have a format */
#define KY_VIEWER_PATH_BYTES 4096
#define KY_VIEWER_NAME_BYTES 255
#define KY_VIEWER_HOST_BYTES 64

#define KY_VIEWER_PACKED __attribute__((packed))

enum ky_viewer_command {
	KY_VIEWER_CONNECT = 1,
	KY_VIEWER_LIST_SESSIONS = 2,
	KY_VIEWER_ATTACH = 3,
	KY_VIEWER_GET_NEXT_INDEX = 4,
	KY_VIEWER_GET_PACKET = 5,
	KY_VIEWER_GET_METADATA = 6,
	KY_VIEWER_GET_NEW_STREAMS = 7,
	KY_VIEWER_CREATE_SESSION = 8,
	KY_VIEWER_DETACH = 9,
};

enum ky_viewer_flag { KY_VIEWER_NEW_METADATA = 1, KY_VIEWER_NEW_STREAM = 2 };
enum ky_viewer_seek { KY_VIEWER_SEEK_BEGIN = 1, KY_VIEWER_SEEK_LAST = 2 };
enum ky_viewer_format { KY_VIEWER_CTF_1 = 0, KY_VIEWER_CTF_2 = 1 };
/* Of CREATE_SESSION and DETACH, too. */
enum ky_viewer_status { KY_VIEWER_OK = 1, KY_VIEWER_UNKNOWN = 2 };

enum ky_viewer_attach_status {
	KY_VIEWER_ATTACH_OK = 1,
	KY_VIEWER_ATTACH_ALREADY = 2,
	KY_VIEWER_ATTACH_UNKNOWN = 3,
	KY_VIEWER_ATTACH_NOT_LIVE = 4,
	KY_VIEWER_ATTACH_SEEK = 5,
	KY_VIEWER_ATTACH_NO_SESSION = 6,
};

enum ky_viewer_index_status {
	KY_VIEWER_INDEX_OK = 1,
	KY_VIEWER_INDEX_RETRY = 2,
	KY_VIEWER_INDEX_HUP = 3,
	KY_VIEWER_INDEX_ERROR = 4,
	KY_VIEWER_INDEX_INACTIVE = 5, /* the stream has no event up to end_cycles */
	KY_VIEWER_INDEX_EOF = 6,
};

enum ky_viewer_packet_status {
	KY_VIEWER_PACKET_OK = 1,
	KY_VIEWER_PACKET_RETRY = 2,
	KY_VIEWER_PACKET_ERROR = 3,
	KY_VIEWER_PACKET_EOF = 4,
};

enum ky_viewer_metadata_status {
	KY_VIEWER_METADATA_OK = 1,
	KY_VIEWER_METADATA_NO_NEW = 2,
	KY_VIEWER_METADATA_ERROR = 3,
};

enum ky_viewer_streams_status {
	KY_VIEWER_STREAMS_OK = 1,
	KY_VIEWER_STREAMS_NO_NEW = 2,
	KY_VIEWER_STREAMS_ERROR = 3,
	KY_VIEWER_STREAMS_HUP = 4,
};

struct ky_viewer_head {
	uint64_t bytes; /* of what follows */
	uint32_t command;
	uint32_t version; /* of the command: 0 */
} KY_VIEWER_PACKED;

struct ky_viewer_connect {
	uint64_t viewer; /* the relay's number for the viewer */
	uint32_t major, minor;
	uint32_t type; /* 1: commands */
} KY_VIEWER_PACKED;

struct ky_viewer_attach {
	uint64_t session;
	uint64_t offset;
	uint32_t seek;
} KY_VIEWER_PACKED;

struct ky_viewer_get_packet {
	uint64_t stream;
	uint64_t offset_bytes;
	uint32_t bytes;
} KY_VIEWER_PACKED;

struct ky_viewer_session {
	uint64_t id;
	uint32_t timer_us, clients, streams;
	char host[KY_VIEWER_HOST_BYTES];
	char name[KY_VIEWER_NAME_BYTES];
} KY_VIEWER_PACKED;

/* The host and the name follow, without ends. */
struct ky_viewer_session_15 {
	uint64_t id;
	uint32_t timer_us, clients, streams;
	uint32_t host_bytes, name_bytes;
	uint32_t format;
} KY_VIEWER_PACKED;

struct ky_viewer_stream {
	uint64_t id;
	uint64_t trace;
	uint32_t is_metadata;
	char path[KY_VIEWER_PATH_BYTES];
	char channel[KY_VIEWER_NAME_BYTES];
} KY_VIEWER_PACKED;

/* Offset in bytes, sizes in bits. */
struct ky_viewer_index {
	uint64_t offset_bytes, packet_bits, content_bits;
	uint64_t begin_cycles, end_cycles, discarded;
	uint64_t stream_class_id;
	uint32_t status, flags;
} KY_VIEWER_PACKED;

/* ATTACH, GET_NEW_STREAMS */
struct ky_viewer_streams {
	uint32_t status, count;
} KY_VIEWER_PACKED;

struct ky_viewer_packet {
	uint32_t status, bytes, flags;
} KY_VIEWER_PACKED;

struct ky_viewer_metadata {
	uint64_t bytes;
	uint32_t status;
} KY_VIEWER_PACKED;

/*
 * The head of a packet of CTF 1.8 metadata, in the byte order of the trace. The text follows; sizes
 * are in bits, the head included.
 */
#define KY_METADATA_MAGIC 0x75d11d57u

struct ky_metadata_packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t checksum, content_bits, packet_bits;
	uint8_t compression, encryption, checksum_scheme, major, minor;
} KY_VIEWER_PACKED;

#endif
