/* SPDX-License-Identifier: MIT */
#include "kernel/samples/sample-processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "kernel/statedump/statedump-run.h"
#include "os/elf-file.h"
#include "os/file.h"

#define MAPS_MAX_BYTES (16u << 20)
#define COMM_MAX_BYTES 64
#define FILES_MAX      65536

struct sample_file {
	uint8_t build_id_bytes;
	uint8_t build_id[KY_SAMPLE_BUILD_ID_BYTES];
};

/* ---- maps --------------------------------------------------------------------------------- */

static void sample_maps_release(struct ky_sample_maps *maps)
{
	if (!maps || --maps->n_users)
		return;
	ky_vec_foreach(&maps->maps, map)
		free(map->path);
	ky_vec_fini(&maps->maps);
	free(maps);
}

static struct ky_sample_maps *sample_maps_new(void)
{
	struct ky_sample_maps *maps = calloc(1, sizeof(*maps));

	if (maps)
		maps->n_users = 1;
	return maps;
}

/* The process's own, which it may change. NULL: out of memory. */
static struct ky_sample_maps *sample_maps_own(struct ky_sample_process *process)
{
	struct ky_sample_maps *maps = process->maps, *copy;

	if (maps->n_users == 1)
		return maps;
	copy = sample_maps_new();
	if (!copy)
		return NULL;
	ky_vec_foreach(&maps->maps, map)
		if (ky_sample_maps_add(copy, map) < 0) {
			sample_maps_release(copy);
			return NULL;
		}
	maps->n_users--;
	process->maps = copy;
	return copy;
}

/* ---- the table ---------------------------------------------------------------------------- */

void ky_sample_processes_init(struct ky_sample_processes *table)
{
	ky_map_init(&table->processes);
	ky_map_init(&table->threads);
	ky_map_init(&table->files);
	table->n_versions = 0;
	memset(&table->exited, 0, sizeof(table->exited));
	memset(&table->exiting, 0, sizeof(table->exiting));
}

void ky_sample_processes_fini(struct ky_sample_processes *table)
{
	size_t pos = 0;
	uint64_t key;
	void *value;

	while (ky_map_next(&table->processes, &pos, &key, &value)) {
		sample_maps_release(((struct ky_sample_process *)value)->maps);
		free(value);
	}
	for (pos = 0; ky_map_next(&table->threads, &pos, &key, &value);)
		free(value);
	for (pos = 0; ky_map_next(&table->files, &pos, &key, &value);)
		free(value);
	ky_map_fini(&table->processes);
	ky_map_fini(&table->threads);
	ky_map_fini(&table->files);
	ky_vec_fini(&table->exited);
	ky_vec_fini(&table->exiting);
}

static void sample_thread_set_name(struct ky_sample_thread *thread, const char *comm, size_t len)
{
	memset(thread->comm, 0, sizeof(thread->comm));
	memcpy(thread->comm, comm, len < sizeof(thread->comm) ? len : sizeof(thread->comm) - 1);
}

static void sample_thread_read_name(struct ky_sample_thread *thread)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/comm", thread->tid);
	if (thread->tid > 0 && ky_read_file(AT_FDCWD, path, COMM_MAX_BYTES, &text) == 0)
		sample_thread_set_name(thread, ky_strbuf_text(&text),
				       strcspn(ky_strbuf_text(&text), "\n"));
	ky_strbuf_fini(&text);
}

static struct ky_sample_thread *sample_thread_get(struct ky_sample_processes *table, int32_t tid,
						  int32_t pid, bool *is_new)
{
	struct ky_sample_thread *thread = ky_map_get(&table->threads, (uint32_t)tid);

	*is_new = !thread;
	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread || ky_map_set(&table->threads, (uint32_t)tid, thread) < 0) {
		free(thread);
		return NULL;
	}
	thread->tid = tid;
	thread->pid = pid;
	return thread;
}

struct ky_sample_thread *ky_sample_thread(struct ky_sample_processes *table, int32_t tid,
					  int32_t pid)
{
	bool is_new;
	struct ky_sample_thread *thread = sample_thread_get(table, tid, pid, &is_new);

	if (thread && is_new && !table->is_foreign)
		sample_thread_read_name(thread);
	return thread;
}

