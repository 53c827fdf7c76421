/* SPDX-License-Identifier: MIT */
/* Programs and libraries whose symbols, lines and inlined functions are looked up and stored: any bytes, read as ELF and DWARF. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/elf-file.h"
#include "os/file.h"
#include "symbols/dwarf/libdw.h"
#include "symbols/kdi/kdi-write.h"
#include "symbols/kdi/kdi.h"
#include "symbols/lookup/symbols.h"
#include "symbols/make/kdi-make.h"

#define LOOKS 64
#define STEP  0x123
#define BASE  0x10000000u
#define SIZE  0x1000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* At addresses of the file, and at those of a process that has it mapped. */
static void look_up(const char *path)
{
	const struct ky_symbols_options options = {.want_lines = true};
	struct ky_symbols_mapping mapping = {.begin = BASE, .end = BASE + SIZE};
	const struct ky_symbols_frame *frames;
	struct ky_symbols *symbols;

	if (ky_symbols_open(&options, &symbols, NULL) < 0)
		abort();
	mapping.object = ky_symbols_object(symbols, path, NULL, 0, -1);
	(void)ky_symbols_map(symbols, 1, &mapping);
	for (uint64_t i = 0; i < LOOKS; i++) {
		const struct ky_symbols_query query = {
			.pid = 1, .address = BASE + i * STEP, .is_return = i & 1};

		(void)ky_symbols_resolve(symbols, &query, &frames);
		(void)ky_symbols_resolve_in(symbols, mapping.object, 0x1000 + i * STEP, &frames);
		(void)ky_symbols_resolve_in(symbols, mapping.object, 0x400000 + i * STEP, &frames);
	}
	ky_symbols_close(symbols);
}

/* Of the file's symbols only those near some places; nothing is written. */
static void store(const char *path)
{
	const struct ky_symbols_options options = {.want_store = true};
	struct ky_symbols_place places[LOOKS];
	struct ky_symbols *symbols;
	size_t known;

	if (ky_symbols_open(&options, &symbols, NULL) < 0)
		abort();
	for (uint32_t i = 0; i < LOOKS; i++)
		places[i] = (struct ky_symbols_place){.offset = i * STEP, .is_image = i & 1};
	(void)ky_symbols_store(symbols, ky_symbols_object(symbols, path, NULL, 0, -1), places,
			       LOOKS, -1, &known, NULL);
	if (known > LOOKS)
		abort();
	ky_symbols_close(symbols);
}

static bool wants(void *data, uint64_t begin, uint64_t end)
{
	(void)data;
	return (begin ^ end) & 1 || begin % 3;
}

static void make(const char *path, bool is_part)
{
	const struct ky_kdi_options options = {
		.want_lines = true, .want_types = !is_part, .wants = is_part ? wants : NULL};
	const struct ky_object_search search = {.keep_open = true};
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	struct ky_object object = {.path = strdup(path), .search = &search};
	struct ky_kdi_info info;

	if (!object.path || ky_kdi_info_init(&info) < 0)
		abort();
	if (ky_kdi_make_object(&info, &object, &search, &options, NULL) == 0)
		(void)ky_kdi_write(&info, &bytes, NULL);
	ky_strbuf_fini(&bytes);
	ky_kdi_info_fini(&info);
	ky_object_fini(&object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("symbols", MFD_CLOEXEC);
	struct ky_elf_info info;
	char path[64];

	if (fd < 0 || ky_write_all(fd, data, size) < 0)
		abort();
	if (ky_libdw_load(NULL) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)ky_elf_read(fd, &info);
	look_up(path);
	make(path, false);
	make(path, true);
	store(path);
	close(fd);
	return 0;
}
