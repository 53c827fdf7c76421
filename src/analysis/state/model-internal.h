/* SPDX-License-Identifier: MIT */
/* What the files of the state model share; reports use model.h alone. */
#ifndef KY_ANALYSIS_STATE_MODEL_INTERNAL_H
#define KY_ANALYSIS_STATE_MODEL_INTERNAL_H

#include <stdalign.h>

#include "analysis/state/model.h"

#define KY_CLASS_FIELDS 8

struct ky_feed;
struct ky_class_info;

/* Handle one event of its class. 0 or a negative status, which ends the pass. */
typedef int (*ky_event_handler)(struct ky_feed *feed, const struct ky_event *event,
				const struct ky_class_info *info);

/* What listeners can ask for beyond CPUs and threads: only what one asks for is followed. */
enum ky_subject {
	KY_ABOUT_ALWAYS = 0,
	KY_ABOUT_WAITS = 1,
	KY_ABOUT_IRQS = 2,
	KY_ABOUT_FILES = 4,
	KY_ABOUT_BLOCK = 8,
	KY_ABOUT_NET = 16,
	KY_ABOUT_MEMORY = 32,
	KY_ABOUT_FUTEX = 64,
	KY_ABOUT_PERIODS = 128,
	KY_ABOUT_LOCKS = 256,
	KY_ABOUT_SIGNALS = 512,
	KY_ABOUT_RUNS = 1024,
	KY_ABOUT_TIMERS = 2048,
	KY_ABOUT_CACHE = 4096,
	KY_ABOUT_TCP = 8192,
	KY_ABOUT_FS = 16384,
	KY_ABOUT_STACKS = 32768,
	KY_ABOUT_ARGS = 65536,
	KY_ABOUT_FUNCTIONS = 131072,
	KY_ABOUT_CONTENTION = 262144,
	KY_ABOUT_CALLS = 524288,
	KY_ABOUT_DID = 1048576,
	KY_ABOUT_GUESTS = 2097152,
	KY_ABOUT_QUIET = 4194304,
};

/* What any event may tell of. */
#define KY_ABOUT_EACH (KY_ABOUT_STACKS | KY_ABOUT_PERIODS)
/* What needs ky_cpu.event_ns. */
#define KY_ABOUT_LAST_EVENTS (KY_ABOUT_QUIET | KY_ABOUT_GUESTS)

/* What the model needs to know of an event class; resolved once. What every event needs is in the first cache line. */
#define KY_CLASS_INFO_ALIGN 64

struct ky_class_info {
	alignas(KY_CLASS_INFO_ALIGN)
		ky_event_handler handle; /* NULL: nothing to do, or nobody asks */
	bool no_sign;	 /* says nothing of the CPU: state dumps, or a switch under way */
	bool in_periods; /* it may begin or end one */
	bool has_stacks, is_sample;
	bool has_names; /* the stacks are names, in callstacks[0] */
	bool compat;
	/*
	 * What perf tells beside its samples (perf_fork, perf_comm, perf_mmap2, ...). Up to the first
	 * sample it is of what was there before the recording, at the clock's zero mostly; @before
	 * does what can be done with it.
	 */
	bool of_before;
	uint32_t syscall; /* of entries and exits; KY_NO_SYSCALL: by its number field */
	const struct ky_call_row *row;	 /* of calls: what they do to files; NULL: nothing */
	const struct ky_args_plan *args; /* of entries of calls; NULL: nobody asked yet */
	const struct ky_irq_line *line;	 /* of interrupt vectors: which */
	const struct ky_fs_step *step;	 /* of file systems */
	enum { KY_FS_SINGLE, KY_FS_BEGIN, KY_FS_END } step_kind;
	int32_t prio_offset;	 /* what takes its priorities to LTTng's scale */
	struct ky_handle tid;	 /* the context of the thread that ran when the event happened */
	ky_event_handler whole;	 /* what @handle is when somebody asks */
	ky_event_handler before; /* NULL: nothing */
	unsigned int subject;	 /* enum ky_subject: who must ask */
	/* By the handler's own enumeration. */
	struct ky_handle fields[KY_CLASS_FIELDS];
	struct ky_handle callstacks[2]; /* of the kernel, of the program; or of both, by names */
	struct ky_handle pid, comm, cgroup; /* of the context, too */
	struct ky_handle cpu;		    /* where it happened, if the event says so itself */
};

