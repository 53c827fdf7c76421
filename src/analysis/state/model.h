/* SPDX-License-Identifier: MIT */
/*
 * The Linux state model: what every CPU and thread does, rebuilt from kernel events.
 *
 * One pass over the merged events builds the model, for any number of reports. A report adds a
 * struct ky_listener. The model calls it with each occurrence (a thread ran from here to there,
 * a system call ended, ...). The model prefers "unknown" to a guess:
 *
 *  - The state of a CPU is unknown before the first event that names its thread. This event
 *    applies backwards to the begin of the CPU's record: the record would contain a switch in
 *    between.
 *  - Lost events make their CPU unknown over the gap. The model does not measure system calls
 *    that were in progress in the gap.
 *  - Some kernels lose switches, and filters drop them. An event of a thread that does not run,
 *    according to the model, contradicts the model. Then the time since the last sign of the old
 *    state is unknown. Signs are switches, system calls and births; after the first contradiction
 *    also the context of every event.
 *  - A CPU without a record, which events of other CPUs name, is unknown. So are system calls and
 *    waits of threads that were on it, as far as events show this.
 *  - Each trace of a set is a separate host: thread ids of different hosts do not mix.
 *
 * Pointers to threads, CPUs and hosts are valid until ky_model_free(), so reports may keep
 * them. Threads: one at a time per model.
 *
 * Files: model.c the pass, model-tables.c threads, CPUs and listeners, model-make.c its begin and
 * end, model-query.c queries of reports, model-focus.c the range and the selection, model-hindsight.c
 * corrections of earlier intervals; model-classes.c names of events and fields (only this file has
 * them); model-cpus.c, model-sched.c, model-wait.c, model-runs.c, model-syscalls.c, model-args.c, model-io.c, model-files.c,
 * model-locks.c, model-irq.c, model-block.c, model-tcp.c, model-fs.c and model-misc.c the handlers; model-periods.c periods that users define.
 */
#ifndef KY_ANALYSIS_STATE_MODEL_H
#define KY_ANALYSIS_STATE_MODEL_H

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
	/* The first waking since it last ran, or the switch that took it off; INT64_MIN: was not seen. */
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
	enum ky_off_kind off; /* while it does not run */
	int64_t off_ns;	      /* since when, or since the interval's begin */
	int64_t left_ns;      /* since when, whatever intervals there are */
	int64_t stray_ns;     /* the last sign of it on a CPU without a record; INT64_MIN: never */
	/* Of model-locks.c; NULL: none, or nobody asks. */
	struct ky_lock *waits_at;  /* the futex of its call, if that is a futex() that waits */
	size_t waiter;		   /* its index there */
	struct ky_offs *offs;	   /* its last times off the CPU */
	struct ky_call_args *args; /* of its call, or the last one; NULL: nobody asks */
	struct ky_cpu *queue;	   /* whose queue counts it; NULL: none */
	struct ky_proc *proc;	   /* its process, once files matter */
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
	int64_t event_ns;	  /* of its last event; INT64_MIN: none yet */
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
	bool announces;	   /* sched_waking is recorded: each sched_wakeup follows one */
	bool knows_cpus;   /* streams tell their CPUs: others have no record */
	bool lacks_cpus;   /* events name some that have none */
	int64_t memory_ns; /* when this was dumped; INT64_MIN: it was not */
	uint64_t memory_bytes[KY_MACHINE_PARTS];
	struct ky_class_info *classes; /* by ky_event_class.index */
	struct ky_host_state *state;   /* files, devices, interrupts */
};

/* Why a system call has no duration. */
enum ky_call_outcome {
	KY_CALL_DONE,	   /* entry and exit seen */
	KY_CALL_HEADLESS,  /* exit only: it began before the trace */
	KY_CALL_BIRTH,	   /* exit only: a new thread's return from its creation */
	KY_CALL_TORN,	   /* events were lost between entry and exit */
	KY_CALL_NO_RETURN, /* entry only, and the thread went on: rt_sigreturn does that */
	KY_CALL_EXITED,	   /* entry only: the thread ended in it (exit, exit_group) */
	KY_CALL_UNENDED,   /* entry only: under way at the end of the trace */
	KY_CALL_OUTCOMES,
};

/* So many arguments of a call are kept, and so many bytes of its first text or address. */
#define KY_CALL_ARGS_MAX 8
#define KY_CALL_TEXT_MAX 64

