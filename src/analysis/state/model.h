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
 * model-locks.c, model-contention.c, model-irq.c, model-block.c, model-tcp.c, model-fs.c and model-misc.c the handlers; model-periods.c periods that users define.
 */
#ifndef KY_ANALYSIS_STATE_MODEL_H
#define KY_ANALYSIS_STATE_MODEL_H

#include "analysis/state/model-listener.h"

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
/* One batch of such a pass. 1: there may be more; else what ky_model_run() returns, and the model has ended. */
int ky_model_step(struct ky_model *model, struct ky_flow *flow, struct kymo_error *err);

/* What the traces can tell, by their metadata: a report that needs more says so. */
enum ky_ability {
	KY_CAN_SWITCH = 1,   /* sched_switch */
	KY_CAN_SYSCALLS = 2, /* system call entries and exits */
	KY_CAN_CONTEXT = 4,  /* events carry their thread's id */
	KY_CAN_MIGRATE = 8,  /* sched_migrate_task */
	KY_CAN_WAKE = 16,    /* sched_waking, sched_wakeup */
	KY_CAN_IRQ = 32,     /* interrupt handlers, or vectors */
	KY_CAN_SOFTIRQ = 64,
	KY_CAN_BLOCK = 128,	     /* requests of block devices */
	KY_CAN_NET = 256,	     /* packets of network interfaces */
	KY_CAN_PAGES = 512,	     /* pages allocated and freed */
	KY_CAN_RSS = 1024,	     /* rss_stat */
	KY_CAN_FAULT = 2048,	     /* page faults */
	KY_CAN_STACKS = 524288,	     /* events with call stacks */
	KY_CAN_FUNCTIONS = 1048576,  /* calls of functions of programs, with their threads */
	KY_CAN_CACHE = 65536,	     /* pages added to and removed from the page cache */
	KY_CAN_CONTENTION = 2097152, /* waits for locks of the kernel */
	KY_CAN_GUESTS = 4194304,     /* entries into virtual machines */
	KY_CAN_FS = 262144,	     /* steps of file systems */
	KY_CAN_TCP = 131072,	     /* data that came for a connection */
	KY_CAN_TIMERS = 16384,	     /* the runs of timers */
	KY_CAN_VECTORS = 32768,	     /* vectors of the CPU, such as the local timer */
	KY_CAN_SIGNALS = 8192,	     /* signal_generate */
	KY_CAN_CGROUP = 4096,	     /* events tell which control group a thread is in */
};
unsigned int ky_model_abilities(const struct ky_model *model);
struct ky_function_counts ky_model_function_counts(const struct ky_model *model);

/* The range: the first and the last event's time, as far as the focus goes, or of the
 * interval; INT64_MIN: no event. */
int64_t ky_model_begin_ns(const struct ky_model *model);
int64_t ky_model_end_ns(const struct ky_model *model);
uint64_t ky_model_n_events(const struct ky_model *model); /* of the range */

/*
 * A place for the names of addresses in the traces: NULL until somebody opens them there, under a lock of its own. The model closes them.
 */
struct ky_trace_symbols;
struct ky_trace_symbols **ky_model_symbols(struct ky_model *model);

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
 * is not later than the event at hand. NULL: nobody. For listeners that ask for runs.
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
/* "mutex", "rwsem:R", "spinlock": what perf lock contention calls it; static. */
const char *ky_contention_kind(uint64_t flags);
/* Does a futex() with this operation wait? */
bool ky_futex_waits(int64_t op);
/*
 * Is the futex a lock, so that who wakes held it? By what events tell: threads that were woken there wake others, or the
 * operations and values of mutexes. Condition variables, semaphores and barriers are not. Known at the end.
 */
bool ky_lock_is_lock(const struct ky_lock *lock);
/* A lock that several threads may hold at once, as readers do: who wakes all its waiters was the last of them. Known at the end. */
bool ky_lock_is_shared(const struct ky_lock *lock);
size_t ky_model_n_locks(const struct ky_model *model);
const struct ky_lock *ky_model_lock(const struct ky_model *model, size_t index); /* by its index */
/*
 * What @thread did between the two times, of which the second one is not later than the event at hand. For listeners that ask
 * for did: of others, the model does not remember it.
 */
struct ky_did ky_thread_did(const struct ky_thread *thread, int64_t begin_ns, int64_t end_ns);
/* The arguments of the thread's call, or of its last one, for listeners that ask for them: ->plan is NULL where there are none. */
void ky_call_args_get(const struct ky_thread *thread, struct ky_call_args *args);
/* "fd=3, count=100", as text of one line. */
struct ky_strbuf;
void ky_call_args_text(struct ky_strbuf *out, const struct ky_call_args *args);
/* "openat", "compat_read", "syscall 334" (only its number is known). */
size_t ky_model_n_syscalls(const struct ky_model *model);
const char *ky_model_syscall_name(const struct ky_model *model, uint32_t syscall);
#endif
