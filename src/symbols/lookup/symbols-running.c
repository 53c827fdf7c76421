/* SPDX-License-Identifier: MIT */
/* What running processes have mapped, and what they have compiled (symbols.h). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "os/elf-file.h"
#include "os/file.h"
#include "symbols/lookup/symbols-internal.h"

#define MAPS_MAX_BYTES (16u << 20)

/* ---- mappings --------------------------------------------------------------------------- */

struct line {
	uint64_t begin, end, offset;
	char path[4096]; /* as the process names it */
};

/* A line of /proc/PID/maps with code of a file. */
static bool parse_line(const char *text, size_t len, struct line *line)
{
	char copy[4300], permissions[5];
	int path = 0;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (sscanf(copy, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &line->begin,
		   &line->end, permissions, &line->offset, &path) < 4 ||
	    !path || permissions[2] != 'x' || strlen(copy + path) >= sizeof(line->path))
		return false;
	memcpy(line->path, copy + path, strlen(copy + path) + 1);
	return line->path[0] == '/' || !strcmp(line->path, "[vdso]");
}

/* The file itself, even if it has been deleted or replaced; else what is at its path. */
static void file_of(const struct ky_symbols_process *process, const struct line *line, char *path,
		    size_t bytes, struct ky_elf_info *info)
{
	int fd;

	info->build_id_bytes = 0;
	snprintf(path, bytes, "/proc/%" PRId64 "/map_files/%" PRIx64 "-%" PRIx64, process->pid,
		 line->begin, line->end);
	fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(path, bytes, "/proc/%" PRId64 "/root%s", process->pid, line->path);
		fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0 && !ky_elf_read(fd, info))
		info->build_id_bytes = 0;
	if (fd >= 0)
		close(fd);
}

static int map_line(struct ky_symbols *symbols, struct ky_symbols_process *process,
		    const struct line *line, uint64_t time_ns)
{
	struct ky_symbols_mapping mapping = {
		.begin = line->begin,
		.end = line->end,
		.offset = line->offset,
		.time_ns = time_ns,
	};
	struct ky_elf_info info = {0};
	char path[4200] = "";
	struct ky_object *object;

	if (line->path[0] == '/')
		file_of(process, line, path, sizeof(path), &info);
	mapping.object = ky_symbols_object(symbols, line->path, info.build_id, info.build_id_bytes,
					   process->pid);
	if (mapping.object == KY_SYMBOLS_NO_OBJECT)
		return KYMO_E_MEMORY;
	object = symbols->objects.data[mapping.object];
	if (*path && object->state == KY_OBJECT_NEW) {
		free(object->also);
		object->also = strdup(path);
	}
	return ky_symbols_map(symbols, process->pid, &mapping);
}

int ky_symbols_read_maps(struct ky_symbols *symbols, struct ky_symbols_process *process,
			 uint64_t time_ns)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct line *line = malloc(sizeof(*line));
	char path[64];
	int ret = KYMO_OK;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/maps", process->pid);
	process->is_known = true;
	if (!line || process->pid <= 0 || ky_read_file(AT_FDCWD, path, MAPS_MAX_BYTES, &text) < 0 ||
	    !text.len)
		ret = line ? KYMO_E_NOT_FOUND : KYMO_E_MEMORY;
	for (const char *at = ky_strbuf_text(&text), *end = at + text.len; at < end && !ret;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		if (parse_line(at, (size_t)(stop - at), line))
			ret = map_line(symbols, process, line, time_ns);
		at = stop + 1;
	}
	ky_strbuf_fini(&text);
	free(line);
	return ret;
}

/* ---- compilers at run time -------------------------------------------------------------- */

/*
 * The files of one user's processes share this room, so that many processes with one large file, which costs their user nothing, do
 * not take a recorder's memory.
 */
#define JIT_USER_MAX_BYTES (512u << 20)

static bool symbols_running_has_room(const struct ky_symbols *symbols, uint32_t user)
{
	return (uintptr_t)ky_map_get(&symbols->jit_bytes, user) < JIT_USER_MAX_BYTES;
}

static void symbols_running_charge(struct ky_symbols *symbols, uint32_t user, size_t bytes)
{
	uintptr_t all = (uintptr_t)ky_map_get(&symbols->jit_bytes, user) + bytes;

	(void)ky_map_set(&symbols->jit_bytes, user, (void *)all);
}

/* @text: what the files had, beside the functions behind the first @n. */
static void symbols_running_charge_table(struct ky_symbols *symbols, uint32_t user,
					 const struct ky_jit_table *table, size_t n, size_t text)
{
	symbols_running_charge(symbols, user,
			       text + (table->functions.len - n) *
					       sizeof(table->functions.data[0]));
}

