/* SPDX-License-Identifier: MIT */
/*
 * The state model's files: what each process' descriptors refer to. A descriptor's entry is its file,
 * with the lowest bit set where an exec closes it. What was open before the trace, and no state
 * dump tells, gets a name that says so when it is first used.
 */
#include "analysis/state/model-internal.h"

#include <stdio.h>
#include <string.h>

struct ky_fds {
	struct ky_map map; /* fd -> file, tagged */
};

struct ky_proc {
	int32_t pid;
	struct ky_fds *fds;
	bool shared; /* a state dump's table, which may be several processes' */
	/* When the last one of these has ended, and the first thread too, the table goes. */
	uint32_t n_threads; /* those that are known to be of it */
	bool lost_leader;
};

#define CLOEXEC_TAG ((uintptr_t)1)

static void *tag(struct ky_file *file, bool cloexec)
{
	return (void *)((uintptr_t)file | (cloexec ? CLOEXEC_TAG : 0));
}

static struct ky_file *untag(void *value)
{
	return (struct ky_file *)((uintptr_t)value & ~CLOEXEC_TAG);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool model_files_begins(const char *name, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && memcmp(name, with, n) == 0;
}

enum ky_file_kind ky_file_kind_of(const char *name, size_t len)
{
	if (model_files_begins(name, len, "socket:"))
		return KY_FILE_UNKNOWN;
	if (model_files_begins(name, len, "pipe:"))
		return KY_FILE_PIPE;
	if (model_files_begins(name, len, "/dev/") || model_files_begins(name, len, "/proc/") ||
	    model_files_begins(name, len, "/sys/") ||
	    model_files_begins(name, len, "anon_inode:") ||
	    model_files_begins(name, len, "/memfd:") || model_files_begins(name, len, "[") ||
	    model_files_begins(name, len, "inotify") || model_files_begins(name, len, "/[aio]"))
		return KY_FILE_OTHER;
	return KY_FILE_DISK;
}

struct ky_file *ky_file_get(struct ky_model *model, struct ky_host *host, const char *name,
			    size_t len, enum ky_file_kind kind)
{
	struct ky_file *file = ky_names_getn(&host->state->files, name, len);

	if (file)
		return file;
	file = ky_arena_new(&model->arena, struct ky_file);
	if (!file)
		return NULL;
	*file = (struct ky_file){
		.index = (uint32_t)model->files.len,
		.kind = kind,
		.name = ky_arena_strndup(&model->arena, name, len),
		.host = host,
	};
	if (!file->name || ky_vec_push(&model->files, file) < 0 ||
	    ky_names_set(&host->state->files, file->name, file) < 0)
		return NULL;
	return file;
}

/* ---- processes ----------------------------------------------------------------------------- */

static struct ky_fds *fds_new(void)
{
	struct ky_fds *fds = calloc(1, sizeof(*fds));

	if (fds)
		ky_map_init(&fds->map);
	return fds;
}

static void fds_free(struct ky_fds *fds)
{
	if (!fds)
		return;
	ky_map_fini(&fds->map);
	free(fds);
}

/* A thread whose process is not known is one of its own. */
static int32_t pid_of(const struct ky_thread *thread)
{
	return thread->pid >= 0 ? thread->pid : thread->tid;
}

struct ky_proc *ky_proc_of(struct ky_model *model, struct ky_thread *thread)
{
	int32_t pid = pid_of(thread);
	struct ky_proc *proc = thread->proc;

