/* SPDX-License-Identifier: MIT */
/* The things of the Linux state model: hosts, CPUs, threads, files, interrupts, disks and network interfaces. */
#ifndef KY_ANALYSIS_STATE_MODEL_MACHINE_H
#define KY_ANALYSIS_STATE_MODEL_MACHINE_H

#include "flow/graph/flow.h"

#define KY_COMM_SIZE 16	       /* with the NUL; the kernel's TASK_COMM_LEN */
#define KY_UNKNOWN   INT32_MIN /* of a pid, a priority, a CPU number */

struct ky_model;
struct ky_host;
struct ky_cpu;
struct ky_thread;
struct ky_proc;
struct ky_call_row;
struct ky_offs;
struct ky_cpu_runs;
struct ky_period_def;
struct ky_periods;

/* ---- interrupts ---------------------------------------------------------------------- */

enum ky_irq_kind {
	KY_IRQ_HARD,   /* a device's handler */
	KY_IRQ_SOFT,   /* a softirq: nr is its vector */
	KY_IRQ_VECTOR, /* a vector of the CPU: local timer, reschedule, ... */
	KY_IRQ_KINDS,
};

/* What interrupts: one for each (host, kind, number, name). */
struct ky_irq_line {
	uint32_t index; /* dense, over all hosts */
	enum ky_irq_kind kind;
	int32_t nr;
	const char *name; /* "" when no event tells it */
	struct ky_host *host;
};

/* ---- files --------------------------------------------------------------------------- */

enum ky_file_kind {
	KY_FILE_UNKNOWN, /* opened before the trace, and no state dump tells what it is */
	KY_FILE_DISK,	 /* a path outside of /dev, /proc and /sys */
	KY_FILE_NET,	 /* a socket that is not AF_UNIX or netlink */
	KY_FILE_PIPE,
	KY_FILE_OTHER, /* a device, /proc, an AF_UNIX socket, eventfd, ... */
	KY_FILE_KINDS,
};

/* What descriptors refer to: one for each name of a host. */
struct ky_file {
	uint32_t index; /* dense, over all hosts */
	enum ky_file_kind kind;
	const char *name; /* a path, "127.0.0.1:7777", "pipe:[4711]", "fd 5 of 323" */
	struct ky_host *host;
	/* Of a descriptor of which nothing is known: which, and how many that was of one after the other; else 0. */
	int32_t pid, fd;
	uint32_t n_uses;
};

/* What a system call does to a file, for reports on I/O. */
enum ky_io_kind {
	KY_IO_NONE,
	KY_IO_OPEN,  /* open, openat, openat2, creat, socket, dup, dup2, dup3 */
	KY_IO_READ,  /* read, pread64, readv, recvfrom, recvmsg, ... */
	KY_IO_WRITE, /* write, pwrite64, writev, sendto, sendmsg, ... */
	KY_IO_SYNC,  /* fsync, fdatasync, sync, syncfs, sync_file_range, msync */
	KY_IO_COPY,  /* from one file to another: sendfile, splice, copy_file_range, tee */
	KY_IO_KINDS,
};

/* A system call under way. */
struct ky_syscall {
	uint32_t id; /* for ky_model_syscall_name(); KY_NO_SYSCALL: none */
	uint32_t cpu_id;
	int64_t begin_ns;
	const struct ky_call_row *row; /* what it does to files; NULL: nothing */
	struct ky_file *file, *to;     /* of the descriptors that it names; NULL: none */
	int64_t args[4];	       /* by the row; 0: unknown */
};

#define KY_NO_SYSCALL UINT32_MAX

/* ---- waiting for a CPU --------------------------------------------------------------- */

/* Why a thread is off the CPU. */
enum ky_off_kind {
	KY_OFF_UNKNOWN,
	KY_OFF_READY, /* it could run, and waits for a CPU */
	KY_OFF_SLEEP, /* it waits for something, interruptible */
	KY_OFF_DISK,  /* uninterruptible: most often for a disk, or a lock in the kernel */
	KY_OFF_OTHER, /* stopped, traced, parked; a kernel thread that has nothing to do */
	KY_OFF_KINDS,
};