/* The CPU of @event: its packet's, or what perf up to 4.1 says in each event; UINT32_MAX: none. */
static inline uint32_t ky_event_cpu(const struct ky_event *event, const struct ky_class_info *info)
{
	if (event->cpu_id != UINT32_MAX || !info->cpu.cls)
		return event->cpu_id;
	return (uint32_t)ky_get_u64(event, &info->cpu, UINT32_MAX);
}

/* A data stream, as the model knows it. */
struct ky_stream_state {
	struct ky_host *host;
	bool begun, has_switch, has_syscalls;
	uint32_t cpu_id; /* the last one seen, for @cpu */
	struct ky_cpu *cpu;
	struct ky_map cpus; /* by ->index: those that its events named, as its packets do not */
	int64_t last_ns;    /* of its last event; INT64_MIN: none yet */
};

/* Of a wait for a lock. */
KY_VEC_TYPE(ky_lock_parts, struct ky_lock_part);
#define KY_SPARE_PARTS_MAX 64

/* Where the event at hand comes from. */
struct ky_feed {
	struct ky_model *model;
	struct ky_host *host;
	struct ky_stream_state *stream;
	struct ky_cpu *cpu; /* NULL: the event belongs to no CPU */
	/* What ky_model_current() found last, and of which event. */
	const struct ky_event *asked;
	struct ky_thread *thread;
	int64_t calm_from_ns, calm_until_ns; /* set_calm() */
};

/* What a CPU did over some time, which was known only at its end. */
struct ky_late {
	uint32_t cpu; /* by index */
	int64_t begin_ns, end_ns;
	enum ky_cpu_state state;
	int32_t tid, pid; /* when BUSY; and what else was known of the thread */
	uint64_t cgroup;
	char comm[KY_COMM_SIZE];
};

/* A time off the CPU that does not count: the thread may have run meanwhile. */
struct ky_doubt {
	uint32_t host; /* by index */
	int32_t tid;
	int64_t left_ns; /* when it left the CPU, or was woken */
};

/* Hooks of a listener, by number: the functions behind its data. */
#define KY_HOOKS	     (sizeof(struct ky_listener) / sizeof(void *))
#define ky_hook_number(hook) (offsetof(struct ky_listener, hook) / sizeof(void *))

/* A listener's hook; its type is that of its number. */
struct ky_hooked {
	void *call, *data;
};

