/* SPDX-License-Identifier: MIT */
/* Kymo's debug information, and BTF and lists of JIT compilers that become such: the first byte tells. */
#include <stdlib.h>
#include <string.h>

#include "symbols/tables/jit-table.h"
#include "symbols/make/kdi-make.h"
#include "symbols/kdi/kdi-to-dwarf.h"
#include "symbols/kdi/kdi-write.h"
#include "symbols/kdi/kdi.h"

static void look_at_functions(const struct ky_kdi *kdi)
{
	struct ky_kdi_frame frames[8];
	struct ky_kdi_found found;
	uint64_t address;

	for (uint32_t i = 0; i < ky_kdi_functions(kdi) && i < 200; i++) {
		if (!ky_kdi_function(kdi, i, &found))
			break;
		ky_kdi_frames(kdi, &found, found.address + found.bytes / 2, frames, 8);
		ky_kdi_find(kdi, found.address, &found);
		ky_kdi_find_name(kdi, found.name, 0, &found);
		ky_kdi_address(kdi, found.address, &address);
	}
	ky_kdi_first_page(kdi);
}

static void look_at_types(const struct ky_kdi *kdi)
{
	for (uint32_t i = 0; i < ky_kdi_types(kdi) && i < 200; i++) {
		struct ky_strbuf text = KY_STRBUF_INIT;
		struct ky_kdi_member member;
		struct ky_kdi_view view;

		ky_kdi_put_type(kdi, i, &text);
		for (int k = 0; ky_kdi_type(kdi, i, &view) && k < 50; k++)
			if (!ky_kdi_next_member(&view, &member))
				break;
		ky_kdi_signature(kdi, i);
		ky_strbuf_fini(&text);
	}
	ky_kdi_find_type(kdi, "file");
}

static void look(const void *data, size_t bytes)
{
	const struct ky_kdi_image image = {.type = 3, .bytes = 1 << 20, .alignment = 4096};
	struct ky_strbuf dwarf = KY_STRBUF_INIT;
	struct ky_kdi *kdi;

	if (ky_kdi_open_bytes(data, bytes, &kdi, NULL) < 0)
		return;
	look_at_functions(kdi);
	look_at_types(kdi);
	ky_kdi_to_dwarf(kdi, &image, &dwarf);
	ky_strbuf_fini(&dwarf);
	ky_kdi_close(kdi);
}

static void read_btf(const uint8_t *data, size_t bytes)
{
	struct ky_kdi_function function = {.address = 16, .bytes = 16, .name = "f"};
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_kdi_info info;

	if (ky_kdi_info_init(&info) == 0 && ky_vec_push(&info.functions, function) == 0 &&
	    ky_kdi_read_btf(&info, data, bytes, NULL, 0) == 0 &&
	    ky_kdi_write(&info, &out, NULL) == 0)
		look(out.data, out.len);
	ky_strbuf_fini(&out);
	ky_kdi_info_fini(&info);
}

static void read_jit(const uint8_t *data, size_t bytes)
{
	struct ky_jit_table table;

	ky_jit_table_init(&table);
	ky_jit_table_read_map(&table, (const char *)data, bytes);
	ky_jit_table_read_dump(&table, (const char *)data, bytes, 1);
	ky_jit_table_find(&table, 0x1000, 5);
	ky_jit_table_fini(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (!size)
		return 0;
	/* A copy of its own, so that a sanitizer sees its end. */
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (*data == 'k')
		look(copy, size - 1);
	else if (*data == 'b')
		read_btf(copy, size - 1);
	else
		read_jit(copy, size - 1);
	free(copy);
	return 0;
}
