/* SPDX-License-Identifier: MIT */
#include "symbols/object/object.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"
#include "os/memory-limit.h"
#include "symbols/dwarf/debuginfod.h"
#include "symbols/dwarf/dwarf-units.h"
#include "symbols/kdi/kdi.h"

#define DEBUG_DIR "/usr/lib/debug"

void ky_object_close(struct ky_object *object)
{
	ky_dwarf_units_free(object->units);
	object->units = NULL;
	ky_elf_guards_fini(&object->guards);
	if (object->dwfl)
		dwfl_end(object->dwfl);
	ky_debug_alt_fini(&object->alt);
	object->dwfl = NULL;
	object->module = NULL;
}

void ky_object_fini(struct ky_object *object)
{
	ky_object_close(object);
	ky_symbol_table_fini(&object->table);
	ky_vec_fini(&object->segments);
	ky_kdi_close(object->kdi);
	free(object->path);
	free(object->also);
}

/* ---- the file --------------------------------------------------------------------------- */

/* The file at @path if it is the one that was mapped; -1: it is not. */
static int open_path(const struct ky_object *object, const char *path)
{
	int fd = path && path[0] == '/' ? ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC)
					: -1;
	struct ky_elf_info info;

	if (fd < 0)
		return -1;
	if (!object->build_id_bytes ||
	    (ky_elf_read(fd, &info) && info.build_id_bytes == object->build_id_bytes &&
	     !memcmp(info.build_id, object->build_id, info.build_id_bytes)))
		return fd;
	close(fd);
	return -1;
}

/* The file itself, while a process has it mapped. Only its build ID tells that the process still has it there. */
static int open_mapped(const struct ky_object *object)
{
	char path[96];

	if (!object->mapped_by || !object->build_id_bytes)
		return -1;
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/map_files/%" PRIx64 "-%" PRIx64,
		 object->mapped_by, object->mapped_begin, object->mapped_end);
	return open_path(object, path);
}

static void hex_of(const struct ky_object *object, char hex[2 * KY_ELF_BUILD_ID_MAX + 1])
{
	hex[0] = '\0';
	for (uint32_t i = 0; i < object->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", object->build_id[i]);
}

static int open_by_id(const struct ky_object *object, const char *dir, const char *suffix)
{
	char path[4096], hex[2 * KY_ELF_BUILD_ID_MAX + 1];

	if (object->build_id_bytes < 2)
		return -1;
	hex_of(object, hex);
	if (snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s%s", dir, hex, hex + 2, suffix) >=
	    (int)sizeof(path))
		return -1;
	return ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* DIR/BUILD-ID.kdi, or the path itself. */
static bool open_kdi(struct ky_object *object, const struct ky_object_search *search)
{
	const char *dot = strrchr(object->path, '.');

	if (dot && strcmp(dot, ".kdi") == 0)
		return ky_kdi_open(object->path, &object->kdi, NULL) == 0;
	object->kdi = ky_kdi_open_id(object->build_id, object->build_id_bytes, search->dirs,
				     search->n_dirs, !search->only_dirs);
	return object->kdi != NULL;
}

/* The kernel's code in every process, from this one. */
static int open_vdso(void)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	size_t bytes = head ? head->e_shoff + (size_t)head->e_shnum * head->e_shentsize : 0;
	int fd = bytes ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd >= 0 && ky_write_all(fd, head, bytes) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The file itself is best: it has the segments, and names its debug files. */
static int find_file(const struct ky_object *object, const struct ky_object_search *search)
{
	static const char *const suffixes[] = {"", ".debug"};
	int fd = search->only_dirs ? -1 : open_path(object, object->also);

	if (search->is_here && strcmp(object->path, "[vdso]") == 0)
		return open_vdso();
	if (fd < 0 && !search->only_dirs)
		fd = open_path(object, object->path);
	if (fd < 0 && search->is_here && !search->only_dirs)
		fd = open_mapped(object);
	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; fd < 0 && i < search->n_dirs; i++)
			fd = open_by_id(object, search->dirs[i], suffixes[k]);
		if (fd < 0 && !search->only_dirs)
			fd = open_by_id(object, DEBUG_DIR, suffixes[k]);
	}
	if (fd < 0 && !search->only_dirs)
		fd = ky_debuginfod_open(object->build_id, object->build_id_bytes);
	return fd;
}

/* The caller's directories come before those of the machine. */
static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			   const char *file, const char *link, GElf_Word crc, char **found)
{
	const struct ky_object *object = *data;
	struct ky_object by_id = {0};
	const unsigned char *id;
	GElf_Addr address;
	int bytes = dwfl_module_build_id(module, &id, &address), fd = -1;

	(void)name;
	(void)base;
	if (object && bytes > 0 && bytes <= KY_ELF_BUILD_ID_MAX) {
		memcpy(by_id.build_id, id, (size_t)bytes);
		by_id.build_id_bytes = (uint32_t)bytes;
		for (size_t i = 0; fd < 0 && i < object->search->n_dirs; i++)
			fd = open_by_id(&by_id, object->search->dirs[i], ".debug");
	}
	if (fd >= 0 || (object && object->search->only_dirs))
		return fd;
	return ky_debug_file_find(module, file, link, crc, found);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &ky_debug_file_path,
};