struct ky_model {
	struct ky_arena arena;
	struct ky_values values; /* of call stacks */
	const struct ky_trace_set *set;
	KY_VEC(struct ky_hooked) hooked[KY_HOOKS]; /* by hook: who listens */
	KY_VEC(struct ky_host *) hosts;
	KY_VEC(struct ky_cpu *) cpus;
	KY_VEC(struct ky_thread *) threads;
	struct ky_waits_known waits;
	KY_VEC(const char *) syscalls;
	struct ky_names syscall_ids;	 /* name -> index + 1 */
	struct ky_names sample_sources;	 /* that texts tell -> the same */
	struct ky_map syscall_numbers;	 /* number, compat in bit 63 -> index + 1 */
	struct ky_stream_state *streams; /* by ky_stream.index */
	size_t n_streams;
	KY_VEC(struct ky_irq_line *) lines;
	KY_VEC(struct ky_file *) files;
	KY_VEC(struct ky_disk *) disks;
	KY_VEC(struct ky_netif *) netifs;
	struct ky_names fs_steps; /* name -> struct ky_fs_step * */
	struct ky_map fs_begins;  /* thread and step -> when it began, + 1 */
	KY_VEC(struct ky_lock *) locks;
	struct hold *free_holds;			      /* (model-locks.c) */
	uint64_t n_lock_parts;				      /* of waits that go on */
	struct ky_lock_parts spare_parts[KY_SPARE_PARTS_MAX]; /* memory for the next waits */
	size_t n_spare_parts;
	uint32_t n_spaces;
	struct ky_open_periods *periods;  /* model-periods.c; NULL: none are defined */
	struct ky_trace_symbols *symbols; /* ky_model_symbols() */
	struct ky_functions *functions;	  /* model-functions.c; NULL: none was seen */
	int64_t first_ns;		  /* of the first event at all */
	int64_t earliest_ns, latest_ns;	  /* what is further from that becomes this: ky_near_ns() */
	int64_t range_ns;		  /* the begin of the range; INT64_MIN: not yet reached */
	int64_t begin_ns, end_ns;	  /* of the range, or of the interval */
	uint64_t n_events;
	unsigned int subjects; /* enum ky_subject: what listeners ask for */
	/* The range and the selection of notifications (model-focus.c). */
	const struct ky_focus *focus; /* NULL: everything */
	bool telling, over, names_threads, follows_cgroups;
	bool chooses;	     /* the focus names threads or CPUs */
	int64_t boundary_ns; /* at an event from here on there is something to do; INT64_MAX: never */
	int64_t interval_ns;
	int (*tick)(void *data);
	void *tick_data;
	size_t n_first_cpus;		 /* when the first interval was over; SIZE_MAX: it is not */
	KY_VEC(struct ky_late) late;	 /* that the border of an interval lay in, by their ends */
	KY_VEC(struct ky_late) foreseen; /* the same of an earlier pass, by CPU and begin */
	KY_VEC(struct ky_doubt) doubts;	 /* of threads in notifications at such a border */
	KY_VEC(struct ky_doubt) doubted; /* of an earlier pass, sorted */
	struct ky_names late_files;	 /* which descriptor -> what a later state dump calls it */
	struct ky_names foreseen_files;	 /* the same of an earlier pass */
};

/* A timer that has been started or has run. */
struct ky_timer_state {
	const struct ky_thread *owner;
};

/* What else there is on a host; made when it is first seen. */
struct ky_host_state {
	struct ky_names files;		   /* name -> struct ky_file * */
	struct ky_map procs;		   /* pid -> struct ky_proc * */
	struct ky_map tables;		   /* address in the kernel -> struct ky_fds * */
	struct ky_map cgroups;		   /* number -> path */
	struct ky_map disks;		   /* dev + 1 -> struct ky_disk * */
	struct ky_names netifs;		   /* name -> struct ky_netif * */
	struct ky_map lines[KY_IRQ_KINDS]; /* number -> struct ky_irq_line * */
	struct ky_map spaces;		   /* mm_id -> struct ky_space * */
	struct ky_map timers;		   /* address -> struct ky_timer_state * */
	struct ky_map contended;	   /* address -> struct contended * (model-contention.c) */
	struct ky_map locks;		   /* address -> the first struct lock * (model-locks.c) */
	struct lock *recent_lock;	   /* NULL: none was asked for */
	uint32_t n_dumps;		   /* state dumps that have begun */
};

/* Times further apart are wrong ones; without them, what is subtracted and added up stays in its range. */
#define KY_APART_MAX_NS (INT64_C(1) << 61)

/* The time that is nearest to @ns of those around @origin_ns. */
static inline int64_t ky_near_ns(int64_t origin_ns, int64_t ns)
{
	if (ns < origin_ns && (uint64_t)origin_ns - (uint64_t)ns > KY_APART_MAX_NS)
		return origin_ns - KY_APART_MAX_NS;
	if (ns > origin_ns && (uint64_t)ns - (uint64_t)origin_ns > KY_APART_MAX_NS)
		return origin_ns + KY_APART_MAX_NS;
	return ns;
}

