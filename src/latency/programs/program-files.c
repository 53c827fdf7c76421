/* SPDX-License-Identifier: MIT */
#include "latency/programs/program-files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "os/file.h"
#include "os/memfd.h"
#include "os/now.h"
#include "record/request/user-program.h"

#define MEMFD_PREFIX	  "/memfd:" KY_LATENCY_MEMFD
#define MAPS_BYTES_MAX	  (16u << 20)
#define FILES_MAX	  1024
#define USER_FILES_MAX	  256
#define PROCESS_FILES_MAX 8
/*
 * To look at the mappings of all processes costs some milliseconds. A process makes its file at its first pair, so young ones
 * are looked at when they have become twice as old, and all from time to time.
 */
#define LOOK_NS	 90000000u
#define ALL_NS	 5000000000u
#define YOUNG_MS 5000u

/* Whose mappings are looked at: of those that have become twice as old; or of all that are young, or of all processes. */
enum look { LOOK_AT_SOME, LOOK_AT_YOUNG, LOOK_AT_ALL };

static void program_file_free(struct ky_program_file *file)
{
	for (size_t i = 0; i < KY_LATENCY_TRACKERS_MAX; i++)
		free(file->last[i]);
	close(file->fd);
	free(file);
}

void ky_program_files_fini(struct ky_program_files *files)
{
	ky_vec_foreach(&files->list, file)
		program_file_free(*file);
	ky_vec_fini(&files->list);
	ky_map_fini(&files->processes);
}

/* ---- a file ------------------------------------------------------------------------------- */

static bool has_room(const struct ky_program_files *files, uid_t uid)
{
	size_t n = 0;

	ky_vec_foreach(&files->list, file)
		n += (*file)->uid == uid;
	return n < USER_FILES_MAX && files->list.len < FILES_MAX;
}

/* Is it that of @pid itself, not one that a forked child has from its parent? */
static bool is_own(int fd, pid_t pid, uint64_t *created_ns)
{
	struct ky_latency_head head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return false;
	*created_ns = head.created_ns;
	return head.magic == KY_LATENCY_FILE_MAGIC && head.version == KY_LATENCY_FILE_VERSION &&
	       head.pid == ky_program_inner_pid(pid);
}

bool ky_program_comm(pid_t pid, char comm[KY_LATENCY_COMM_BYTES])
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[32];
	size_t len;
	bool has;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	has = ky_read_file(AT_FDCWD, path, 64, &text) == 0;
	len = strcspn(ky_strbuf_text(&text), "\n");
	if (has) {
		memset(comm, 0, KY_LATENCY_COMM_BYTES);
		memcpy(comm, ky_strbuf_text(&text),
		       len < KY_LATENCY_COMM_BYTES ? len : KY_LATENCY_COMM_BYTES - 1);
	}
	ky_strbuf_fini(&text);
	return has;
}

/* The descriptor becomes the set's. */
static int program_files_add(struct ky_program_files *files, pid_t pid, int fd)
{
	struct ky_program_file *file;
	uint64_t created_ns;
	struct stat st;

	if (fstat(fd, &st) < 0 || !is_own(fd, pid, &created_ns)) {
		close(fd);
		return KYMO_OK;
	}
	ky_vec_foreach(&files->list, it)
		if ((*it)->device == st.st_dev && (*it)->inode == st.st_ino) {
			(*it)->is_seen = true;
			(void)ky_program_comm((*it)->pid, (*it)->comm);
			close(fd);
			return KYMO_OK;
		}
	file = has_room(files, st.st_uid) ? calloc(1, sizeof(*file)) : NULL;
	if (!file || ky_vec_push(&files->list, file) < 0) {
		files->n_lost++;
		close(fd);
		free(file);
		return KYMO_OK;
	}
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->fd = fd;
	file->pid = pid;
	file->uid = st.st_uid;
	file->is_seen = true;
	file->is_fresh = created_ns >= files->begin_ns;
	(void)ky_program_comm(pid, file->comm);
	return KYMO_OK;
}

/* ---- processes ----------------------------------------------------------------------------- */

/* A library that is linked statically with the tracer has a file, too. */
static int look_at_maps(struct ky_program_files *files, pid_t pid, int proc_fd)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *at;
	char name[64];
	int n = 0, ret = KYMO_OK;

	if (ky_read_file(proc_fd, "maps", MAPS_BYTES_MAX, &text) == -ENOMEM)
		ret = KYMO_E_MEMORY;
	for (at = ky_strbuf_text(&text); !ret && n < PROCESS_FILES_MAX; at++, n++) {
		const char *line = at = strstr(at, MEMFD_PREFIX);
		int fd;

		if (!at)
			break;
		while (line > text.data && line[-1] != '\n')
			line--;
		snprintf(name, sizeof(name), "map_files/%.*s", (int)strcspn(line, " "), line);
		fd = ky_memfd_open(files->device, proc_fd, name, sizeof(struct ky_latency_file),
				   O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			ret = program_files_add(files, pid, fd);
	}
	ky_strbuf_fini(&text);
	return ret;
}

