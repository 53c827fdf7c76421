/* SPDX-License-Identifier: MIT */
/* Handlers of events, and what they share. Only model-internal.h includes this header. */
#ifndef KY_ANALYSIS_STATE_MODEL_HANDLERS_H
#define KY_ANALYSIS_STATE_MODEL_HANDLERS_H

#include "analysis/state/model.h"

struct ky_feed;
struct ky_class_info;

/* ---- model-functions.c: calls of functions in programs ------------------------------------ */

/* Is it a call or a return? */
bool ky_functions_find(struct ky_class_info *info, const struct ky_event_class *cls);
int ky_on_function_entry(struct ky_feed *feed, const struct ky_event *event,
			 const struct ky_class_info *info);
int ky_on_function_exit(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info);
/* Events of @host were lost. 0 or negative. */
int ky_functions_lose(struct ky_model *model, const struct ky_host *host);
/* No more events. */
int ky_functions_end(struct ky_model *model);
void ky_functions_fini(struct ky_model *model);

/* ---- model-wait.c: what threads do off the CPU -------------------------------------------- */

/* @thread left its CPU to @next (NULL: idle); @state is the switch's (0: it could run on). */
int ky_wait_leave(struct ky_feed *feed, struct ky_thread *thread, const struct ky_thread *next,
		  uint64_t state, int64_t ns);
/* It was woken for @cpu (or KY_UNKNOWN). @whole: this event began it, or the one that did was seen. */
int ky_wait_wake(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info, struct ky_thread *thread, int32_t cpu,
		 bool whole);
/* Its sched_wakeup came before the current sched_waking, with the same time. */
int ky_wait_complete(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info, struct ky_thread *thread);
/* @thread was found to run on @cpu. @switched: by a switch, so from now on. */
int ky_wait_run(struct ky_model *model, struct ky_thread *thread, struct ky_cpu *cpu, int64_t ns,
		bool switched);
/* The state of @thread becomes unknown. */
int ky_wait_forget(struct ky_model *model, struct ky_thread *thread, int64_t ns);
/* What it does off the CPU up to @ns goes to the listeners. */
int ky_wait_flush(struct ky_model *model, struct ky_thread *thread, int64_t ns);
/* It moves to CPU @cpu, and waits there if it does. */
int ky_wait_move(struct ky_model *model, struct ky_thread *thread, int32_t cpu, int64_t ns);

/* model-args.c: the arguments of calls that @cls is the entry of. NULL: it has none, or memory lacks. */
const struct ky_args_plan *ky_args_plan_new(struct ky_model *model,
					    const struct ky_event_class *cls);
/* Keep them. 0 or KYMO_E_MEMORY. */
int ky_args_keep(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info, struct ky_thread *thread);

/* model-io.c: "127.0.0.1:7777", "[::1]:7777"; without @port (-1) the address alone. 0: the event does not tell. */
int ky_address_format(const struct ky_event *event, const struct ky_handle *v4,
		      const struct ky_handle *v6, int port, char *out, size_t size);

/* model-fs.c: which step an event of a file system, of this name, is of. 0 or KYMO_E_MEMORY. */
int ky_fs_resolve(struct ky_model *model, struct ky_class_info *info, const char *name);
void ky_fs_fini(struct ky_model *model);

/* ---- model-irq.c --------------------------------------------------------------------------- */

#define KY_IRQ_DEPTH 16
#define KY_SOFTIRQS  32

struct ky_running_irq {
	const struct ky_irq_line *line;
	int64_t begin_ns, raise_ns;
};

/* Interrupts that run on a CPU: each one on top of the one before it. */
struct ky_cpu_irqs {
	unsigned int depth;
	struct ky_running_irq stack[KY_IRQ_DEPTH];
	int64_t raise_ns[KY_SOFTIRQS]; /* the first one since it last began; INT64_MIN: none */
};

/* The interrupt that runs on @cpu; NULL: none. */
const struct ky_irq_line *ky_irq_current(const struct ky_cpu *cpu);
/* Events of @cpu were lost. */
void ky_irq_lose(struct ky_cpu *cpu);
/* The line of (kind, nr); made when it is new. NULL: out of memory. */
struct ky_irq_line *ky_irq_line_get(struct ky_model *model, struct ky_host *host,
				    enum ky_irq_kind kind, int32_t nr, const char *name,
				    size_t len);

/* ---- model-io.c, model-files.c ---------------------------------------------------------------- */