/* model-focus.c: does the focus hold what happens to @thread (NULL: none) on a CPU? */
bool ky_focus_holds(const struct ky_model *model, const struct ky_thread *thread, uint32_t cpu_id);
bool ky_focus_holds_cpu(const struct ky_model *model, uint32_t cpu_id);
/* model-cgroups.c: does the focus name the thread's control group? */
bool ky_focus_holds_cgroup(const struct ky_focus *focus, const struct ky_thread *thread);

/* Whether listeners get occurrences of @thread (NULL: of no thread) on CPU @cpu_id. */
static inline bool ky_model_tells(const struct ky_model *model, const struct ky_thread *thread,
				  uint32_t cpu_id)
{
	return model->telling && (!model->chooses || ky_focus_holds(model, thread, cpu_id));
}

/* Of CPUs alone. */
static inline bool ky_model_tells_cpu(const struct ky_model *model, uint32_t cpu_id)
{
	return !model->chooses || ky_focus_holds_cpu(model, cpu_id);
}

/* Whether listeners get occurrences that take @ns. */
static inline bool ky_model_tells_long(const struct ky_model *model, int64_t ns)
{
	uint64_t long_ns = ns > 0 ? (uint64_t)ns : 0;

	return !model->focus ||
	       (long_ns >= model->focus->min_ns && long_ns <= model->focus->max_ns);
}

/* model-focus.c: an event at or after model->boundary_ns comes. 0, 1 when the focus is over, or negative. */
int ky_model_boundary(struct ky_model *model, int64_t ns);
/* The first event comes. */
void ky_model_first(struct ky_model *model, int64_t ns);
/* What adds up goes to the listeners up to @ns. */
int ky_model_cut(struct ky_model *model, int64_t ns);
/* ---- model-hindsight.c: state that is found after the interval's notifications ---------- */

/*
 * At @ns it is found that @cpu was in @state (with @thread, when BUSY) since @begin_ns, which is not what
 * it was taken for. 0 or KYMO_E_MEMORY.
 */
int ky_model_late(struct ky_model *model, const struct ky_cpu *cpu, int64_t begin_ns, int64_t ns,
		  enum ky_cpu_state state, const struct ky_thread *thread);
/* @thread's time off the CPU since left_ns does not count: it may be over. 0 or KYMO_E_MEMORY. */
int ky_model_doubt(struct ky_model *model, const struct ky_thread *thread);
/* Did an earlier pass find so? */
bool ky_model_doubted(const struct ky_model *model, const struct ky_thread *thread);
/* An interval ends at @ns: what @cpu did up to there, as far as it is known, goes to the listeners. */
int ky_cpu_cut(struct ky_model *model, struct ky_cpu *cpu, int64_t ns);

/* Call @hook of every listener that has it; the first failure is the result. */
#define ky_model_notify(model, hook, ...)                                                     \
	({                                                                                    \
		const struct ky_hooked *to_ = (model)->hooked[ky_hook_number(hook)].data;     \
		size_t left_ = (model)->hooked[ky_hook_number(hook)].len;                     \
		int notified_ = 0;                                                            \
		for (; left_ && !notified_; left_--, to_++)                                   \
			notified_ = ((__typeof__(((struct ky_listener *)0)->hook))to_->call)( \
				to_->data, __VA_ARGS__);                                      \
		notified_;                                                                    \
	})

/* model-stacks.c: the call stacks of a class; of a @text of ftrace or perf script also those by names. */
void ky_stacks_find(struct ky_class_info *info, const struct ky_event_class *cls, bool is_text);
/* The fields of a sample. */
void ky_stacks_find_sample(struct ky_class_info *info, const struct ky_event_class *cls);
/* @thread has the name that the event's context tells. */
void ky_stacks_rename(struct ky_thread *thread, const struct ky_event *event,
		      const struct ky_class_info *info);
/* The event at hand has call stacks, and somebody listens to them. */
int ky_stacks_see(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info);

