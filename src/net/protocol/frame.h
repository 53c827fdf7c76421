/* SPDX-License-Identifier: MIT */
/*
 * The protocol between a recorder and a relay, which docs/design/network.md describes: frames, each
 * with a head and a payload. All integers are little-endian.
 *
 * The recorder numbers the frames that change the relay's files. The relay carries them out in this
 * order and acknowledges their number; after a new connection, it continues with the first frame
 * that it has not carried out. To carry out a frame twice has the same effect as once.
 *
 * Threads: any.
 */
#ifndef KY_NET_PROTOCOL_FRAME_H
#define KY_NET_PROTOCOL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#define KY_NET_PORT	    5350
#define KY_NET_MAGIC	    "KYMONET1"
#define KY_NET_VERSION	    1
#define KY_NET_TEXT_MAX	    4096	 /* of a path, a name, an error */
#define KY_NET_PACKET_MAX   (256u << 20) /* of the payload of other frames */
#define KY_NET_FILE_MAX	    (16u << 20)	 /* of a file of symbols */
#define KY_NET_DEPTH_MAX    32		 /* components of a path: each costs work and room */
#define KY_NET_INDEX_BYTES  72
#define KY_FRAME_HEAD_BYTES 24
/* Bounds of the delay from an event to a live reader, and the delay of readers that wish none. */
#define KY_NET_DELAY_MIN_MS   10
#define KY_NET_DELAY_MAX_MS   60000
#define KY_NET_DELAY_USUAL_MS 250

enum ky_frame_type {
	/* Without number. From the recorder: */
	KY_FRAME_HELLO = 1, /* struct ky_net_hello, texts */
	KY_FRAME_OPEN,	    /* trace; u32 flags, path: the following frames are about this trace */
	KY_FRAME_STREAM,    /* trace; u32 stream, u32 zero, name */
	KY_FRAME_PING,	    /* the relay answers with KY_FRAME_ACK */
	/* From the relay: */
	KY_FRAME_WELCOME, /* u64: the number of the first frame that it wants */
	KY_FRAME_ACK,	  /* u64: all earlier frames are carried out */
	KY_FRAME_READERS, /* u64: the delay that live readers of the session want, in ms; 0: there are none */
	KY_FRAME_ERROR, /* text; the relay closes the connection */
	/* With a number, from the recorder: */
	KY_FRAME_DATA,	   /* trace; struct ky_net_data, packet */
	KY_FRAME_METADATA, /* trace; the whole text */
	KY_FRAME_PATCH,	   /* trace; u64 offset in bytes, text */
	KY_FRAME_BEACON,   /* trace; u64 clock value */
	KY_FRAME_END,	   /* trace: its streams are complete */
	KY_FRAME_CLOSE,	   /* trace: it is complete */
	KY_FRAME_DISCARD,  /* trace: its files go */
	KY_FRAME_ROTATE,   /* trace; u32 whether a new one begins, u32 zero, path of the archive */
	KY_FRAME_BYE,	   /* the session is complete */
	/*
	 * Without number, from a reader, as the first and only frame: struct ky_net_hello without
	 * names, token. After the relay's KY_FRAME_WELCOME, both sides speak the protocol of
	 * viewer-protocol.h instead of frames.
	 */
	KY_FRAME_READER,
	/*
	 * Without number, from the relay, before its KY_FRAME_WELCOME, to a recorder with KY_NET_TAKES_FEATURES:
	 * u64, the optional features of enum ky_net_feature that this relay has.
	 */
	KY_FRAME_FEATURES,
	/* With a number, from the recorder, to a relay with KY_NET_FEATURE_REMOVE: path in the session, which goes with all below. */
	KY_FRAME_REMOVE,
	/* With a number, from the recorder, to a relay with KY_NET_FEATURE_FILE: struct ky_net_file, the bytes of the file. */
	KY_FRAME_FILE,
	KY_FRAME_TYPES,
};

/* The head, as it is in memory. */
struct ky_frame {
	uint32_t type;
	uint32_t trace;
	uint64_t number;
	uint64_t bytes; /* of the payload */
};

enum {
	KY_OPEN_IS_PART = 1, /* its metadata is metadata.ctf, where readers do not look */
};

/* What a later version of the relay can do beside the frames that all have. */
enum ky_net_feature {
	KY_NET_FEATURE_REMOVE = 1,
	KY_NET_FEATURE_FILE = 2,
};

/* In the greeting of a recorder. */
enum {
	KY_NET_TAKES_FEATURES = 1, /* it knows KY_FRAME_FEATURES */
};

/*
 * Fixed part of KY_FRAME_HELLO and KY_FRAME_READER; token, host and session's name follow without separators.
 * @wishes: of a recorder: KY_NET_TAKES_FEATURES; of a reader: the delay that it wants, in ms, 0: the usual one. A relay
 * of an older version ignores it.
 */
struct ky_net_hello {
	char magic[8];
	uint32_t version;
	uint32_t wishes;
	uint8_t session[16]; /* a random number, the same in all connections of one session */
	uint16_t token_bytes, host_bytes, name_bytes, reserved2;
};

/* Fixed part of KY_FRAME_DATA. */
struct ky_net_data {
	uint32_t stream;
	uint32_t index_bytes;  /* KY_NET_INDEX_BYTES, or 0: no entry */
	uint64_t offset_bytes; /* of the packet in the stream's file */
	uint64_t entry;	       /* number of the entry in the index file */
	uint8_t index[KY_NET_INDEX_BYTES];
};

/*
 * Fixed part of KY_FRAME_FILE: a file of symbols. The relay chooses its directory, "symbols" in the session's directory or
 * in that of an archive, and replaces a file with the same name. Without the archive, the frame has no effect.
 */
struct ky_net_file {
	char place
		[192]; /* path of the archive in the session, or ""; it ends with NUL, as the name does */
	char name[64]; /* as ky_net_is_symbols_name() has it */
};

/* The delay @wish_ms of a peer, within the bounds; 0: the usual one. */
static inline uint32_t ky_net_delay_ms(uint64_t wish_ms)
{
	if (!wish_ms)
		return KY_NET_DELAY_USUAL_MS;
	if (wish_ms < KY_NET_DELAY_MIN_MS)
		return KY_NET_DELAY_MIN_MS;
	return wish_ms < KY_NET_DELAY_MAX_MS ? (uint32_t)wish_ms : KY_NET_DELAY_MAX_MS;
}

/* Converts a head between memory and the network. */
void ky_frame_put(const struct ky_frame *frame, uint8_t to[KY_FRAME_HEAD_BYTES]);
void ky_frame_get(struct ky_frame *frame, const uint8_t from[KY_FRAME_HEAD_BYTES]);

/*
 * Whether a relay (or, @from_relay, a recorder) may receive the frame: its type, and the size of its
 * payload. KYMO_E_FORMAT.
 */
int ky_frame_check(const struct ky_frame *frame, bool from_relay, struct kymo_error *err);

/*
 * Whether @path is a path below a directory, as traces have: no component is empty, begins with '.' or
 * has control characters, and there are KY_NET_DEPTH_MAX at most.
 */
bool ky_net_is_path(const char *path, size_t len);
/* The same for one component of 200 bytes at most, such as a host's or a session's name. */
bool ky_net_is_name(const char *name, size_t len);
/* Whether @name is one of a file of symbols: BUILD-ID.kdi, kallsyms, perf-PID.map. */
bool ky_net_is_symbols_name(const char *name);

#endif
