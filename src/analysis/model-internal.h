/* SPDX-License-Identifier: MIT */
/* What the files of the state model share; reports use model.h alone. */
#ifndef KY_ANALYSIS_MODEL_INTERNAL_H
#define KY_ANALYSIS_MODEL_INTERNAL_H

#include "analysis/model.h"

#define KY_CLASS_FIELDS 7

struct ky_feed;
struct ky_class_info;

/* Handle one event of its class. 0 or a negative status, which ends the pass. */
typedef int (*ky_event_handler)(struct ky_feed *feed, const struct ky_event *event,
				const struct ky_class_info *info);

/* What the model needs to know of an event class; resolved once. */
struct ky_class_info {
	ky_event_handler handle; /* NULL: nothing to do */
	uint32_t syscall;	 /* of entries and exits; KY_NO_SYSCALL: by its number field */
	int32_t prio_offset;	 /* what takes its priorities to LTTng's scale */
	bool compat;
	bool no_sign; /* says nothing of the CPU: recorders may write state dumps on their own */
	/* By the handler's own enumeration. */
	struct ky_handle fields[KY_CLASS_FIELDS];
	/* The context of the thread that ran when the event happened. */
	struct ky_handle tid, pid, comm;
};

/* A data stream, as the model knows it. */
struct ky_stream_state {
	struct ky_host *host;
	bool begun, has_switch, has_syscalls;
	uint32_t cpu_id; /* the last one seen, for @cpu */
	struct ky_cpu *cpu;
	int64_t last_ns; /* of its last event; INT64_MIN: none yet */
};

/* Where the event at hand comes from. */
struct ky_feed {
	struct ky_model *model;
	struct ky_host *host;
	struct ky_stream_state *stream;
	struct ky_cpu *cpu; /* NULL: the event belongs to no CPU */
};

struct ky_model {
	struct ky_arena arena;
	const struct ky_trace_set *set;
	KY_VEC(struct ky_listener) listeners;
	KY_VEC(struct ky_host *) hosts;
	KY_VEC(struct ky_cpu *) cpus;
	KY_VEC(struct ky_thread *) threads;
	KY_VEC(const char *) syscalls;
	struct ky_names syscall_ids;	 /* name -> index + 1 */
	struct ky_map syscall_numbers;	 /* number, compat in bit 63 -> index + 1 */
	struct ky_stream_state *streams; /* by ky_stream.index */
	int64_t begin_ns, end_ns;
	uint64_t n_events;
};

/* Call @hook of every listener that has it; the first failure is the result. */
#define ky_model_notify(model, hook, ...)                                    \
	({                                                                   \
		int notified_ = 0;                                           \
		ky_vec_foreach(&(model)->listeners, l_) {                    \
			if (l_->hook && !notified_)                          \
				notified_ = l_->hook(l_->data, __VA_ARGS__); \
		}                                                            \
		notified_;                                                   \
	})

/* model-classes.c: fills host->classes and host->abilities. 0 or KYMO_E_MEMORY. */
int ky_model_resolve(struct ky_model *model, struct ky_host *host);
/* The index of a system call's name, or KY_NO_SYSCALL when out of memory. @name is copied. */
uint32_t ky_model_syscall(struct ky_model *model, const char *name);
uint32_t ky_model_syscall_by_number(struct ky_model *model, int64_t number, bool compat);

/* The thread that @tid means now on @host; made when it is new. NULL: out of memory. */
struct ky_thread *ky_model_thread_get(struct ky_model *model, struct ky_host *host, int32_t tid);
/* A new life of @tid. */
struct ky_thread *ky_model_thread_new(struct ky_model *model, struct ky_host *host, int32_t tid);
void ky_thread_name(struct ky_thread *thread, const char *comm, size_t len_bytes);
struct ky_cpu *ky_model_cpu_get(struct ky_model *model, struct ky_host *host, uint32_t id);

/*
 * The thread that the event at hand happened in, by its context, else by what its CPU runs.
 * *@thread is NULL when that is not known, or the CPU is idle.
 */
int ky_model_current(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info, struct ky_thread **thread);

/* model-sched.c: @cpu runs @thread (NULL: idle), says the context of an event at @ns. */
int ky_cpu_learn(struct ky_model *model, struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns);
/* Events were lost: what @cpu did between @begin_ns and @end_ns is unknown. */
int ky_cpu_lose(struct ky_model *model, struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns);
/* The state up to @ns goes to the listeners. */
int ky_cpu_flush(struct ky_model *model, struct ky_cpu *cpu, int64_t ns);

/* model-syscalls.c: end the call that @thread is in, if any, without its exit. */
int ky_call_abandon(struct ky_model *model, struct ky_thread *thread, enum ky_call_outcome outcome,
		    int64_t ns);

int ky_on_switch(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_migrate(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_wakeup(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_fork(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_newtask(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_exec(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rename(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_setprio(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_statedump(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_syscall_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_syscall_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);

/* What each handler finds in ky_class_info.fields. */
enum {
	KY_SWITCH_PREV_TID,
	KY_SWITCH_NEXT_TID,
	KY_SWITCH_PREV_COMM,
	KY_SWITCH_NEXT_COMM,
	KY_SWITCH_PREV_PRIO,
	KY_SWITCH_NEXT_PRIO
};
/* migrate, wakeup, exit, setprio */
enum { KY_TASK_TID, KY_TASK_COMM, KY_TASK_PRIO, KY_TASK_CPU };
enum {
	KY_FORK_CHILD_TID,
	KY_FORK_CHILD_PID,
	KY_FORK_CHILD_COMM,
	KY_FORK_PARENT_TID,
	KY_FORK_PARENT_PID
};
enum { KY_NEWTASK_TID, KY_NEWTASK_COMM, KY_NEWTASK_FLAGS };
enum { KY_EXEC_TID, KY_EXEC_OLD_TID, KY_EXEC_FILENAME };
enum { KY_RENAME_TID, KY_RENAME_COMM };
enum { KY_STATEDUMP_TID, KY_STATEDUMP_PID, KY_STATEDUMP_PPID, KY_STATEDUMP_COMM };
enum { KY_SYSCALL_NUMBER, KY_SYSCALL_RET };

#endif