enum ky_wait_kind {
	KY_WAIT_NONE,
	KY_WAIT_WOKEN,	   /* it was woken, and waits */
	KY_WAIT_PREEMPTED, /* it was taken off the CPU while it could have run on */
};

/* A thread waits, or waited, for a CPU. */
struct ky_wait {
	enum ky_wait_kind kind;
	/*
	 * The first waking since it last ran, or the switch that took it off, if that was later or preempted it;
	 * INT64_MIN: was not seen.
	 */
	int64_t begin_ns;
	const struct ky_thread *waker; /* what ran where it was woken; NULL: idle or unknown */
	const struct ky_irq_line *irq; /* the interrupt that woke it; NULL: none */
	const struct ky_thread *by; /* what took the CPU from it; NULL: it was woken, or unknown */
	uint32_t cpu_id;	    /* for which it waited first; UINT32_MAX: unknown */
};

/* One life of a thread id: an id that is used again gets a new struct. */
struct ky_thread {
	uint32_t index; /* dense, over all hosts: for arrays of reports */
	int32_t tid;
	int32_t pid;  /* or KY_UNKNOWN */
	int32_t ppid; /* or KY_UNKNOWN */
	int32_t prio; /* LTTng's scale: kernel priority - 100, 20 is nice 0; or KY_UNKNOWN */
	int32_t cpu;  /* where it ran last, or will run after a migration; or KY_UNKNOWN */
	struct ky_syscall syscall;
	struct ky_wait wait;
	struct ky_wait woken; /* the last wake-up that counted; KY_WAIT_NONE: none yet */
	struct ky_wait early; /* a sched_waking while it still ran; KY_WAIT_NONE: none */
	enum ky_off_kind off; /* while it does not run */
	int64_t off_ns;	      /* since when, or since the interval's begin */
	int64_t left_ns;      /* since when, whatever intervals there are */
	int64_t stray_ns;     /* the last sign of it on a CPU without a record; INT64_MIN: never */
	/* Of model-locks.c; NULL: none, or nobody asks. */
	struct ky_lock *waits_at; /* the futex of its call, if that is a futex() that waits */
	size_t waiter;		  /* its index there */
	struct ky_offs *offs;	  /* its last times off the CPU */
	struct ky_contention_waits *contentions; /* for locks of the kernel; NULL: none seen */
	struct ky_kept_args *args; /* of its call, or the last one; NULL: nobody asks */
	struct ky_function_stack
		*functions;	   /* that it is in (model-functions.c); NULL: none seen */
	struct ky_cpu *queue;	   /* whose queue counts it; NULL: none */
	struct ky_proc *proc;	   /* its process, once files matter */
	int64_t reclaim_ns;	   /* since when it frees memory itself; 0: it does not */
	uint64_t cgroup;	   /* its control group, of version 2; 0: unknown */
	char comm[KY_COMM_SIZE];   /* the last seen; "" when never seen */
	char before[KY_COMM_SIZE]; /* the name before that; "" when it had none */
	bool running;		   /* it is some CPU's current */
	bool announced; /* its sched_waking was seen, and the sched_wakeup that follows was not yet */
	bool unannounced; /* its sched_wakeup was seen, and the sched_waking before it was not */
	bool born;	  /* its fork was seen */
	bool fresh;	  /* and listeners do not have it yet */
	bool dead;	  /* its exit was seen */
	bool returned;	  /* its first return to user space was seen (after a fork) */
	struct ky_host *host;
};

/* The function of a timer ran. */
struct ky_timer {
	bool is_running;
	bool is_high; /* a high-resolution timer, in the interrupt; else one of the wheel, in a softirq */
	uint64_t address;
	uint64_t function;		/* its address; 0: unknown */
	const struct ky_thread *owner;	/* that started it; NULL: the kernel, or unknown */
	const struct ky_thread *thread; /* that it interrupted; NULL: idle or unknown */
	const struct ky_cpu *cpu;
	int64_t begin_ns, end_ns;
};

enum ky_cpu_state {
	KY_CPU_UNKNOWN,
	KY_CPU_IDLE,
	KY_CPU_BUSY,
};

