/* SPDX-License-Identifier: MIT */
/* Programs in which probes are to be put: any bytes, read as ELF, DWARF and notes of SDT probes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/demangle/demangle.h"
#include "kernel/probe/probe-sdt.h"
#include "os/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* elfutils 0.188: dwarf_getscopes() does not free its list (pc_record() makes it) when it then meets damage. */
const char *__lsan_default_suppressions(void)
{
	return "leak:pc_record\nleak:dwarf_getscopes\n";
}

static const char expression[] =
	"f(item, fd, name, item->in.small, item->next->in.text, item->low, item->bytes[1], $retval, "
	"item->next->next->next->number, item->in.array[2], arg1, item->color, item->ratio, "
	"item.number, item.in.high, by_value=item.small, item.high:u8, item.text, name.text, member, color)";

/* By its symbol, and by what people call it. */
static void find(const struct ky_probe_file *file, const char *name,
		 struct ky_probe_addresses *addresses)
{
	char plain[KY_DEMANGLED_BYTES];

	(void)ky_probe_file_function(file, name, addresses, NULL);
	if (ky_demangle(name, plain))
		(void)ky_probe_file_function(file, plain, addresses, NULL);
}

static void probe_functions(const struct ky_probe_file *file)
{
	static struct ky_probe_spec spec;
	int n = dwfl_module_getsymtab(file->module);

	if (ky_probe_spec_parse(expression, false, &spec, NULL) < 0)
		abort();
	for (int i = 1; i < n && i < 40; i++) {
		struct ky_probe_addresses addresses = KY_VEC_INIT;
		struct ky_strbuf fetch = KY_STRBUF_INIT;
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(file->module, i, &symbol, &address, NULL,
							   NULL, NULL);

		if (name && *name)
			find(file, name, &addresses);
		if (addresses.len) {
			(void)ky_probe_file_inlined(file, addresses.data[0]);
			for (unsigned int k = 0; k < spec.n_arguments; k++)
				(void)ky_probe_argument_fetch(file, addresses.data[0], true,
							      &spec.arguments[k], &fetch, NULL);
		}
		ky_strbuf_fini(&fetch);
		ky_vec_fini(&addresses);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("probe", MFD_CLOEXEC);
	struct ky_sdt_probes probes = KY_VEC_INIT;
	struct ky_probe_file file;
	struct ky_arena arena;
	char path[64];

	if (fd < 0 || ky_write_all(fd, data, size) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ky_arena_init(&arena);
	if (ky_probe_file_open(&file, path, NULL) == 0) {
		struct ky_strbuf fetch = KY_STRBUF_INIT;

		(void)ky_sdt_read(&file, &arena, &probes, NULL);
		for (size_t i = 0; i < probes.len && i < 100; i++)
			(void)ky_sdt_fetch(&file, 0, probes.data[i].arguments, &fetch);
		ky_strbuf_fini(&fetch);
		probe_functions(&file);
		ky_probe_file_close(&file);
	}
	ky_vec_fini(&probes);
	ky_arena_fini(&arena);
	close(fd);
	return 0;
}
