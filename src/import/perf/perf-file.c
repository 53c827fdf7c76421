/* SPDX-License-Identifier: MIT */
#include "import/perf/perf-file.h"

#include <stdlib.h>

#include "base/error.h"
#include "import/perf/perf-parts.h"
#include "import/perf/perf-sample.h"

#define HEADER_BYTES	  104u /* of a file: up to the bitmap of features and with it */
#define PIPE_HEADER_BYTES 16u
#define ATTRS_MAX	  65536u
#define IDS_MAX		  (1u << 20)
#define FEATURES	  256u

static const char magic[] = "PERFILE2";
static const char turned_magic[] = "2ELIFREP";
/* Of perf before Linux 3.3. It is a text: the file's byte order does not turn it. */
static const char first_magic[] = "PERFFILE";

static bool perf_file_begins(const char *path)
{
	return ky_foreign_begins(path, 0, magic, 8) ||
	       ky_foreign_begins(path, 0, turned_magic, 8) ||
	       ky_foreign_begins(path, 0, first_magic, 8);
}

/* @bytes: the first 16. The header's size is small, so its highest bytes are 0. */
static bool perf_file_is_turned(const uint8_t *bytes)
{
	if (memcmp(bytes, first_magic, 8) == 0)
		return ky_foreign_u64(bytes + 8, false) > UINT32_MAX;
	/* The magic number is a number, written in the file's byte order. */
	return memcmp(bytes, magic, 8) != 0;
}

bool ky_perf_is(const char *path)
{
	char *data;
	bool is = perf_file_begins(path);

	if (!is && ky_perf_parts_find(path, &data)) {
		is = perf_file_begins(data);
		free(data);
	}
	return is;
}

static int perf_file_code(const struct kymo_error *err)
{
	return err && err->code ? err->code : KYMO_E_FORMAT;
}

/* ---- attributes ----------------------------------------------------------------------- */

struct ky_perf_attr *ky_perf_attr(struct ky_perf_file *perf, uint64_t id)
{
	uintptr_t number = ky_perf_known_id(perf, id);

	if (!number) {
		number = (uintptr_t)ky_map_get(&perf->ids, id);
		perf->known[id % KY_PERF_KNOWN_IDS].id = id;
		perf->known[id % KY_PERF_KNOWN_IDS].number = number;
	}
	if (number && number <= perf->attrs.len)
		return &perf->attrs.data[number - 1];
	return !id && perf->attrs.len ? &perf->attrs.data[0] : NULL;
}

static int perf_file_add_ids(struct ky_perf_file *perf, uint64_t at, uint64_t size,
			     struct kymo_error *err)
{
	void *number = (void *)(uintptr_t)perf->attrs.len;