/* What a mapping of it needs. */
static size_t file_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
}

bool ky_object_open(struct ky_object *object, const struct ky_object_search *search)
{
	void **data;
	Elf *elf;
	int fd;

	if (object->module)
		return true;
	fd = find_file(object, search);
	if (fd < 0)
		return false;
	ky_memory_limit_begin(KY_DEBUG_FILE_BYTES + file_bytes(fd));
	object->dwfl = dwfl_begin(&callbacks);
	/* Takes over the descriptor when it succeeds. */
	object->module = object->dwfl
				 ? dwfl_report_offline(object->dwfl, object->path, object->path, fd)
				 : NULL;
	if (object->module) {
		dwfl_module_info(object->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = object;
		object->search = search;
		dwfl_report_end(object->dwfl, NULL, NULL);
	} else {
		close(fd);
	}
	elf = object->module ? dwfl_module_getelf(object->module, &object->bias) : NULL;
	ky_memory_limit_end();
	ky_elf_guards_add(&object->guards, elf);
	if (elf)
		return true;
	ky_object_close(object);
	return false;
}

/* ---- symbols ---------------------------------------------------------------------------- */

static bool object_add_segment(struct ky_object *object, const GElf_Phdr *header)
{
	struct ky_object_segment segment = {
		.offset = header->p_offset,
		.address = header->p_vaddr,
		.file_bytes = header->p_filesz,
	};

	if ((segment.address & ~(uint64_t)4095) < object->first_page)
		object->first_page = segment.address & ~(uint64_t)4095;
	return ky_vec_push(&object->segments, segment) == 0;
}

/* Next to its program, a debug file has no code, and no places in the program's file (objcopy --only-keep-debug). */
static bool object_is_debug_file(Elf *elf, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
		    header.p_flags & PF_X && header.p_memsz && !header.p_filesz)
			return true;
	}
	return false;
}

/* Where linkers have put the segment in the program's file: behind the one before it, as its alignment wants it. */
static void object_place_segment(GElf_Phdr *header, uint64_t *end)
{
	uint64_t align =
		header->p_align && !(header->p_align & (header->p_align - 1)) ? header->p_align : 1;

	header->p_offset = *end + ((header->p_vaddr - *end) & (align - 1));
	header->p_filesz = header->p_memsz;
	*end = header->p_offset + header->p_filesz;
}

/* Those of code first: with lld, another one may lie in the same page of the file. */
static bool object_read_segments(struct ky_object *object)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(object->module, &bias);
	uint64_t end = 0;
	bool is_debug;
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	is_debug = object_is_debug_file(elf, n);
	object->first_page = UINT64_MAX;
	for (size_t i = 0; i < 2 * n; i++) {
		GElf_Phdr header;

		if (i == n)
			end = 0;
		if (!gelf_getphdr(elf, (int)(i % n), &header) || header.p_type != PT_LOAD)
			continue;
		if (is_debug)
			object_place_segment(&header, &end);
		if ((i < n) != ((header.p_flags & PF_X) != 0))
			continue;
		if (!object_add_segment(object, &header))
			return false;
	}
	return true;
}

static bool object_is_code(const GElf_Sym *symbol, GElf_Addr address)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC ||
		(type == STT_NOTYPE && symbol->st_shndx < SHN_LORESERVE)) &&
	       symbol->st_shndx != SHN_UNDEF && address;
}

/* Symbols that are left out, because nobody wants them. */
KY_VEC_TYPE(left_out, uint64_t);

/* "setjmp@@GLIBC_2.2.5" is called setjmp. "$x" marks code in files for ARM. */
static int add_symbol(struct ky_object *object, const char *name, const GElf_Sym *symbol,
		      GElf_Addr address, struct left_out *left_out)
{
	static const uint8_t kinds[] = {
		[STB_LOCAL] = KY_SYMBOL_LOCAL,
		[STB_GLOBAL] = KY_SYMBOL_GLOBAL,
		[STB_WEAK] = KY_SYMBOL_WEAK,
	};
	unsigned int bind = GELF_ST_BIND(symbol->st_info);
	struct ky_symbol entry = {
		.address = address - object->bias,
		.bytes = symbol->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)symbol->st_size,
		.kind = bind < sizeof(kinds) ? kinds[bind] : KY_SYMBOL_GLOBAL,
	};
	size_t len;

	/* Their names are not even read. */
	if (object->wanted && entry.bytes &&
	    !ky_wanted_has(object->wanted, entry.address, entry.address + entry.bytes))
		return ky_vec_push(left_out, entry.address);
	len = (size_t)(strchrnul(name, '@') - name);
	if (!len || *name == '$')
		return KYMO_OK;
	/* The address of _text. It counts where there is a start_kernel, too. */
	if (strcmp(name, "_text") == 0)
		object->kernel_text = entry.address;
	return ky_symbol_table_add(&object->table, &entry, name, len);
}