	if (proc && proc->pid == pid && proc->fds)
		return proc;
	proc = ky_map_get(&thread->host->state->procs, (uint32_t)pid);
	if (!proc) {
		proc = ky_arena_new(&model->arena, struct ky_proc);
		if (!proc)
			return NULL;
		proc->pid = pid;
		if (ky_map_set(&thread->host->state->procs, (uint32_t)pid, proc) < 0)
			return NULL;
	}
	if (!proc->fds)
		proc->fds = fds_new();
	if (!proc->fds)
		return NULL;
	if (thread->proc)
		thread->proc->n_threads--;
	proc->n_threads++;
	thread->proc = proc;
	return proc;
}

static void set_fds(struct ky_proc *proc, struct ky_fds *fds, bool shared)
{
	if (!proc->shared)
		fds_free(proc->fds);
	proc->fds = fds;
	proc->shared = shared;
}

/* From here on @proc changes a table of its own. */
static int copy_fds(struct ky_proc *proc, const struct ky_fds *from)
{
	struct ky_fds *fds = fds_new();
	size_t pos = 0;
	uint64_t fd;
	void *value;

	if (!fds)
		return KYMO_E_MEMORY;
	while (from && ky_map_next(&from->map, &pos, &fd, &value)) {
		if (ky_map_set(&fds->map, fd, value) < 0) {
			fds_free(fds);
			return KYMO_E_MEMORY;
		}
	}
	set_fds(proc, fds, false);
	return 0;
}

/* ---- descriptors --------------------------------------------------------------------------- */

/* A descriptor of which nothing is known until it is used; NULL: out of memory. */
static struct ky_file *new_unknown(struct ky_model *model, struct ky_host *host, int32_t pid,
				   int32_t fd)
{
	const char *foreseen;
	struct ky_file *file;
	char name[64];
	int len = snprintf(name, sizeof(name), "fd %d of %d", fd, pid);

	file = ky_file_get(model, host, name, (size_t)len, KY_FILE_UNKNOWN);
	if (!file)
		return NULL;
	file->pid = pid;
	file->fd = fd;
	file->n_uses++;
	foreseen = ky_file_foreseen(model, file);
	if (!foreseen)
		return file;
	return ky_file_get(model, host, foreseen, strlen(foreseen),
			   ky_file_kind_of(foreseen, strlen(foreseen)));
}

int ky_fd_get(struct ky_model *model, struct ky_thread *thread, int64_t fd, struct ky_file **file)
{
	struct ky_proc *proc = ky_proc_of(model, thread);

	*file = NULL;
	if (!proc)
		return KYMO_E_MEMORY;
	if (fd < 0 || fd > INT32_MAX)
		return 0;
	*file = untag(ky_map_get(&proc->fds->map, (uint64_t)fd));
	if (*file)
		return 0;
	*file = new_unknown(model, thread->host, proc->pid, (int32_t)fd);
	return *file ? ky_map_set(&proc->fds->map, (uint64_t)fd, tag(*file, false)) : KYMO_E_MEMORY;
}

int ky_fd_set(struct ky_model *model, struct ky_thread *thread, int64_t fd, struct ky_file *file,
	      bool cloexec)
{
	struct ky_proc *proc = ky_proc_of(model, thread);

	if (!proc)
		return KYMO_E_MEMORY;
	if (fd < 0 || fd > INT32_MAX)
		return 0;
	return ky_map_set(&proc->fds->map, (uint64_t)fd, tag(file, cloexec));
}

int ky_fd_set_cloexec(struct ky_model *model, struct ky_thread *thread, int64_t fd, bool cloexec)
{
	struct ky_file *file;
	int status = ky_fd_get(model, thread, fd, &file);

	return status < 0 || !file ? status : ky_fd_set(model, thread, fd, file, cloexec);
}

int ky_fd_close(struct ky_model *model, struct ky_thread *thread, uint64_t first, uint64_t last)
{
	struct ky_proc *proc = ky_proc_of(model, thread);
	size_t pos = 0;
	uint64_t fd;
	void *value;

	if (!proc)
		return KYMO_E_MEMORY;
	if (first == last) {
		ky_map_del(&proc->fds->map, first);
		return 0;
	}
	/* The table may be smaller than the range; removing moves entries, so begin anew each time. */
	while (ky_map_next(&proc->fds->map, &pos, &fd, &value)) {
		if (fd < first || fd > last)
			continue;
		ky_map_del(&proc->fds->map, fd);
		pos = 0;
	}
	return 0;
}

/* ---- lives of processes --------------------------------------------------------------------- */

/* A thread of a process that has others: it is counted now, as it may use files when those have ended. */
static int model_files_join(struct ky_model *model, struct ky_thread *thread)
{
	return ky_proc_of(model, thread) ? 0 : KYMO_E_MEMORY;
}

int ky_files_fork(struct ky_model *model, struct ky_thread *parent, struct ky_thread *child)
{
	struct ky_proc *from, *to;

	/* sched_process_fork and task_newtask tell of it twice. */
	if (child->proc)
		return 0;
	/* A thread shares its process' files. */
	if (child->pid != child->tid)
		return child->pid >= 0 && child->pid == parent->pid ? model_files_join(model, child)
								    : 0;
	from = ky_proc_of(model, parent);
	to = ky_proc_of(model, child);
	if (!from || !to)
		return KYMO_E_MEMORY;
	to->lost_leader = false;
	return copy_fds(to, from->fds);
}

void ky_files_exec(struct ky_thread *thread)
{
	struct ky_proc *proc = thread->proc;
	size_t pos = 0;
	uint64_t fd;
	void *value;

	if (!proc || !proc->fds)
		return;
	proc->lost_leader = false; /* it is that now */
	while (ky_map_next(&proc->fds->map, &pos, &fd, &value)) {
		if (!((uintptr_t)value & CLOEXEC_TAG))
			continue;
		ky_map_del(&proc->fds->map, fd);
		pos = 0;
	}
}

void ky_files_exit(struct ky_thread *thread)
{
	struct ky_proc *proc = thread->proc;

	if (proc)
		proc->n_threads--;
	else /* it used no file; others of its process may have */
		proc = ky_map_get(&thread->host->state->procs, (uint32_t)pid_of(thread));
	thread->proc = NULL;
	if (!proc)
		return;
	proc->lost_leader |= proc->pid == thread->tid;
	/* Not with the leader: others may go on (pthread_exit() in main()). */
	if (proc->lost_leader && !proc->n_threads)
		set_fds(proc, NULL, false);
}

/* ---- descriptors that a dump tells of when they have been used -------------------------------- */

/* @from is no longer a separate table: events of @to may complete its unknown entries. */
static int keep_unknown(struct ky_fds *to, const struct ky_fds *from)
{
	size_t pos = 0;
	uint64_t fd;
	void *value;

	while (from && ky_map_next(&from->map, &pos, &fd, &value))
		if (untag(value)->n_uses && !ky_map_get(&to->map, fd) &&
		    ky_map_set(&to->map, fd, value) < 0)
			return KYMO_E_MEMORY;
	return 0;
}

/* What a thread used before its process was known is the process'. */
static int find_unknown(struct ky_model *model, const struct ky_proc *was, const struct ky_proc *is)
{
	size_t pos = 0;
	uint64_t fd;
	void *value;
	int status = 0;

	while (!status && ky_map_next(&was->fds->map, &pos, &fd, &value)) {
		const struct ky_file *known = untag(ky_map_get(&is->fds->map, fd));

		if (known)
			status = ky_file_found(model, untag(value), was->pid, known);
	}
	return status;
}

static int join_late(struct ky_model *model, struct ky_thread *thread)
{
	const struct ky_proc *was = thread->proc;
	struct ky_proc *is = ky_proc_of(model, thread);

	if (!is)
		return KYMO_E_MEMORY;
	return was && was != is && was->fds && ky_files_dump_is_late(thread->host)
		       ? find_unknown(model, was, is)
		       : 0;
}

/* ---- the state dump -------------------------------------------------------------------------- */

static struct ky_fds *table_at(struct ky_host *host, uint64_t address)
{
	struct ky_fds *fds = ky_map_get(&host->state->tables, address);

