/* SPDX-License-Identifier: MIT */
/*
 * Reading processes from /proc. They are other people's: names hold any byte, numbers any
 * value, and everything may vanish between two reads. A thing that has vanished is
 * KYMO_E_NOT_FOUND, which callers skip. Nothing is allocated in proportion to what is read.
 *
 * Threads: one at a time per struct ky_proc.
 */
#ifndef KY_KERNEL_PROCESS_PROC_H
#define KY_KERNEL_PROCESS_PROC_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"

#define KY_COMM_BYTES	   16	       /* the kernel's TASK_COMM_LEN, with the NUL */
#define KY_PROC_MAX_LEVELS 33	       /* the kernel nests pid namespaces 32 deep */
#define KY_PROC_KTHREAD	   0x00200000u /* PF_KTHREAD of ky_proc_thread.flags */

struct ky_proc {
	int fd; /* of /proc */
	struct ky_strbuf text;
	/* Control groups of version 2 (thread-ids.h), which are looked for once. */
	bool has_cgroup_root;
	const char *cgroup_root; /* static; NULL: there are none */
};

/* From /proc/PID/task/TID/stat. */
struct ky_proc_thread {
	int32_t tid, pid, ppid;
	char comm[KY_COMM_BYTES]; /* as the scheduler's events give it */
	char state;		  /* 'R', 'S', 'D', 'T', 't', 'Z', 'X', 'I', ... */
	int32_t prio;		  /* the kernel's prio - 100: what LTTng's events carry */
	int32_t nice;
	uint32_t cpu;	      /* last run on */
	uint32_t flags;	      /* PF_* */
	uint64_t start_ticks; /* since boot, in 1/sysconf(_SC_CLK_TCK) s */
};

/* From /proc/PID/task/TID/status. */
struct ky_proc_ids {
	uint32_t uid, gid;	   /* real */
	uint32_t uids[4], gids[4]; /* real, effective, saved, of the file system */
	/* The thread's and process' ids per pid namespace, from the reader's inwards. */
	int32_t nspid[KY_PROC_MAX_LEVELS], nstgid[KY_PROC_MAX_LEVELS];
	unsigned int n_levels; /* 0 where the kernel does not tell */
};

struct ky_proc_fd {
	int32_t fd;
	uint32_t flags; /* O_*, O_CLOEXEC among them */
	char path
		[PATH_MAX]; /* "/etc/passwd", "pipe:[17]", "socket:[99]", "anon_inode:[eventpoll]" */
};

/* 0, KYMO_E_NOT_FOUND without /proc. */
int ky_proc_open(struct ky_proc *proc, struct kymo_error *err);
void ky_proc_close(struct ky_proc *proc);

/*
 * The numbers that name the entries of a directory below /proc: processes (@path "."), threads
 * ("PID/task"), files ("PID/task/TID/fd").
 * 0, or KYMO_E_NOT_FOUND, KYMO_E_PERMISSION, KYMO_E_IO.
 */
struct ky_proc_numbers {
	DIR *dir;
};
int ky_proc_numbers_open(const struct ky_proc *proc, const char *path,
			 struct ky_proc_numbers *numbers);
/* The next one, or -1 at the end. */
int32_t ky_proc_numbers_next(struct ky_proc_numbers *numbers);
void ky_proc_numbers_close(struct ky_proc_numbers *numbers);

/* Each returns 0, KYMO_E_NOT_FOUND (vanished), KYMO_E_PERMISSION, KYMO_E_IO or KYMO_E_FORMAT. */
int ky_proc_read_thread(struct ky_proc *proc, int32_t pid, int32_t tid,
			struct ky_proc_thread *thread);
int ky_proc_read_ids(struct ky_proc *proc, int32_t pid, int32_t tid, struct ky_proc_ids *ids);
int ky_proc_read_fd(struct ky_proc *proc, int32_t pid, int32_t tid, int32_t fd,
		    struct ky_proc_fd *out);

/* The inode number of namespace @kind ("pid", "net", ...) of a thread; 0 when not known. */
uint32_t ky_proc_ns(const struct ky_proc *proc, int32_t pid, int32_t tid, const char *kind);

/* ---- the texts, for any input ---------------------------------------------------------- */

/* A `stat` line; sets everything but pid. 0 or KYMO_E_FORMAT. */
int ky_proc_parse_stat(const char *text, size_t len, struct ky_proc_thread *thread);
/* A `status` file; lines that are missing leave zeros. */
void ky_proc_parse_status(const char *text, struct ky_proc_ids *ids);
/* The flags of a `fdinfo` file. 0 or KYMO_E_FORMAT. */
int ky_proc_parse_fdinfo(const char *text, uint32_t *flags);

#endif
