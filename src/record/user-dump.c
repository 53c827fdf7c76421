/* SPDX-License-Identifier: MIT */
#include "record/user-dump.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/elf-file.h"
#include "record/user-program.h"

#define MAPS_BYTES_MAX (16u << 20)
#define BODY_BYTES     (PATH_MAX + 256)
#define PROCNAME_BYTES 17
#define BINARIES_MAX   4096u

struct ky_user_dumped {
	uint32_t n;
	uint64_t base[BINARIES_MAX];
};

/* A line of /proc/PID/maps. */
struct mapping {
	uint64_t start, end, offset, inode;
	unsigned int major, minor;
	char permissions[5];
	const char *path;
	int path_bytes;
};

/* Neighbouring mappings of one file. */
struct binary {
	uint64_t base, end, inode;
	const char *path;
	int path_bytes;
	bool has_code;
};

struct dump {
	struct ky_user_ring *ring;
	const struct ky_os_clock *clock;
	struct kymo_error *err;
	DIR *proc; /* /proc/PID */
	int32_t vpid;
	uint32_t used_bytes;
	uint8_t body[BODY_BYTES];
};

/* ---- events --------------------------------------------------------------------------- */

static void put(struct dump *dump, const void *data, size_t bytes)
{
	if (bytes > sizeof(dump->body) - dump->used_bytes)
		return;
	memcpy(dump->body + dump->used_bytes, data, bytes);
	dump->used_bytes += (uint32_t)bytes;
}

static void put_u64(struct dump *dump, uint64_t value)
{
	put(dump, &value, sizeof(value));
}

static void put_text(struct dump *dump, const char *text, int bytes)
{
	put(dump, text, (size_t)bytes);
	put(dump, "", 1);
}

/* What was put becomes an event; the next one begins. */
static int emit(struct dump *dump, enum ky_user_dump_event id)
{
	struct ky_strbuf *to = &dump->ring->dump;
	bool is_excluded = dump->ring->dump_excluded >> id & 1;
	struct ky_user_dump_head head = {.id = id,
					 .bytes = (uint32_t)sizeof(dump->vpid) + dump->used_bytes};

	dump->used_bytes = 0;
	if (is_excluded)
		return KYMO_OK;
	ky_strbuf_add(to, (const char *)&head, sizeof(head));
	ky_strbuf_add(to, (const char *)&dump->vpid, sizeof(dump->vpid));
	ky_strbuf_add(to, (const char *)dump->body, head.bytes - sizeof(dump->vpid));
	return ky_strbuf_failed(to) ? ky_error_nomem(dump->err) : KYMO_OK;
}

/* ---- binaries ------------------------------------------------------------------------- */

/* The file as the process sees it. */
static bool read_elf(struct dump *dump, const struct binary *binary, struct ky_elf_info *info)
{
	char path[PATH_MAX + 16];
	bool is_read = false;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "root%.*s", binary->path_bytes, binary->path);
	fd = ky_file_open_regular(dirfd(dump->proc), path, O_RDONLY);
	if (fd < 0)
		return false;
	/* Another file may have taken the name since. */
	if (fstat(fd, &st) == 0 && st.st_ino == binary->inode)
		is_read = ky_elf_read(fd, info);
	close(fd);
	return is_read;
}

static int emit_binary(struct dump *dump, const struct binary *binary)
{
	struct ky_elf_info info = {0};
	uint8_t flags[3];
	int ret;

	if (!read_elf(dump, binary, &info)) {
		memset(&info, 0, sizeof(info));
		info.is_pic = true;
		info.memory_bytes = binary->end - binary->base;
	}
	flags[0] = info.is_pic;
	flags[1] = info.build_id_bytes != 0;
	flags[2] = info.debug_link[0] != 0;
	put_u64(dump, binary->base);
	put_u64(dump, info.memory_bytes);
	put_text(dump, binary->path, binary->path_bytes);
	put(dump, flags, sizeof(flags));
	ret = emit(dump, KY_USER_DUMP_BIN_INFO);
	if (!ret && info.build_id_bytes) {
		put_u64(dump, binary->base);
		put_u64(dump, info.build_id_bytes);
		put(dump, info.build_id, info.build_id_bytes);
		ret = emit(dump, KY_USER_DUMP_BUILD_ID);
	}
	if (!ret && info.debug_link[0]) {
		put_u64(dump, binary->base);
		put(dump, &info.debug_crc, sizeof(info.debug_crc));
		put_text(dump, info.debug_link, (int)strlen(info.debug_link));
		ret = emit(dump, KY_USER_DUMP_DEBUG_LINK);
	}
	return ret;
}

/* False: it was written before, or there are too many. */
static bool is_new(struct ky_user_dumped *dumped, uint64_t base)
{
	for (uint32_t i = 0; i < dumped->n; i++) {
		if (dumped->base[i] == base)
			return false;
	}
	if (dumped->n == BINARIES_MAX)
		return false;
	dumped->base[dumped->n++] = base;
	return true;
}

static int end_binary(struct dump *dump, const struct binary *binary)
{
	if (!binary->has_code || binary->path_bytes >= PATH_MAX ||
	    !is_new(dump->ring->dumped, binary->base))
		return KYMO_OK;
	return emit_binary(dump, binary);
}

/* ---- /proc/PID/maps ------------------------------------------------------------------- */

/* A number, and what stands behind it; 0 at another character. */
static uint64_t next_number(const char **at, int base, char after)
{
	char *end;
	uint64_t number = strtoull(*at, &end, base);

	if (*end == after)
		end++;
	*at = end;
	return number;
}

