/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the BPF programs of kymo latency (latency.bpf.c) and the reader of their maps have in common.
 *
 * A cell is a histogram of durations, with the buckets of abi/latency-buckets.h.
 *
 * Without keys (KY_LATENCY_BY_NONE) the cells of most layers are in an array per CPU, at places that are fixed here. All
 * others are in a hash table that CPUs share.
 */
#ifndef KY_LATENCY_LATENCY_LAYOUT_H
#define KY_LATENCY_LATENCY_LAYOUT_H

#include <stdint.h>

#include "abi/latency-buckets.h"

#define KY_LATENCY_COMM_BYTES 16

enum ky_latency_layer {
	KY_LATENCY_SYSCALL, /* sub: a kind, or one that was chosen */
	KY_LATENCY_WAKEUP,
	KY_LATENCY_OFFCPU,	 /* sub: enum ky_latency_reason */
	KY_LATENCY_BLOCK_QUEUE,	 /* sub: KY_LATENCY_DEVICE() */
	KY_LATENCY_BLOCK_DEVICE, /* the same */
	KY_LATENCY_FLUSH,	 /* the same */
	KY_LATENCY_IRQ,		 /* sub: its number */
	KY_LATENCY_SOFTIRQ,	 /* sub: its vector */
	KY_LATENCY_NET_SEND,	 /* sub: number of the interface */
	KY_LATENCY_NET_RECEIVE,	 /* the same */
	KY_LATENCY_FIRST_BYTE,
	KY_LATENCY_LOCK, /* sub: enum ky_latency_lock */
	KY_LATENCY_FILE, /* sub: enum ky_latency_file_op */
	KY_LATENCY_PROGRAM, /* sub: what a process calls it, see program-cells.h; not of latency.bpf.c */
	KY_LATENCY_TRACK, /* sub: number of the tracker; not of latency.bpf.c */
	KY_LATENCY_CHAIN, /* sub: enum ky_chain_part; the same */
	KY_LATENCY_LAYERS,
};

/* Whose the durations are. */
enum ky_latency_by {
	KY_LATENCY_BY_NONE,
	KY_LATENCY_BY_PROCESS,
	KY_LATENCY_BY_USER,
	KY_LATENCY_BY_CGROUP,
};

/* Kinds of system calls; those that were chosen by name follow. */
enum ky_latency_call {
	KY_LATENCY_CALL_OTHER,
	KY_LATENCY_CALL_READ,
	KY_LATENCY_CALL_WRITE,
	KY_LATENCY_CALL_SYNC,
	KY_LATENCY_CALL_OPEN,
	KY_LATENCY_CALL_CLOSE,
	KY_LATENCY_CALL_POLL,
	KY_LATENCY_CALL_FUTEX,
	KY_LATENCY_CALL_SLEEP,
	KY_LATENCY_CALL_KINDS,
};
#define KY_LATENCY_MAX_CHOSEN 32
#define KY_LATENCY_CALL_COUNT 512 /* system calls that have numbers below */

/* Why a thread was not on a CPU: its state, and the system call at hand. */
enum ky_latency_reason {
	KY_LATENCY_OFF_NONE,
	KY_LATENCY_OFF_PREEMPTED,
	KY_LATENCY_OFF_YIELD,
	KY_LATENCY_OFF_READ,
	KY_LATENCY_OFF_WRITE,
	KY_LATENCY_OFF_SYNC,
	KY_LATENCY_OFF_POLL,
	KY_LATENCY_OFF_FUTEX,
	KY_LATENCY_OFF_SLEEP,
	KY_LATENCY_OFF_CHILD,
	KY_LATENCY_OFF_IO, /* the kernel says that it waits for a device */
	KY_LATENCY_OFF_KERNEL, /* uninterruptible, in a system call: a lock of the kernel's, or its own work */
	KY_LATENCY_OFF_FAULT,	/* uninterruptible, in no system call */
	KY_LATENCY_OFF_STOPPED, /* by a signal or a debugger */
	KY_LATENCY_OFF_CALL,	/* in another system call */
	KY_LATENCY_OFF_KTHREAD, /* a thread of the kernel has nothing to do */
	KY_LATENCY_OFF_UNKNOWN,
	KY_LATENCY_OFF_REASONS,
};

