/* SPDX-License-Identifier: MIT */
#include "import/ftrace/trace-dat.h"

#include <stdlib.h>

#include "base/error.h"

static const uint8_t dat_magic[10] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

enum dat_option {
	OPTION_DONE = 0,
	OPTION_DATE = 1,
	OPTION_BUFFER = 3,
	OPTION_TRACECLOCK = 4,
	OPTION_UNAME = 5,
	OPTION_OFFSET = 7,
	OPTION_CPUCOUNT = 8,
	OPTION_TIME_SHIFT = 12,
	OPTION_TSC2NSEC = 14,
	OPTION_HEADER_INFO = 16,
	OPTION_FTRACE_EVENTS = 17,
	OPTION_EVENT_FORMATS = 18,
	OPTION_BUFFER_TEXT = 22,
};

#define CPUS_MAX	   65536u
#define BUFFERS_MAX	   4096u
#define OPTIONS_MAX	   65536u
#define OPTION_MAX_BYTES   (16u << 20)
#define SECTION_MAX_BYTES  (256u << 20) /* of all together, too */
#define PLACES_MAX	   (1u << 20)
#define SECTION_HEAD_BYTES 16u
#define SECTION_COMPRESSED 1u

bool ky_dat_is(const char *path)
{
	return ky_foreign_begins(path, 0, dat_magic, sizeof(dat_magic));
}

static int trace_dat_code(const struct kymo_error *err)
{
	return err && err->code ? err->code : KYMO_E_FORMAT;
}

/* ---- options -------------------------------------------------------------------------- */

/* The option at hand, as bytes in memory. */
struct dat_bytes {
	const uint8_t *at, *end;
	bool swap, is_short;
};

static uint32_t dat_u32(struct dat_bytes *bytes)
{
	uint32_t value;

	if (bytes->end - bytes->at < 4) {
		bytes->is_short = true;
		return 0;
	}
	value = ky_foreign_u32(bytes->at, bytes->swap);
	bytes->at += 4;
	return value;
}

static uint64_t dat_u64(struct dat_bytes *bytes)
{
	uint64_t value;

	if (bytes->end - bytes->at < 8) {
		bytes->is_short = true;
		return 0;
	}
	value = ky_foreign_u64(bytes->at, bytes->swap);
	bytes->at += 8;
	return value;
}

/* A text up to its NUL, or to the end. NULL: memory is out. */
static const char *dat_text(struct ky_dat *dat, struct dat_bytes *bytes)
{
	size_t room = (size_t)(bytes->end - bytes->at);
	size_t len = strnlen((const char *)bytes->at, room);
	const char *text = ky_arena_strndup(&dat->tracing.arena, (const char *)bytes->at, len);

	bytes->at += len < room ? len + 1 : len;
	return text;
}

/* The clock in brackets: "[local] global mono". */
static const char *dat_chosen_clock(struct ky_dat *dat, struct dat_bytes *bytes)
{
	const char *text = dat_text(dat, bytes), *begin, *end;

	if (!text)
		return NULL;
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	return end ? ky_arena_strndup(&dat->tracing.arena, begin + 1, (size_t)(end - begin - 1))
		   : text;
}

static struct ky_dat_buffer *dat_new_buffer(struct ky_dat *dat)
{
	struct ky_dat_buffer buffer = {
		.name = "",
		.clock = "",
		.page_bytes = dat->tracing.page_bytes,
	};

	if (dat->buffers.len >= BUFFERS_MAX || ky_vec_push(&dat->buffers, buffer) < 0)
		return NULL;
	return ky_vec_last(&dat->buffers);
}

