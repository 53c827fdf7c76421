/* SPDX-License-Identifier: MIT */
#include "kernel/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

#define TEXT_MAX_BYTES	 16384
#define PF_WQ_WORKER	 0x00000020u
#define STAT_FIELD_PPID	 4 /* counted from 1, as proc(5) does */
#define STAT_FIELD_FLAGS 9
#define STAT_FIELD_PRIO	 18
#define STAT_FIELD_NICE	 19
#define STAT_FIELD_START 22
#define STAT_FIELD_CPU	 39
#define STAT_FIELD_STATE 3

int ky_proc_open(struct ky_proc *proc, struct kymo_error *err)
{
	int code;

	*proc = (struct ky_proc){.text = KY_STRBUF_INIT};
	proc->fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc->fd < 0 && errno != ENOENT && errno != ENOTDIR) {
		code = ky_error_errno(err, errno, "cannot open the process file system");
		ky_error_path(err, "/proc");
		return code;
	}
	/* A mount point that nothing is mounted on is an empty directory. */
	if (proc->fd >= 0 && faccessat(proc->fd, "self/stat", R_OK, 0) == 0)
		return KYMO_OK;
	ky_proc_close(proc);
	ky_error_set(err, KYMO_E_NOT_FOUND, "there is no process file system");
	ky_error_path(err, "/proc");
	ky_error_hint(err, "mount it: mount -t proc proc /proc");
	return KYMO_E_NOT_FOUND;
}

void ky_proc_close(struct ky_proc *proc)
{
	if (proc->fd >= 0)
		close(proc->fd);
	proc->fd = -1;
	ky_strbuf_fini(&proc->text);
}

static int proc_status_of(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ESRCH:
		return KYMO_E_NOT_FOUND;
	case EACCES:
	case EPERM:
		return KYMO_E_PERMISSION;
	case ENOMEM:
		return KYMO_E_MEMORY;
	default:
		return KYMO_E_IO;
	}
}

int ky_proc_numbers_open(const struct ky_proc *proc, const char *path,
			 struct ky_proc_numbers *numbers)
{
	numbers->dir = ky_dir_open(proc->fd, path);
	return numbers->dir ? KYMO_OK : proc_status_of(errno);
}

/* "123" and nothing else; -1 otherwise. */
static int32_t proc_parse_number(const char *name)
{
	int64_t value = 0;

	if (!*name)
		return -1;
	for (; *name; name++) {
		if (*name < '0' || *name > '9')
			return -1;
		value = value * 10 + (*name - '0');
		if (value > INT32_MAX)
			return -1;
	}
	return (int32_t)value;
}

int32_t ky_proc_numbers_next(struct ky_proc_numbers *numbers)
{
	struct dirent *entry;

	while ((entry = readdir(numbers->dir))) {
		int32_t number = proc_parse_number(entry->d_name);

		if (number >= 0)
			return number;
	}
	return -1;
}

void ky_proc_numbers_close(struct ky_proc_numbers *numbers)
{
	closedir(numbers->dir);
	numbers->dir = NULL;
}

/* ---- texts ------------------------------------------------------------------------------ */

/* Workers' names are shown with the work that they do or did last ("kworker/0:1-events"); the
 * scheduler's events have the part before it. */
static void cut_worker(char *comm, size_t size, const char *name, size_t len, uint32_t flags)
{
	if (flags & PF_WQ_WORKER && len > 8 && !memcmp(name, "kworker/", 8) &&
	    memcmp(name, "kworker/R-", len < 10 ? len : 10) != 0)
		for (size_t i = 8; i < len; i++)
			if (name[i] == '+' || name[i] == '-')
				len = i;
	if (len >= size)
		len = size - 1;
	memset(comm, 0, size);
	memcpy(comm, name, len);
}

static void take_stat_field(struct ky_proc_thread *thread, int field, const char *at)
{
	switch (field) {
	case STAT_FIELD_STATE:
		thread->state = *at;
		break;
	case STAT_FIELD_PPID:
		thread->ppid = (int32_t)strtol(at, NULL, 10);
		break;
	case STAT_FIELD_FLAGS:
		thread->flags = (uint32_t)strtoul(at, NULL, 10);
		break;
	case STAT_FIELD_PRIO:
		thread->prio = (int32_t)strtol(at, NULL, 10);
		break;
	case STAT_FIELD_NICE:
		thread->nice = (int32_t)strtol(at, NULL, 10);
		break;
	case STAT_FIELD_START:
		thread->start_ticks = strtoull(at, NULL, 10);
		break;
	case STAT_FIELD_CPU:
		thread->cpu = (uint32_t)strtoul(at, NULL, 10);
		break;
	}
}

int ky_proc_parse_stat(const char *text, size_t len, struct ky_proc_thread *thread)
{
	/* The name holds any character, ')' and line feeds too: its end is the last one. */
	const char *open_at = memchr(text, '(', len), *close_at = memrchr(text, ')', len);
	const char *at;
	int field = STAT_FIELD_STATE;

	if (!open_at || !close_at || close_at < open_at || text[len])
		return KYMO_E_FORMAT;
	thread->tid = (int32_t)strtol(text, NULL, 10);
	for (at = close_at + 1; field <= STAT_FIELD_CPU; field++) {
		if (at[0] != ' ' || !at[1])
			return KYMO_E_FORMAT;
		take_stat_field(thread, field, ++at);
		at += strcspn(at, " ");
	}
	cut_worker(thread->comm, sizeof(thread->comm), open_at + 1,
		   (size_t)(close_at - open_at - 1), thread->flags);
	return KYMO_OK;
}