static int look_at_process(struct ky_program_files *files, int proc, const char *name)
{
	int fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return KYMO_OK;
	ret = look_at_maps(files, (pid_t)strtol(name, NULL, 10), fd);
	close(fd);
	return ret;
}

/* When a process was seen first, and looked at last: ms since the beginning. It is never 0. */
struct seen {
	uint32_t first_ms, last_ms;
};

static struct seen get_seen(const struct ky_map *processes, pid_t pid)
{
	uintptr_t packed = (uintptr_t)ky_map_get(processes, (uint64_t)pid);

	return (struct seen){(uint32_t)(packed >> 32), (uint32_t)packed};
}

static int set_seen(struct ky_map *processes, pid_t pid, struct seen seen)
{
	uintptr_t packed = (uintptr_t)seen.first_ms << 32 | seen.last_ms;

	return ky_map_set(processes, (uint64_t)pid, (void *)packed); // NOLINT
}

static int look_at_entry(struct ky_program_files *files, int proc, const char *name,
			 struct ky_map *processes, uint32_t now_ms, enum look look)
{
	pid_t pid = isdigit((unsigned char)name[0]) ? (pid_t)strtol(name, NULL, 10) : 0;
	struct seen seen;
	int ret = KYMO_OK;

	if (pid <= 0 || pid == getpid() || (files->only_pid && pid != files->only_pid))
		return KYMO_OK;
	seen = get_seen(&files->processes, pid);
	if (!seen.last_ms)
		seen = (struct seen){now_ms, 0};
	if (look == LOOK_AT_ALL || !seen.last_ms ||
	    now_ms - seen.last_ms >= seen.last_ms - seen.first_ms ||
	    (look == LOOK_AT_YOUNG && now_ms - seen.first_ms < YOUNG_MS)) {
		seen.last_ms = now_ms;
		ret = look_at_process(files, proc, name);
	}
	return ret < 0 ? ret : set_seen(processes, pid, seen);
}

static int look_at_all(struct ky_program_files *files, DIR *dir, uint64_t now_ns, enum look look)
{
	uint32_t now_ms = (uint32_t)((now_ns - files->begin_ns) / 1000000) | 1;
	struct ky_map processes = {0};
	struct dirent *entry;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && (entry = readdir(dir)))
		ret = look_at_entry(files, dirfd(dir), entry->d_name, &processes, now_ms, look);
	ky_map_fini(&files->processes);
	files->processes = processes;
	return ret;
}

int ky_program_files_look(struct ky_program_files *files, bool is_last, struct kymo_error *err)
{
	uint64_t now_ns = (uint64_t)ky_os_time_ns(CLOCK_MONOTONIC);
	bool is_full;
	DIR *dir;
	int ret;

	if (!files->begin_ns)
		files->begin_ns = now_ns;
	if (!is_last && files->looked_ns && now_ns - files->looked_ns < LOOK_NS)
		return KYMO_OK;
	dir = ky_dir_open(AT_FDCWD, "/proc");
	if (!dir)
		return ky_error_errno(err, errno, "cannot look through /proc");
	is_full = !files->looked_ns || now_ns - files->all_ns >= ALL_NS;
	if (!files->device)
		files->device = ky_memfd_device();
	ky_vec_foreach(&files->list, file)
		(*file)->is_seen &= !is_full;
	ret = look_at_all(files, dir, now_ns,
			  is_full   ? LOOK_AT_ALL
			  : is_last ? LOOK_AT_YOUNG
				    : LOOK_AT_SOME);
	closedir(dir);
	ky_vec_foreach(&files->list, file)
		(*file)->is_seen &= ky_map_get(&files->processes, (uint64_t)(*file)->pid) != NULL;
	files->looked_ns = now_ns;
	files->all_ns = is_full ? now_ns : files->all_ns;
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

void ky_program_files_sweep(struct ky_program_files *files)
{
	size_t n = 0;

	ky_vec_foreach(&files->list, file) {
		if ((*file)->is_seen) {
			files->list.data[n++] = *file;
			continue;
		}
		files->n_lost += (*file)->n_lost - (*file)->n_lost_before;
		program_file_free(*file);
	}
	files->list.len = n;
}