/*
 * "START-END PERM OFFSET MAJOR:MINOR INODE    PATH". The next line; false: the end. Not by sscanf(),
 * which measures all the rest of the text each time: programs may have 65,000 mappings.
 */
static bool next_mapping(const char **at, struct mapping *mapping)
{
	const char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return false;
	*at = end + 1;
	memset(mapping, 0, sizeof(*mapping));
	mapping->start = next_number(&line, 16, '-');
	mapping->end = next_number(&line, 16, ' ');
	for (int i = 0; i < 4 && line < end; i++)
		mapping->permissions[i] = *line++;
	mapping->offset = next_number(&line, 16, ' ');
	mapping->major = (unsigned int)next_number(&line, 16, ':');
	mapping->minor = (unsigned int)next_number(&line, 16, ' ');
	mapping->inode = next_number(&line, 10, ' ');
	line += strspn(line, " ");
	mapping->path = line;
	if (line < end)
		mapping->path_bytes = (int)(end - line);
	return true;
}

static bool has_ring(const char *maps, const struct ky_user_ring *ring)
{
	struct mapping mapping;

	while (next_mapping(&maps, &mapping)) {
		if (mapping.inode == ring->inode && mapping.major == major(ring->device) &&
		    mapping.minor == minor(ring->device))
			return true;
	}
	return false;
}

static bool is_binary(const struct mapping *mapping)
{
	static const char vdso[] = "[vdso]";

	return (mapping->path_bytes && mapping->path[0] == '/') ||
	       (mapping->path_bytes == (int)strlen(vdso) &&
		memcmp(mapping->path, vdso, strlen(vdso)) == 0);
}

static bool continues(const struct binary *binary, const struct mapping *mapping)
{
	return binary->path && binary->path_bytes == mapping->path_bytes &&
	       binary->inode == mapping->inode && mapping->offset &&
	       memcmp(binary->path, mapping->path, (size_t)binary->path_bytes) == 0;
}

static int dump_binaries(struct dump *dump, const char *maps)
{
	struct binary binary = {0};
	struct mapping mapping;
	int ret = KYMO_OK;

	while (!ret && next_mapping(&maps, &mapping)) {
		if (!is_binary(&mapping))
			continue;
		if (!continues(&binary, &mapping)) {
			ret = end_binary(dump, &binary);
			binary = (struct binary){
				.base = mapping.start,
				.inode = mapping.inode,
				.path = mapping.path,
				.path_bytes = mapping.path_bytes,
			};
		}
		binary.end = mapping.end;
		binary.has_code |= mapping.permissions[2] == 'x';
	}
	return ret ? ret : end_binary(dump, &binary);
}

/* ---- the dump ------------------------------------------------------------------------- */

static int dump_all(struct dump *dump, const char *maps)
{
	struct ky_user_ring *ring = dump->ring;
	const struct ky_blob *blob = ky_user_ring_blob(ring);
	char procname[PROCNAME_BYTES] = {0};
	size_t before = ring->dump.len;
	uint32_t n_before;
	int ret;

	if (!ring->dumped)
		ring->dumped = calloc(1, sizeof(*ring->dumped));
	if (!ring->dumped)
		return ky_error_nomem(dump->err);
	n_before = ring->dumped->n;
	ret = emit(dump, KY_USER_DUMP_START);
	memcpy(procname, blob->procname, sizeof(blob->procname));
	put(dump, procname, sizeof(procname));
	if (!ret)
		ret = emit(dump, KY_USER_DUMP_PROCNAME);
	if (!ret)
		ret = dump_binaries(dump, maps);
	if (!ret)
		ret = emit(dump, KY_USER_DUMP_END);
	/* What is kept must not grow when there is nothing new. */
	if (!ret && before && ring->dumped->n == n_before)
		ring->dump.len = before;
	return ret ? ret : ky_user_ring_write_dump(ring, ky_os_clock_now(dump->clock), dump->err);
}

int ky_user_dump(struct ky_user_ring *ring, pid_t pid, const struct ky_os_clock *clock,
		 struct kymo_error *err)
{
	struct dump *dump = calloc(1, sizeof(*dump));
	struct ky_strbuf maps = KY_STRBUF_INIT;
	char path[32];
	int ret = 0;

	if (!dump)
		return ky_error_nomem(err);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	*dump = (struct dump){.ring = ring, .clock = clock, .err = err};
	dump->vpid = (int32_t)ky_user_ring_blob(ring)->pid;
	dump->proc = ky_dir_open(AT_FDCWD, path);
	if (dump->proc) {
		if (ky_read_file(dirfd(dump->proc), "maps", MAPS_BYTES_MAX, &maps) == 0 &&
		    has_ring(ky_strbuf_text(&maps), ring)) {
			ret = dump_all(dump, ky_strbuf_text(&maps));
			ret = ret < 0 ? ret : 1;
		}
		closedir(dump->proc);
	}
	ky_strbuf_fini(&maps);
	free(dump);
	return ret;
}

/* ---- other PID namespaces ------------------------------------------------------------- */

int ky_user_dump_elsewhere(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			   struct kymo_error *err)
{
	uint32_t pid = ky_user_ring_blob(ring)->pid;
	DIR *dir = ky_dir_open(AT_FDCWD, "/proc");
	struct dirent *entry;
	int ret = 0;

	while (dir && !ret && (entry = readdir(dir))) {
		pid_t outer = isdigit((unsigned char)entry->d_name[0])
				      ? (pid_t)strtol(entry->d_name, NULL, 10)
				      : 0;

		if (outer > 0 && (uint32_t)outer != pid && ky_program_inner_pid(outer) == pid)
			ret = ky_user_dump(ring, outer, clock, err);
	}
	if (dir)
		closedir(dir);
	return ret;
}