/* model-classes.c: fills host->classes and host->abilities. 0 or KYMO_E_MEMORY. */
int ky_model_resolve(struct ky_model *model, struct ky_host *host);
/* Follow @subjects (enum ky_subject) from now on. */
void ky_model_ask(struct ky_model *model, unsigned int subjects);
/* The index of a system call's name, or KY_NO_SYSCALL when out of memory. @name is copied. */
uint32_t ky_model_syscall(struct ky_model *model, const char *name);
uint32_t ky_model_syscall_by_number(struct ky_model *model, int64_t number, bool compat);

/* The thread that @tid means now on @host; made when it is new. NULL: out of memory. */
struct ky_thread *ky_model_thread_get(struct ky_model *model, struct ky_host *host, int32_t tid);
/* Without an id, and not among the threads of a host. NULL: out of memory. */
struct ky_thread *ky_model_thread_blank(struct ky_model *model);
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

/* What the context says of the thread @tid that the event happened in. NULL: out of memory. */
struct ky_thread *ky_model_context_thread(struct ky_feed *feed, const struct ky_event *event,
					  const struct ky_class_info *info, int32_t tid);
/* model-cgroups.c: the context tells in which control group the event's thread is. 0 or a negative status. */
int ky_cgroup_see(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info);

/* model-losses.c: events of the stream at hand were lost. As ky_model_feed() returns, but for the error's text. */
int ky_model_lose(struct ky_feed *feed, const struct ky_batch *batch);
/*
 * Damage may have ended streams of @flow before the end of the range. Returns the first one's, as @err, or 0; or
 * KYMO_E_MEMORY.
 */
int ky_model_lose_damaged(struct ky_model *model, struct ky_flow *flow, struct kymo_error *err);

/*
 * model-cpus.c: @thread (NULL: idle) ran on @cpu up to @ns, says an event. Where the state does not agree,
 * a switch is missing at some time since the last sign of it.
 */
int ky_cpu_settle(struct ky_model *model, struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns);
/* From @ns on, @thread (NULL: idle) runs on @cpu. */
void ky_cpu_set_state(struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns);
/* @thread is on CPU @cpu; tells the listeners if it was on another one. */
int ky_thread_move(struct ky_model *model, struct ky_thread *thread, int32_t cpu, int64_t ns);
/* @cpu runs @thread (NULL: idle), says the context of an event at @ns. */
int ky_cpu_learn(struct ky_model *model, struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns);
/* Events were lost: what @cpu did between @begin_ns and @end_ns is unknown. */
int ky_cpu_lose(struct ky_model *model, struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns);
/* The state up to @ns goes to the listeners. */
int ky_cpu_flush(struct ky_model *model, struct ky_cpu *cpu, int64_t ns);

/* model-runs.c: how many of the last runs on @cpu ended after @ns; and the last but @i - 1 of them: who, and when. */
size_t ky_cpu_runs_since(const struct ky_cpu *cpu, int64_t ns);
const struct ky_thread *ky_cpu_run(const struct ky_cpu *cpu, size_t i, int64_t *begin_ns,
				   int64_t *end_ns);
/* @thread ran on @cpu. 0 or KYMO_E_MEMORY. */
int ky_cpu_note_run(struct ky_model *model, struct ky_cpu *cpu, const struct ky_thread *thread,
		    int64_t begin_ns, int64_t end_ns);

/* model-syscalls.c: end the call that @thread is in, if any, without its exit. */
int ky_call_abandon(struct ky_model *model, struct ky_thread *thread, enum ky_call_outcome outcome,
		    int64_t ns);

/* The thread that the event happened in, without conclusions on the CPU. NULL: none, or unknown. */
struct ky_thread *ky_feed_thread(struct ky_feed *feed, const struct ky_event *event,
				 const struct ky_class_info *info);
/* model-programs.c: find the kernel's events of the machines on which programs ran. */
void ky_programs_pair(struct ky_model *model);
/* As ky_feed_thread(), of a program's event: the kernel's thread, where its events are there. */
struct ky_thread *ky_programs_thread(struct ky_feed *feed, const struct ky_event *event,
				     const struct ky_class_info *info);
#include "analysis/state/model-handlers.h"

#endif