struct ky_args_plan;

/* The arguments of a system call, as its entry tells them. */
struct ky_call_args {
	const struct ky_args_plan *plan; /* NULL: the entry tells none */
	uint64_t values[KY_CALL_ARGS_MAX];
	uint32_t text_bytes;
	char text[KY_CALL_TEXT_MAX];
};

struct ky_call {
	struct ky_thread *thread;
	uint32_t syscall; /* for ky_model_syscall_name() */
	enum ky_call_outcome outcome;
	int64_t begin_ns, end_ns; /* INT64_MIN where not seen */
	bool has_ret;
	int64_t ret;
	uint32_t cpu_id; /* of its last event */
	int64_t args[4]; /* of futex(): address, operation, value */
};

/* A system call on files, over with its result. */
struct ky_io {
	const struct ky_call *call; /* done: both times are known */
	enum ky_io_kind kind;
	const struct ky_file *file; /* read from, written to, opened; NULL: not known, or failed */
	const struct ky_file *to;   /* of KY_IO_COPY: written to */
	uint64_t bytes;		    /* moved; 0 for calls that tell none */
};

/* What a thread did over some time, as far as switches tell. */
struct ky_did {
	uint64_t rest_ns;    /* it ran, or it is not known what it did */
	uint64_t ready_ns;   /* it waited for a CPU */
	uint64_t blocked_ns; /* it slept, or waited for something else */
	/* Of that the most: in which call (KY_NO_SYSCALL: in none), and how. */
	uint64_t most_ns;
	uint32_t most_syscall;
	enum ky_off_kind most_kind;
	bool is_partial; /* more times off the CPU than are remembered: rest_ns has some of them */
};

/* A futex of a process. */
struct ky_lock {
	uint32_t index; /* dense, over all hosts */
	const struct ky_host *host;
	int32_t pid; /* or KY_UNKNOWN */
	uint64_t address;
};

/*
 * A thread held a lock that others waited for. Its end is the futex() that wakes one of them. Listeners get it when the waits
 * are over.
 */
struct ky_lock_hold {
	const struct ky_lock *lock;
	const struct ky_thread *thread;
	/* @is_whole: the lock was released then. Else the thread took it at an unknown time before the first waiter came. */
	int64_t begin_ns, end_ns;
	bool is_whole;
	struct ky_did did; /* from begin_ns to end_ns */
	uint64_t delay_ns; /* the sum of what it is of all waits */
	uint64_t n_waits;  /* of which it is the longest part: one of each thread */
	uint64_t wait_ns;  /* their sum */
};

/* A part of a wait. */
struct ky_lock_part {
	const struct ky_lock_hold
		*hold; /* until when, and by whom, the lock was held; NULL: see is_free */
	bool is_free; /* the lock was released, and the waiter was on its way; else it is unknown who held it */
	int64_t begin_ns, end_ns;
};

/* A futex() that waits is over. Pointers are valid during the call. */
struct ky_lock_wait {
	const struct ky_call *call;
	const struct ky_lock *lock;
	const struct ky_lock_hold *hold;  /* the longest of the parts' holds; NULL: none is known */
	const struct ky_lock_part *parts; /* one after the other, they are the call's whole time */
	size_t n_parts;
};

/* A thread waited for a CPU and got it. */
struct ky_waited {
	struct ky_thread *thread;
	const struct ky_cpu *cpu;
	struct ky_wait wait;
	int64_t end_ns;
};

/* A time that a thread spent off the CPU, or a part of one that an interval ends. */
struct ky_time_off {
	struct ky_thread *thread;
	enum ky_off_kind kind;
	int64_t begin_ns, end_ns;
	/* The wake-up that ended it: when, by which thread, in which interrupt. NULL: something else did, or it goes on. */
	const struct ky_wait *woken;
};

/* Why a thread moved to another CPU. */
enum ky_migration_cause {
	KY_MIGRATION_UNKNOWN,  /* no sched_migrate_task tells of it */
	KY_MIGRATION_WAKEUP,   /* its waker chose another CPU for it */
	KY_MIGRATION_BALANCER, /* while it could run: the load balancer, most often */
	KY_MIGRATION_AFFINITY, /* sched_setaffinity() forbids its CPU */
	KY_MIGRATION_EXEC,     /* it called execve(), at which the kernel looks for an idle CPU */
	KY_MIGRATION_CAUSES,
};