/* Kinds of the kernel's own locks. */
enum ky_latency_lock {
	KY_LATENCY_LOCK_SEMAPHORE,
	KY_LATENCY_LOCK_SPIN,
	KY_LATENCY_LOCK_SPIN_READ,
	KY_LATENCY_LOCK_SPIN_WRITE,
	KY_LATENCY_LOCK_MUTEX,
	KY_LATENCY_LOCK_READ,
	KY_LATENCY_LOCK_WRITE,
	KY_LATENCY_LOCK_RT,
	KY_LATENCY_LOCK_PERCPU_READ,
	KY_LATENCY_LOCK_PERCPU_WRITE,
	KY_LATENCY_LOCK_KINDS,
};

/* What a file system does. */
enum ky_latency_file_op {
	KY_LATENCY_FILE_SYNC,
	KY_LATENCY_FILE_WRITE,
	KY_LATENCY_FILE_TRUNCATE,
	KY_LATENCY_FILE_ALLOCATE,
	KY_LATENCY_FILE_UNLINK,
	KY_LATENCY_FILE_F2FS_SYNC,
	KY_LATENCY_FILE_F2FS_WRITE,
	KY_LATENCY_FILE_F2FS_UNLINK,
	KY_LATENCY_FILE_NFS_SYNC,
	/* These end with the system call: there are events of the begin only. */
	KY_LATENCY_FILE_XFS_SYNC,
	KY_LATENCY_FILE_XFS_READ,
	KY_LATENCY_FILE_XFS_WRITE,
	KY_LATENCY_FILE_BTRFS_SYNC,
	KY_LATENCY_FILE_OPS,
};

/* What a call is to a connection. */
enum ky_latency_role {
	KY_LATENCY_ROLE_NONE,
	KY_LATENCY_ROLE_ACCEPT,
	KY_LATENCY_ROLE_WRITE,
	KY_LATENCY_ROLE_CLOSE,
};

#define KY_LATENCY_SOFTIRQS 16

/* Places in the array. */
#define KY_LATENCY_AT_SYSCALL 0
#define KY_LATENCY_AT_WAKEUP  (KY_LATENCY_AT_SYSCALL + KY_LATENCY_CALL_KINDS + KY_LATENCY_MAX_CHOSEN)
#define KY_LATENCY_AT_OFFCPU  (KY_LATENCY_AT_WAKEUP + 1)
#define KY_LATENCY_AT_SOFTIRQ (KY_LATENCY_AT_OFFCPU + KY_LATENCY_OFF_REASONS)
#define KY_LATENCY_AT_LOCK    (KY_LATENCY_AT_SOFTIRQ + KY_LATENCY_SOFTIRQS)
#define KY_LATENCY_AT_FILE    (KY_LATENCY_AT_LOCK + KY_LATENCY_LOCK_KINDS)
#define KY_LATENCY_AT_OWNED   (KY_LATENCY_AT_FILE + KY_LATENCY_FILE_OPS)
#define KY_LATENCY_PLACES     (KY_LATENCY_AT_OWNED + KY_LATENCY_OWNED)

/*
 * Places for the first devices, interrupts and interfaces. Each may be at one place only, which belongs to the first that wants
 * it; all others of this place, and durations from before it was theirs, are in the table.
 */
#define KY_LATENCY_OWNED_BITS	     6u
#define KY_LATENCY_OWNED	     (1u << KY_LATENCY_OWNED_BITS)
#define KY_LATENCY_OWNER(layer, sub) ((uint64_t)(layer) << 60 | (uint64_t)(sub))
#define KY_LATENCY_OWNED_PLACE(owner) \
	((uint32_t)((owner)*0x9e3779b97f4a7c15u >> (64u - KY_LATENCY_OWNED_BITS)))