/* The values of line "@key:\t1\t2..."; returns how many, at most @max. */
static unsigned int status_numbers(const char *text, const char *key, int64_t *values,
				   unsigned int max)
{
	size_t len = strlen(key);
	unsigned int n = 0;

	while (text && (strncmp(text, key, len) != 0 || text[len] != ':')) {
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	if (!text)
		return 0;
	text += len + 1;
	while (n < max) {
		char *end;

		text += strspn(text, " \t");
		/* strtoll() would skip line feeds and read the next line. */
		if (*text < '0' || *text > '9')
			break;
		values[n++] = strtoll(text, &end, 10);
		text = end;
	}
	return n;
}

static unsigned int status_pids(const char *text, const char *key, int32_t *pids)
{
	int64_t values[KY_PROC_MAX_LEVELS];
	unsigned int n = status_numbers(text, key, values, KY_PROC_MAX_LEVELS);

	for (unsigned int i = 0; i < n; i++)
		pids[i] = (int32_t)values[i];
	return n;
}

void ky_proc_parse_status(const char *text, struct ky_proc_ids *ids)
{
	unsigned int n_tgid, n;
	int64_t values[4];

	memset(ids, 0, sizeof(*ids));
	n = status_numbers(text, "Uid", values, 4);
	for (unsigned int i = 0; i < n; i++)
		ids->uids[i] = (uint32_t)values[i];
	n = status_numbers(text, "Gid", values, 4);
	for (unsigned int i = 0; i < n; i++)
		ids->gids[i] = (uint32_t)values[i];
	ids->uid = ids->uids[0];
	ids->gid = ids->gids[0];
	n_tgid = status_pids(text, "NStgid", ids->nstgid);
	ids->n_levels = status_pids(text, "NSpid", ids->nspid);
	if (n_tgid < ids->n_levels)
		ids->n_levels = n_tgid;
}

int ky_proc_parse_fdinfo(const char *text, uint32_t *flags)
{
	const char *at = !strncmp(text, "flags:", 6) ? text : strstr(text, "\nflags:");
	char *end;

	if (!at)
		return KYMO_E_FORMAT;
	at += *at == '\n' ? 7 : 6;
	at += strspn(at, " \t");
	*flags = (uint32_t)strtoul(at, &end, 8);
	return end == at ? KYMO_E_FORMAT : KYMO_OK;
}

/* ---- files ------------------------------------------------------------------------------ */

static int proc_read_text(struct ky_proc *proc, const char *path)
{
	int ret = ky_read_file(proc->fd, path, TEXT_MAX_BYTES, &proc->text);

	/* A longer file has what we want in its first part. */
	return ret < 0 && ret != -EFBIG ? proc_status_of(-ret) : KYMO_OK;
}

int ky_proc_read_thread(struct ky_proc *proc, int32_t pid, int32_t tid,
			struct ky_proc_thread *thread)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "%d/task/%d/stat", pid, tid);
	ret = proc_read_text(proc, path);
	if (ret < 0)
		return ret;
	memset(thread, 0, sizeof(*thread));
	thread->pid = pid;
	return ky_proc_parse_stat(ky_strbuf_text(&proc->text), proc->text.len, thread);
}

int ky_proc_read_ids(struct ky_proc *proc, int32_t pid, int32_t tid, struct ky_proc_ids *ids)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	ret = proc_read_text(proc, path);
	if (ret == KYMO_OK)
		ky_proc_parse_status(ky_strbuf_text(&proc->text), ids);
	return ret;
}

int ky_proc_read_fd(struct ky_proc *proc, int32_t pid, int32_t tid, int32_t fd,
		    struct ky_proc_fd *out)
{
	char path[80];
	ssize_t len;
	int ret;

	snprintf(path, sizeof(path), "%d/task/%d/fd/%d", pid, tid, fd);
	len = readlinkat(proc->fd, path, out->path, sizeof(out->path) - 1);
	if (len < 0 &&
	    errno ==
		    ENAMETOOLONG) /* the kernel says paths of a page; the file is open all the same */
		len = snprintf(out->path, sizeof(out->path), "(too long)");
	if (len < 0)
		return proc_status_of(errno);
	out->path[len] = '\0';
	out->fd = fd;
	snprintf(path, sizeof(path), "%d/task/%d/fdinfo/%d", pid, tid, fd);
	ret = proc_read_text(proc, path);
	return ret < 0 ? ret : ky_proc_parse_fdinfo(ky_strbuf_text(&proc->text), &out->flags);
}

uint32_t ky_proc_ns(const struct ky_proc *proc, int32_t pid, int32_t tid, const char *kind)
{
	char path[80], link[64];
	const char *inode;
	ssize_t len;

	snprintf(path, sizeof(path), "%d/task/%d/ns/%s", pid, tid, kind);
	len = readlinkat(proc->fd, path, link, sizeof(link) - 1);
	if (len < 0)
		return 0;
	link[len] = '\0';
	inode = strchr(link, '[');
	return inode ? (uint32_t)strtoul(inode + 1, NULL, 10) : 0;
}
