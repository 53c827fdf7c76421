/* SPDX-License-Identifier: MIT */
/* The options of trace.dat: buffers, clocks, offsets; and the sections of version 7. */
#include <stdlib.h>

#include "import/ftrace/trace-dat-internal.h"

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
	OPTION_TEXTS = 20,
	OPTION_BUFFER_TEXT = 22,
};

#define BUFFERS_MAX	   4096u
#define OPTION_MAX_BYTES   (16u << 20)
#define PLACES_MAX	   (1u << 20)
#define SECTION_HEAD_BYTES 16u
#define SECTION_COMPRESSED 1u

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

struct ky_dat_buffer *ky_dat_new_buffer(struct ky_dat *dat)
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
int ky_dat_read_flyrecord(struct ky_dat *dat, struct ky_dat_buffer *buffer, uint64_t at,
			  struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(&dat->file, at, 10, "a buffer", err);

	if (!bytes)
		return ky_dat_code(err);
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
			return ky_dat_code(err);
		cpu.at = ky_foreign_u64(bytes, dat->file.swap);
		cpu.size_bytes = ky_foreign_u64(bytes + 8, dat->file.swap);
		ret = dat_add_cpu(dat, buffer, &cpu, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

/* Why there is no buffer for the one whose pages are at byte @at. */
static int dat_no_buffer(const struct ky_dat *dat, uint64_t at, struct kymo_error *err)
{
	if (dat->buffers.len < BUFFERS_MAX)
		return ky_error_nomem(err);
	ky_error_set(err, KYMO_E_LIMIT, "there are more than %u buffers", BUFFERS_MAX);
	ky_error_path(err, dat->file.path);
	ky_error_offset(err, at);
	return KYMO_E_LIMIT;
}

static int dat_take_buffer_6(struct ky_dat *dat, struct dat_bytes *bytes, struct kymo_error *err)
{
	struct ky_dat_buffer *buffer = ky_dat_new_buffer(dat);
	uint64_t at = dat_u64(bytes);
	const char *name;

	if (!buffer)
		return dat_no_buffer(dat, at, err);
	name = dat_text(dat, bytes);
	if (!name)
		return ky_error_nomem(err);
	buffer->name = name;
	return ky_dat_read_flyrecord(dat, buffer, at, err);
}

static int dat_take_buffer_7(struct ky_dat *dat, struct dat_bytes *bytes, struct kymo_error *err)
{
	struct ky_dat_buffer *buffer = ky_dat_new_buffer(dat);
	uint64_t at = dat_u64(bytes);
	const uint8_t *head;
	int ret = KYMO_OK;
	uint32_t n;

	if (!buffer)
		return dat_no_buffer(dat, at, err);
	buffer->name = dat_text(dat, bytes);
	buffer->clock = dat_text(dat, bytes);
	if (!buffer->name || !buffer->clock)
		return ky_error_nomem(err);
	buffer->page_bytes = dat_u32(bytes);
	n = dat_u32(bytes);
	head = ky_foreign_bytes(&dat->file, at, SECTION_HEAD_BYTES, "a buffer", err);
	if (!head)
		return ky_dat_code(err);
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
int ky_dat_open_section(struct ky_dat *dat, uint64_t at, struct ky_foreign_file *section,
			struct kymo_error *err)
{
	const uint8_t *bytes =
		ky_foreign_bytes(&dat->file, at, SECTION_HEAD_BYTES, "a section", err);
	bool is_compressed, swap = dat->file.swap;
	uint64_t size, content = at + SECTION_HEAD_BYTES;
	uint32_t packed = 0;
	int ret = KYMO_OK;

	if (!bytes)
		return ky_dat_code(err);
	is_compressed = ky_foreign_u16(bytes + 2, swap) & SECTION_COMPRESSED;
	size = ky_foreign_u64(bytes + 8, swap);
	if (is_compressed) {
		bytes = ky_foreign_bytes(&dat->file, content, 8, "a compressed section", err);
		if (!bytes)
			return ky_dat_code(err);
		packed = ky_foreign_u32(bytes, swap);
		size = ky_foreign_u32(bytes + 4, swap);
		content += 8;
	}
	/* A section can be named again and again. */
	if (size > KY_DAT_SECTION_MAX_BYTES || dat->section_bytes > KY_DAT_SECTION_MAX_BYTES - size)
		return ky_foreign_bad(&dat->file, at, "the sections are too long", err);
	dat->section_bytes += size;
	bytes = ky_foreign_bytes(&dat->file, content, is_compressed ? packed : size, "a section",
				 err);
	if (!bytes)
		return ky_dat_code(err);
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
	int ret = ky_dat_open_section(dat, at, &section, err);
	uint64_t from = 0;

	if (!ret && option == OPTION_HEADER_INFO)
		ret = ky_tracing_data_read_headers(&dat->tracing, &section, &from, err);
	else if (!ret && option == OPTION_FTRACE_EVENTS)
		ret = ky_tracing_data_read_ftrace(&dat->tracing, &section, &from, err);
	else if (!ret && option == OPTION_TEXTS)
		ret = ky_tracing_data_read_texts(&dat->tracing, &section, &from, err);
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
	case OPTION_TEXTS:
		return dat->version == 7 ? dat_read_section(dat, option, dat_u64(bytes), err)
					 : KYMO_OK;
	case OPTION_BUFFER_TEXT:
		dat->has_text = true;
		return KYMO_OK;
	default:
		return KYMO_OK;
	}
}

/* The id and the size of the option at *@at; of the end of version 6, the id alone. */
static int dat_option_head(struct ky_dat *dat, struct ky_foreign_file *file, uint64_t *at,
			   uint16_t *id, uint32_t *size, struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(file, *at, 2, "an option", err);

	if (!bytes)
		return ky_dat_code(err);
	*id = ky_foreign_u16(bytes, file->swap);
	*size = 0;
	*at += 2;
	if (*id == OPTION_DONE && dat->version == 6)
		return KYMO_OK;
	bytes = ky_foreign_bytes(file, *at, 4, "an option", err);
	if (!bytes)
		return ky_dat_code(err);
	*size = ky_foreign_u32(bytes, file->swap);
	*at += 4;
	if (*size > OPTION_MAX_BYTES)
		return ky_foreign_bad(file, *at - 4, "an option is too long", err);
	/* Those of version 7 are in a section, which counts. */
	if (dat->version == 6)
		dat->section_bytes += *size;
	if (dat->section_bytes > KY_DAT_SECTION_MAX_BYTES)
		return ky_foreign_bad(file, *at - 4, "the options are too long", err);
	return KYMO_OK;
}

/* The option's data. What it refers to is read from the same file, so it is copied. */
static int dat_option_data(struct ky_dat *dat, struct ky_foreign_file *file, uint64_t *at,
			   uint32_t size, struct dat_bytes *data, struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(file, *at, size ? size : 1, "an option", err);
	uint8_t *copy;

	if (!bytes)
		return ky_dat_code(err);
	copy = ky_arena_memdup(&dat->tracing.arena, bytes, size ? size : 1);
	if (!copy)
		return ky_error_nomem(err);
	*data = (struct dat_bytes){.at = copy, .end = copy + size, .swap = file->swap};
	*at += size;
	return KYMO_OK;
}

int ky_dat_read_options(struct ky_dat *dat, struct ky_foreign_file *file, uint64_t *at,
			uint64_t *next, const char **clock, struct kymo_error *err)
{
	*next = 0;
	for (unsigned int i = 0; i < KY_DAT_OPTIONS_MAX; i++) {
		struct dat_bytes data = {0};
		uint16_t id;
		uint32_t size;
		int ret = dat_option_head(dat, file, at, &id, &size, err);

		if (!ret && id == OPTION_DONE && dat->version == 6)
			return KYMO_OK;
		if (!ret)
			ret = dat_option_data(dat, file, at, size, &data, err);
		if (!ret && id == OPTION_DONE) {
			*next = dat_u64(&data);
			return KYMO_OK;
		}
		if (!ret)
			ret = dat_take_option(dat, id, &data, clock, err);
		if (ret < 0)
			return ret;
	}
	return ky_foreign_bad(file, *at, "there are too many options", err);
}
