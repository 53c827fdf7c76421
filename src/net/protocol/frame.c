/* SPDX-License-Identifier: MIT */
#include "net/protocol/frame.h"

#include <endian.h>
#include <string.h>

#include "base/error.h"

_Static_assert(sizeof(struct ky_frame) == KY_FRAME_HEAD_BYTES, "no padding");
_Static_assert(sizeof(struct ky_net_hello) == 40, "no padding");
_Static_assert(sizeof(struct ky_net_data) == 96, "no padding");
_Static_assert(sizeof(struct ky_net_file) == 256, "no padding");

#define NAME_MAX_BYTES 200
/* Digits in names of files of symbols. */
#define BUILD_ID_MAX   56
#define PID_DIGITS_MAX 19

void ky_frame_put(const struct ky_frame *frame, uint8_t to[KY_FRAME_HEAD_BYTES])
{
	const struct ky_frame wire = {
		htole32(frame->type),
		htole32(frame->trace),
		htole64(frame->number),
		htole64(frame->bytes),
	};

	memcpy(to, &wire, sizeof(wire));
}

void ky_frame_get(struct ky_frame *frame, const uint8_t from[KY_FRAME_HEAD_BYTES])
{
	struct ky_frame wire;

	memcpy(&wire, from, sizeof(wire));
	*frame = (struct ky_frame){
		le32toh(wire.type),
		le32toh(wire.trace),
		le64toh(wire.number),
		le64toh(wire.bytes),
	};
}

/* The sizes of payloads. */
static const struct limits {
	bool from_relay, is_numbered;
	uint64_t least_bytes, most_bytes;
} limits[KY_FRAME_TYPES] = {
	[KY_FRAME_HELLO] = {false, false, sizeof(struct ky_net_hello),
			    sizeof(struct ky_net_hello) + KY_NET_TEXT_MAX},
	[KY_FRAME_OPEN] = {false, false, 5, 4 + KY_NET_TEXT_MAX},
	[KY_FRAME_STREAM] = {false, false, 9, 8 + KY_NET_TEXT_MAX},
	[KY_FRAME_PING] = {false, false, 0, 0},
	[KY_FRAME_WELCOME] = {true, false, 8, 8},
	[KY_FRAME_ACK] = {true, false, 8, 8},
	[KY_FRAME_READERS] = {true, false, 8, 8},
	[KY_FRAME_ERROR] = {true, false, 0, KY_NET_TEXT_MAX},
	[KY_FRAME_DATA] = {false, true, sizeof(struct ky_net_data), KY_NET_PACKET_MAX},
	[KY_FRAME_METADATA] = {false, true, 0, KY_NET_PACKET_MAX},
	[KY_FRAME_PATCH] = {false, true, 8, 8 + KY_NET_TEXT_MAX},
	[KY_FRAME_BEACON] = {false, true, 8, 8},
	[KY_FRAME_END] = {false, true, 0, 0},
	[KY_FRAME_CLOSE] = {false, true, 0, 0},
	[KY_FRAME_DISCARD] = {false, true, 0, 0},
	[KY_FRAME_ROTATE] = {false, true, 9, 8 + KY_NET_TEXT_MAX},
	[KY_FRAME_BYE] = {false, true, 0, 0},
	[KY_FRAME_READER] = {false, false, sizeof(struct ky_net_hello),
			     sizeof(struct ky_net_hello) + KY_NET_TEXT_MAX},
	[KY_FRAME_FEATURES] = {true, false, 8, 8},
	[KY_FRAME_REMOVE] = {false, true, 1, KY_NET_TEXT_MAX},
	[KY_FRAME_FILE] = {false, true, sizeof(struct ky_net_file),
			   sizeof(struct ky_net_file) + KY_NET_FILE_MAX},
};

int ky_frame_check(const struct ky_frame *frame, bool from_relay, struct kymo_error *err)
{
	const struct limits *limit;

	if (frame->type >= KY_FRAME_TYPES || !frame->type)
		return ky_error_set(err, KYMO_E_FORMAT, "frame of unknown type %u", frame->type);
	limit = &limits[frame->type];
	if (limit->from_relay != from_relay)
		return ky_error_set(err, KYMO_E_FORMAT, "frame of type %u is not for this side",
				    frame->type);
	if (frame->bytes < limit->least_bytes || frame->bytes > limit->most_bytes)
		return ky_error_set(err, KYMO_E_FORMAT, "frame of type %u has %llu bytes",
				    frame->type, (unsigned long long)frame->bytes);
	if (limit->is_numbered != (frame->number != 0))
		return ky_error_set(err, KYMO_E_FORMAT, "frame of type %u has the number %llu",
				    frame->type, (unsigned long long)frame->number);
	return KYMO_OK;
}

bool ky_net_is_name(const char *name, size_t len)
{
	if (!len || len > NAME_MAX_BYTES || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f || name[i] == '/')
			return false;
	return true;
}

bool ky_net_is_path(const char *path, size_t len)
{
	int depth = 0;

	for (size_t at = 0; at <= len;) {
		const char *slash = memchr(path + at, '/', len - at);
		size_t end = slash ? (size_t)(slash - path) : len;

		if (++depth > KY_NET_DEPTH_MAX || !ky_net_is_name(path + at, end - at))
			return false;
		at = end + 1;
	}
	return len < KY_NET_TEXT_MAX;
}

/* One to @most characters of @set, then @tail. */
static bool frame_has_form(const char *text, const char *set, size_t most, const char *tail)
{
	size_t n = strspn(text, set);

	return n && n <= most && strcmp(text + n, tail) == 0;
}

bool ky_net_is_symbols_name(const char *name)
{
	static const char perf[] = "perf-";

	return strcmp(name, "kallsyms") == 0 ||
	       frame_has_form(name, "0123456789abcdef", BUILD_ID_MAX, ".kdi") ||
	       (strncmp(name, perf, sizeof(perf) - 1) == 0 &&
		frame_has_form(name + sizeof(perf) - 1, "0123456789", PID_DIGITS_MAX, ".map"));
}