	if (fds)
		return fds;
	fds = fds_new();
	if (fds && ky_map_set(&host->state->tables, address, fds) < 0) {
		fds_free(fds);
		return NULL;
	}
	return fds;
}

int ky_files_dump(struct ky_model *model, struct ky_thread *thread, uint64_t table)
{
	struct ky_fds *fds;
	struct ky_proc *proc;

	if (thread->pid != thread->tid)
		return thread->pid >= 0 ? join_late(model, thread) : 0;
	if (!table)
		return 0;
	proc = ky_proc_of(model, thread);
	fds = proc ? table_at(thread->host, table) : NULL;
	if (!fds)
		return KYMO_E_MEMORY;
	if (proc->fds == fds)
		return 0;
	if (ky_files_dump_is_late(thread->host) && keep_unknown(fds, proc->fds) < 0)
		return KYMO_E_MEMORY;
	set_fds(proc, fds, true);
	return 0;
}

int ky_on_dump_fd(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	uint64_t table = ky_get_u64(event, &info->fields[KY_DUMP_FD_TABLE], 0);
	int32_t pid = (int32_t)ky_get_i64(event, &info->fields[KY_DUMP_FD_PID], KY_UNKNOWN);
	int64_t fd = ky_get_i64(event, &info->fields[KY_DUMP_FD], -1);
	bool cloexec = ky_get_u64(event, &info->fields[KY_DUMP_FD_FLAGS], 0) & 02000000;
	struct ky_thread *thread;
	struct ky_file *file;
	struct ky_fds *fds;
	size_t len;
	const char *name = ky_get_text(event, &info->fields[KY_DUMP_FD_NAME], &len);

	if (fd < 0 || fd > INT32_MAX || (!table && pid < 0))
		return 0;
	file = ky_file_get(feed->model, feed->host, name, len, ky_file_kind_of(name, len));
	if (!file)
		return KYMO_E_MEMORY;
	if (!table) {
		thread = ky_model_thread_get(feed->model, feed->host, pid);
		return thread ? ky_fd_set(feed->model, thread, fd, file, cloexec) : KYMO_E_MEMORY;
	}
	fds = table_at(feed->host, table);
	if (!fds ||
	    ky_file_found(feed->model, untag(ky_map_get(&fds->map, (uint64_t)fd)), pid, file) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&fds->map, (uint64_t)fd, tag(file, cloexec));
}

static void free_procs(struct ky_host_state *state)
{
	size_t pos = 0;
	uint64_t key;
	void *value;

	while (ky_map_next(&state->procs, &pos, &key, &value))
		set_fds(value, NULL, false);
	pos = 0;
	while (ky_map_next(&state->tables, &pos, &key, &value))
		fds_free(value);
	ky_map_fini(&state->procs);
	ky_map_fini(&state->tables);
	ky_names_fini(&state->files);
}

void ky_files_fini(struct ky_model *model)
{
	ky_vec_foreach(&model->hosts, host) {
		if ((*host)->state)
			free_procs((*host)->state);
	}
}
