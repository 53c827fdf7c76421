/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The identity of a thread, as a BPF program writes it (content-ids.bpf.h) and as kernel/process/thread-ids.h reads it from /proc. */
#ifndef KY_KERNEL_BPF_THREAD_IDS_LAYOUT_H
#define KY_KERNEL_BPF_THREAD_IDS_LAYOUT_H

#include <stdint.h>

/* Of namespaces. */
enum {
	KY_NS_CGROUP,
	KY_NS_IPC,
	KY_NS_MNT,
	KY_NS_NET,
	KY_NS_PID,
	KY_NS_TIME,
	KY_NS_USER,
	KY_NS_UTS,
	KY_NS_KINDS,
};

/* The identity of a thread and its namespaces. The order of the first eight is that of the kernel's struct cred. */
struct ky_thread_ids {
	uint32_t uid, gid, suid, sgid, euid, egid, fsuid, fsgid;
	uint32_t ns[KY_NS_KINDS]; /* inode numbers; 0: not known */
	uint64_t cgroup;	  /* version 2: its id, which is its directory's inode number */
	/* What its own pid namespace calls it, its process, and its parent's; 0: not known, or outside. */
	int32_t vtid, vpid, vppid, reserved;
};

#endif