struct ky_sample_process *ky_sample_process(struct ky_sample_processes *table, int32_t pid)
{
	struct ky_sample_process *process = ky_map_get(&table->processes, (uint32_t)pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process || ky_map_set(&table->processes, (uint32_t)pid, process) < 0) {
		free(process);
		return NULL;
	}
	process->pid = pid;
	return process;
}

static void sample_process_set_maps(struct ky_sample_processes *table,
				    struct ky_sample_process *process, struct ky_sample_maps *maps)
{
	sample_maps_release(process->maps);
	process->maps = maps;
	process->version = ++table->n_versions;
	process->told = 0;
}

/* ---- what was there before ------------------------------------------------------------------- */

static void sample_file_read(struct sample_file *file, int32_t pid, const struct ky_dump_map *map)
{
	struct ky_elf_info info;
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/map_files/%" PRIx64 "-%" PRIx64, pid,
		 map->begin, map->end);
	fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY);
	if (fd >= 0 && ky_elf_read(fd, &info) && info.build_id_bytes <= sizeof(file->build_id)) {
		file->build_id_bytes = (uint8_t)info.build_id_bytes;
		memcpy(file->build_id, info.build_id, info.build_id_bytes);
	}
	if (fd >= 0)
		close(fd);
}

/* Its build id, from the cache or the file; empty where the file has none. */
static struct sample_file sample_file_of(struct ky_sample_processes *table, int32_t pid,
					 const struct ky_dump_map *map)
{
	uint64_t key = ky_hash_u64((uint64_t)map->major << 20 | map->minor) ^ map->inode;
	struct sample_file *file = ky_map_get(&table->files, key), none = {0};

	if (!map->inode)
		return none;
	if (file)
		return *file;
	sample_file_read(&none, pid, map);
	if (table->files.len >= FILES_MAX)
		return none;
	file = malloc(sizeof(*file));
	if (file)
		*file = none;
	if (file && ky_map_set(&table->files, key, file) < 0)
		free(file);
	return none;
}

static int sample_maps_add_line(struct ky_sample_processes *table, int32_t pid, char *line,
				struct ky_sample_maps *maps)
{
	struct ky_sample_map map;
	struct ky_dump_map found;
	struct sample_file file;

	if (!ky_dump_parse_map(line, &found) || !(found.protection & 4))
		return KYMO_OK;
	file = sample_file_of(table, pid, &found);
	map = (struct ky_sample_map){
		.begin = found.begin,
		.end = found.end,
		.offset = found.offset,
		.inode = found.inode,
		.device = found.major << 20 | (found.minor & 0xfffff),
		.protection = (uint8_t)found.protection,
		.build_id_bytes = file.build_id_bytes,
		.path = (char *)found.path,
	};
	memcpy(map.build_id, file.build_id, sizeof(map.build_id));
	return ky_sample_maps_add(maps, &map);
}

int ky_sample_process_find_maps(struct ky_sample_processes *table,
				struct ky_sample_process *process)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[64], *rest, *line;
	int ret = KYMO_OK;

	if (process->maps)
		return KYMO_OK;
	sample_process_set_maps(table, process, sample_maps_new());
	if (!process->maps)
		return KYMO_E_MEMORY;
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/maps", process->pid);
	if (ky_read_file(AT_FDCWD, path, MAPS_MAX_BYTES, &text) == -ENOMEM)
		ret = KYMO_E_MEMORY;
	for (rest = text.data; !ret && rest && (line = strsep(&rest, "\n"));)
		ret = sample_maps_add_line(table, process->pid, line, process->maps);
	ky_strbuf_fini(&text);
	return ret;
}

/* ---- records ------------------------------------------------------------------------------ */

/* A new process has what its parent has; nothing is known where that is not. */
static int sample_processes_inherit(struct ky_sample_processes *table, int32_t pid,
				    int32_t parent_pid)
{
	const struct ky_sample_process *parent =
		ky_map_get(&table->processes, (uint32_t)parent_pid);
	struct ky_sample_process *process = ky_sample_process(table, pid);

	if (!process)
		return KYMO_E_MEMORY;
	sample_process_set_maps(table, process, parent ? parent->maps : NULL);
	if (process->maps)
		process->maps->n_users++;
	return KYMO_OK;
}