/* What a call does to files; a row of the table in model-io.c. */
const struct ky_call_row *ky_call_row_find(const char *syscall);
/* The fields of the row's entry (@exit: exit), "fd flags|how ...": as class rows have them. */
const char *ky_call_row_fields(const struct ky_call_row *row, bool exit);
/* A call begins: remember its arguments. */
int ky_io_begin(struct ky_feed *feed, const struct ky_event *event,
		const struct ky_class_info *info, struct ky_thread *thread);
/* It ended as @call tells, and was @begun so: change the files, tell of it. */
int ky_io_end(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info,
	      struct ky_syscall *begun, const struct ky_call *call);

struct ky_fds;
/* The process of @thread; made when it is new. NULL: out of memory. */
struct ky_proc *ky_proc_of(struct ky_model *model, struct ky_thread *thread);
/* The file of a name; made when it is new. NULL: out of memory. */
struct ky_file *ky_file_get(struct ky_model *model, struct ky_host *host, const char *name,
			    size_t len, enum ky_file_kind kind);
/* What kind of file has this name. */
enum ky_file_kind ky_file_kind_of(const char *name, size_t len);
/* The file of descriptor @fd; unknown ones get a name of their own. NULL: no such number. */
int ky_fd_get(struct ky_model *model, struct ky_thread *thread, int64_t fd, struct ky_file **file);
int ky_fd_set(struct ky_model *model, struct ky_thread *thread, int64_t fd, struct ky_file *file,
	      bool cloexec);
int ky_fd_set_cloexec(struct ky_model *model, struct ky_thread *thread, int64_t fd, bool cloexec);
int ky_fd_close(struct ky_model *model, struct ky_thread *thread, uint64_t first, uint64_t last);
/* A new process, an exec, an end. */
/*
 * model-files-late.c. A dump tells that what was @unknown in process @pid (NULL, or known: then nothing is new) is @known.
 * 0 or KYMO_E_MEMORY.
 */
int ky_file_found(struct ky_model *model, const struct ky_file *unknown, int32_t pid,
		  const struct ky_file *known);
/* Whether the current dump is one of the events' time, not of their begin. */
bool ky_files_dump_is_late(const struct ky_host *host);
/* What a dump of an earlier pass has called it, as many uses as it has had. NULL: nothing. */
const char *ky_file_foreseen(const struct ky_model *model, const struct ky_file *unknown);
/* @model is to know what @before has found. 0 or KYMO_E_MEMORY. */
int ky_files_foresee(struct ky_model *model, const struct ky_model *before);

int ky_files_fork(struct ky_model *model, struct ky_thread *parent, struct ky_thread *child);
/* The state dump says which table of files @thread uses; 0: it does not. */
int ky_files_dump(struct ky_model *model, struct ky_thread *thread, uint64_t table);
void ky_files_exec(struct ky_thread *thread);
void ky_files_exit(struct ky_thread *thread);
void ky_files_fini(struct ky_model *model);

/* ---- model-locks.c -------------------------------------------------------------------------- */

/* @thread was off the CPU from @begin_ns to @end_ns. 0 or KYMO_E_MEMORY. */
int ky_lock_note_off(struct ky_model *model, struct ky_thread *thread, enum ky_off_kind kind,
		     int64_t begin_ns, int64_t end_ns);
/* @thread begins a futex(); its arguments are known. */
int ky_lock_begin(struct ky_model *model, struct ky_thread *thread);
/* A futex() is over. @tells: listeners get it. */
int ky_lock_end(struct ky_model *model, const struct ky_call *call, bool tells);
/* The end of a call of the thread, which may be a futex(), is not known. A listener's error. */
int ky_lock_lose(struct ky_model *model, struct ky_thread *thread);
/* The trace is over. */
int ky_locks_end(struct ky_model *model);
void ky_locks_fini(struct ky_model *model);

/* ---- model-periods.c ------------------------------------------------------------------------ */

/* Does @event, whose class is in_periods, end or begin some? */
int ky_periods_see(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info);
/* Events of @host were lost up to @end_ns. */
void ky_periods_lose(struct ky_model *model, const struct ky_host *host, int64_t end_ns);
/* The trace is over. */
int ky_periods_end(struct ky_model *model);
void ky_periods_fini(struct ky_model *model);

