/* SPDX-License-Identifier: MIT */
/* The occurrences of which the Linux state model notifies its listeners. */
#ifndef KY_ANALYSIS_STATE_MODEL_NOTICES_H
#define KY_ANALYSIS_STATE_MODEL_NOTICES_H

#include "analysis/state/model-machine.h"

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

/* What exports say of a call without a duration of its own: static text. NULL: nothing is to be said. */
const char *ky_call_outcome_text(enum ky_call_outcome outcome);

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
	struct ky_did did; /* from begin_ns to end_ns; for listeners that ask for it */
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

/* A thread, or an interrupt on top of it, waited for a lock of the kernel. */
struct ky_contention {
	struct ky_thread *thread;
	uint64_t address, flags; /* of the lock; its kind: ky_contention_kind() */
	int64_t begin_ns, end_ns;
	bool failed; /* a signal ended it */
	/* Who got the lock meanwhile, as the last one, and how long before the end; NULL: unknown. */
	const struct ky_thread *holder;
	uint64_t held_ns;
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

enum ky_vcpu_kind {
	KY_VCPU_THERE, /* the state dump tells of it */
	KY_VCPU_ENTRY, /* it goes into the guest */
	KY_VCPU_EXIT,  /* it comes back */
};

struct ky_vcpu_seen {
	enum ky_vcpu_kind kind;
	const struct ky_host *host;
	struct ky_thread *thread;
	uint32_t vcpu_id; /* the guest's CPU; UINT32_MAX: unknown */
	int32_t vm;	  /* the machine's process; KY_UNKNOWN: as of the thread */
	int64_t ns;
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
	KY_MEMORY_RECLAIM, /* value: pages that the thread freed itself before it got some, from begin_ns to ns */
};

struct ky_memory {
	enum ky_memory_kind kind;
	struct ky_thread *thread; /* that ran; NULL: idle or unknown */
	const struct ky_host *host;
	uint64_t value;
	const struct ky_space *space; /* as it is now */
	int64_t begin_ns, ns;
	bool by_limit; /* of KY_MEMORY_RECLAIM: a control group's limit was reached */
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
 * A function of a program and the calls around it, to the thread's first one. Paths have numbers from 1 on; 0 is that of no
 * function, and of calls beyond KY_FUNCTION_PATHS_MAX paths.
 */
#define KY_FUNCTION_PATHS_MAX (1u << 21)

struct ky_function_path {
	uint64_t address; /* in the function, mostly its begin */
	uint32_t parent;  /* a path */
	uint32_t depth;	  /* 1: a thread's first function */
};

enum ky_function_end {
	KY_FUNCTION_RETURNED,
	KY_FUNCTION_LEFT, /* without a return, before its caller returned: a time too long */
	KY_FUNCTION_LOST, /* events were lost: a time too short */
	KY_FUNCTION_OPEN, /* it goes on at the trace's end, or its process ended in it: the same */
	KY_FUNCTION_ENDS
};

/* A call of a function of a program is over. */
struct ky_function_call {
	struct ky_thread *thread;
	uint32_t cpu_id; /* of its end */
	uint32_t path;
	uint32_t depth; /* 0: a thread's first function; counted beyond the depth of paths, too */
	int64_t begin_ns, end_ns;
	uint64_t self_ns; /* without the calls in it */
	uint64_t number;  /* in the order of begins, of all threads */
	enum ky_function_end end;
};

/* Of all calls of a trace. */
struct ky_function_counts {
	uint64_t ends[KY_FUNCTION_ENDS]; /* how many ended so; not of those that returned */
	uint64_t stray;			 /* returns that fit no call */
	uint64_t deeper;		 /* calls that are only counted, as they are too deep */
};

#endif