/* A symbol without a size ends where the next one begins, which may be left out. One with a size at the same address is better. */
static void object_end_symbol(struct ky_symbol *symbol, const struct left_out *left_out)
{
	size_t low = 0, high = left_out->len;
	uint64_t bytes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (left_out->data[middle] < symbol->address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == left_out->len)
		return;
	bytes = left_out->data[low] - symbol->address;
	if (bytes < UINT32_MAX)
		symbol->bytes = bytes ? (uint32_t)bytes : 1;
}

static int object_by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void object_end_symbols(struct ky_object *object, struct left_out *left_out)
{
	struct ky_symbol *symbols = object->table.symbols.data;
	size_t n = object->table.symbols.len;

	if (left_out->len)
		qsort(left_out->data, left_out->len, sizeof(*left_out->data), object_by_address);
	for (size_t i = 0; i < n; i++)
		if (!symbols[i].bytes &&
		    ky_wanted_has(object->wanted, symbols[i].address,
				  i + 1 < n ? symbols[i + 1].address : UINT64_MAX))
			object_end_symbol(&symbols[i], left_out);
}

static bool is_executable(const struct ky_object *object, GElf_Word index, Elf *elf)
{
	Elf_Scn *section = elf && index != (GElf_Word)-1 ? elf_getscn(elf, index) : NULL;
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) && (header.sh_flags & SHF_EXECINSTR);
}

/* Opens the debug file, and unpacks .gnu_debugdata. */
static int object_count_symbols(struct ky_object *object)
{
	int n;

	ky_memory_limit_begin(KY_DEBUG_FILE_BYTES);
	n = dwfl_module_getsymtab(object->module);
	ky_memory_limit_end();
	return n;
}

static int object_read_symbols(struct ky_object *object, struct left_out *left_out)
{
	int n = object_count_symbols(object), ret = KYMO_OK;

	for (int i = 1; i < n && !ret; i++) {
		GElf_Sym symbol;
		GElf_Addr address, bias;
		GElf_Word section;
		Elf *elf;
		const char *name = dwfl_module_getsym_info(object->module, i, &symbol, &address,
							   &section, &elf, &bias);

		if (!name || !object_is_code(&symbol, address) ||
		    (GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE &&
		     !is_executable(object, section, elf)))
			continue;
		ret = add_symbol(object, name, &symbol, address, left_out);
	}
	return ret;
}

static int object_read_table(struct ky_object *object)
{
	struct left_out left_out = KY_VEC_INIT;
	int ret = object_read_symbols(object, &left_out);

	ky_symbol_table_finish(&object->table);
	if (object->wanted)
		object_end_symbols(object, &left_out);
	ky_vec_fini(&left_out);
	return ret;
}

bool ky_object_find(struct ky_object *object, const struct ky_object_search *search)
{
	if (object->state != KY_OBJECT_NEW)
		return object->state != KY_OBJECT_NONE;
	object->state = KY_OBJECT_NONE;
	if (open_kdi(object, search)) {
		object->first_page = ky_kdi_first_page(object->kdi);
		object->state = KY_OBJECT_SYMBOLS;
	} else if (ky_object_open(object, search) && object_read_segments(object)) {
		object->state = KY_OBJECT_FOUND;
	}
	return object->state != KY_OBJECT_NONE;
}

bool ky_object_load(struct ky_object *object, const struct ky_object_search *search)
{
	if (!ky_object_find(object, search) || object->state == KY_OBJECT_SYMBOLS)
		return object->state == KY_OBJECT_SYMBOLS;
	object->state = KY_OBJECT_NONE;
	if (ky_object_open(object, search) && object_read_table(object) != KYMO_E_MEMORY)
		object->state = KY_OBJECT_SYMBOLS;
	if (!search->keep_open)
		ky_object_close(object);
	return object->state == KY_OBJECT_SYMBOLS;
}

bool ky_object_address(const struct ky_object *object, uint64_t offset, uint64_t *address)
{
	if (object->kdi)
		return ky_kdi_address(object->kdi, offset, address);
	ky_vec_foreach(&object->segments, segment) {
		/* The kernel maps whole pages. */
		uint64_t begin = segment->offset & ~(uint64_t)4095;
		uint64_t end = (segment->offset + segment->file_bytes + 4095) & ~(uint64_t)4095;

		if (offset >= begin && offset < end) {
			*address = segment->address + (offset - segment->offset);
			return true;
		}
	}
	return false;
}
