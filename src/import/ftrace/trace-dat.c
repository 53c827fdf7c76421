/* SPDX-License-Identifier: MIT */
#include "import/ftrace/trace-dat-internal.h"

static const uint8_t dat_magic[10] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

bool ky_dat_is(const char *path)
{
	return ky_foreign_begins(path, 0, dat_magic, sizeof(dat_magic));
}

static void dat_set_clock(struct ky_dat *dat, const char *clock)
{
	ky_vec_foreach(&dat->buffers, buffer)
		if (!*buffer->clock && clock)
			buffer->clock = clock;
}

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
		return ky_dat_code(err);
	dat->n_cpus = ky_foreign_u32(bytes, dat->file.swap);
	if (dat->n_cpus > KY_DAT_CPUS_MAX)
		return ky_foreign_bad(&dat->file, at, "the number of CPUs makes no sense", err);
	at += 4;
	if (memcmp(bytes + 4, "options", 7) == 0) {
		at += 10;
		ret = ky_dat_read_options(dat, &dat->file, &at, &next, &clock, err);
	}
	if (ret < 0)
		return ret;
	/* The buffer of the top instance. */
	buffer = ky_dat_new_buffer(dat);
	if (!buffer)
		return ky_error_nomem(err);
	ret = ky_dat_read_flyrecord(dat, buffer, at, err);
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
		return ky_dat_code(err);
	tracing->big_endian = bytes[0] != 0;
	tracing->long_bytes = bytes[1];
	dat->file.swap = tracing->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	tracing->page_bytes = ky_foreign_u32(bytes + 2, dat->file.swap);
	at += 6;
	packing = ky_tracing_data_text(tracing, &dat->file, &at, 64, err);
	if (!packing || !ky_tracing_data_text(tracing, &dat->file, &at, 64, err))
		return ky_dat_code(err);
	dat->packing = strcmp(packing, "zstd") == 0   ? KY_UNPACK_ZSTD
		       : strcmp(packing, "zlib") == 0 ? KY_UNPACK_ZLIB
		       : strcmp(packing, "none") == 0 ? KY_UNPACK_NONE
						      : KY_UNPACK_UNKNOWN;
	bytes = ky_foreign_bytes(&dat->file, at, 8, "the place of the options", err);
	if (!bytes)
		return ky_dat_code(err);
	next = ky_foreign_u64(bytes, dat->file.swap);
	for (unsigned int i = 0; next && !ret; i++) {
		struct ky_foreign_file section = {.fd = -1};

		if (i == KY_DAT_OPTIONS_MAX)
			return ky_foreign_bad(&dat->file, next, "there are too many options", err);
		ret = ky_dat_open_section(dat, next, &section, err);
		at = 0;
		if (!ret)
			ret = ky_dat_read_options(dat, &section, &at, &next, &clock, err);
		ky_foreign_close(&section);
	}
	dat_set_clock(dat, clock);
	return ret ? ret : ky_tracing_data_add_texts(tracing, err);
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
		return ky_dat_code(err);
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
