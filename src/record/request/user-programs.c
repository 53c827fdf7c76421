/* SPDX-License-Identifier: MIT */
/* Looking through /proc for programs that link libkymo-trace. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/memfd.h"
#include "record/request/user-program.h"

/* Control files of one process: its own, and one of each library that brings the tracer along. */
#define PROCESS_FILES_MAX 64
#define STATUS_BYTES_MAX  65536
#define MAPS_BYTES_MAX	  (16u << 20)
#define MEMFD_PREFIX	  "/memfd:" KY_CONTROL_MEMFD
/* Each takes a descriptor, of which others need some, too. */
#define PROGRAMS_MAX 8192u
/* When there are so many, those that have gone make way. */
#define PROGRAMS_MANY 256
/* Of one user's programs: what they say of their events. */
#define TABLES_BYTES_MAX (64u << 20)

/* ---- finding them --------------------------------------------------------------------- */

uint32_t ky_program_inner_pid(pid_t pid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *line, *end;
	uint32_t inner = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (ky_read_file(AT_FDCWD, path, STATUS_BYTES_MAX, &text) == 0 &&
	    (line = strstr(ky_strbuf_text(&text), "\nNSpid:"))) {
		end = line + 1 + strcspn(line + 1, "\n");
		while (end > line && end[-1] != '\t' && end[-1] != ' ')
			end--;
		inner = (uint32_t)strtoul(end, NULL, 10);
	}
	ky_strbuf_fini(&text);
	return inner;
}

/* Programs that may make few system calls would be killed by those of the library. */
static bool has_seccomp(int proc_fd)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *line;
	bool has = false;

	if (ky_read_file(proc_fd, "status", STATUS_BYTES_MAX, &text) == 0) {
		line = strstr(ky_strbuf_text(&text), "\nSeccomp:");
		has = line && strtol(line + 9, NULL, 10) > 0;
	}
	ky_strbuf_fini(&text);
	return has;
}

/* Programs put themselves into a sandbox at any time. */
static void look_for_sandbox(struct ky_program *program, int proc_fd)
{
	if (program->is_sandboxed || !has_seccomp(proc_fd))
		return;
	program->is_sandboxed = true;
	if (!program->blocked)
		program->blocked = "it runs under seccomp, which may forbid the system calls that "
				   "tracing needs";
}

/* ---- what there is room for ----------------------------------------------------------- */

static uint64_t programs_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return limit.rlim_cur / 4 < PROGRAMS_MAX ? limit.rlim_cur / 4 : PROGRAMS_MAX;
}

/* One user gets at most half of what others leave, so that later users always get some. */
static bool user_programs_has_room(const struct ky_programs *programs, uid_t uid)
{
	uint64_t room = programs_max(), own = 0, others = 0;

	for (size_t i = 0; i < programs->list.len; i++) {
		if (programs->list.data[i]->uid == uid)
			own++;
		else
			others++;
	}
	room = room > others ? room - others : 0;
	return own < (programs->uids.len <= 1 ? room : room / 2 + (room & 1));
}

/* Those that were not there when they were looked for last. */
static void forget_gone(struct ky_programs *programs)
{
	size_t n = 0;

	if (programs->list.len < PROGRAMS_MANY)
		return;
	ky_vec_foreach(&programs->list, it) {
		if ((*it)->is_seen)
			programs->list.data[n++] = *it;
		else
			ky_program_free(*it);
	}
	programs->list.len = n;
}

static void refuse_tables(struct ky_program *program)
{
	free(program->table);
	program->table = NULL;
	program->table_bytes = 0;
	if (!program->blocked)
		program->blocked = "the programs of its user have too many descriptions of "
				   "events";
}

int ky_programs_read_table(struct ky_programs *programs, struct ky_program *program,
			   struct kymo_error *err)
{
	int ret = ky_program_read_table(program, err);
	uint64_t bytes = 0;

	ky_vec_foreach(&programs->list, it)
		bytes += (*it)->uid == program->uid ? (*it)->table_bytes : 0;
	if (bytes > TABLES_BYTES_MAX)
		refuse_tables(program);
	return ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

/* ---- processes ------------------------------------------------------------------------ */

static int add_program(struct ky_programs *programs, pid_t pid, int proc_fd, int fd,
		       struct kymo_error *err)
{
	struct ky_program *program;
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0) {
		close(fd);
		return KYMO_OK;
	}
	ky_vec_foreach(&programs->list, it) {
		if ((*it)->device == st.st_dev && (*it)->inode == st.st_ino) {
			(*it)->is_seen = true;
			look_for_sandbox(*it, proc_fd);
			close(fd);
			return KYMO_OK;
		}
	}
	if (!user_programs_has_room(programs, st.st_uid)) {
		programs->n_refused++;
		close(fd);
		return KYMO_OK;
	}
	ret = ky_program_open(fd, &program, err);
	if (ret == KYMO_E_MEMORY)
		return ret;
	if (ret < 0)
		return KYMO_OK;
	program->pid = pid;
	program->is_seen = true;
	look_for_sandbox(program, proc_fd);
	if (ky_vec_push(&programs->list, program) < 0) {
		ky_program_free(program);
		return ky_error_nomem(err);
	}
	return ky_programs_read_table(programs, program, err);
}

