/* SPDX-License-Identifier: MIT */
#include "cli/reading/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/foreign.h"

#define NAME_BYTES 128

/* ---- the kernel ----------------------------------------------------------------------------- */

void ky_frames_fini(struct ky_frames *frames)
{
	ky_kernel_table_fini(&frames->kernel);
	*frames = (struct ky_frames){0};
}

const char *ky_frames_name(struct ky_frames *frames, uint64_t address, uint64_t *offset)
{
	const struct ky_symbol *symbol;

	/* Without memory, with the symbols that it sufficed for. */
	if (!frames->is_read)
		(void)ky_kernel_table_read(&frames->kernel, "/proc/kallsyms");
	frames->is_read = true;
	symbol = ky_symbol_table_find(&frames->kernel.table, address);
	if (!symbol)
		return NULL;
	*offset = address - symbol->address;
	return ky_symbol_name(&frames->kernel.table, symbol);
}

static void frames_put_one(struct ky_strbuf *out, const char *indent, uint64_t address,
			   const char *name, uint64_t offset)
{
	ky_strbuf_addf(out, "%s%016" PRIx64, indent, address);
	if (name) {
		ky_strbuf_adds(out, "  ");
		ky_foreign_adds(out, name);
		ky_strbuf_addf(out, "+0x%" PRIx64, offset);
	}
	ky_strbuf_addc(out, '\n');
}

void ky_frames_put_kernel(struct ky_frames *frames, struct ky_strbuf *out, const char *indent,
			  const uint64_t *addresses, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t offset = 0;
		const char *name = ky_frames_name(frames, addresses[i], &offset);

		frames_put_one(out, indent, addresses[i], name, offset);
	}
}

/* ---- programs ------------------------------------------------------------------------------- */

/* Is @address in the file that @line, one of /proc/PID/maps, names? */
static bool frames_is_in(const char *line, uint64_t address, char name[NAME_BYTES],
			 uint64_t *offset)
{
	uint64_t begin, end, at;
	int name_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*[0-9]%*[ ]%n", &begin, &end,
		   &at, &name_at) < 3 ||
	    !name_at || address < begin || address >= end)
		return false;
	*offset = address - begin + at;
	snprintf(name, NAME_BYTES, "%.127s", line + name_at);
	return *name;
}

/* Where @address lies in the files that @maps, the text of /proc/PID/maps, names. False: in none. */
static bool frames_find_file(const char *maps, uint64_t address, char name[NAME_BYTES],
			     uint64_t *offset)
{
	char line[512];

	while (*maps) {
		size_t len = strcspn(maps, "\n");

		snprintf(line, sizeof(line), "%.*s", len < sizeof(line) ? (int)len : 511, maps);
		if (frames_is_in(line, address, name, offset))
			return true;
		maps += len + (maps[len] == '\n');
	}
	return false;
}

static void frames_read_maps(struct ky_strbuf *maps, int64_t pid)
{
	char path[64], block[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/maps", pid);
	file = pid > 0 ? fopen(path, "re") : NULL;
	while (file && maps->len < (8u << 20) && (n = fread(block, 1, sizeof(block), file)) > 0)
		ky_strbuf_add(maps, block, n);
	if (file)
		fclose(file);
}

void ky_frames_put_user(struct ky_strbuf *out, const char *indent, const uint64_t *addresses,
			size_t n, int64_t pid)
{
	struct ky_strbuf maps = KY_STRBUF_INIT;

	if (n)
		frames_read_maps(&maps, pid);
	for (size_t i = 0; i < n; i++) {
		char name[NAME_BYTES];
		uint64_t offset = 0;
		bool is_found =
			frames_find_file(ky_strbuf_text(&maps), addresses[i], name, &offset);

		frames_put_one(out, indent, addresses[i], is_found ? name : NULL, offset);
	}
	ky_strbuf_fini(&maps);
}