/* The user of the process; its files are believed, and root's. */
static bool symbols_running_find_user(struct ky_symbols_process *process)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%" PRId64, process->pid);
	if (process->user == KY_SYMBOLS_NO_USER && stat(path, &st) == 0)
		process->user = st.st_uid;
	return process->user != KY_SYMBOLS_NO_USER;
}

/* The process's number as it knows it itself. */
static int64_t inner_pid(int64_t pid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t inner = pid;
	const char *line, *last;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", pid);
	ky_read_file(AT_FDCWD, path, 65536, &text);
	line = strstr(ky_strbuf_text(&text), "\nNSpid:");
	if (line) {
		int len = (int)strcspn(line + 1, "\n");

		for (last = line + 1 + len; last > line && last[-1] != '\t'; last--)
			;
		inner = strtoll(last, NULL, 10);
	}
	ky_strbuf_fini(&text);
	return inner > 0 ? inner : pid;
}

/* Only a file of the process's user: everybody can write to /tmp. */
static bool read_owned(const struct ky_symbols_process *process, const char *path,
		       struct ky_strbuf *text)
{
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	char name[64];
	bool is_read = false;

	if (fd < 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == 0 && (st.st_uid == process->user || st.st_uid == 0))
		is_read = ky_read_file(AT_FDCWD, name, KY_JIT_FILE_MAX_BYTES, text) == 0;
	close(fd);
	return is_read;
}

/* From the monotonic clock to time since 1970. */
static uint64_t monotonic_offset(void)
{
	struct timespec real, monotonic;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	return (uint64_t)((real.tv_sec - monotonic.tv_sec) * 1000000000LL + real.tv_nsec -
			  monotonic.tv_nsec);
}

/* Programs map a page of their jitdump as code, to tell where it is. */
/* Returns the file's size. */
static size_t read_dumps(struct ky_symbols *symbols, struct ky_symbols_process *process)
{
	size_t bytes = 0;

	ky_vec_foreach(&process->space.regions, region) {
		const struct ky_object *object = symbols->objects.data[region->object];
		const char *name = strrchr(object->path, '/');
		struct ky_strbuf text = KY_STRBUF_INIT;
		char path[4200];

		if (!name || strncmp(name, "/jit-", 5) != 0 || !strstr(name, ".dump"))
			continue;
		snprintf(path, sizeof(path), "/proc/%" PRId64 "/root%s", process->pid,
			 object->path);
		if (read_owned(process, path, &text) || read_owned(process, object->path, &text))
			ky_jit_table_read_dump(&process->jit, ky_strbuf_text(&text), text.len,
					       monotonic_offset());
		bytes = text.len;
		ky_strbuf_fini(&text);
		break;
	}
	return bytes;
}

static void read_stored_map(struct ky_symbols *symbols, struct ky_symbols_process *process,
			    size_t i)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	size_t n = process->jit.functions.len;
	char path[4200];

	if (symbols_running_has_room(symbols, KY_SYMBOLS_NO_USER) &&
	    snprintf(path, sizeof(path), "%s/perf-%" PRId64 ".map", symbols->options.dirs[i],
		     process->pid) < (int)sizeof(path) &&
	    ky_read_regular(AT_FDCWD, path, KY_JIT_FILE_MAX_BYTES, &text) == 0)
		ky_jit_table_read_map(&process->jit, ky_strbuf_text(&text), text.len);
	symbols_running_charge_table(symbols, KY_SYMBOLS_NO_USER, &process->jit, n, text.len);
	ky_strbuf_fini(&text);
}

/* What a recording has stored. The file is as trusted as the trace. */
static void read_stored(struct ky_symbols *symbols, struct ky_symbols_process *process)
{
	for (size_t i = 0; i < symbols->options.n_dirs; i++)
		read_stored_map(symbols, process, i);
}

void ky_symbols_read_jit(struct ky_symbols *symbols, struct ky_symbols_process *process)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[128];
	int64_t pid = process->pid;
	size_t n, bytes;

	if (process->has_jit || pid <= 0)
		return;
	process->has_jit = true;
	read_stored(symbols, process);
	if (!symbols->options.is_here)
		return;
	if (!symbols_running_find_user(process) ||
	    !symbols_running_has_room(symbols, process->user))
		return;
	n = process->jit.functions.len;
	bytes = read_dumps(symbols, process);
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/root/tmp/perf-%" PRId64 ".map", pid,
		 inner_pid(pid));
	if (!read_owned(process, path, &text)) {
		snprintf(path, sizeof(path), "/tmp/perf-%" PRId64 ".map", pid);
		read_owned(process, path, &text);
	}
	ky_jit_table_read_map(&process->jit, ky_strbuf_text(&text), text.len);
	symbols_running_charge_table(symbols, process->user, &process->jit, n, bytes + text.len);
	ky_strbuf_fini(&text);
}
