/* SPDX-License-Identifier: MIT */
#include "symbols/make/kdi-module.h"

#include <string.h>

#include "base/bits.h"
#include "base/vec.h"

#define START ".init"

/* A section of code that stays: where elfutils puts it, and where the kernel does, from the module's code on. */
struct code {
	uint64_t address, bytes, offset;
};

KY_VEC_TYPE(codes, struct code);

static const char *kdi_module_section(Elf *elf, Elf_Scn *section, GElf_Shdr *header)
{
	size_t names;
	const char *name = NULL;

	if (gelf_getshdr(section, header) && elf_getshdrstrndx(elf, &names) == 0)
		name = elf_strptr(elf, names, header->sh_name);
	return name ? name : "";
}

bool ky_kdi_is_module(const struct ky_object *object)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(object->module, &bias);
	Elf_Scn *section = NULL;
	GElf_Ehdr head;
	GElf_Shdr header;

	if (!elf || !gelf_getehdr(elf, &head) || head.e_type != ET_REL)
		return false;
	while ((section = elf_nextscn(elf, section)))
		if (!strcmp(kdi_module_section(elf, section, &header), ".gnu.linkonce.this_module"))
			return true;
	return false;
}

static int kdi_module_find(const struct ky_object *object, struct codes *codes)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(object->module, &bias);
	Elf_Scn *section = NULL;
	uint64_t end = 0;
	int ret = KYMO_OK;

	while (!ret && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = kdi_module_section(elf, section, &header);
		struct code code;

		if ((header.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) !=
			    (SHF_ALLOC | SHF_EXECINSTR) ||
		    !strncmp(name, START, strlen(START)))
			continue;
		if (header.sh_addralign > 1 && !(header.sh_addralign & (header.sh_addralign - 1)))
			end = ky_align_up(end, header.sh_addralign);
		code = (struct code){header.sh_addr, header.sh_size, end};
		end += header.sh_size;
		ret = ky_vec_push(codes, code);
	}
	return ret;
}

static const struct code *kdi_module_at(const struct codes *codes, uint64_t address)
{
	ky_vec_foreach(codes, code)
		if (address >= code->address && address - code->address < code->bytes)
			return code;
	return NULL;
}

int ky_kdi_module_keep(struct ky_kdi_info *info, const struct ky_object *object)
{
	struct codes codes = KY_VEC_INIT;
	int ret = kdi_module_find(object, &codes);
	size_t kept = 0;

	ky_vec_foreach(&info->functions, function) {
		const struct code *code = kdi_module_at(&codes, function->address);

		if (!code)
			continue;
		/* The next function may be one of another section. */
		if (function->bytes > code->bytes - (function->address - code->address))
			function->bytes = code->bytes - (function->address - code->address);
		info->functions.data[kept++] = *function;
	}
	info->functions.len = kept;
	ky_vec_fini(&codes);
	return ret;
}

static void kdi_module_move_function(struct ky_kdi_info *info, struct ky_kdi_function *function,
				     uint64_t by)
{
	for (uint32_t i = 0; i < function->n_lines; i++)
		info->lines.data[function->first_line + i].address += by;
	for (uint32_t i = 0; i < function->n_inlined; i++) {
		info->inlined.data[function->first_inlined + i].begin += by;
		info->inlined.data[function->first_inlined + i].end += by;
	}
	function->address += by;
}

/* The order of the functions stays: both layouts have the file's order. */
int ky_kdi_module_move(struct ky_kdi_info *info, const struct ky_object *object)
{
	struct codes codes = KY_VEC_INIT;
	int ret = kdi_module_find(object, &codes);

	info->is_kernel = true;
	ky_vec_foreach(&info->functions, function) {
		const struct code *code = kdi_module_at(&codes, function->address);

		if (code)
			kdi_module_move_function(info, function, code->offset - code->address);
	}
	ky_vec_fini(&codes);
	return ret;
}
