/* SPDX-License-Identifier: MIT */
/*
 * The Linux state model: what every CPU and thread does, rebuilt from kernel events.
 *
 * It is built once per pass over the merged events and serves any number of reports: a
 * report adds a struct ky_listener and is told what happened (a thread ran from here to there,
 * a system call ended, ...). Truth before completeness:
 *
 *  - Nothing is assumed about a CPU before the first event that tells what it runs. When that
 *    event comes it holds backwards, to where the CPU's record begins: had there been a switch
 *    in between, it would have been recorded.
 *  - Lost events make their CPU unknown over the gap, and calls that were under way in it
 *    are not measured.
 *  - Some kernels lose switches, and filters drop them: an event of a thread that was not known
 *    to run contradicts the model. Then the time since the last sign of the old state is
 *    unknown. From the first contradiction on, every event's context counts as such a sign.
 *  - Each trace of a set is a host of its own: their thread ids do not mix.
 *
 * Pointers to threads, CPUs and hosts are valid until ky_model_free(), so reports may keep
 * them. Threads: one at a time per model.
 *
 * Files: model.c the pass, model-classes.c which event is what and which fields it has,
 * model-sched.c and model-syscalls.c the handlers.
 */
#ifndef KY_ANALYSIS_MODEL_H
#define KY_ANALYSIS_MODEL_H

#include "flow/flow.h"

#define KY_COMM_SIZE 16	       /* with the NUL; the kernel's TASK_COMM_LEN */
#define KY_UNKNOWN   INT32_MIN /* of a pid, a priority, a CPU number */

struct ky_model;
struct ky_host;
struct ky_cpu;

/* A system call under way. */
struct ky_syscall {
	uint32_t id; /* for ky_model_syscall_name(); KY_NO_SYSCALL: none */
	uint32_t cpu_id;
	int64_t begin_ns;
};

#define KY_NO_SYSCALL UINT32_MAX

/* One life of a thread id: an id that is used again gets a new struct. */
struct ky_thread {
	uint32_t index; /* dense, over all hosts: for arrays of reports */
	int32_t tid;
	int32_t pid;  /* or KY_UNKNOWN */
	int32_t ppid; /* or KY_UNKNOWN */
	int32_t prio; /* LTTng's scale: kernel priority - 100, 20 is nice 0; or KY_UNKNOWN */
	int32_t cpu;  /* where it ran last, or will run after a migration; or KY_UNKNOWN */
	struct ky_syscall syscall;
	char comm[KY_COMM_SIZE]; /* the last seen; "" when never seen */
	bool born;		 /* its fork was seen */
	bool dead;		 /* its exit was seen */
	bool returned;		 /* its first return to user space was seen (after a fork) */
	struct ky_host *host;
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
	int64_t seen_ns;  /* the last sign of the state, at or after since_ns */
	uint64_t missing; /* switches that must have been there but were not recorded */
	int64_t begin_ns; /* where its record begins; INT64_MIN before the first switch stream's packet */
	int64_t lost_ns; /* time over which events were lost */
};

/* One trace. */
struct ky_host {
	uint32_t index;
	const struct ky_trace *trace;
	const char *name;      /* the environment's hostname, or "" */
	const char *label;     /* what tells it from the others: its name, or its trace's path */
	struct ky_map threads; /* tid -> the one alive, or the last one */
	struct ky_map cpus;    /* id + 1 -> struct ky_cpu * */
	int64_t torn_until_ns; /* calls that began before this ran across lost events */
	uint64_t lost_events;  /* known number; lost packets may add more */
	uint64_t gaps;
	unsigned int abilities;	       /* enum ky_ability, by its metadata */
	struct ky_class_info *classes; /* by ky_event_class.index */
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

struct ky_call {
	struct ky_thread *thread;
	uint32_t syscall; /* for ky_model_syscall_name() */
	enum ky_call_outcome outcome;
	int64_t begin_ns, end_ns; /* INT64_MIN where not seen */
	bool has_ret;
	int64_t ret;
};

/*
 * What a report wants to be told; NULL where it does not care. Calls come in the order of the
 * events; each may return a negative status, which ends the pass.
 */
struct ky_listener {
	void *data;
	/* @cpu was in @state from @begin_ns to @end_ns; @thread ran when BUSY, else NULL. */
	int (*ran)(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
		   struct ky_thread *thread, int64_t begin_ns, int64_t end_ns);
	/* @thread moved to another CPU (thread->cpu is the new one). */
	int (*migrated)(void *data, struct ky_thread *thread, int64_t ns);
	/* A call began. */
	int (*call_begin)(void *data, struct ky_thread *thread, int64_t ns);
	/* A call is over, one way or another. */
	int (*call)(void *data, const struct ky_call *call);
	int (*thread_exit)(void *data, struct ky_thread *thread, int64_t ns);
	/* Events were lost on @cpu (NULL: of no CPU) between the two times. */
	int (*lost)(void *data, const struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns,
		    uint64_t events);
};

/*
 * A model of the traces of @set, which must outlive it. NULL and @err when out of memory.
 */
struct ky_model *ky_model_new(const struct ky_trace_set *set, struct kymo_error *err);
void ky_model_free(struct ky_model *model); /* NULL is fine */

/* Tell @listener from now on; the struct is copied. 0 or KYMO_E_MEMORY. */
int ky_model_listen(struct ky_model *model, const struct ky_listener *listener);

/* Feed one batch; they must come in the order of the merge. 0 or a negative status. */
int ky_model_feed(struct ky_model *model, const struct ky_batch *batch, struct kymo_error *err);

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
};
unsigned int ky_model_abilities(const struct ky_model *model);

/* The first and the last event's time; INT64_MIN while there is none. */
int64_t ky_model_begin_ns(const struct ky_model *model);
int64_t ky_model_end_ns(const struct ky_model *model);
uint64_t ky_model_n_events(const struct ky_model *model);

size_t ky_model_n_hosts(const struct ky_model *model);
const struct ky_host *ky_model_host(const struct ky_model *model, size_t index);
/* CPUs that were seen, by index. */
size_t ky_model_n_cpus(const struct ky_model *model);
const struct ky_cpu *ky_model_cpu(const struct ky_model *model, size_t index);
/* Threads that were seen, by index; the idle threads are not among them. */
size_t ky_model_n_threads(const struct ky_model *model);
struct ky_thread *ky_model_thread(const struct ky_model *model, size_t index);
/* "openat", "compat_read", "syscall 334" (only its number is known). */
size_t ky_model_n_syscalls(const struct ky_model *model);
const char *ky_model_syscall_name(const struct ky_model *model, uint32_t syscall);

#endif