int ky_on_irq_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_irq_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_softirq_raise(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_softirq_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_softirq_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_vector_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_vector_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_irq(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_start(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_fd(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_disk(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rq_insert(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_getrq(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rq_issue(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rq_requeue(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rq_merge(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rq_complete(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_bio_frontmerge(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rq_remap(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_net_sent(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_net_received(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_tcp_probe(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_tcp_socket(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_sock_sent(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_fs(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_timer_start(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_timer_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_hrtimer_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_timer_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_cache_add(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_cache_delete(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_contention_begin(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_contention_end(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_kvm_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_kvm_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_vcpu(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_signal(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_page_alloc(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_page_free(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_reclaim_begin(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_reclaim_end(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_limit_reclaim_end(struct ky_feed *, const struct ky_event *,
			    const struct ky_class_info *);
int ky_on_fault_user(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_fault_kernel(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rss(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_switch(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_migrate(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_waking(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_wakeup(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_wakeup_new(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_fork(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_newtask(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_exec(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_rename(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_setprio(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_resumed(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_memory(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_dump_cgroup(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_attach_cgroup(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_statedump(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
/* Of a call that nobody asks for: it tells which thread runs. */
int ky_on_syscall_sign(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_syscall_entry(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);
int ky_on_syscall_exit(struct ky_feed *, const struct ky_event *, const struct ky_class_info *);

/* What each handler finds in ky_class_info.fields. */
enum {
	KY_SWITCH_PREV_TID,
	KY_SWITCH_NEXT_TID,
	KY_SWITCH_PREV_COMM,
	KY_SWITCH_NEXT_COMM,
	KY_SWITCH_PREV_PRIO,
	KY_SWITCH_NEXT_PRIO,
	KY_SWITCH_PREV_STATE
};
/* migrate, wakeup, exit, setprio */
enum { KY_TASK_TID, KY_TASK_COMM, KY_TASK_PRIO, KY_TASK_CPU, KY_TASK_FROM_CPU };
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
enum {
	KY_STATEDUMP_TID,
	KY_STATEDUMP_PID,
	KY_STATEDUMP_PPID,
	KY_STATEDUMP_COMM,
	KY_STATEDUMP_FILES
};
enum { KY_CGROUP_TID, KY_CGROUP_ID, KY_CGROUP_PATH, KY_CGROUP_ROOT };
/* The first two of every call; what is behind them is the row's (model-io.c). */
enum { KY_SYSCALL_NUMBER, KY_SYSCALL_RET, KY_SYSCALL_ARGS };
enum { KY_IRQ_NR, KY_IRQ_NAME };
enum { KY_DUMP_FD_PID, KY_DUMP_FD_TABLE, KY_DUMP_FD, KY_DUMP_FD_FLAGS, KY_DUMP_FD_NAME };
enum { KY_DUMP_DISK_DEV, KY_DUMP_DISK_NAME };
enum { KY_RQ_DEV, KY_RQ_SECTOR, KY_RQ_N, KY_RQ_RWBS, KY_RQ_TID, KY_RQ_ERROR, KY_RQ_OLD };
enum { KY_NET_NAME, KY_NET_LEN, KY_NET_RC };
enum {
	KY_TCP_PROBE_LOCAL,
	KY_TCP_PROBE_REMOTE,
	KY_TCP_PROBE_LOCAL_PORT,
	KY_TCP_PROBE_REMOTE_PORT,
	KY_TCP_PROBE_SOCKET,
	KY_TCP_PROBE_FAMILY,
	KY_TCP_PROBE_BYTES
};
enum { KY_SOCK_SENT_SOCKET, KY_SOCK_SENT_PROTOCOL, KY_SOCK_SENT_RET };
enum { KY_PAGE_ORDER };
enum { KY_RECLAIM_PAGES };
enum { KY_TIMER_ADDRESS, KY_TIMER_FUNCTION };
/* Of the begin, and of the end. */
enum { KY_CONTENTION_ADDRESS, KY_CONTENTION_FLAGS, KY_CONTENTION_RET = KY_CONTENTION_FLAGS };
enum { KY_CACHE_DEV, KY_CACHE_INODE, KY_CACHE_ORDER };
enum { KY_SIGNAL_NR, KY_SIGNAL_CODE, KY_SIGNAL_TID, KY_SIGNAL_COMM, KY_SIGNAL_RESULT };
/* Of the dump; the others have the first one. */
enum { KY_KVM_VCPU, KY_KVM_TID, KY_KVM_VM };
enum { KY_FUNCTION_ADDRESS, KY_FUNCTION_SITE };
enum { KY_SAMPLE_SOURCE, KY_SAMPLE_PERIOD };
enum { KY_RSS_MEMBER, KY_RSS_SIZE, KY_RSS_MM, KY_RSS_CURRENT };

#endif