/* A device, with the operation of its requests. */
#define KY_LATENCY_DEVICE(major, minor, op) \
	((uint64_t)(major) << 40 | (uint64_t)(minor) << 8 | (uint64_t)(op))
#define KY_LATENCY_MAJOR(sub) ((uint32_t)((sub) >> 40))
#define KY_LATENCY_MINOR(sub) ((uint32_t)((sub) >> 8))
#define KY_LATENCY_OP(sub)    ((uint8_t)(sub))

/* The kernel's REQ_OP_*: of its interface to drivers, and the same since Linux 4.10. */
enum ky_latency_op {
	KY_LATENCY_OP_READ = 0,
	KY_LATENCY_OP_WRITE = 1,
	KY_LATENCY_OP_FLUSH = 2,
	KY_LATENCY_OP_DISCARD = 3,
};

struct ky_latency_key {
	uint64_t sub, who;
	uint32_t layer, reserved;
};

/* The longest of a period: two periods, as a program may still write for the last one. */
struct ky_latency_peak {
	uint64_t period, ns;
};

struct ky_latency_cell {
	uint64_t owner; /* KY_LATENCY_OWNER() of cells that have one; 0: none, or not yet */
	uint64_t sum_ns;
	struct ky_latency_peak peaks[2]; /* period P is at P & 1 */
	uint64_t buckets[KY_LATENCY_BUCKETS];
};

/* What does not change while the programs run: to them these are constants. */
struct ky_latency_config {
	uint32_t by;	  /* enum ky_latency_by */
	int32_t tgid;	  /* only of this process; 0: all but own_tgid */
	int32_t own_tgid; /* of the program that measures */
	uint32_t syscall, wakeup, offcpu, first_byte, file; /* are they wanted? */
	uint32_t calls, threads; /* are there calls in slots, and storage of all threads? */
	uint32_t exits[2];	 /* system calls that never return */
	uint32_t stacks;	 /* members have call stacks */
	uint64_t
		members_ns; /* what takes longer leaves the kernel one by one; UINT64_MAX: nothing */
	uint32_t has_prev_state; /* sched_switch tells the previous state (Linux 5.18) */
	uint8_t kind[KY_LATENCY_CALL_COUNT];   /* enum ky_latency_call, or a chosen one */
	uint8_t role[KY_LATENCY_CALL_COUNT];   /* enum ky_latency_role */
	uint8_t reason[KY_LATENCY_CALL_COUNT]; /* enum ky_latency_reason of who sleeps in it */
};

/* A single duration that was long. */
#define KY_LATENCY_FRAMES 64

struct ky_latency_member {
	uint64_t end_ns, ns; /* when it was over (CLOCK_MONOTONIC), how long it took */
	uint64_t sub;
	uint32_t layer;
	int32_t tid, pid;		  /* whose; of interrupts, what they interrupted */
	int32_t prev_tid;		  /* of what waits for a CPU: who had it before */
	int32_t kernel_bytes, user_bytes; /* of stacks; <= 0: none */
	char comm[KY_LATENCY_COMM_BYTES], prev_comm[KY_LATENCY_COMM_BYTES];
	uint64_t kernel[KY_LATENCY_FRAMES], user[KY_LATENCY_FRAMES];
};

/* What changes: memory that both sides map. */
struct ky_latency_shared {
	uint64_t period; /* the reader counts them */
	uint64_t
		registers_offset; /* of each thread's registers in a call, from its stack's begin */
	uint64_t any_accepted;	  /* a connection, since the start */
	uint64_t n_lost_cells;	  /* durations without a cell: the table was full */
	uint64_t n_lost_requests; /* the same of block requests in flight */
	uint64_t n_lost_members;  /* members for which the ring had no room */
	uint64_t owners
		[KY_LATENCY_OWNED]; /* KY_LATENCY_OWNER() of what is at a place; 0: nothing yet */
};

#endif
