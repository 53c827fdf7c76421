/* SPDX-License-Identifier: MIT */
#include "os/elf-file.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX 512	       /* program headers, section headers */
#define NOTES_MAX   65536      /* bytes of one segment of notes */
#define NAMES_MAX   (1u << 20) /* bytes of the section names */
#define PAGE	    4096u

/* The headers in their 64-bit form. */
struct elf {
	int fd;
	bool is_64;
	Elf64_Ehdr head;
};

static bool elf_file_read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX - bytes && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool elf_file_read_head(struct elf *elf)
{
	uint8_t ident[EI_NIDENT];
	Elf32_Ehdr small;

	if (!elf_file_read_at(elf->fd, ident, sizeof(ident), 0) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (ident[EI_DATA] !=
	    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
		return false;
	elf->is_64 = ident[EI_CLASS] == ELFCLASS64;
	if (elf->is_64)
		return elf_file_read_at(elf->fd, &elf->head, sizeof(elf->head), 0);
	if (!elf_file_read_at(elf->fd, &small, sizeof(small), 0))
		return false;
	elf->head = (Elf64_Ehdr){
		.e_type = small.e_type,
		.e_phoff = small.e_phoff,
		.e_shoff = small.e_shoff,
		.e_phentsize = small.e_phentsize,
		.e_phnum = small.e_phnum,
		.e_shentsize = small.e_shentsize,
		.e_shnum = small.e_shnum,
		.e_shstrndx = small.e_shstrndx,
	};
	return true;
}

static bool read_segment(const struct elf *elf, uint32_t i, Elf64_Phdr *segment)
{
	uint64_t at = elf->head.e_phoff + (uint64_t)i * elf->head.e_phentsize;
	Elf32_Phdr small;

	if (elf->is_64)
		return elf->head.e_phentsize >= sizeof(*segment) &&
		       elf_file_read_at(elf->fd, segment, sizeof(*segment), at);
	if (elf->head.e_phentsize < sizeof(small) ||
	    !elf_file_read_at(elf->fd, &small, sizeof(small), at))
		return false;
	*segment = (Elf64_Phdr){
		.p_type = small.p_type,
		.p_offset = small.p_offset,
		.p_vaddr = small.p_vaddr,
		.p_filesz = small.p_filesz,
		.p_memsz = small.p_memsz,
	};
	return true;
}

static bool read_section(const struct elf *elf, uint32_t i, Elf64_Shdr *section)
{
	uint64_t at = elf->head.e_shoff + (uint64_t)i * elf->head.e_shentsize;
	Elf32_Shdr small;

	if (elf->is_64)
		return elf->head.e_shentsize >= sizeof(*section) &&
		       elf_file_read_at(elf->fd, section, sizeof(*section), at);
	if (elf->head.e_shentsize < sizeof(small) ||
	    !elf_file_read_at(elf->fd, &small, sizeof(small), at))
		return false;
	*section = (Elf64_Shdr){
		.sh_name = small.sh_name,
		.sh_type = small.sh_type,
		.sh_offset = small.sh_offset,
		.sh_size = small.sh_size,
	};
	return true;
}

/* ---- segments ------------------------------------------------------------------------- */

void ky_elf_note_build_id(const uint8_t *notes, size_t bytes, struct ky_elf_info *info)
{
	Elf64_Nhdr note; /* the same in 32-bit files */
	size_t at = 0;

	while (bytes - at >= sizeof(note)) {
		uint64_t name, data, next;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		data = name + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
		next = data + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (data > bytes || data + note.n_descsz > bytes)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 &&
		    note.n_descsz <= sizeof(info->build_id)) {
			memcpy(info->build_id, notes + data, note.n_descsz);
			info->build_id_bytes = note.n_descsz;
			return;
		}
		if (next > bytes)
			return;
		at = next;
	}
}

static void elf_file_read_notes(const struct elf *elf, const Elf64_Phdr *segment,
				struct ky_elf_info *info)
{
	size_t bytes = segment->p_filesz < NOTES_MAX ? segment->p_filesz : NOTES_MAX;
	uint8_t *notes = malloc(bytes + 1);

	if (notes && elf_file_read_at(elf->fd, notes, bytes, segment->p_offset))
		ky_elf_note_build_id(notes, bytes, info);
	free(notes);
}

static void read_segments(const struct elf *elf, struct ky_elf_info *info)
{
	uint64_t first = UINT64_MAX, last = 0;
	Elf64_Phdr segment;

	for (uint32_t i = 0; i < elf->head.e_phnum && i < HEADERS_MAX; i++) {
		if (!read_segment(elf, i, &segment))
			break;
		if (segment.p_type == PT_NOTE && !info->build_id_bytes)
			elf_file_read_notes(elf, &segment, info);
		if (segment.p_type != PT_LOAD || segment.p_vaddr > INT64_MAX ||
		    segment.p_memsz > INT64_MAX)
			continue;
		if (segment.p_vaddr < first)
			first = segment.p_vaddr;
		if (segment.p_vaddr + segment.p_memsz > last)
			last = segment.p_vaddr + segment.p_memsz;
	}
	if (first >= last)
		return;
	first &= ~(uint64_t)(PAGE - 1);
	last = (last + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	info->memory_bytes = last - first;
}

/* ---- the debug link ------------------------------------------------------------------- */

/* A file name, padding to 4 bytes, a checksum. */
static void read_link(const struct elf *elf, const Elf64_Shdr *section, struct ky_elf_info *info)
{
	char data[KY_ELF_LINK_MAX + 8] = {0};
	size_t len, at;

	if (section->sh_size < 8 || section->sh_size > sizeof(data) - 1 ||
	    !elf_file_read_at(elf->fd, data, section->sh_size, section->sh_offset))
		return;
	len = strlen(data);
	at = (len + 4) & ~(size_t)3;
	if (!len || len >= sizeof(info->debug_link) || at + 4 > section->sh_size)
		return;
	memcpy(info->debug_link, data, len + 1);
	memcpy(&info->debug_crc, data + at, 4);
}

static void read_sections(const struct elf *elf, struct ky_elf_info *info)
{
	Elf64_Shdr names, section;
	char name[16];

	if (elf->head.e_shstrndx >= elf->head.e_shnum ||
	    !read_section(elf, elf->head.e_shstrndx, &names) || names.sh_size > NAMES_MAX)
		return;
	for (uint32_t i = 0; i < elf->head.e_shnum && i < HEADERS_MAX; i++) {
		if (!read_section(elf, i, &section))
			return;
		if (section.sh_name >= names.sh_size ||
		    !elf_file_read_at(elf->fd, name, sizeof(name),
				      names.sh_offset + section.sh_name))
			continue;
		if (memcmp(name, ".gnu_debuglink", 15) == 0) {
			read_link(elf, &section, info);
			return;
		}
	}
}

bool ky_elf_read(int fd, struct ky_elf_info *info)
{
	struct elf elf = {.fd = fd};

	memset(info, 0, sizeof(*info));
	if (!elf_file_read_head(&elf))
		return false;
	info->is_pic = elf.head.e_type == ET_DYN;
	read_segments(&elf, info);
	read_sections(&elf, info);
	return info->memory_bytes != 0;
}