/* Its control files among the open ones. Returns how many, or negative. */
static int scan_fds(struct ky_programs *programs, pid_t pid, int proc_fd, struct kymo_error *err)
{
	DIR *dir = ky_dir_open(proc_fd, "fd");
	int found = 0, fd, ret;
	struct dirent *entry;
	char target[64];
	ssize_t len;

	if (!dir) {
		programs->n_denied += errno == EACCES || errno == EPERM;
		return 0;
	}
	while (found < PROCESS_FILES_MAX && (entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));
		if (len < (ssize_t)sizeof(MEMFD_PREFIX) - 1 ||
		    memcmp(target, MEMFD_PREFIX, sizeof(MEMFD_PREFIX) - 1) != 0)
			continue;
		fd = ky_memfd_open(programs->memfd_device, dirfd(dir), entry->d_name,
				   KY_CONTROL_BYTES, O_RDWR);
		if (fd < 0)
			continue;
		found++;
		ret = add_program(programs, pid, proc_fd, fd, err);
		if (ret < 0) {
			closedir(dir);
			return ret;
		}
	}
	closedir(dir);
	return found;
}

/* Daemons close all their files; what they mapped is still there (root may open that). */
static int scan_maps(struct ky_programs *programs, pid_t pid, int proc_fd, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int fd, ret = KYMO_OK;
	const char *line;
	char name[64];

	ret = ky_read_file(proc_fd, "maps", MAPS_BYTES_MAX, &text) == -ENOMEM ? ky_error_nomem(err)
									      : KYMO_OK;
	line = strstr(ky_strbuf_text(&text), MEMFD_PREFIX);
	if (!ret && line) {
		while (line > text.data && line[-1] != '\n')
			line--;
		snprintf(name, sizeof(name), "map_files/%.*s", (int)strcspn(line, " "), line);
		fd = ky_memfd_open(programs->memfd_device, proc_fd, name, KY_CONTROL_BYTES, O_RDWR);
		if (fd >= 0)
			ret = add_program(programs, pid, proc_fd, fd, err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

static int add_uid(struct ky_programs *programs, uid_t added, struct kymo_error *err)
{
	ky_vec_foreach(&programs->uids, uid) {
		if (*uid == added)
			return KYMO_OK;
	}
	return ky_vec_push(&programs->uids, added) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int user_programs_scan_process(struct ky_programs *programs, pid_t pid, int proc,
				      struct kymo_error *err)
{
	int fd, ret = KYMO_OK;
	struct stat st;
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return KYMO_OK;
	if (fstat(fd, &st) == 0)
		ret = add_uid(programs, st.st_uid, err);
	if (!ret)
		ret = scan_fds(programs, pid, fd, err);
	if (ret == 0)
		ret = scan_maps(programs, pid, fd, err);
	close(fd);
	return ret < 0 ? ret : KYMO_OK;
}

static void begin_scan(struct ky_programs *programs)
{
	forget_gone(programs);
	programs->n_denied = programs->n_refused = 0;
	programs->memfd_device = ky_memfd_device();
	ky_vec_foreach(&programs->list, it)
		(*it)->is_seen = false;
}

/* 0: there are no more. */
static pid_t next_process(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0])
				    ? (pid_t)strtol(entry->d_name, NULL, 10)
				    : 0;

		if (pid > 0)
			return pid;
	}
	return 0;
}

static int open_processes(DIR **dir, struct kymo_error *err)
{
	*dir = ky_dir_open(AT_FDCWD, "/proc");
	return *dir ? KYMO_OK : ky_error_errno(err, errno, "cannot look through /proc");
}

int ky_programs_scan(struct ky_programs *programs, struct kymo_error *err)
{
	DIR *dir;
	int ret = open_processes(&dir, err);
	pid_t pid;

	if (ret < 0)
		return ret;
	begin_scan(programs);
	while (ret == KYMO_OK && (pid = next_process(dir))) {
		if (pid != getpid())
			ret = user_programs_scan_process(programs, pid, dirfd(dir), err);
	}
	closedir(dir);
	return ret;
}

int ky_programs_scan_pids(struct ky_programs *programs, const pid_t *pids, size_t n,
			  struct kymo_error *err)
{
	DIR *dir;
	int ret = open_processes(&dir, err);

	if (ret < 0)
		return ret;
	begin_scan(programs);
	for (size_t i = 0; i < n && !ret; i++)
		ret = user_programs_scan_process(programs, pids[i], dirfd(dir), err);
	closedir(dir);
	/* A process that may not be examined belongs to root, as /proc has it. */
	ky_vec_foreach(&programs->list, it) {
		if (!ret && (*it)->is_seen)
			ret = add_uid(programs, (*it)->uid, err);
	}
	return ret;
}

int ky_programs_find_uids(struct ky_programs *programs, struct kymo_error *err)
{
	DIR *dir;
	int ret = open_processes(&dir, err);
	struct stat st;
	char name[16];
	pid_t pid;

	if (ret < 0)
		return ret;
	while (ret == KYMO_OK && (pid = next_process(dir))) {
		snprintf(name, sizeof(name), "%d", (int)pid);
		if (fstatat(dirfd(dir), name, &st, 0) == 0)
			ret = add_uid(programs, st.st_uid, err);
	}
	closedir(dir);
	return ret;
}

void ky_programs_fini(struct ky_programs *programs)
{
	ky_vec_foreach(&programs->list, it)
		ky_program_free(*it);
	ky_vec_fini(&programs->list);
	ky_vec_fini(&programs->uids);
}
