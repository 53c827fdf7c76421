/* SPDX-License-Identifier: MIT */
/*
 * Messages of Protocol Buffers, field by field. The bytes are not trusted: nothing outside of them is read, and a field that is cut ends
 * the message.
 *
 *	struct ky_pb_reader reader = ky_pb_reader(data, len);
 *	while (ky_pb_next(&reader, &field)) switch (field.number) ...
 */
#ifndef KY_IMPORT_PROTOBUF_READER_H
#define KY_IMPORT_PROTOBUF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ky_pb_reader {
	const uint8_t *at, *end;
	bool is_bad; /* it ended in the middle of a field */
};

struct ky_pb_field {
	uint32_t number;
	bool has_bytes; /* else a number */
	uint64_t value; /* of floats their bits */
	const uint8_t *data;
	size_t len;
};

static inline struct ky_pb_reader ky_pb_reader(const void *data, size_t len)
{
	const uint8_t *at = (const uint8_t *)data;

	return (struct ky_pb_reader){at, at + len, false};
}

/* A number of variable length at *at; false: it is cut, or too long. */
static inline bool ky_pb_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	const uint8_t *from = *at;

	*value = 0;
	for (unsigned int shift = 0; from < end && shift < 64; shift += 7) {
		*value |= (uint64_t)(*from & 127) << shift;
		if (!(*from++ & 128)) {
			*at = from;
			return true;
		}
	}
	return false;
}

static inline bool ky_pb_fixed(struct ky_pb_reader *reader, struct ky_pb_field *field, size_t len)
{
	if ((size_t)(reader->end - reader->at) < len)
		return false;
	/* Protocol Buffers are little-endian, as is what reads them here. */
	for (size_t i = 0; i < len; i++)
		field->value |= (uint64_t)reader->at[i] << 8 * i;
	reader->at += len;
	return true;
}

static inline bool ky_pb_bytes(struct ky_pb_reader *reader, struct ky_pb_field *field)
{
	uint64_t len;

	if (!ky_pb_varint(&reader->at, reader->end, &len) ||
	    len > (uint64_t)(reader->end - reader->at))
		return false;
	field->has_bytes = true;
	field->data = reader->at;
	field->len = (size_t)len;
	reader->at += len;
	return true;
}

/* The next field; false at the end. */
static inline bool ky_pb_next(struct ky_pb_reader *reader, struct ky_pb_field *field)
{
	uint64_t tag;
	bool is_good;

	memset(field, 0, sizeof(*field));
	if (reader->is_bad || reader->at == reader->end)
		return false;
	is_good = ky_pb_varint(&reader->at, reader->end, &tag);
	field->number = (uint32_t)(tag >> 3);
	if (is_good) {
		switch (tag & 7) {
		case 0:
			is_good = ky_pb_varint(&reader->at, reader->end, &field->value);
			break;
		case 1:
			is_good = ky_pb_fixed(reader, field, 8);
			break;
		case 2:
			is_good = ky_pb_bytes(reader, field);
			break;
		case 5:
			is_good = ky_pb_fixed(reader, field, 4);
			break;
		default:
			is_good = false;
			break;
		}
	}
	reader->is_bad = !is_good;
	return is_good;
}

#endif