struct ky_cpu {
	uint32_t index; /* dense, over all hosts */
	uint32_t id;
	struct ky_host *host;
	enum ky_cpu_state state;
	struct ky_thread *current; /* when BUSY */
	int64_t since_ns; /* the state holds from here; when UNKNOWN: the record is whole from here */
	int64_t seen_ns;	 /* the last sign of the state, at or after since_ns */
	uint64_t missing;	 /* switches that must have been there but were not recorded */
	uint64_t missing_before; /* the range or interval: so many of them */
	bool unnamed;		 /* the process of @current is not known */
	int64_t begin_ns; /* where its record begins; INT64_MIN before the first switch stream's packet */
	int64_t lost_ns;	  /* time over which events were lost */
	int64_t lost_until_ns;	  /* unknown up to here, whatever @state; INT64_MIN: nothing lost */
	int64_t cut_ns;		  /* its record ends here, in damage; INT64_MIN: it does not */
	uint32_t n_waiting;	  /* threads that wait for it, as far as is known */
	struct ky_cpu_irqs *irqs; /* model-irq.c; NULL: none was seen */
	struct ky_timer timer;	  /* that runs, or ran last */
	int64_t event_ns; /* of its last event, for listeners to quiet or vcpu; INT64_MIN: none yet */
	struct ky_cpu_runs *runs; /* its last runs (model-runs.c); NULL: none, or nobody asks */
};

/* A machine's memory, in the order of the state dump's fields. */
enum {
	KY_MACHINE_TOTAL,
	KY_MACHINE_FREE,
	KY_MACHINE_AVAILABLE,
	KY_MACHINE_BUFFERS,
	KY_MACHINE_CACHED,
	KY_MACHINE_SWAP_TOTAL,
	KY_MACHINE_SWAP_FREE,
	KY_MACHINE_PARTS
};

/* One trace. */
struct ky_host {
	uint32_t index;
	const struct ky_trace *trace;
	const char *name;	/* the environment's hostname, or "" */
	const char *label;	/* what tells it from the others: its name, or its trace's path */
	struct ky_map threads;	/* tid -> the one alive, or the last one */
	struct ky_map cpus;	/* id -> struct ky_cpu * */
	int64_t torn_until_ns;	/* calls that began before this ran across lost events */
	int64_t blind_until_ns; /* so did waits for a CPU, where switches were lost */
	/* Of the range, or the interval: */
	uint64_t lost_events; /* known number; lost packets may add more */
	uint64_t gaps;
	uint64_t pauses, paused_ns; /* of the recording */
	uint64_t nameless;	    /* files that were opened without a known path */
	unsigned int abilities;	    /* enum ky_ability, by its metadata */
	/* CPUs that have a record, and those that events name and that have none: bits, of the first 64. */
	uint64_t recorded_cpus, absent_cpus;
	bool of_programs; /* its events are not the kernel's */
	const struct ky_host *
		kernel; /* of programs: the host with the kernel's events of the same machine; NULL: none */
	bool announces;	   /* sched_waking is recorded: each sched_wakeup follows one */
	bool knows_cpus;   /* streams tell their CPUs: others have no record */
	bool lacks_cpus;   /* events name some that have none */
	int64_t memory_ns; /* when this was dumped; INT64_MIN: it was not */
	uint64_t memory_bytes[KY_MACHINE_PARTS];
	struct ky_class_info *classes; /* by ky_event_class.index */
	struct ky_host_state *state;   /* files, devices, interrupts */
};

/* A block device. */
struct ky_disk {
	uint32_t index; /* dense, over all hosts */
	uint32_t dev;
	const char *name; /* "vda"; "254,0" without a state dump */
	struct ky_host *host;
	uint32_t n_issued;  /* requests that the device has, as far as is known */
	uint32_t n_flushes; /* that the device has: their begins, the oldest first */
	struct ky_flush_begin {
		int64_t ns;
		const struct ky_thread *thread;
	} flushes[8];
	const struct ky_thread *flusher; /* the last one that asked for a flush; NULL: none */
	struct ky_map requests;		 /* first sector + 1 -> under way */
	struct ky_request *spare;	 /* for use again */
};

/* A network interface. */
struct ky_netif {
	uint32_t index; /* dense, over all hosts */
	const char *name;
	struct ky_host *host;
};

#endif
