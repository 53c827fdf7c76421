/* SPDX-License-Identifier: MIT */
/* The state dump of memory: the machine's, processes', what is mapped where, and loaded modules. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/statedump/statedump-run.h"
#include "os/elf-file.h"
#include "os/file.h"

#define PROC_MAX_BYTES	  16384
#define MAPS_MAX_BYTES	  (16u << 20)
#define MODULES_MAX_BYTES (1u << 20)
#define NOTES_MAX_BYTES	  65536

/* ---- the machine ------------------------------------------------------------------------ */

static const char *const memory_lines[] = {
	"MemTotal:", "MemFree:", "MemAvailable:", "Buffers:", "Cached:", "SwapTotal:", "SwapFree:"};

/* The value behind @key at a line's begin, in bytes; the file counts in KiB. */
static uint64_t memory_bytes(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (text && *text) {
		if (strncmp(text, key, len) == 0)
			return strtoull(text + len, NULL, 10) * 1024;
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return 0;
}

static int dump_machine(struct ky_dump_run *run)
{
	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_MEMORY)))
		return KYMO_OK;
	if (ky_read_file(run->proc.fd, "meminfo", PROC_MAX_BYTES, &run->proc.text) < 0)
		return KYMO_OK;
	for (size_t i = 0; i < sizeof(memory_lines) / sizeof(memory_lines[0]); i++)
		ky_dump_put64(&run->body,
			      memory_bytes(ky_strbuf_text(&run->proc.text), memory_lines[i]));
	return ky_dump_emit(run, KY_STATEDUMP_MEMORY);
}

/* ---- modules ---------------------------------------------------------------------------- */

static uint32_t note_word(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* The GNU build id among @len bytes of ELF notes, as text. "": none. */
void ky_dump_note_build_id(const uint8_t *notes, size_t len, char id[2 * KY_ELF_BUILD_ID_MAX + 1])
{
	size_t at = 0;

	id[0] = '\0';
	while (len - at >= 12) {
		size_t name = ((size_t)note_word(notes + at) + 3) & ~(size_t)3;
		size_t bytes = note_word(notes + at + 4), type = note_word(notes + at + 8);

		at += 12;
		if (name > len - at || bytes > len - at - name)
			return;
		if (type == 3 && name == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
		    bytes <= KY_ELF_BUILD_ID_MAX) {
			for (size_t i = 0; i < bytes; i++)
				snprintf(id + 2 * i, 3, "%02x", notes[at + name + i]);
			return;
		}
		bytes = (bytes + 3) & ~(size_t)3;
		if (bytes > len - at - name)
			return;
		at += name + bytes;
	}
}

static int dump_module(struct ky_dump_run *run, const char *name, uint64_t address, uint64_t size,
		       const char *notes)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char id[2 * KY_ELF_BUILD_ID_MAX + 1] = "";

	if (ky_read_file(AT_FDCWD, notes, NOTES_MAX_BYTES, &text) == 0)
		ky_dump_note_build_id((const uint8_t *)ky_strbuf_text(&text), text.len, id);
	ky_strbuf_fini(&text);
	ky_dump_put_text(&run->body, name);
	ky_dump_put64(&run->body, address);
	ky_dump_put64(&run->body, size);
	ky_dump_put_text(&run->body, id);
	return ky_dump_emit(run, KY_STATEDUMP_MODULE);
}

bool ky_dump_parse_module(const char *line, char name[64], uint64_t *size, uint64_t *address)
{
	/* NAME SIZE USERS DEPENDENCIES STATE ADDRESS; names become a path. */
	return sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name, size, address) == 3 &&
	       !strchr(name, '/') && name[0] != '.';
}

/* The kernel itself counts as one, at an address that /proc does not tell. */
static int dump_modules(struct ky_dump_run *run)
{
	int ret = KYMO_OK;
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *rest, *line, name[64], notes[160];
	uint64_t size, address;

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_MODULE)))
		return KYMO_OK;
	ret = dump_module(run, "vmlinux", 0, 0, "/sys/kernel/notes");
	if (ret < 0 || ky_read_file(run->proc.fd, "modules", MODULES_MAX_BYTES, &text) < 0)
		goto out;
	for (rest = text.data; ret == KYMO_OK && rest && (line = strsep(&rest, "\n"));) {
		if (!ky_dump_parse_module(line, name, &size, &address))
			continue;
		snprintf(notes, sizeof(notes), "/sys/module/%s/notes/.note.gnu.build-id", name);
		ret = dump_module(run, name, address, size, notes);
	}