int ky_sample_processes_fork(struct ky_sample_processes *table, int32_t pid, int32_t tid,
			     int32_t parent_pid, int32_t parent_tid)
{
	const struct ky_sample_thread *parent;
	struct ky_sample_thread *thread;
	bool is_new;

	/* Of those of other PID namespaces there are no ids. */
	if (pid <= 0 || tid <= 0)
		return KYMO_OK;
	parent = ky_sample_thread(table, parent_tid, parent_pid);
	thread = parent ? sample_thread_get(table, tid, pid, &is_new) : NULL;
	if (!thread)
		return KYMO_E_MEMORY;
	thread->pid = pid;
	thread->has_exited = false;
	thread->is_chosen = parent->is_chosen;
	memcpy(thread->comm, parent->comm, sizeof(thread->comm));
	return pid == parent_pid ? KYMO_OK : sample_processes_inherit(table, pid, parent_pid);
}

static void sample_processes_remove(struct ky_sample_processes *table, int32_t tid)
{
	struct ky_sample_thread *thread = ky_map_get(&table->threads, (uint32_t)tid);
	struct ky_sample_process *process;

	/* Its id may be that of another by now. */
	if (!thread || !thread->has_exited)
		return;
	(void)ky_map_del(&table->threads, (uint32_t)tid);
	/* Where other threads are left, the maps are in /proc. */
	process = tid == thread->pid ? ky_map_del(&table->processes, (uint32_t)tid) : NULL;
	if (process)
		sample_maps_release(process->maps);
	free(process);
	free(thread);
}

int ky_sample_processes_exit(struct ky_sample_processes *table, int32_t pid, int32_t tid)
{
	struct ky_sample_thread *thread = ky_map_get(&table->threads, (uint32_t)tid);

	(void)pid;
	if (!thread)
		return KYMO_OK;
	thread->has_exited = true;
	return ky_vec_push(&table->exiting, tid);
}

void ky_sample_processes_forget(struct ky_sample_processes *table)
{
	struct ky_sample_tids done = table->exited;

	ky_vec_foreach(&done, tid)
		sample_processes_remove(table, *tid);
	ky_vec_clear(&done);
	table->exited = table->exiting;
	table->exiting = done;
}

int ky_sample_processes_name(struct ky_sample_processes *table, int32_t pid, int32_t tid,
			     const char *comm, bool is_exec)
{
	struct ky_sample_process *process;
	struct ky_sample_maps *maps;
	struct ky_sample_thread *thread;
	bool is_new;

	thread = pid > 0 && tid > 0 ? sample_thread_get(table, tid, pid, &is_new) : NULL;
	if (!thread)
		return pid > 0 && tid > 0 ? KYMO_E_MEMORY : KYMO_OK;
	thread->pid = pid;
	thread->has_exited = false;
	sample_thread_set_name(thread, comm, strnlen(comm, KY_SAMPLE_COMM_BYTES));
	if (!is_exec)
		return KYMO_OK;
	process = ky_sample_process(table, pid);
	maps = process ? sample_maps_new() : NULL;
	if (!maps)
		return KYMO_E_MEMORY;
	sample_process_set_maps(table, process, maps);
	return KYMO_OK;
}

/* A process of which no record has told before. */
static int sample_processes_begin(struct ky_sample_processes *table, int32_t pid,
				  struct ky_sample_process **process)
{
	struct ky_sample_maps *maps;

	*process = ky_sample_process(table, pid);
	if (!*process || (*process)->maps)
		return *process ? KYMO_OK : KYMO_E_MEMORY;
	maps = sample_maps_new();
	if (!maps)
		return KYMO_E_MEMORY;
	sample_process_set_maps(table, *process, maps);
	return KYMO_OK;
}

int ky_sample_processes_map(struct ky_sample_processes *table, int32_t pid,
			    const struct ky_sample_map *map, uint64_t generation, bool *told)
{
	struct ky_sample_process *process =
		pid > 0 ? ky_map_get(&table->processes, (uint32_t)pid) : NULL;
	struct ky_sample_maps *maps;

	*told = false;
	if (pid > 0 && table->is_foreign && sample_processes_begin(table, pid, &process) < 0)
		return KYMO_E_MEMORY;
	/* The others have it in /proc, when they are sampled. */
	if (!process || !process->maps)
		return KYMO_OK;
	maps = sample_maps_own(process);
	if (!maps || ky_sample_maps_add(maps, map) < 0)
		return KYMO_E_MEMORY;
	if (map->path[0] == '/')
		process->version = ++table->n_versions;
	*told = process->told == generation;
	return KYMO_OK;
}