/* Pages of two CPUs do not overlap: otherwise a small file would be a long trace. */
static int dat_add_cpu(struct ky_dat *dat, struct ky_dat_buffer *buffer,
		       const struct ky_dat_cpu *cpu, struct kymo_error *err)
{
	uint64_t size = dat->file.size_bytes;

	if (cpu->at < size)
		dat->places_bytes +=
			cpu->size_bytes < size - cpu->at ? cpu->size_bytes : size - cpu->at;
	if (dat->places_bytes > size || ++dat->n_places > PLACES_MAX)
		return ky_foreign_bad(&dat->file, cpu->at, "the pages of CPUs overlap", err);
	return ky_vec_push(&buffer->cpus, *cpu) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* Version 6: "flyrecord", then the place of each CPU's pages, at byte @at of the file. */
static int dat_read_flyrecord(struct ky_dat *dat, struct ky_dat_buffer *buffer, uint64_t at,
			      struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(&dat->file, at, 10, "a buffer", err);

	if (!bytes)
		return trace_dat_code(err);
	if (memcmp(bytes, "latency", 7) == 0) {
		dat->has_text = true;
		return KYMO_OK;
	}
	if (memcmp(bytes, "flyrecord", 9) != 0)
		return ky_foreign_bad(&dat->file, at, "there is no buffer here", err);
	at += 10;
	for (uint32_t i = 0; i < dat->n_cpus; i++, at += 16) {
		struct ky_dat_cpu cpu = {.number = i};
		int ret;

		bytes = ky_foreign_bytes(&dat->file, at, 16, "the list of CPUs", err);
		if (!bytes)
			return trace_dat_code(err);
		cpu.at = ky_foreign_u64(bytes, dat->file.swap);
		cpu.size_bytes = ky_foreign_u64(bytes + 8, dat->file.swap);
		ret = dat_add_cpu(dat, buffer, &cpu, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static int dat_take_buffer_6(struct ky_dat *dat, struct dat_bytes *bytes, struct kymo_error *err)
{
	struct ky_dat_buffer *buffer = dat_new_buffer(dat);
	uint64_t at = dat_u64(bytes);
	const char *name;

	if (!buffer)
		return ky_error_set(err, KYMO_E_LIMIT, "%s has too many buffers", dat->file.path);
	name = dat_text(dat, bytes);
	if (!name)
		return ky_error_nomem(err);
	buffer->name = name;
	return dat_read_flyrecord(dat, buffer, at, err);
}

static int dat_take_buffer_7(struct ky_dat *dat, struct dat_bytes *bytes, struct kymo_error *err)
{
	struct ky_dat_buffer *buffer = dat_new_buffer(dat);
	uint64_t at = dat_u64(bytes);
	const uint8_t *head;
	int ret = KYMO_OK;
	uint32_t n;

	if (!buffer)
		return ky_error_set(err, KYMO_E_LIMIT, "%s has too many buffers", dat->file.path);
	buffer->name = dat_text(dat, bytes);
	buffer->clock = dat_text(dat, bytes);
	if (!buffer->name || !buffer->clock)
		return ky_error_nomem(err);
	buffer->page_bytes = dat_u32(bytes);
	n = dat_u32(bytes);
	head = ky_foreign_bytes(&dat->file, at, SECTION_HEAD_BYTES, "a buffer", err);
	if (!head)
		return trace_dat_code(err);
	buffer->is_compressed = ky_foreign_u16(head + 2, dat->file.swap) & SECTION_COMPRESSED;
	for (uint32_t i = 0; i < n && !bytes->is_short && !ret; i++) {
		struct ky_dat_cpu cpu = {.number = dat_u32(bytes)};

		cpu.at = dat_u64(bytes);
		cpu.size_bytes = dat_u64(bytes);
		if (!bytes->is_short)
			ret = dat_add_cpu(dat, buffer, &cpu, err);
	}
	return ret;
}

/* ---- sections of version 7 ------------------------------------------------------------ */

/* The section's content as a file of its own. Its window is all of it; the caller closes it. */
static int dat_open_section(struct ky_dat *dat, uint64_t at, struct ky_foreign_file *section,
			    struct kymo_error *err)
{
	const uint8_t *bytes =
		ky_foreign_bytes(&dat->file, at, SECTION_HEAD_BYTES, "a section", err);
	bool is_compressed, swap = dat->file.swap;
	uint64_t size, content = at + SECTION_HEAD_BYTES;
	uint32_t packed = 0;
	int ret = KYMO_OK;

	if (!bytes)
		return trace_dat_code(err);
	is_compressed = ky_foreign_u16(bytes + 2, swap) & SECTION_COMPRESSED;
	size = ky_foreign_u64(bytes + 8, swap);
	if (is_compressed) {
		bytes = ky_foreign_bytes(&dat->file, content, 8, "a compressed section", err);
		if (!bytes)
			return trace_dat_code(err);
		packed = ky_foreign_u32(bytes, swap);
		size = ky_foreign_u32(bytes + 4, swap);
		content += 8;
	}
	/* A section can be named again and again. */
	if (size > SECTION_MAX_BYTES || dat->section_bytes > SECTION_MAX_BYTES - size)
		return ky_foreign_bad(&dat->file, at, "the sections are too long", err);
	dat->section_bytes += size;
	bytes = ky_foreign_bytes(&dat->file, content, is_compressed ? packed : size, "a section",
				 err);
	if (!bytes)
		return trace_dat_code(err);
	*section = (struct ky_foreign_file){.path = dat->file.path, .fd = -1, .swap = swap};
	section->window = malloc(size ? size : 1);
	if (!section->window)
		return ky_error_nomem(err);
	section->size_bytes = section->window_bytes = section->window_cap = size;
	if (is_compressed)
		ret = ky_unpack(dat->packing, bytes, packed, section->window, size, err);
	else
		memcpy(section->window, bytes, size);
	if (ret < 0) {
		ky_error_path(err, dat->file.path);
		ky_error_offset(err, at);
	}
	return ret;
}

static int dat_read_section(struct ky_dat *dat, enum dat_option option, uint64_t at,
			    struct kymo_error *err)
{
	struct ky_foreign_file section = {.fd = -1};
	int ret = dat_open_section(dat, at, &section, err);
	uint64_t from = 0;

	if (!ret && option == OPTION_HEADER_INFO)
		ret = ky_tracing_data_read_headers(&dat->tracing, &section, &from, err);
	else if (!ret && option == OPTION_FTRACE_EVENTS)
		ret = ky_tracing_data_read_ftrace(&dat->tracing, &section, &from, err);
	else if (!ret)
		ret = ky_tracing_data_read_systems(&dat->tracing, &section, &from, err);
	ky_foreign_close(&section);
	return ret;
}

static int dat_add_offset(struct ky_dat *dat, const char *text, enum dat_option option,
			  struct kymo_error *err)
{
	int64_t offset = strtoll(text, NULL, 0);

	/* A date counts microseconds. */
	if (option == OPTION_DATE && __builtin_mul_overflow(offset, INT64_C(1000), &offset))
		return ky_foreign_bad(&dat->file, 0, "the date makes no sense", err);
	if (__builtin_add_overflow(dat->offset_ns, offset, &dat->offset_ns))
		return ky_foreign_bad(&dat->file, 0, "the offset of times makes no sense", err);
	return KYMO_OK;
}

static int dat_take_shift(struct ky_dat *dat, const struct dat_bytes *bytes, struct kymo_error *err)
{
	int ret = ky_dat_shift_parse(&dat->shift, &dat->tracing.arena, bytes->at,
				     (uint64_t)(bytes->end - bytes->at), bytes->swap);

	if (ret == KYMO_E_FORMAT)
		return ky_foreign_bad(&dat->file, 0, "the shift to the host's clock is cut", err);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int dat_take_option(struct ky_dat *dat, enum dat_option option, struct dat_bytes *bytes,
			   const char **clock, struct kymo_error *err)
{
	const char *text;

	switch (option) {
	case OPTION_DATE:
	case OPTION_OFFSET:
		text = dat_text(dat, bytes);
		if (!text)
			return ky_error_nomem(err);
		return dat_add_offset(dat, text, option, err);
	case OPTION_BUFFER:
		return dat->version == 6 ? dat_take_buffer_6(dat, bytes, err)
					 : dat_take_buffer_7(dat, bytes, err);
	case OPTION_TRACECLOCK:
		*clock = dat_chosen_clock(dat, bytes);
		return *clock ? KYMO_OK : ky_error_nomem(err);
	case OPTION_UNAME:
		dat->uname = dat_text(dat, bytes);
		return dat->uname ? KYMO_OK : ky_error_nomem(err);
	case OPTION_CPUCOUNT:
		if (dat->version == 7)
			dat->n_cpus = dat_u32(bytes);
		return KYMO_OK;
	case OPTION_TIME_SHIFT:
		return dat_take_shift(dat, bytes, err);
	case OPTION_TSC2NSEC:
		dat->tsc_mult = dat_u32(bytes);
		dat->tsc_shift = dat_u32(bytes);
		return KYMO_OK;
	case OPTION_HEADER_INFO:
	case OPTION_FTRACE_EVENTS:
	case OPTION_EVENT_FORMATS:
		return dat->version == 7 ? dat_read_section(dat, option, dat_u64(bytes), err)
					 : KYMO_OK;
	case OPTION_BUFFER_TEXT:
		dat->has_text = true;
		return KYMO_OK;
	default:
		return KYMO_OK;
	}
}

/*
 * The options at *@at of @file: {u16 id, u32 size, data}. Version 6 ends them with an id alone; the end of version 7 tells where
 * the next ones are, in *@next.
 */
static int dat_read_options(struct ky_dat *dat, struct ky_foreign_file *file, uint64_t *at,
			    uint64_t *next, const char **clock, struct kymo_error *err)
{
	*next = 0;
	for (unsigned int i = 0; i < OPTIONS_MAX; i++) {
		const uint8_t *bytes = ky_foreign_bytes(file, *at, 2, "an option", err);
		struct dat_bytes data = {.swap = file->swap};
		uint8_t *copy;
		uint16_t id;
		uint32_t size;
		int ret;

		if (!bytes)
			return trace_dat_code(err);
		id = ky_foreign_u16(bytes, file->swap);
		*at += 2;
		if (id == OPTION_DONE && dat->version == 6)
			return KYMO_OK;
		bytes = ky_foreign_bytes(file, *at, 4, "an option", err);
		if (!bytes)
			return trace_dat_code(err);
		size = ky_foreign_u32(bytes, file->swap);
		*at += 4;
		if (size > OPTION_MAX_BYTES)
			return ky_foreign_bad(file, *at - 4, "an option is too long", err);
		/* Those of version 7 are in a section, which counts. */
		if (dat->version == 6)
			dat->section_bytes += size;
		if (dat->section_bytes > SECTION_MAX_BYTES)
			return ky_foreign_bad(file, *at - 4, "the options are too long", err);
		bytes = ky_foreign_bytes(file, *at, size ? size : 1, "an option", err);
		if (!bytes)
			return trace_dat_code(err);
		/* What it refers to is read from the same file. */
		copy = ky_arena_memdup(&dat->tracing.arena, bytes, size ? size : 1);
		if (!copy)
			return ky_error_nomem(err);
		data.at = copy;
		data.end = copy + size;
		*at += size;
		if (id == OPTION_DONE) {
			*next = dat_u64(&data);
			return KYMO_OK;
		}
		ret = dat_take_option(dat, id, &data, clock, err);
		if (ret < 0)
			return ret;
	}
	return ky_foreign_bad(file, *at, "there are too many options", err);
}

static void dat_set_clock(struct ky_dat *dat, const char *clock)
{
	ky_vec_foreach(&dat->buffers, buffer)
		if (!*buffer->clock && clock)
			buffer->clock = clock;
}

/* ---- the head ------------------------------------------------------------------------- */

static int dat_read_6(struct ky_dat *dat, struct kymo_error *err)
{
	const char *clock = NULL;
	uint64_t at = 0, next;
	struct ky_dat_buffer *buffer;
	const uint8_t *bytes;
	int ret = ky_tracing_data_read(&dat->tracing, &dat->file, &at, err);

	if (ret < 0)
		return ret;
	bytes = ky_foreign_bytes(&dat->file, at, 14, "the number of CPUs", err);
	if (!bytes)
		return trace_dat_code(err);
	dat->n_cpus = ky_foreign_u32(bytes, dat->file.swap);
	if (dat->n_cpus > CPUS_MAX)
		return ky_foreign_bad(&dat->file, at, "the number of CPUs makes no sense", err);
	at += 4;
	if (memcmp(bytes + 4, "options", 7) == 0) {
		at += 10;
		ret = dat_read_options(dat, &dat->file, &at, &next, &clock, err);
	}
	if (ret < 0)
		return ret;
	/* The buffer of the top instance. */
	buffer = dat_new_buffer(dat);
	if (!buffer)
		return ky_error_nomem(err);
	ret = dat_read_flyrecord(dat, buffer, at, err);
	dat_set_clock(dat, clock);
	return ret;
}

static int dat_read_7(struct ky_dat *dat, uint64_t at, struct kymo_error *err)
{
	struct ky_tracing_data *tracing = &dat->tracing;
	const char *clock = NULL, *packing;
	const uint8_t *bytes = ky_foreign_bytes(&dat->file, at, 6, "the head of the file", err);
	uint64_t next;
	int ret = KYMO_OK;

	if (!bytes)
		return trace_dat_code(err);
	tracing->big_endian = bytes[0] != 0;
	tracing->long_bytes = bytes[1];
	dat->file.swap = tracing->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	tracing->page_bytes = ky_foreign_u32(bytes + 2, dat->file.swap);
	at += 6;
	packing = ky_tracing_data_text(tracing, &dat->file, &at, 64, err);
	if (!packing || !ky_tracing_data_text(tracing, &dat->file, &at, 64, err))
		return trace_dat_code(err);
	dat->packing = strcmp(packing, "zstd") == 0   ? KY_UNPACK_ZSTD
		       : strcmp(packing, "zlib") == 0 ? KY_UNPACK_ZLIB
		       : strcmp(packing, "none") == 0 ? KY_UNPACK_NONE
						      : KY_UNPACK_UNKNOWN;
	bytes = ky_foreign_bytes(&dat->file, at, 8, "the place of the options", err);
	if (!bytes)
		return trace_dat_code(err);
	next = ky_foreign_u64(bytes, dat->file.swap);
	for (unsigned int i = 0; next && !ret; i++) {
		struct ky_foreign_file section = {.fd = -1};

		if (i == OPTIONS_MAX)
			return ky_foreign_bad(&dat->file, next, "there are too many options", err);
		ret = dat_open_section(dat, next, &section, err);
		at = 0;
		if (!ret)
			ret = dat_read_options(dat, &section, &at, &next, &clock, err);
		ky_foreign_close(&section);
	}
	dat_set_clock(dat, clock);
	return ret;
}

int ky_dat_open(struct ky_dat *dat, const char *path, int fd, struct kymo_error *err)
{
	uint64_t at = sizeof(dat_magic);
	const char *version;
	int ret;

	memset(dat, 0, sizeof(*dat));
	ky_tracing_data_init(&dat->tracing);
	ret = ky_foreign_open(&dat->file, path, fd, err);
	if (ret < 0)
		return ret;
	version = ky_tracing_data_text(&dat->tracing, &dat->file, &at, 16, err);
	if (!version)
		return trace_dat_code(err);
	dat->version = strcmp(version, "6") == 0 ? 6 : strcmp(version, "7") == 0 ? 7 : 0;
	if (dat->version == 6)
		return dat_read_6(dat, err);
	if (dat->version == 7)
		return dat_read_7(dat, at, err);
	return ky_foreign_bad(&dat->file, sizeof(dat_magic),
			      "this version of trace.dat is unknown: Kymo reads 6 and 7", err);
}

void ky_dat_close(struct ky_dat *dat)
{
	ky_vec_foreach(&dat->buffers, buffer)
		ky_vec_fini(&buffer->cpus);
	ky_vec_fini(&dat->buffers);
	ky_tracing_data_fini(&dat->tracing);
	ky_foreign_close(&dat->file);
}

/* ---- pages ---------------------------------------------------------------------------- */

typedef int (*page_function)(void *data, const uint8_t *bytes, uint32_t len,
			     struct kymo_error *err);

static int dat_plain_pages(struct ky_dat *dat, uint32_t page_bytes, uint64_t at, uint64_t size,
			   page_function page, void *data, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (uint64_t done = 0; done < size && !ret; done += page_bytes) {
		const uint8_t *bytes =
			ky_foreign_bytes(&dat->file, at + done, page_bytes, "a page", err);

		ret = bytes ? page(data, bytes, page_bytes, err) : trace_dat_code(err);
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
		return trace_dat_code(err);
	packed = ky_foreign_u32(bytes, dat->file.swap);
	size = ky_foreign_u32(bytes + 4, dat->file.swap);
	if (size > SECTION_MAX_BYTES || packed > end - at)
		return ky_foreign_bad(&dat->file, at, "the size of a chunk makes no sense", err);
	ret = ky_foreign_unpack(&dat->file, at, size, err);
	if (ret < 0)
		return ret;
	*next = at + 8 + packed;
	bytes = ky_foreign_bytes(&dat->file, at + 8, packed, "a compressed chunk", err);
	if (!bytes)
		return trace_dat_code(err);
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
		return trace_dat_code(err);
	n = ky_foreign_u32(bytes, dat->file.swap);
	at += 4;
	for (uint32_t i = 0; i < n && at < end && !ret; i++)
		ret = dat_chunk(dat, buffer->page_bytes, at, &at, end, page, data, err);
	return ret;
}
