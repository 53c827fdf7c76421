/* SPDX-License-Identifier: MIT */
#include "analysis/export/protobuf.h"

#include "ctf/model/unicode.h"

enum wire {
	WIRE_VARINT = 0,
	WIRE_64 = 1,
	WIRE_LENGTH = 2,
};

#define VARINT_MAX 10
/* A length is always written with this many bytes, so that it can be filled in later. */
#define LENGTH_BYTES 4

static char *protobuf_put_varint(char *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (char)value;
	return at;
}

static char *put_tag(char *at, uint32_t field, enum wire wire)
{
	return protobuf_put_varint(at, (uint64_t)field << 3 | wire);
}

void ky_pb_uint(struct ky_strbuf *out, uint32_t field, uint64_t value)
{
	char *at;

	if (out->failed || !ky_strbuf_reserve(out, 2 * (size_t)VARINT_MAX))
		return;
	at = protobuf_put_varint(put_tag(out->data + out->len, field, WIRE_VARINT), value);
	out->len = (size_t)(at - out->data);
}

void ky_pb_double(struct ky_strbuf *out, uint32_t field, double value)
{
	char tag[VARINT_MAX], bytes[8];
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(bits >> (8 * i));
	ky_strbuf_add(out, tag, (size_t)(put_tag(tag, field, WIRE_64) - tag));
	ky_strbuf_add(out, bytes, sizeof(bytes));
}

void ky_pb_bytes(struct ky_strbuf *out, uint32_t field, const char *data, size_t len_bytes)
{
	char head[2 * VARINT_MAX],
		*at = protobuf_put_varint(put_tag(head, field, WIRE_LENGTH), len_bytes);

	ky_strbuf_add(out, head, (size_t)(at - head));
	ky_strbuf_add(out, data, len_bytes);
}

/* How many of the first bytes are well-formed, and no more than @max_bytes. */
static size_t well_formed(const char *text, size_t len_bytes, size_t max_bytes)
{
	size_t at = 0;

	while (at < len_bytes) {
		size_t n = ky_utf8_length((const uint8_t *)text + at, len_bytes - at);

		if (!n || at + n > max_bytes)
			break;
		at += n;
	}
	return at;
}

void ky_pb_text(struct ky_strbuf *out, uint32_t field, const char *text, size_t len_bytes,
		size_t max_bytes)
{
	size_t whole = well_formed(text, len_bytes, max_bytes), begun, start;

	if (whole == len_bytes) {
		ky_pb_bytes(out, field, text, len_bytes);
		return;
	}
	begun = ky_pb_begin(out, field);
	start = out->len;
	for (size_t at = 0; at < len_bytes && out->len - start < max_bytes && !out->failed;) {
		size_t n = ky_utf8_length((const uint8_t *)text + at, len_bytes - at);

		ky_strbuf_add(out, n ? text + at : "\xef\xbf\xbd", n ? n : 3);
		at += n ? n : 1;
	}
	ky_pb_end(out, begun);
}

size_t ky_pb_begin(struct ky_strbuf *out, uint32_t field)
{
	char head[VARINT_MAX], *at = put_tag(head, field, WIRE_LENGTH);

	ky_strbuf_add(out, head, (size_t)(at - head));
	ky_strbuf_add(out, "\0\0\0\0", LENGTH_BYTES);
	return out->len;
}

void ky_pb_end(struct ky_strbuf *out, size_t begun)
{
	size_t len = out->len - begun;
	char *at;

	if (out->failed)
		return;
	if (len >> (7 * LENGTH_BYTES)) {
		out->failed = true;
		return;
	}
	at = out->data + begun - LENGTH_BYTES;
	for (int i = 0; i < LENGTH_BYTES; i++)
		at[i] = (char)((len >> (7 * i) & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}
