/* SPDX-License-Identifier: MIT */
/* The pages of trace.dat, which version 7 may compress. */
#include <stdlib.h>

#include "import/ftrace/trace-dat-internal.h"

/* So many bytes of zeros are no empty pages, but a hole, which may be far longer than the disk. */
#define HOLE_BYTES (1u << 20)

typedef int (*page_function)(void *data, const uint8_t *bytes, uint32_t len,
			     struct kymo_error *err);

/* No time, and no bytes of records. */
static bool dat_page_is_empty(const uint8_t *bytes)
{
	static const uint8_t nothing[16];

	return memcmp(bytes, nothing, sizeof(nothing)) == 0;
}

static int dat_plain_pages(struct ky_dat *dat, uint32_t page_bytes, uint64_t at, uint64_t size,
			   page_function page, void *data, struct kymo_error *err)
{
	uint64_t empty = 0;
	int ret = KYMO_OK;

	for (uint64_t done = 0; done < size && !ret; done += page_bytes) {
		const uint8_t *bytes =
			ky_foreign_bytes(&dat->file, at + done, page_bytes, "a page", err);

		ret = bytes ? page(data, bytes, page_bytes, err) : ky_dat_code(err);
		empty = bytes && dat_page_is_empty(bytes) ? empty + page_bytes : 0;
		if (!ret && empty > HOLE_BYTES)
			ret = ky_foreign_bad(&dat->file, at + done + page_bytes - empty,
					     "the pages of a CPU go on with zeros", err);
	}
	return ret;
}

static int dat_chunk(struct ky_dat *dat, uint32_t page_bytes, uint64_t at, uint64_t *next,
		     uint64_t end, page_function page, void *data, struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(&dat->file, at, 8, "a compressed chunk", err);
	uint32_t packed, size;
	uint8_t *pages;
	int ret;

	if (!bytes)
		return ky_dat_code(err);
	packed = ky_foreign_u32(bytes, dat->file.swap);
	size = ky_foreign_u32(bytes + 4, dat->file.swap);
	if (size > KY_DAT_SECTION_MAX_BYTES || packed > end - at)
		return ky_foreign_bad(&dat->file, at, "the size of a chunk makes no sense", err);
	ret = ky_foreign_unpack(&dat->file, at, size, err);
	if (ret < 0)
		return ret;
	*next = at + 8 + packed;
	bytes = ky_foreign_bytes(&dat->file, at + 8, packed, "a compressed chunk", err);
	if (!bytes)
		return ky_dat_code(err);
	pages = malloc(size ? size : 1);
	if (!pages)
		return ky_error_nomem(err);
	ret = ky_unpack(dat->packing, bytes, packed, pages, size, err);
	if (ret < 0) {
		ky_error_path(err, dat->file.path);
		ky_error_offset(err, at);
	}
	for (uint32_t from = 0; !ret && size - from >= page_bytes; from += page_bytes)
		ret = page(data, pages + from, page_bytes, err);
	free(pages);
	return ret;
}

int ky_dat_pages(struct ky_dat *dat, const struct ky_dat_buffer *buffer,
		 const struct ky_dat_cpu *cpu, page_function page, void *data,
		 struct kymo_error *err)
{
	uint64_t at = cpu->at, end = cpu->at + cpu->size_bytes;
	const uint8_t *bytes;
	uint32_t n;
	int ret = KYMO_OK;

	if (!cpu->size_bytes)
		return KYMO_OK;
	if (buffer->page_bytes < 1024 || buffer->page_bytes > 1u << 20 || end < at)
		return ky_foreign_bad(&dat->file, at, "the size of pages makes no sense", err);
	if (!buffer->is_compressed)
		return dat_plain_pages(dat, buffer->page_bytes, at, cpu->size_bytes, page, data,
				       err);
	bytes = ky_foreign_bytes(&dat->file, at, 4, "the number of chunks", err);
	if (!bytes)
		return ky_dat_code(err);
	n = ky_foreign_u32(bytes, dat->file.swap);
	at += 4;
	for (uint32_t i = 0; i < n && at < end && !ret; i++)
		ret = dat_chunk(dat, buffer->page_bytes, at, &at, end, page, data, err);
	return ret;
}
