/* SPDX-License-Identifier: MIT */
/*
 * -fpatchable-function-entry=N: functions begin with NOPs of N bytes, and the section __patchable_function_entries has their
 * addresses. A call needs five bytes. As it reaches 2 GiB, each object gets a page near it that jumps on.
 *
 * The library is loaded before the program's first function runs, so no thread executes the NOPs meanwhile.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/preload/call-filter.h"
#include "tracer/preload/mcount.h"

#define SECTION	   "__patchable_function_entries"
#define CALL_BYTES 5u
#define PAGE	   UINT64_C(4096)
#define NEAR	   (UINT64_C(1) << 30)
#define NEAR_STEP  (UINT64_C(1) << 20)
#define NOP	   0x90

struct object {
	const struct dl_phdr_info *info;
	uintptr_t begin, end;	  /* of all that is mapped */
	uintptr_t text, text_end; /* of what is executed */
	const uintptr_t *entries; /* in memory, relocated */
	size_t n_entries;
	uint8_t *jump; /* NULL: not made yet */
};

/* ---- where the NOPs are ------------------------------------------------------------------ */

static void mcount_patch_bounds(struct object *object)
{
	object->begin = UINTPTR_MAX;
	for (size_t i = 0; i < object->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *head = &object->info->dlpi_phdr[i];
		uintptr_t begin = object->info->dlpi_addr + head->p_vaddr;
		uintptr_t end = begin + head->p_memsz;

		if (head->p_type != PT_LOAD)
			continue;
		object->begin = begin < object->begin ? begin : object->begin;
		object->end = end > object->end ? end : object->end;
		if (head->p_flags & PF_X) {
			object->text = begin & ~(PAGE - 1);
			object->text_end = (end + PAGE - 1) & ~(PAGE - 1);
		}
	}
}

/* @map: the file. The section's place in memory. */
static void mcount_patch_find(struct object *object, const uint8_t *map, size_t bytes)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)map;
	const Elf64_Shdr *sections, *names;
	const char *text;

	if (bytes < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(*sections) ||
	    head->e_shoff > bytes || head->e_shoff % sizeof(uint64_t) ||
	    head->e_shnum * sizeof(*sections) > bytes - head->e_shoff ||
	    head->e_shstrndx >= head->e_shnum)
		return;
	sections = (const Elf64_Shdr *)(map + head->e_shoff);
	names = &sections[head->e_shstrndx];
	if (names->sh_offset > bytes || names->sh_size > bytes - names->sh_offset ||
	    !names->sh_size)
		return;
	text = (const char *)map + names->sh_offset;
	if (text[names->sh_size - 1])
		return;
	for (size_t i = 0; i < head->e_shnum; i++) {
		uintptr_t begin = object->info->dlpi_addr + sections[i].sh_addr;

		if (sections[i].sh_name >= names->sh_size ||
		    strcmp(text + sections[i].sh_name, SECTION) != 0 || !sections[i].sh_size ||
		    begin < object->begin || begin > object->end ||
		    sections[i].sh_size > object->end - begin)
			continue;
		object->entries = (const uintptr_t *)begin; // NOLINT: an address
		object->n_entries = sections[i].sh_size / sizeof(uintptr_t);
		return;
	}
}

static void mcount_patch_read(struct object *object)
{
	const char *name = object->info->dlpi_name;
	int fd = open(name && *name ? name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			mcount_patch_find(object, map, (size_t)st.st_size);
			munmap(map, (size_t)st.st_size);
		}
	}
	close(fd);
}

/* ---- NOPs ---------------------------------------------------------------------------------- */

/* The bytes of the NOP at @code; 0: another instruction. Compilers use 90, and [66...] [2e] 0f 1f /0 with any operand. */
static size_t mcount_patch_nop(const uint8_t *code)
{
	size_t at = 0;
	uint8_t mode;

	while (at < 8 && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (code[at] == NOP)
		return at + 1;
	if (code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	mode = code[at + 2];
	at += 3;
	if ((mode & 7) == 4)
		at++;
	return mode >> 6 == 1 ? at + 1 : mode >> 6 == 2 ? at + 4 : at;
}

/* The bytes of whole NOPs, five or more; 0: not so many. */
static size_t mcount_patch_room(const struct object *object, uintptr_t at)
{
	const uint8_t *code = (const uint8_t *)at; // NOLINT: an address
	size_t bytes = 0, one;

	if (at < object->text || at + 32 > object->text_end)
		return 0;
	while (bytes < CALL_BYTES && (one = mcount_patch_nop(code + bytes)))
		bytes += one;
	return bytes < CALL_BYTES ? 0 : bytes;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* A page near the object: "jmp *0(%rip)" and the address. */
static bool mcount_patch_make_jump(struct object *object)
{
	static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
	uintptr_t to = (uintptr_t)ky_mcount_patched, from = (object->end + PAGE - 1) & ~(PAGE - 1);
	void *page = MAP_FAILED;

	for (uint64_t off = 0; off < NEAR && page == MAP_FAILED; off += NEAR_STEP)
		page = mmap((void *)(from + off), PAGE,
			    PROT_READ | PROT_WRITE, // NOLINT: an address
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		return false;
	memcpy(page, jump, sizeof(jump));
	memcpy((uint8_t *)page + sizeof(jump), &to, sizeof(to));
	object->jump = page;
	return mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0;
}

static void mcount_patch_call(const struct object *object, uintptr_t at, size_t room)
{
	int32_t distance = (int32_t)((uintptr_t)object->jump - (at + CALL_BYTES));
	uint8_t *code = (uint8_t *)at; // NOLINT: an address

	code[0] = 0xe8;
	memcpy(code + 1, &distance, sizeof(distance));
	memset(code + CALL_BYTES, NOP, room - CALL_BYTES);
}

static void mcount_patch_entry(struct object *object, uintptr_t at)
{
	size_t room = ky_call_filter_chooses(at) ? mcount_patch_room(object, at) : 0;

	if (room)
		mcount_patch_call(object, at, room);
}

static void mcount_patch_entries(struct object *object)
{
	size_t bytes = object->text_end - object->text;
	void *text = (void *)object->text; // NOLINT: an address

	if (object->end - object->begin > NEAR || !mcount_patch_make_jump(object) ||
	    mprotect(text, bytes, PROT_READ | PROT_WRITE) != 0)
		return;
	for (size_t i = 0; i < object->n_entries; i++)
		mcount_patch_entry(object, object->entries[i]);
	(void)mprotect(text, bytes, PROT_READ | PROT_EXEC);
}

static int mcount_patch_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object object = {.info = info};
	uintptr_t own = (uintptr_t)ky_mcount_patch;

	(void)size;
	(void)data;
	mcount_patch_bounds(&object);
	if (own >= object.begin && own < object.end)
		return 0;
	mcount_patch_read(&object);
	if (object.n_entries)
		mcount_patch_entries(&object);
	return 0;
}

void ky_mcount_patch(void)
{
	dl_iterate_phdr(mcount_patch_object, NULL);
}