out:
	ky_strbuf_fini(&text);
	return ret;
}

int ky_dump_memory(struct ky_dump_run *run)
{
	int ret = dump_machine(run);

	return ret < 0 ? ret : dump_modules(run);
}

/* ---- processes -------------------------------------------------------------------------- */

/* Sizes of a process' memory; kernel threads have none. */
static int dump_sizes(struct ky_dump_run *run, int32_t pid)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), total, resident, shared;
	char path[32];

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_MEMORY)))
		return KYMO_OK;
	snprintf(path, sizeof(path), "%" PRId32 "/statm", pid);
	if (ky_read_file(run->proc.fd, path, PROC_MAX_BYTES, &run->proc.text) < 0 ||
	    sscanf(ky_strbuf_text(&run->proc.text), "%" SCNu64 " %" SCNu64 " %" SCNu64, &total,
		   &resident, &shared) != 3 ||
	    !total)
		return KYMO_OK;
	ky_dump_put_id(run, pid);
	ky_dump_put64(&run->body, total * page);
	ky_dump_put64(&run->body, resident * page);
	ky_dump_put64(&run->body, shared * page);
	return ky_dump_emit(run, KY_STATEDUMP_PROCESS_MEMORY);
}

bool ky_dump_parse_map(const char *line, struct ky_dump_map *map)
{
	char mode[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &map->begin,
		   &map->end, mode, &map->offset, &map->major, &map->minor, &map->inode,
		   &at) != 7 ||
	    strlen(mode) != 4)
		return false;
	map->protection = (mode[0] == 'r' ? 1u : 0) | (mode[1] == 'w' ? 2u : 0) |
			  (mode[2] == 'x' ? 4u : 0) | (mode[3] == 's' ? 8u : 0);
	map->path = line + at + strspn(line + at, " ");
	return true;
}

/* The mapped file's build id; opened only as what it is, since devices do things when opened. */
static void map_build_id(const struct ky_dump_run *run, int32_t pid, const struct ky_dump_map *map,
			 char id[2 * KY_ELF_BUILD_ID_MAX + 1])
{
	struct ky_elf_info info;
	char path[96];
	int file;

	id[0] = '\0';
	snprintf(path, sizeof(path), "%" PRId32 "/map_files/%" PRIx64 "-%" PRIx64, pid, map->begin,
		 map->end);
	file = ky_file_open_regular(run->proc.fd, path, O_RDONLY);
	if (file >= 0 && ky_elf_read(file, &info))
		for (uint32_t i = 0; i < info.build_id_bytes; i++)
			snprintf(id + 2 * i, 3, "%02x", info.build_id[i]);
	if (file >= 0)
		close(file);
}

static int dump_map(struct ky_dump_run *run, int32_t pid, const struct ky_dump_map *map)
{
	char id[2 * KY_ELF_BUILD_ID_MAX + 1] = "";
	struct ky_dump_body *body = &run->body;

	if ((map->protection & 4) && map->inode)
		map_build_id(run, pid, map, id);
	ky_dump_put_id(run, pid);
	ky_dump_put64(body, map->begin);
	ky_dump_put64(body, map->end);
	ky_dump_put8(body, (uint8_t)map->protection);
	ky_dump_put64(body, map->offset);
	ky_dump_put32(body, map->major << 20 | (map->minor & 0xfffff));
	ky_dump_put64(body, map->inode);
	ky_dump_put_text(body, id);
	ky_dump_put_text(body, map->path);
	return ky_dump_emit(run, KY_STATEDUMP_PROCESS_MAP);
}

static int dump_maps(struct ky_dump_run *run, int32_t pid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[32], *rest, *line;
	int ret;

	if (!ky_dump_wants(run, KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_MAP)))
		return KYMO_OK;
	snprintf(path, sizeof(path), "%" PRId32 "/maps", pid);
	ret = ky_read_file(run->proc.fd, path, MAPS_MAX_BYTES, &text);
	ret = ret == -ENOMEM ? KYMO_E_MEMORY : KYMO_OK;
	for (rest = text.data; ret == KYMO_OK && rest && (line = strsep(&rest, "\n"));) {
		struct ky_dump_map map;

		if (!ky_dump_parse_map(line, &map))
			continue;
		ret = dump_map(run, pid, &map);
	}
	ky_strbuf_fini(&text);
	return ret;
}

int ky_dump_process_memory(struct ky_dump_run *run, int32_t pid)
{
	int ret = dump_sizes(run, pid);

	return ret < 0 ? ret : dump_maps(run, pid);
}