	memset(perf->known, 0, sizeof(perf->known));
	perf->n_ids += size / 8 > IDS_MAX ? IDS_MAX + 1 : size / 8;
	if (perf->n_ids > IDS_MAX)
		return ky_foreign_bad(&perf->file, at, "the events have too many counters", err);
	for (uint64_t i = 0; i < size / 8; i++) {
		const uint8_t *bytes =
			ky_foreign_bytes(&perf->file, at + 8 * i, 8, "the list of counters", err);

		if (!bytes)
			return perf_file_code(err);
		if (ky_map_set(&perf->ids, ky_foreign_u64(bytes, perf->file.swap), number) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static int perf_file_add_attr(struct ky_perf_file *perf, const uint8_t *bytes, size_t size,
			      uint64_t at, struct kymo_error *err)
{
	struct ky_perf_attr attr = {.event = -1};

	if (!ky_perf_attr_parse(perf, bytes, size, &attr))
		return ky_foreign_bad(&perf->file, at, "the description of an event makes no sense",
				      err);
	ky_perf_sample_prepare(&attr);
	perf->has_user_stacks |= ky_perf_has_user_stack(&attr);
	perf->has_samples |= attr.type != KY_PERF_TYPE_TRACEPOINT && !ky_perf_is_dummy(&attr);
	perf->has_map_build_ids |= attr.build_id;
	if (perf->attrs.len == ATTRS_MAX)
		return ky_foreign_bad(&perf->file, at, "the file has too many events", err);
	return ky_vec_push(&perf->attrs, attr) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* The attributes of a file: @n of @each bytes, the last 16 of which are the place of the counters' ids. */
static int perf_file_read_attrs(struct ky_perf_file *perf, uint64_t at, uint64_t size,
				uint64_t each, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (each < 16 + 64 || each > 4096)
		return ky_foreign_bad(&perf->file, 16, "the size of an attribute makes no sense",
				      err);
	for (uint64_t i = 0; i < size / each && !ret; i++) {
		const uint8_t *bytes = ky_foreign_bytes(&perf->file, at + i * each, each,
							"the description of an event", err);
		uint64_t ids_at, ids_size;

		if (!bytes)
			return perf_file_code(err);
		ids_at = ky_foreign_u64(bytes + each - 16, perf->file.swap);
		ids_size = ky_foreign_u64(bytes + each - 8, perf->file.swap);
		ret = perf_file_add_attr(perf, bytes, each - 16, at + i * each, err);
		if (!ret)
			ret = perf_file_add_ids(perf, ids_at, ids_size, err);
	}
	return ret;
}

/* ---- the header ----------------------------------------------------------------------- */

/* The feature whose place is at @at of the table. */
static int perf_file_read_feature(struct ky_perf_file *perf, unsigned int number, uint64_t at,
				  struct kymo_error *err)
{
	const uint8_t *place = ky_foreign_bytes(&perf->file, at, 16, "the table of features", err);
	uint64_t offset, size;

	if (!place)
		return perf_file_code(err);
	offset = ky_foreign_u64(place, perf->file.swap);
	size = ky_foreign_u64(place + 8, perf->file.swap);
	return ky_perf_feature(perf, number, offset, size, err);
}

/* Features stand behind the records, so a file that is cut has its records all the same. */
static int perf_file_read_features(struct ky_perf_file *perf, const uint8_t *bits,
				   struct kymo_error *err)
{
	uint64_t at = perf->end;

	for (unsigned int i = 0; i < FEATURES; i++) {
		struct kymo_error why = {0};
		int ret;

		/* Words of 64 bits, in the file's byte order. */
		if (!(bits[i / 64 * 8 + (perf->big_endian ? 7 - i % 64 / 8 : i % 64 / 8)] >> i % 8 &
		      1))
			continue;
		ret = perf_file_read_feature(perf, i, at, &why);
		at += 16;
		if (ret < 0 && !perf->broken.code)
			perf->broken = why;
		if (ret < 0 && ret != KYMO_E_FORMAT && ret != KYMO_E_LIMIT) {
			if (err)
				*err = why;
			return ret;
		}
	}
	return KYMO_OK;
}

static int perf_file_read_header(struct ky_perf_file *perf, struct kymo_error *err)
{
	uint8_t header[HEADER_BYTES];
	bool swap = perf->file.swap;
	const uint8_t *bytes =
		ky_foreign_bytes(&perf->file, 0, HEADER_BYTES, "the header of the file", err);
	uint64_t size;
	int ret;

	if (!bytes)
		return perf_file_code(err);
	memcpy(header, bytes, sizeof(header));
	perf->at = ky_foreign_u64(header + 40, swap);
	size = ky_foreign_u64(header + 48, swap);
	/* A recorder that was killed leaves 0 for the size, and no features. */
	if (perf->at > perf->file.size_bytes)
		return ky_foreign_bad(&perf->file, 40, "the records begin beyond the file's end",
				      err);
	perf->is_cut = !size || size > perf->file.size_bytes - perf->at;
	if (perf->is_cut)
		size = perf->file.size_bytes - perf->at;
	perf->end = perf->at + size;
	ret = perf_file_read_attrs(perf, ky_foreign_u64(header + 24, swap),
				   ky_foreign_u64(header + 32, swap),
				   ky_foreign_u64(header + 16, swap), err);
	return ret || perf->is_cut ? ret : perf_file_read_features(perf, header + 72, err);
}

int ky_perf_open(struct ky_perf_file *perf, const char *path, int fd, struct kymo_error *err)
{
	const uint8_t *bytes;
	int ret;

	memset(perf, 0, sizeof(*perf));
	ky_arena_init(&perf->arena);
	ky_map_init(&perf->ids);
	ky_names_init(&perf->build_ids);
	ky_tracing_data_init(&perf->tracing);
	perf->path = path;
	ret = ky_foreign_open(&perf->file, path, fd, err);
	if (ret < 0)
		return ret;
	bytes = ky_foreign_bytes(&perf->file, 0, PIPE_HEADER_BYTES, "the header of the file", err);
	if (!bytes)
		return perf_file_code(err);
	perf->file.swap = perf_file_is_turned(bytes);
	perf->big_endian = perf->file.swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	perf->is_pipe = ky_foreign_u64(bytes + 8, perf->file.swap) == PIPE_HEADER_BYTES;
	if (!perf->is_pipe)
		return perf_file_read_header(perf, err);
	perf->at = PIPE_HEADER_BYTES;
	perf->end = perf->file.size_bytes;
	return KYMO_OK;
}

void ky_perf_close(struct ky_perf_file *perf)
{
	ky_perf_unpack_free(perf->unpack);
	ky_foreign_close(&perf->file);
	ky_vec_fini(&perf->attrs);
	ky_vec_fini(&perf->aux);
	ky_map_fini(&perf->ids);
	ky_names_fini(&perf->build_ids);
	ky_tracing_data_fini(&perf->tracing);
	ky_arena_fini(&perf->arena);
}

/* ---- records of perf's own ------------------------------------------------------------ */

/* PERF_RECORD_HEADER_ATTR: an attribute, and the ids of its counters. */
static int perf_file_take_attr(struct ky_perf_file *perf, const struct ky_perf_head *head,
			       uint64_t at, struct kymo_error *err)
{
	uint32_t size, have = head->size - KY_PERF_HEAD_BYTES;
	int ret;

	if (have < 64)
		return ky_foreign_bad(&perf->file, at, "the description of an event is too short",
				      err);
	size = ky_foreign_u32(head->bytes + KY_PERF_HEAD_BYTES + 4, perf->file.swap);
	/* Version 0 of the attribute has 64 bytes and says 0. */
	size = size ? size : 64;
	if (size < 64 || size > have)
		return ky_foreign_bad(&perf->file, at, "the description of an event makes no sense",
				      err);
	ret = perf_file_add_attr(perf, head->bytes + KY_PERF_HEAD_BYTES, size, at, err);
	return ret ? ret
		   : perf_file_add_ids(perf, at + KY_PERF_HEAD_BYTES + size, have - size, err);
}

/* PERF_RECORD_EVENT_UPDATE: the name of an event. */
static int perf_file_take_update(struct ky_perf_file *perf, const struct ky_perf_head *head,
				 struct kymo_error *err)
{
	struct ky_perf_attr *attr;

	if (head->size <= 24 || ky_foreign_u64(head->bytes + 8, perf->file.swap) != 2)
		return KYMO_OK;
	attr = ky_perf_attr(perf, ky_foreign_u64(head->bytes + 16, perf->file.swap));
	if (!attr)
		return KYMO_OK;
	attr->name = ky_arena_strndup(&perf->arena, (const char *)head->bytes + 24,
				      strnlen((const char *)head->bytes + 24, head->size - 24u));
	return attr->name ? KYMO_OK : ky_error_nomem(err);
}

/* PERF_RECORD_AUXTRACE: {u64 bytes, offset, reference, u32 index, tid, cpu}; the bytes are at @at. */
static int perf_file_keep_aux(struct ky_perf_file *perf, const struct ky_perf_head *head,
			      uint64_t at, uint64_t bytes)
{
	const struct ky_perf_aux aux = {
		.at = at,
		.bytes = bytes < perf->end - at ? bytes : perf->end - at,
		.offset = ky_foreign_u64(head->bytes + 16, perf->file.swap),
		.reference = ky_foreign_u64(head->bytes + 24, perf->file.swap),
		.index = ky_foreign_u32(head->bytes + 32, perf->file.swap),
		.tid = ky_foreign_u32(head->bytes + 36, perf->file.swap),
		.cpu = ky_foreign_u32(head->bytes + 40, perf->file.swap),
	};

	if (perf->is_in_part) {
		perf->n_aux_left_out++;
		return KYMO_OK;
	}
	return ky_vec_push(&perf->aux, aux);
}

/* Moves perf->at by what belongs to the record at hand but is not in its size. */
static void perf_file_skip(struct ky_perf_file *perf, uint64_t extra)
{
	perf->at = extra > perf->end - perf->at ? perf->end : perf->at + extra;
}

/* The descriptions of tracepoints. perf writes them behind the record, which tells their length; simpleperf into it. */
static int perf_file_take_tracing(struct ky_perf_file *perf, const struct ky_perf_head *head,
				  uint64_t at, struct kymo_error *err)
{
	uint64_t len = ky_foreign_u32(head->bytes + 8, perf->file.swap);
	bool swap = perf->file.swap;
	bool is_inside = head->type >= KY_PERF_SIMPLEPERF || (len && len <= head->size - 12u);
	uint64_t begin = is_inside ? at + 12 : at + head->size;
	int ret = KYMO_OK;

	if (!perf->has_tracing)
		ret = ky_tracing_data_read(&perf->tracing, &perf->file, &begin, err);
	perf->file.swap = swap;
	perf->has_tracing = true;
	if (!is_inside)
		perf_file_skip(perf, (len + 7) & ~UINT64_C(7));
	return ret;
}

/* Moves perf->at behind the record, and what belongs to it but is not in its size. */
static int perf_file_take(struct ky_perf_file *perf, const struct ky_perf_head *head, uint64_t at,
			  struct kymo_error *err)
{
	uint64_t begin = at + head->size, extra = 0;
	bool swap = perf->file.swap;

	switch (head->type) {
	case KY_PERF_HEADER_ATTR:
		return perf_file_take_attr(perf, head, at, err);
	case KY_PERF_EVENT_UPDATE:
		return perf_file_take_update(perf, head, err);
	case KY_PERF_FEATURE:
		return head->size < 16
			       ? KYMO_OK
			       : ky_perf_feature(
					 perf, (unsigned int)ky_foreign_u64(head->bytes + 8, swap),
					 at + 16, head->size - 16u, err);
	case KY_PERF_AUXTRACE_INFO:
		if (head->size >= 12)
			perf->aux_kind = ky_foreign_u32(head->bytes + 8, swap);
		break;
	case KY_PERF_AUXTRACE:
		if (head->size >= 16)
			extra = ky_foreign_u64(head->bytes + 8, swap);
		if (head->size >= 44 && perf_file_keep_aux(perf, head, begin, extra) < 0)
			return ky_error_nomem(err);
		break;
	case KY_PERF_TRACING_DATA:
	case KY_PERF_SIMPLEPERF_TRACING_DATA:
		if (head->size >= 12)
			return perf_file_take_tracing(perf, head, at, err);
		break;
	default:
		break;
	}
	perf_file_skip(perf, extra);
	return KYMO_OK;
}

/* ---- records -------------------------------------------------------------------------- */

/* The record at perf->at of the file. 1, 0, negative. */
static int perf_file_read_record(struct ky_perf_file *perf, struct ky_perf_head *head,
				 struct kymo_error *err)
{
	const uint8_t *bytes;
	uint64_t size;

	perf->record_at = perf->at;
	if (perf->at >= perf->end && perf->is_cut)
		return ky_foreign_bad(
			&perf->file, perf->at,
			"the file is cut, so the descriptions of its events are missing", err);
	if (perf->at >= perf->end)
		return ky_perf_unpack_end(perf, err);
	if (perf->end - perf->at < KY_PERF_HEAD_BYTES)
		return ky_foreign_bad(&perf->file, perf->at, "the last record is cut", err);
	bytes = ky_foreign_bytes(&perf->file, perf->at, KY_PERF_HEAD_BYTES, "a record", err);
	if (!bytes)
		return perf_file_code(err);
	head->type = ky_foreign_u32(bytes, perf->file.swap);
	head->misc = ky_foreign_u16(bytes + 4, perf->file.swap);
	head->size = ky_foreign_u16(bytes + 6, perf->file.swap);
	size = head->size | (head->type >= KY_PERF_SIMPLEPERF ? (uint64_t)head->misc << 16 : 0);
	if (size < KY_PERF_HEAD_BYTES)
		return ky_foreign_bad(&perf->file, perf->at, "a record has no length", err);
	if (size > perf->end - perf->at)
		return ky_foreign_bad(&perf->file, perf->at, "the last record is cut", err);
	/* What takes such a long record reads the rest of it in the file. */
	head->size = size < UINT16_MAX ? (uint16_t)size : UINT16_MAX;
	head->bytes = ky_foreign_bytes(&perf->file, perf->at, head->size, "a record", err);
	if (!head->bytes)
		return perf_file_code(err);
	perf->at += size;
	return 1;
}

static int perf_file_take_compressed(struct ky_perf_file *perf, const struct ky_perf_head *head,
				     struct kymo_error *err)
{
	const uint8_t *data = head->bytes + KY_PERF_HEAD_BYTES;
	size_t len = head->size - KY_PERF_HEAD_BYTES;

	if (head->type == KY_PERF_COMPRESSED2) {
		uint64_t told;

		if (len < 8)
			return ky_foreign_bad(&perf->file, perf->record_at,
					      "a compressed record is too short", err);
		told = ky_foreign_u64(data, perf->file.swap);
		data += 8;
		len -= 8;
		len = told < len ? (size_t)told : len;
	}
	return ky_perf_unpack_add(perf, data, len, perf->record_at, err);
}

int ky_perf_next(struct ky_perf_file *perf, struct ky_perf_head *head, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (;;) {
		if (perf->unpack && ky_perf_unpack_next(perf, head, &ret, err))
			return ret < 0 ? ret : 1;
		ret = perf_file_read_record(perf, head, err);
		if (ret <= 0)
			return ret;
		if (head->type < KY_PERF_USER || head->type == KY_PERF_FINISHED_ROUND)
			return 1;
		if (head->type == KY_PERF_COMPRESSED || head->type == KY_PERF_COMPRESSED2)
			ret = perf_file_take_compressed(perf, head, err);
		else
			ret = perf_file_take(perf, head, perf->record_at, err);
		if (ret < 0)
			return ret;
	}
}