struct ky_migration {
	struct ky_thread *thread;
	enum ky_migration_cause cause;
	const struct ky_thread *by; /* the waker, or the caller; NULL: none, or unknown */
	int64_t ns;
};

/* An interrupt handler ran. */
struct ky_irq {
	const struct ky_irq_line *line;
	const struct ky_cpu *cpu;
	int64_t raise_ns; /* of softirqs; INT64_MIN: not seen */
	int64_t begin_ns; /* INT64_MIN: not seen */
	int64_t end_ns;
	/* It interrupted another one: a softirq a softirq, the others one that is no softirq. */
	bool nested;
	const struct ky_thread *thread; /* that it interrupted; NULL: idle or unknown */
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

/* LTTng's words for what a request does. */
#define KY_RWBS_WRITE	 1
#define KY_RWBS_DISCARD	 2
#define KY_RWBS_READ	 4
#define KY_RWBS_SYNC	 32
#define KY_RWBS_META	 64
#define KY_RWBS_FLUSH	 256  /* nothing but a flush of the device's cache */
#define KY_RWBS_PREFLUSH 1024 /* a flush before it */

/* A request of a block device. A flush has no sectors; flushes of a device end in the order of their begins. */
struct ky_request {
	const struct ky_disk *disk;
	uint64_t sector, n_sectors; /* of 512 bytes */
	unsigned int rwbs;
	int64_t queue_ns; /* inserted into the queue; INT64_MIN: not seen */
	int64_t issue_ns; /* given to the device; INT64_MIN: not yet */
	int64_t end_ns;
	uint64_t left; /* sectors that have not completed */
	int error;
	const struct ky_thread *thread; /* that it was inserted or issued for; NULL: unknown */
	/* When it came: requests in queue and device before it, and the thread with most of their sectors. */
	uint32_t n_ahead;
	uint64_t sectors_ahead, sectors_of; /* of all; of @ahead */
	const struct ky_thread *ahead;	    /* NULL: unknown, or none */
	struct ky_request *next;
};

/* Pages of a file came into the page cache, or left it. */
struct ky_cached {
	bool is_added;
	struct ky_thread *thread; /* that ran; NULL: idle or unknown */
	uint64_t file;		  /* a number for device and inode */
	uint64_t pages;
	int64_t ns;
};

/* A signal was sent. */
struct ky_signal {
	int32_t nr, code; /* the number; si_code: 0 kill(), -6 tgkill(), -2 a timer, ... */
	struct ky_thread *
		sender; /* that ran: it sent the signal, or a timer interrupted it; NULL: idle or unknown */
	struct ky_thread *receiver; /* the thread, or the first one of a process */
	bool ignored;		    /* the receiver ignores it, or has it already */
	int64_t ns;
};

/* A network interface. */
struct ky_netif {
	uint32_t index; /* dense, over all hosts */
	const char *name;
	struct ky_host *host;
};

/* How a period of the user's ended (periods.h). */
enum ky_period_outcome {
	KY_PERIOD_DONE,
	KY_PERIOD_HEADLESS,  /* its end only */
	KY_PERIOD_TORN,	     /* events were lost in it */
	KY_PERIOD_OUTLIVED,  /* the one that it is in ended first */
	KY_PERIOD_UNENDED,   /* open at the end of the trace */
	KY_PERIOD_FORGOTTEN, /* too many were open: the oldest make room */
	KY_PERIOD_OUTCOMES,
};

struct ky_period {
	const struct ky_period_def *def;
	enum ky_period_outcome outcome;
	int64_t begin_ns, end_ns; /* INT64_MIN where not seen */
	int64_t parent_ns;	  /* where the one that it is in began; INT64_MIN: none */
	struct ky_thread *thread; /* that its first event happened in; NULL: idle or unknown */
	uint32_t cpu_id;	  /* of its last event */
	const char *captured;	  /* "fd=3 ret=17"; "" without captures */
};

struct ky_packet_seen {
	const struct ky_netif *netif;
	bool received, failed; /* or sent; the driver took it not */
	uint64_t bytes;
	struct ky_thread *thread; /* that ran; NULL: idle or unknown */
	int64_t ns;
};

enum { KY_RSS_FILE, KY_RSS_ANON, KY_RSS_SWAP, KY_RSS_SHARED, KY_RSS_MEMBERS };

/* An address space, and its last known resident size. */
struct ky_space {
	uint32_t index;			/* dense, over all hosts */
	const struct ky_thread *thread; /* one that ran in it; NULL: none was seen */
	uint64_t bytes[KY_RSS_MEMBERS];
};

/* Pages, or the size of a process, changed. */
enum ky_memory_kind {
	KY_MEMORY_ALLOC, /* value: pages */
	KY_MEMORY_FREE,
	KY_MEMORY_FAULT, /* value: 1 for a fault of user space, 0 of the kernel */
	KY_MEMORY_RSS,	 /* of @space */
};

struct ky_memory {
	enum ky_memory_kind kind;
	struct ky_thread *thread; /* that ran; NULL: idle or unknown */
	const struct ky_host *host;
	uint64_t value;
	const struct ky_space *space; /* as it is now */
	int64_t ns;
};

/* A step of a file system, by its events: NAME_enter and NAME_exit, or one event. */
struct ky_fs_step {
	uint32_t index;	  /* dense, over all hosts */
	const char *name; /* "ext4_sync_file", "jbd2_commit" */
};

/* A thread went through a step. */
struct ky_fs_seen {
	const struct ky_fs_step *step;
	const struct ky_thread *thread;
	int64_t begin_ns, end_ns; /* the same of a single event */
};

/* Both ends of a TCP connection, as one of them sees it. IPv4 addresses are those of IPv6 that map them. */
struct ky_tcp_pair {
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port;
};

enum ky_tcp_kind {
	KY_TCP_SOCKET,	 /* which connection the socket has */
	KY_TCP_RECEIVED, /* data came for it */
	KY_TCP_SENT,	 /* a thread sent data; @pair is not known */
};

/* Something of a TCP connection was seen. */
struct ky_tcp_seen {
	enum ky_tcp_kind kind;
	const struct ky_host *host;
	uint64_t socket; /* its address in the kernel; 0: unknown */
	struct ky_tcp_pair pair;
	const struct ky_cpu *cpu;	/* NULL: unknown */
	const struct ky_thread *thread; /* that ran; NULL: idle or unknown */
	int64_t begin_ns, ns;		/* of KY_TCP_SENT: where its call began */
};

/*
 * The hooks of a report; NULL: the report does not need them. Calls come in the order of the
 * events; each may return a negative status, which ends the pass.
 */
#define KY_QUIET_NS 20000000

/* An event with call stacks: addresses, the innermost first. */
#define KY_STACK_FRAMES_MAX 512

struct ky_stack_seen {
	struct ky_thread *thread; /* NULL: idle or unknown */
	const struct ky_host *host;
	uint32_t cpu_id;
	const struct ky_event *event; /* for ky_trace_symbols_resolve() */
	const char *source; /* of a sample: "cpu-clock", "page-faults"; NULL: it is no sample */
	uint64_t
		weight; /* of a sample: what it stands for, ns of a clock or a number of events; else 1 */
	const uint64_t *kernel, *user;
	uint32_t n_kernel, n_user;
};

struct ky_listener {
	void *data;
	bool arguments; /* of calls are wanted: see ky_thread.args, in call() */
	/* @cpu was in @state from @begin_ns to @end_ns; @thread ran when BUSY, else NULL. */
	int (*ran)(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
		   struct ky_thread *thread, int64_t begin_ns, int64_t end_ns);
	/* @thread moved to another CPU (thread->cpu is the new one). */
	int (*migrated)(void *data, struct ky_thread *thread, int64_t ns);
	/* The same, with the reason. Comes after migrated(). */
	int (*migration)(void *data, const struct ky_migration *migration);
	/* A call began. */
	int (*call_begin)(void *data, struct ky_thread *thread, int64_t ns);
	/* A call is over, one way or another. */
	int (*call)(void *data, const struct ky_call *call);
	/* A switch gave it a CPU. */
	int (*switched)(void *data, struct ky_thread *thread, int64_t ns);
	int (*thread_born)(void *data, struct ky_thread *thread, int64_t ns);
	int (*thread_exit)(void *data, struct ky_thread *thread, int64_t ns);
	/* It waited for a CPU and runs. */
	int (*waited)(void *data, const struct ky_waited *waited);
	/*
	 * It waited for a CPU and runs, but the switch to it is not recorded. The wait lasted 0 ns at
	 * least, and at most until @waited->end_ns, the first sign that the thread ran.
	 */
	int (*wait_bounded)(void *data, const struct ky_waited *waited);
	/* cpu->n_waiting has changed, or is not 0 at the begin of the range. */
	int (*queued)(void *data, const struct ky_cpu *cpu, int64_t ns);
	int (*off)(void *data, const struct ky_time_off *time);
	/* A call on files is over. Comes after call(). */
	int (*io)(void *data, const struct ky_io *io);
	/* A futex() is over, and was measured. Comes after call(). */
	int (*futex)(void *data, const struct ky_call *call);
	/* The same of those that wait: for whom. Comes after futex(). Ask ky_lock_is_lock() at the end. */
	int (*lock_wait)(void *data, const struct ky_lock_wait *wait);
	/* A thread held a lock, and all waits for that are over. */
	int (*lock_hold)(void *data, const struct ky_lock_hold *hold);
	int (*irq)(void *data, const struct ky_irq *irq);
	/* disk->n_issued has changed. */
	int (*issued)(void *data, const struct ky_disk *disk, int64_t ns);
	/* A request of a block device completed. */
	int (*request)(void *data, const struct ky_request *request);
	/* A flush of a block device completed: issue_ns and end_ns are known, thread as far as events tell who asked. */
	int (*flush)(void *data, const struct ky_request *flush);
	int (*timer)(void *data, const struct ky_timer *timer);
	/* @cpu was busy, and showed no event between the two times, which are KY_QUIET_NS or more apart. */
	int (*quiet)(void *data, const struct ky_cpu *cpu, struct ky_thread *thread,
		     int64_t begin_ns, int64_t end_ns);
	int (*cached)(void *data, const struct ky_cached *cached);
	int (*signal)(void *data, const struct ky_signal *signal);
	int (*packet)(void *data, const struct ky_packet_seen *packet);
	/* Of file systems, of all threads, in the order of their ends. */
	int (*fs)(void *data, const struct ky_fs_seen *seen);
	/* Of TCP, on all threads and CPUs. */
	int (*tcp)(void *data, const struct ky_tcp_seen *seen);
	int (*memory)(void *data, const struct ky_memory *memory);
	/* Before the hooks of what the event tells. */
	int (*stack)(void *data, const struct ky_stack_seen *stack);
	/* A period of the user's is over. */
	int (*period)(void *data, const struct ky_period *period);
	/* Events were lost on @cpu (NULL: of no CPU) between the two times. */
	int (*lost)(void *data, const struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns,
		    uint64_t events);
};

/*
 * The occurrences that listeners get. Other events only build the state, so that the model is right
 * from the begin of the range on.
 */
struct ky_focus {
	int64_t begin_ns, end_ns; /* both inclusive; INT64_MIN and INT64_MAX: everything */
	/*
	 * Threads, by what is known of them when it happens: one passes that any of them names.
	 * ran() has all threads; see ky_model_in_focus().
	 */
	KY_VEC(int32_t) tids;
	KY_VEC(int32_t) pids;
	KY_VEC(const char *) comms;	   /* wildcards, borrowed */
	KY_VEC(uint64_t) cgroups;	   /* of version 2, by their numbers */
	KY_VEC(const char *) cgroup_paths; /* wildcards, borrowed */
	bool by_cgroup;		 /* threads' control groups are wanted, beside what is chosen */
	KY_VEC(uint32_t) cpus;	 /* empty: all */
	uint64_t min_ns, max_ns; /* of what has a duration (calls, waits, interrupts, requests) */
};

void ky_focus_init(struct ky_focus *focus); /* everything */
void ky_focus_fini(struct ky_focus *focus);
/* Does it name threads? Is @thread (NULL: none) one of them, or does it name none? */
bool ky_focus_names_threads(const struct ky_focus *focus);
bool ky_focus_has_thread(const struct ky_focus *focus, const struct ky_thread *thread);

/*
 * A model of the traces of @set, which must outlive it. NULL and @err when out of memory.
 */
struct ky_model *ky_model_new(const struct ky_trace_set *set, struct kymo_error *err);
/*
 * The traces were opened again, as @set, which must outlive the model; their next events follow those that the model
 * knows. The earlier set must still be open. 0 or KYMO_E_MEMORY. A model with periods cannot do that.
 */
int ky_model_rebind(struct ky_model *model, const struct ky_trace_set *set);
void ky_model_free(struct ky_model *model); /* NULL is fine */

/* Add @listener, which the model copies. 0 or KYMO_E_MEMORY. */
int ky_model_listen(struct ky_model *model, const struct ky_listener *listener);

/* Remove all listeners. */
void ky_model_unlisten(struct ky_model *model);

/* Before the first event. @focus is borrowed. */
void ky_model_set_focus(struct ky_model *model, const struct ky_focus *focus);
/* Follow @periods (borrowed), for listeners that ask. Before the first event. 0 or KYMO_E_MEMORY. */
int ky_model_set_periods(struct ky_model *model, const struct ky_periods *periods);
/* Is the thread one of those that the focus names, as far as is known now? NULL: when it names none. */
bool ky_model_in_focus(const struct ky_model *model, const struct ky_thread *thread);
/* The path of the thread's control group, from the trace; NULL: unknown. */
const char *ky_model_cgroup_path(const struct ky_thread *thread);
/* Does the focus name threads? */
bool ky_model_names_threads(const struct ky_model *model);

/*
 * Call @tick at the end of each interval of @interval_ns: listeners have everything up to there, and
 * the range is that interval. @tick may unlisten and listen. An occurrence that lasts longer than an
 * interval counts in the interval of its end; sums over time (ran, off) are split.
 */
void ky_model_every(struct ky_model *model, int64_t interval_ns, int (*tick)(void *data),
		    void *data);
/*
 * At the end of an interval, the model assumes the last known state of each CPU. Later events may
 * show that a switch was missing there, or what a CPU did in an unknown time. The model keeps such
 * places. Whether it has any.
 */
bool ky_model_hindsight(const struct ky_model *model);
/* Give the places of @before to a new @model, for the same events. 0 or KYMO_E_MEMORY. */
int ky_model_foresee(struct ky_model *model, const struct ky_model *before);

/*
 * Feed one batch; batches come in the order of the merge. Returns 0, 1 after the end of the focus
 * (listeners get nothing more), or a negative status.
 */
int ky_model_feed(struct ky_model *model, const struct ky_batch *batch, struct kymo_error *err);

/*
 * All events before @ns have been fed: ends the intervals up to there. 0, or a negative status of @tick
 * (ky_model_every()).
 */
int ky_model_reach(struct ky_model *model, int64_t ns);

/*
 * Listeners get the state of CPUs up to the last event that shows it. Later events do not change what
 * they get by this. Between two feeds. 0, or a negative status of a listener.
 */
int ky_model_settle(struct ky_model *model);

/* Does @event, the next one, only tell what was there before the first one of the trace? */
bool ky_model_is_before(const struct ky_model *model, const struct ky_host *host,
			const struct ky_event *event);

/* No more events: closes what is open at the last event's time and tells the listeners. */
int ky_model_end(struct ky_model *model, struct kymo_error *err);

/*
 * Run a whole pass: every batch of @flow, then the end. A damaged trace is analysed as far as
 * it can be read: then the model has ended and the error is returned.
 */
int ky_model_run(struct ky_model *model, struct ky_flow *flow, struct kymo_error *err);

/* What the traces can tell, by their metadata: a report that needs more says so. */
enum ky_ability {
	KY_CAN_SWITCH = 1,   /* sched_switch */
	KY_CAN_SYSCALLS = 2, /* system call entries and exits */
	KY_CAN_CONTEXT = 4,  /* events carry their thread's id */
	KY_CAN_MIGRATE = 8,  /* sched_migrate_task */
	KY_CAN_WAKE = 16,    /* sched_waking, sched_wakeup */
	KY_CAN_IRQ = 32,     /* interrupt handlers, or vectors */
	KY_CAN_SOFTIRQ = 64,
	KY_CAN_BLOCK = 128,	/* requests of block devices */
	KY_CAN_NET = 256,	/* packets of network interfaces */
	KY_CAN_PAGES = 512,	/* pages allocated and freed */
	KY_CAN_RSS = 1024,	/* rss_stat */
	KY_CAN_FAULT = 2048,	/* page faults */
	KY_CAN_STACKS = 524288, /* events with call stacks */
	KY_CAN_CACHE = 65536,	/* pages added to and removed from the page cache */
	KY_CAN_FS = 262144,	/* steps of file systems */
	KY_CAN_TCP = 131072,	/* data that came for a connection */
	KY_CAN_TIMERS = 16384,	/* the runs of timers */
	KY_CAN_VECTORS = 32768, /* vectors of the CPU, such as the local timer */
	KY_CAN_SIGNALS = 8192,	/* signal_generate */
	KY_CAN_CGROUP = 4096,	/* events tell which control group a thread is in */
};
unsigned int ky_model_abilities(const struct ky_model *model);

/* The range: the first and the last event's time, as far as the focus goes, or of the
 * interval; INT64_MIN: no event. */
int64_t ky_model_begin_ns(const struct ky_model *model);
int64_t ky_model_end_ns(const struct ky_model *model);
uint64_t ky_model_n_events(const struct ky_model *model); /* of the range */

/* The traces. */
const struct ky_trace_set *ky_model_traces(const struct ky_model *model);
size_t ky_model_n_hosts(const struct ky_model *model);
const struct ky_host *ky_model_host(const struct ky_model *model, size_t index);
/* CPUs that were seen, by index. */
size_t ky_model_n_cpus(const struct ky_model *model);
/*
 * Of the range, or of the interval: how many waits for a CPU were measured, and how many ended at a switch that was not
 * recorded: the thread was seen running, or leaving a CPU, without having come to one.
 */
struct ky_waits_known {
	uint64_t measured, missed;
	/* Of the missed ones: what they can have lasted at most, in total and the longest. */
	uint64_t missed_most_ns, missed_longest_ns;
};
struct ky_waits_known ky_model_waits(const struct ky_model *model);
const struct ky_cpu *ky_model_cpu(const struct ky_model *model, size_t index);
/*
 * Who ran longest on @cpu between the two times, beside @but, and how long (@ns), as far as its last 128 runs tell. @end_ns
 * is not later than the event at hand. NULL: nobody. For listeners that ask for waited().
 */
const struct ky_thread *ky_cpu_ran_most(const struct ky_cpu *cpu, const struct ky_thread *but,
					int64_t begin_ns, int64_t end_ns, uint64_t *ns);
/* Threads that were seen, by index; the idle threads are not among them. */
size_t ky_model_n_threads(const struct ky_model *model);
struct ky_thread *ky_model_thread(const struct ky_model *model, size_t index);
/* By their index. */
size_t ky_model_n_irq_lines(const struct ky_model *model);
const struct ky_irq_line *ky_model_irq_line(const struct ky_model *model, size_t index);
size_t ky_model_n_files(const struct ky_model *model);
const struct ky_file *ky_model_file(const struct ky_model *model, size_t index);
size_t ky_model_n_disks(const struct ky_model *model);
const struct ky_disk *ky_model_disk(const struct ky_model *model, size_t index);
size_t ky_model_n_netifs(const struct ky_model *model);
const struct ky_netif *ky_model_netif(const struct ky_model *model, size_t index);
/* Does a futex() with this operation wait? */
bool ky_futex_waits(int64_t op);
/*
 * Is the futex a lock, so that who wakes held it? By what events tell: threads that were woken there wake others, or the
 * operations and values of mutexes. Condition variables, semaphores and barriers are not. Known at the end.
 */
bool ky_lock_is_lock(const struct ky_lock *lock);
size_t ky_model_n_locks(const struct ky_model *model);
const struct ky_lock *ky_model_lock(const struct ky_model *model, size_t index); /* by its index */
/*
 * What @thread did between the two times, of which the second one is not later than the event at hand. For listeners that ask
 * for lock_wait() or lock_hold(): of others, the model does not remember it.
 */
struct ky_did ky_thread_did(const struct ky_thread *thread, int64_t begin_ns, int64_t end_ns);
/* "fd=3, count=100", as text of one line. */
struct ky_strbuf;
void ky_call_args_text(struct ky_strbuf *out, const struct ky_call_args *args);
/* "openat", "compat_read", "syscall 334" (only its number is known). */
size_t ky_model_n_syscalls(const struct ky_model *model);
const char *ky_model_syscall_name(const struct ky_model *model, uint32_t syscall);

#endif
