/* SPDX-License-Identifier: MIT */
#include "kernel/process/thread-ids.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include "os/file.h"

#define CGROUP_TEXT_BYTES 16384

/* Where version 2 is mounted: alone, or beside version 1. NULL: nowhere. */
static const char *find_cgroup_root(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < 2; i++)
		if (statfs(roots[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return roots[i];
	return NULL;
}

static const char *cgroup_root(struct ky_proc *proc)
{
	if (!proc->has_cgroup_root)
		proc->cgroup_root = find_cgroup_root();
	proc->has_cgroup_root = true;
	return proc->cgroup_root;
}

uint64_t ky_thread_cgroup(struct ky_proc *proc, int32_t pid, int32_t tid, const char **path)
{
	const char *root = cgroup_root(proc);
	char file[PATH_MAX], *line;
	struct stat st;

	snprintf(file, sizeof(file), "%d/task/%d/cgroup", pid, tid);
	if (!root || ky_read_file(proc->fd, file, CGROUP_TEXT_BYTES, &proc->text) < 0)
		return 0;
	for (line = proc->text.data; line && strncmp(line, "0::", 3) != 0;) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return 0;
	line += 3;
	line[strcspn(line, "\n")] = '\0';
	*path = line;
	if (snprintf(file, sizeof(file), "%s%s", root, line) >= (int)sizeof(file))
		return 0;
	return stat(file, &st) == 0 ? st.st_ino : 0;
}

/* What the @level-th pid namespace from here on calls the parent of @pid; 0: it lives outside. */
static int32_t parent_inside(struct ky_proc *proc, int32_t pid, int32_t tid, unsigned int level)
{
	struct ky_proc_thread thread;
	struct ky_proc_ids parent;

	if (ky_proc_read_thread(proc, pid, tid, &thread) < 0 || thread.ppid <= 0 ||
	    ky_proc_read_ids(proc, thread.ppid, thread.ppid, &parent) < 0 ||
	    parent.n_levels <= level)
		return 0;
	return parent.nstgid[level];
}

int ky_thread_ids_read(struct ky_proc *proc, int32_t pid, int32_t tid, struct ky_thread_ids *ids)
{
	static const char *const kinds[KY_NS_KINDS] = {
		[KY_NS_CGROUP] = "cgroup", [KY_NS_IPC] = "ipc", [KY_NS_MNT] = "mnt",
		[KY_NS_NET] = "net",	   [KY_NS_PID] = "pid", [KY_NS_TIME] = "time",
		[KY_NS_USER] = "user",	   [KY_NS_UTS] = "uts",
	};
	struct ky_proc_ids seen;
	const char *path;
	int ret = ky_proc_read_ids(proc, pid, tid, &seen);

	if (ret < 0)
		return ret;
	ids->uid = seen.uids[0];
	ids->euid = seen.uids[1];
	ids->suid = seen.uids[2];
	ids->fsuid = seen.uids[3];
	ids->gid = seen.gids[0];
	ids->egid = seen.gids[1];
	ids->sgid = seen.gids[2];
	ids->fsgid = seen.gids[3];
	/* A thread that is about to end has no namespaces; the known ones stay. */
	for (int i = 0; i < KY_NS_KINDS; i++) {
		uint32_t inode = ky_proc_ns(proc, pid, tid, kinds[i]);

		if (inode)
			ids->ns[i] = inode;
	}
	ids->cgroup = ky_thread_cgroup(proc, pid, tid, &path);
	if (!seen.n_levels)
		return KYMO_OK;
	ids->vtid = seen.nspid[seen.n_levels - 1];
	ids->vpid = seen.nstgid[seen.n_levels - 1];
	ids->vppid = parent_inside(proc, pid, tid, seen.n_levels - 1);
	return KYMO_OK;
}
