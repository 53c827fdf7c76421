/* SPDX-License-Identifier: MIT */
#include "symbols/kdi/kdi-write.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "symbols/kdi/kdi-write-internal.h"

void ky_kdi_put_varint(struct ky_strbuf *out, uint64_t value)
{
	while (value > 127) {
		ky_strbuf_addc(out, (char)(value | 128));
		value >>= 7;
	}
	ky_strbuf_addc(out, (char)value);
}

void ky_kdi_put_signed(struct ky_strbuf *out, int64_t value)
{
	ky_kdi_put_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void ky_kdi_put_u32(struct ky_strbuf *out, uint32_t value)
{
	value = htole32(value);
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

void ky_kdi_put_u64(struct ky_strbuf *out, uint64_t value)
{
	value = htole64(value);
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

/* ---- names ------------------------------------------------------------------------------ */

struct hashed {
	uint32_t hash, block;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

/* The groups of one bucket, each hash once in a group; @groups is appended to. Returns their number. */
static uint32_t put_bucket(struct ky_strbuf *groups, const struct hashed *list, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n && count < 255; i++) {
		if (i && list[i].hash == list[i - 1].hash && list[i].block == list[i - 1].block)
			continue;
		ky_strbuf_addc(groups, (char)list[i].block);
		count++;
	}
	return count;
}

static void kdi_write_put_buckets(struct ky_strbuf *out, const struct hashed *list, uint32_t n)
{
	uint32_t buckets = ky_kdi_buckets(n), at = 0;
	struct ky_strbuf counts = KY_STRBUF_INIT, groups = KY_STRBUF_INIT;

	for (uint32_t bucket = 0; bucket < buckets; bucket++) {
		uint32_t begin = at;

		if (bucket % 64 == 0)
			ky_kdi_put_u32(out, (uint32_t)groups.len);
		while (at < n && (uint64_t)list[at].hash * buckets >> 32 == bucket)
			at++;
		ky_strbuf_addc(&counts, (char)put_bucket(&groups, list + begin, at - begin));
	}
	ky_strbuf_add(out, ky_strbuf_text(&counts), counts.len);
	ky_strbuf_add(out, ky_strbuf_text(&groups), groups.len);
	out->failed |= counts.failed || groups.failed;
	ky_strbuf_fini(&counts);
	ky_strbuf_fini(&groups);
}

int ky_kdi_put_by_name(struct ky_strbuf *out, const uint32_t *hashes, const uint32_t *blocks,
		       uint32_t n, uint32_t n_blocks)
{
	struct hashed *list = calloc((size_t)n + 1, sizeof(*list));

	if (!list)
		return KYMO_E_MEMORY;
	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct hashed){hashes[i], blocks[i] / ky_kdi_group(n_blocks)};
	qsort(list, n, sizeof(*list), by_hash);
	kdi_write_put_buckets(out, list, n);
	free(list);
	return ky_strbuf_failed(out) ? KYMO_E_MEMORY : KYMO_OK;
}

/* ---- functions -------------------------------------------------------------------------- */

static int kdi_write_by_address(const void *a, const void *b)
{
	const struct ky_kdi_function *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static void sort_functions(struct ky_kdi_info *info)
{
	size_t kept = 0;

	if (!info->functions.len)
		return;
	qsort(info->functions.data, info->functions.len, sizeof(*info->functions.data),
	      kdi_write_by_address);
	ky_vec_foreach(&info->functions, function)
		if (!kept || info->functions.data[kept - 1].address != function->address)
			info->functions.data[kept++] = *function;
	info->functions.len = kept;
}

/* Where the next function is expected: aligned behind this one. */
static uint64_t expected(const struct ky_kdi_function *function)
{
	return (function->address + function->bytes + 15) & ~(uint64_t)15;
}

static void put_functions(struct ky_strbuf *out, const struct ky_kdi_function *first, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ky_kdi_put_varint(out, first[i].bytes);
	for (size_t i = 1; i < n; i++)
		ky_kdi_put_signed(out, (int64_t)(first[i].address - expected(&first[i - 1])));
}

static void kdi_write_put_names(struct ky_strbuf *out, const struct ky_kdi_function *first,
				size_t n)
{
	struct ky_strbuf rest = KY_STRBUF_INIT;
	const char *before = "";

	for (size_t i = 0; i < n; i++) {
		const char *name = first[i].name;
		size_t same = 0;

		while (same < 255 && name[same] && name[same] == before[same])
			same++;
		ky_strbuf_addc(out, (char)same);
		ky_strbuf_add(&rest, name + same, strlen(name + same) + 1);
		before = name;
	}
	ky_strbuf_add(out, ky_strbuf_text(&rest), rest.len);
	out->failed |= rest.failed;
	ky_strbuf_fini(&rest);
}

/* Each function: the number of lines, then address, file and line of each, as differences. */
static void kdi_write_put_lines(const struct ky_kdi_info *info, struct ky_strbuf *out,
				const struct ky_kdi_function *function)
{
	const struct ky_kdi_line *lines = info->lines.data + function->first_line;
	uint64_t address = function->address;
	uint32_t file = 0, line = 0;

	ky_kdi_put_varint(out, function->n_lines);
	for (uint32_t i = 0; i < function->n_lines; i++) {
		bool is_other = i == 0 || lines[i].file != file;

		ky_kdi_put_varint(out, (lines[i].address - address) << 1 | is_other);
		if (is_other)
			ky_kdi_put_varint(out, lines[i].file);
		ky_kdi_put_signed(out, (int64_t)lines[i].line - line);
		address = lines[i].address;
		file = lines[i].file;
		line = lines[i].line;
	}
}

static void put_inlined_function(struct ky_strbuf *out, const struct ky_kdi_function *function,
				 const struct ky_kdi_inlined *inlined, uint32_t i)
{
	ky_kdi_put_varint(out, inlined[i].depth);
	ky_kdi_put_signed(out, (int64_t)(inlined[i].begin - function->address));
	ky_kdi_put_varint(out, inlined[i].end - inlined[i].begin);
	ky_kdi_put_varint(out, inlined[i].file);
	ky_kdi_put_varint(out, inlined[i].line);
	ky_strbuf_add(out, inlined[i].name, strlen(inlined[i].name) + 1);
}

static void put_inlined(const struct ky_kdi_info *info, struct ky_strbuf *out,
			const struct ky_kdi_function *function)
{
	const struct ky_kdi_inlined *inlined = info->inlined.data + function->first_inlined;

	ky_kdi_put_varint(out, function->n_inlined);
	for (uint32_t i = 0; i < function->n_inlined; i++)
		put_inlined_function(out, function, inlined, i);
}

static void put_block(struct ky_kdi_writer *writer, const struct ky_kdi_function *first, size_t n)
{
	const struct ky_kdi_info *info = writer->info;
	struct ky_strbuf *s = writer->sections;

	ky_kdi_put_u64(&s[KY_KDI_INDEX], first->address);
	ky_kdi_put_u32(&s[KY_KDI_INDEX], (uint32_t)s[KY_KDI_FUNCTIONS].len);
	ky_kdi_put_u32(&s[KY_KDI_INDEX], (uint32_t)s[KY_KDI_NAMES].len);
	ky_kdi_put_u32(&s[KY_KDI_INDEX], (uint32_t)s[KY_KDI_LINES].len);
	ky_kdi_put_u32(&s[KY_KDI_INDEX], (uint32_t)s[KY_KDI_INLINED].len);
	put_functions(&s[KY_KDI_FUNCTIONS], first, n);
	kdi_write_put_names(&s[KY_KDI_NAMES], first, n);
	for (size_t i = 0; i < n; i++) {
		if (info->lines.len)
			kdi_write_put_lines(info, &s[KY_KDI_LINES], &first[i]);
		if (info->inlined.len)
			put_inlined(info, &s[KY_KDI_INLINED], &first[i]);
	}
}

static int put_function_names(struct ky_kdi_writer *writer)
{
	const struct ky_kdi_info *info = writer->info;
	uint32_t n = (uint32_t)info->functions.len;
	uint32_t *hashes = calloc((size_t)n * 2 + 1, sizeof(*hashes)), *blocks = hashes + n;
	int ret = hashes ? KYMO_OK : KYMO_E_MEMORY;

	for (uint32_t i = 0; !ret && i < n; i++) {
		hashes[i] = ky_kdi_hash(info->functions.data[i].name);
		blocks[i] = i / KY_KDI_BLOCK;
	}
	if (!ret)
		ret = ky_kdi_put_by_name(&writer->sections[KY_KDI_BY_NAME], hashes, blocks, n,
					 (n + KY_KDI_BLOCK - 1) / KY_KDI_BLOCK);
	free(hashes);
	return ret;
}

static int write_functions(struct ky_kdi_writer *writer)
{
	const struct ky_kdi_info *info = writer->info;
	struct ky_strbuf *s = writer->sections;
	size_t n = info->functions.len;

	ky_strbuf_add(&s[KY_KDI_IDENTITY], info->is_kernel ? "\1" : "\0", 1);
	ky_strbuf_add(&s[KY_KDI_IDENTITY], (const char *)info->build_id, info->build_id_bytes);
	ky_vec_foreach(&info->segments, segment) {
		ky_kdi_put_u64(&s[KY_KDI_SEGMENTS], segment->offset);
		ky_kdi_put_u64(&s[KY_KDI_SEGMENTS], segment->address);
		ky_kdi_put_u64(&s[KY_KDI_SEGMENTS], segment->bytes);
	}
	for (size_t i = 0; i < n; i += KY_KDI_BLOCK)
		put_block(writer, info->functions.data + i,
			  n - i < KY_KDI_BLOCK ? n - i : KY_KDI_BLOCK);
	ky_kdi_put_u32(&s[KY_KDI_FILES], (uint32_t)info->files.len);
	for (size_t i = 0, at = 0; i < info->files.len; at += strlen(info->files.data[i++]) + 1)
		ky_kdi_put_u32(&s[KY_KDI_FILES], (uint32_t)at);
	ky_vec_foreach(&info->files, file)
		ky_strbuf_add(&s[KY_KDI_FILES], *file, strlen(*file) + 1);
	return put_function_names(writer);
}

/* ---- the file --------------------------------------------------------------------------- */

static void put_header(const struct ky_kdi_writer *writer, struct ky_strbuf *out, uint32_t sections,
		       uint64_t bytes)
{
	ky_strbuf_add(out, KY_KDI_MAGIC, 8);
	ky_kdi_put_u32(out, KY_KDI_VERSION);
	ky_kdi_put_u32(out, sections);
	ky_kdi_put_u64(out, bytes);
	ky_kdi_put_u32(out, (uint32_t)writer->info->functions.len);
	ky_kdi_put_u32(out, writer->types.n);
	ky_kdi_put_u32(out, writer->texts.n);
	ky_kdi_put_u32(out, 0);
}

static int kdi_write_put_file(struct ky_kdi_writer *writer, struct ky_strbuf *out)
{
	uint32_t n = 0;
	uint64_t at;

	for (uint32_t i = 0; i < KY_KDI_SECTIONS; i++) {
		n += writer->sections[i].len > 0;
		out->failed |= writer->sections[i].failed;
	}
	at = KY_KDI_HEADER_BYTES + (uint64_t)n * KY_KDI_SECTION_BYTES;
	for (uint32_t i = 0; i < KY_KDI_SECTIONS; i++)
		at += writer->sections[i].len;
	put_header(writer, out, n, at);
	at = KY_KDI_HEADER_BYTES + (uint64_t)n * KY_KDI_SECTION_BYTES;
	for (uint32_t i = 0; i < KY_KDI_SECTIONS; i++) {
		if (!writer->sections[i].len)
			continue;
		ky_kdi_put_u32(out, i);
		ky_kdi_put_u32(out, 0);
		ky_kdi_put_u64(out, at);
		ky_kdi_put_u64(out, writer->sections[i].len);
		at += writer->sections[i].len;
	}
	for (uint32_t i = 0; i < KY_KDI_SECTIONS; i++)
		ky_strbuf_add(out, ky_strbuf_text(&writer->sections[i]), writer->sections[i].len);
	if (at > KY_KDI_BYTES_MAX)
		return KYMO_E_LIMIT;
	return ky_strbuf_failed(out) ? KYMO_E_MEMORY : KYMO_OK;
}

static void writer_free(struct ky_kdi_writer *writer)
{
	for (size_t i = 0; i < KY_KDI_SECTIONS; i++)
		ky_strbuf_fini(&writer->sections[i]);
	free(writer->types.number);
	free(writer->types.uses);
	free(writer->texts.number);
	free(writer->texts.uses);
	free(writer->types.order);
	free(writer->texts.order);
	ky_vec_fini(&writer->all_strings);
	ky_map_fini(&writer->string_ids);
	free(writer);
}

int ky_kdi_write(struct ky_kdi_info *info, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_kdi_writer *writer = calloc(1, sizeof(*writer));
	int ret;

	if (!writer)
		return ky_error_nomem(err);
	writer->info = info;
	ky_map_init(&writer->string_ids);
	sort_functions(info);
	ret = write_functions(writer);
	if (!ret)
		ret = ky_kdi_write_types(writer);
	if (!ret)
		ret = kdi_write_put_file(writer, out);
	writer_free(writer);
	if (ret == KYMO_E_LIMIT)
		return ky_error_set(err, KYMO_E_LIMIT, "the debug information is too large");
	return ret ? ky_error_nomem(err) : KYMO_OK;
}
