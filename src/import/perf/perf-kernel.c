/* SPDX-License-Identifier: MIT */
/*
 * Is the kernel of a perf.data file the one that runs here, at the same addresses? Then the names of its functions are those of this
 * machine: the build ID tells which kernel it is, and the address of a symbol where this boot has loaded it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/strbuf.h"
#include "import/perf/perf-file.h"
#include "os/file.h"

#define NOTES_BYTES	    65536
#define FIRST_SYMBOLS_BYTES 4096
#define SYMBOLS_BYTES	    65536 /* the first symbols are those of the kernel's begin */
#define GNU_BUILD_ID	    3
#define MISC_BUILD_ID_SIZE  (1u << 15)

static const char map_name[] = "[kernel.kallsyms]";

/* ---- what the file says ------------------------------------------------------------------- */

/* What the file says of @name. 0 or KYMO_E_MEMORY. */
static int perf_kernel_keep_id(struct ky_perf_file *perf, const char *name,
			       const struct ky_perf_build_id *id)
{
	struct ky_perf_build_id *kept = ky_arena_memdup(&perf->arena, id, sizeof(*id));
	char *path = ky_arena_strdup(&perf->arena, name);

	if (!kept || !path)
		return KYMO_E_MEMORY;
	if (strcmp(name, map_name) == 0)
		memcpy(perf->kernel_id, id->bytes, sizeof(perf->kernel_id));
	return ky_names_set(&perf->build_ids, path, kept);
}

/* {header, s32 pid, u8 id[20], u8 id_bytes, padding, name} */
int ky_perf_take_build_ids(struct ky_perf_file *perf, uint64_t at, uint64_t size)
{
	uint64_t end = at + size;

	while (end - at >= 8 + 4 + 24 + 1) {
		const uint8_t *bytes = ky_foreign_bytes(&perf->file, at, 36, "a build ID", NULL);
		uint16_t len = bytes ? ky_foreign_u16(bytes + 6, perf->file.swap) : 0;
		struct ky_perf_build_id id = {.n = sizeof(id.bytes)};
		const char *name;

		if (len < 37 || len > end - at)
			return KYMO_OK;
		memcpy(id.bytes, bytes + 12, sizeof(id.bytes));
		if (ky_foreign_u16(bytes + 4, perf->file.swap) & MISC_BUILD_ID_SIZE)
			id.n = bytes[32] < sizeof(id.bytes) ? bytes[32] : sizeof(id.bytes);
		name = (const char *)ky_foreign_bytes(&perf->file, at + 36, len - 36u, "a build ID",
						      NULL);
		if (name && strnlen(name, len - 36u) < len - 36u &&
		    perf_kernel_keep_id(perf, name, &id) < 0)
			return KYMO_E_MEMORY;
		at += len;
	}
	return KYMO_OK;
}

/* {header, pid, tid, u64 address, length, offset, name}: the kernel's has the address of a symbol as its offset. */
void ky_perf_take_map(struct ky_perf_file *perf, const struct ky_perf_head *head)
{
	const char *name = (const char *)head->bytes + 40;

	if (head->size <= 40 + sizeof(map_name) || head->bytes[head->size - 1] ||
	    ky_foreign_u32(head->bytes + 8, perf->file.swap) != UINT32_MAX ||
	    strncmp(name, map_name, sizeof(map_name) - 1) != 0)
		return;
	perf->kernel_at = ky_foreign_u64(head->bytes + 32, perf->file.swap);
	snprintf(perf->kernel_symbol, sizeof(perf->kernel_symbol), "%s",
		 name + sizeof(map_name) - 1);
}

#define MISC_MMAP_BUILD_ID (1u << 14)

/*
 * Linux sets the flag for all who record as soon as one of them wants build IDs; the others get the device's number where the length
 * would be.
 */
uint8_t ky_perf_map_build_id(const struct ky_perf_file *perf, const struct ky_perf_head *head)
{
	bool has = perf->has_map_build_ids && head->type == KY_PERF_MMAP2 && head->size >= 64 &&
		   head->misc & MISC_MMAP_BUILD_ID;

	return has && head->bytes[40] <= 20 ? head->bytes[40] : 0;
}

/* ---- what this machine says ----------------------------------------------------------------- */

static bool perf_kernel_own_id(uint8_t id[20])
{
	struct ky_strbuf notes = KY_STRBUF_INIT;
	bool is_found = false;
	size_t at = 0;

	if (ky_read_file(AT_FDCWD, "/sys/kernel/notes", NOTES_BYTES, &notes) < 0)
		notes.len = 0;
	/* {u32 bytes of the name, of the content, kind}, both padded to 4 */
	while (!is_found && notes.len - at >= 12 && at < notes.len) {
		uint32_t head[3];
		size_t name, content;

		memcpy(head, notes.data + at, sizeof(head));
		name = ((size_t)head[0] + 3) & ~(size_t)3;
		content = ((size_t)head[1] + 3) & ~(size_t)3;
		at += sizeof(head);
		if (name > notes.len - at || content > notes.len - at - name)
			break;
		if (head[2] == GNU_BUILD_ID && head[1] == 20 && head[0] == 4 &&
		    memcmp(notes.data + at, "GNU", 4) == 0) {
			memcpy(id, notes.data + at + name, 20);
			is_found = true;
		}
		at += name + content;
	}
	ky_strbuf_fini(&notes);
	return is_found;
}

/* The address of @symbol in the first @bytes of the kernel's symbols; 0: it is not there. */
static uint64_t perf_kernel_find(const char *symbol, size_t bytes)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t address = 0;
	size_t len = strlen(symbol);
	const char *at;
	int ret = ky_read_file(AT_FDCWD, "/proc/kallsyms", bytes, &text);

	if (ret < 0 && ret != -EFBIG)
		text.len = 0;
	/* "ffffffff81000000 T _text" */
	for (at = ky_strbuf_text(&text); text.len && at && *at && !address;
	     at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		const char *name = strchr(at, ' ') ? strchr(at, ' ') + 3 : NULL;

		if (name && strncmp(name, symbol, len) == 0 && name[len] == '\n')
			address = strtoull(at, NULL, 16);
	}
	ky_strbuf_fini(&text);
	return address;
}

/* The address of one of the first symbols, which most often is one of the very first; 0: unknown, or hidden from this user. */
static uint64_t perf_kernel_own_address(const char *symbol)
{
	uint64_t address = *symbol ? perf_kernel_find(symbol, FIRST_SYMBOLS_BYTES) : 0;

	return address || !*symbol ? address : perf_kernel_find(symbol, SYMBOLS_BYTES);
}

bool ky_perf_boot_is_here(const struct ky_perf_file *perf)
{
	struct utsname name;

	return perf->kernel_at && !perf->file.swap && perf->release && perf->hostname &&
	       uname(&name) == 0 && strcmp(name.release, perf->release) == 0 &&
	       strcmp(name.nodename, perf->hostname) == 0 &&
	       perf_kernel_own_address(perf->kernel_symbol) == perf->kernel_at;
}

bool ky_perf_kernel_is_here(const struct ky_perf_file *perf)
{
	uint8_t id[20];

	return perf->kernel_at && !perf->file.swap && perf_kernel_own_id(id) &&
	       memcmp(id, perf->kernel_id, sizeof(id)) == 0 &&
	       perf_kernel_own_address(perf->kernel_symbol) == perf->kernel_at;
}
