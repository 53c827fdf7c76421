/* SPDX-License-Identifier: MIT */
/* The functions of a listener, which the Linux state model calls with each occurrence. */
#ifndef KY_ANALYSIS_STATE_MODEL_LISTENER_H
#define KY_ANALYSIS_STATE_MODEL_LISTENER_H

#include "analysis/state/model-notices.h"

/* A busy CPU without an event for this time is quiet: see quiet() below. */
#define KY_QUIET_NS 20000000

/* A function of a call stack that a text of perf script has told. */
struct ky_stack_name {
	const char *text; /* in the packet; no NUL ends it */
	size_t len;
	bool is_kernel;
};

/* An event with call stacks: addresses or names, the innermost first. */
#define KY_STACK_FRAMES_MAX 512
#define KY_STACK_NAMES_MAX  1024

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
	const struct ky_stack_name *names; /* instead of addresses */
	uint32_t n_names;
	bool is_counted; /* the sample does not tell its weight, which is 1: not a time, whatever the source is */
};

/*
 * The hooks of a report; NULL: the report does not need them. Calls come in the order of the
 * events; each may return a negative status, which ends the pass.
 */
struct ky_listener {
	void *data;
	bool calls; /* are followed: ky_thread.syscall tells of the thread's; else hooks of calls ask for that */
	bool arguments; /* of calls are wanted: see ky_call_args_get(), in call() */
	bool files;	/* of calls are wanted: see ky_thread.syscall.file, in call() */
	bool runs;	/* of CPUs are remembered: see ky_cpu_ran_most() */
	bool did;	/* of holders of locks: what they did is in ky_lock_hold */
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
	/* A wait for a lock of the kernel is over. */
	int (*contention)(void *data, const struct ky_contention *contention);
	int (*signal)(void *data, const struct ky_signal *signal);
	/* A thread runs a CPU of a virtual machine. Whatever the focus is. */
	int (*vcpu)(void *data, const struct ky_vcpu_seen *seen);
	int (*packet)(void *data, const struct ky_packet_seen *packet);
	/* Of file systems, of all threads, in the order of their ends. */
	int (*fs)(void *data, const struct ky_fs_seen *seen);
	/* Of TCP, on all threads and CPUs. */
	int (*tcp)(void *data, const struct ky_tcp_seen *seen);
	int (*memory)(void *data, const struct ky_memory *memory);
	/* Before the hooks of what the event tells. */
	int (*stack)(void *data, const struct ky_stack_seen *stack);
	/* A new path; @event is for ky_trace_symbols_resolve(). Whatever the focus is. */
	int (*function_path)(void *data, uint32_t number, const struct ky_function_path *path,
			     const struct ky_event *event);
	int (*function_call)(void *data, const struct ky_function_call *call);
	/* A period of the user's is over. */
	int (*period)(void *data, const struct ky_period *period);
	/* Events were lost on @cpu (NULL: of no CPU) between the two times. */
	int (*lost)(void *data, const struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns,
		    uint64_t events);
};

#endif
