/* SPDX-License-Identifier: MIT */
/*
 * Which event is what, and what its fields are called. The only place that knows names: LTTng's
 * (old and new), and those that perf's conversion to CTF takes from the kernel's own formats.
 * (What system calls' arguments are called stands beside what they do, in model-io.c.)
 */
#include "analysis/state/model-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/graph/range.h"
#include "store/read/quirks.h"

enum naming {
	EXACT,
	PREFIX,	      /* the rest is a system call's name */
	PREFIX_LTTNG, /* likewise, but only LTTng's word */
	VECTOR_ENTRY, /* between this and "_entry" stands an interrupt vector's name */
	VECTOR_EXIT,
};

struct class_row {
	const char *name;
	enum naming naming;
	unsigned int subject, ability;
	ky_event_handler handle;
	/*
	 * The handler's fields in the order of its enumeration, with blanks in between. A field's names
	 * stand LTTng's first; the kernel's own word for a thread id is "pid". "-": none.
	 */
	const char *fields;
};

#define TASK_FIELDS "tid|pid comm prio target_cpu"
#define TCP_FIELDS  "saddr_v6 daddr_v6 sport dport skaddr"
#define RQ_FIELDS   "dev sector nr_sector rwbs tid error"

/* The first row that fits is taken. */
/* clang-format off */
static const struct class_row class_rows[] = {
	{"sched_switch", EXACT, KY_ABOUT_ALWAYS, KY_CAN_SWITCH, ky_on_switch,
	 "prev_tid|prev_pid next_tid|next_pid prev_comm next_comm prev_prio next_prio prev_state"},
	{"sched_migrate_task", EXACT, KY_ABOUT_ALWAYS, KY_CAN_MIGRATE, ky_on_migrate,
	 "tid|pid comm prio dest_cpu orig_cpu"},
	{"sched_waking", EXACT, KY_ABOUT_ALWAYS, KY_CAN_WAKE, ky_on_waking, TASK_FIELDS},
	{"sched_wakeup", EXACT, KY_ABOUT_ALWAYS, KY_CAN_WAKE, ky_on_wakeup, TASK_FIELDS},
	{"sched_wakeup_new", EXACT, KY_ABOUT_ALWAYS, KY_CAN_WAKE, ky_on_wakeup_new, TASK_FIELDS},
	{"sched_process_fork", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_fork,
	 "child_tid|child_pid child_pid child_comm parent_tid|parent_pid parent_pid"},
	{"sched_process_exec", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_exec, "tid|pid old_tid|old_pid filename"},
	{"sched_process_exit", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_exit, "tid|pid comm prio"},
	{"sched_pi_setprio", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_setprio, "tid|pid comm newprio"},
	{"task_newtask", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_newtask, "tid|pid comm clone_flags"},
	{"task_rename", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_rename, "tid|pid newcomm"},
	{"perf_fork", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_statedump, "tid pid ppid"},
	{"perf_comm", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_rename, "tid comm"},
	{"lttng_statedump_process_state", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_statedump,
	 "tid pid ppid name file_table_address"},
	{"lttng_statedump_process_cgroup", EXACT, KY_ABOUT_ALWAYS, KY_CAN_CGROUP, ky_on_dump_cgroup,
	 "tid cgroup path"},
	{"cgroup_attach_task", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_attach_cgroup,
	 "tid|pid dst_id dst_path dst_root"},
	{"lttng_statedump_start", EXACT, KY_ABOUT_FILES, 0, ky_on_dump_start, ""},
	{"lttng_statedump_file_descriptor", EXACT, KY_ABOUT_FILES, 0, ky_on_dump_fd,
	 "pid file_table_address fd flags filename"},
	{"lttng_statedump_block_device", EXACT, KY_ABOUT_BLOCK, 0, ky_on_dump_disk, "dev diskname"},
	/* Fields as the machine's parts are. */
	{"lttng_statedump_memory", EXACT, KY_ABOUT_MEMORY, 0, ky_on_dump_memory,
	 "total free available buffers cached swap_total swap_free"},
	{"kymo_recording_resumed", EXACT, KY_ABOUT_ALWAYS, 0, ky_on_resumed, "paused_ns"},
	{"lttng_statedump_interrupt", EXACT, KY_ABOUT_IRQS, 0, ky_on_dump_irq, "irq action"},

	{"irq_handler_entry", EXACT, KY_ABOUT_IRQS, KY_CAN_IRQ, ky_on_irq_entry, "irq name"},
	{"irq_handler_exit", EXACT, KY_ABOUT_IRQS, KY_CAN_IRQ, ky_on_irq_exit, "irq"},
	{"irq_softirq_raise", EXACT, KY_ABOUT_IRQS, KY_CAN_SOFTIRQ, ky_on_softirq_raise, "vec"},
	{"irq_softirq_entry", EXACT, KY_ABOUT_IRQS, KY_CAN_SOFTIRQ, ky_on_softirq_entry, "vec"},
	{"irq_softirq_exit", EXACT, KY_ABOUT_IRQS, KY_CAN_SOFTIRQ, ky_on_softirq_exit, "vec"},
	/* LTTng before 2.7, and the kernel itself */
	{"softirq_raise", EXACT, KY_ABOUT_IRQS, KY_CAN_SOFTIRQ, ky_on_softirq_raise, "vec"},
	{"softirq_entry", EXACT, KY_ABOUT_IRQS, KY_CAN_SOFTIRQ, ky_on_softirq_entry, "vec"},
	{"softirq_exit", EXACT, KY_ABOUT_IRQS, KY_CAN_SOFTIRQ, ky_on_softirq_exit, "vec"},
	{"x86_irq_vectors_", VECTOR_ENTRY, KY_ABOUT_IRQS, KY_CAN_IRQ | KY_CAN_VECTORS, ky_on_vector_entry, "vector"},
	{"x86_irq_vectors_", VECTOR_EXIT, KY_ABOUT_IRQS, KY_CAN_IRQ | KY_CAN_VECTORS, ky_on_vector_exit, "vector"},
	{"irq_vectors:", VECTOR_ENTRY, KY_ABOUT_IRQS, KY_CAN_IRQ | KY_CAN_VECTORS, ky_on_vector_entry, "vector"},
	{"irq_vectors:", VECTOR_EXIT, KY_ABOUT_IRQS, KY_CAN_IRQ | KY_CAN_VECTORS, ky_on_vector_exit, "vector"},

	{"block_rq_insert", EXACT, KY_ABOUT_BLOCK, KY_CAN_BLOCK, ky_on_rq_insert, RQ_FIELDS},
	{"block_getrq", EXACT, KY_ABOUT_BLOCK, 0, ky_on_getrq, RQ_FIELDS},
	{"block_rq_issue", EXACT, KY_ABOUT_BLOCK, KY_CAN_BLOCK, ky_on_rq_issue, RQ_FIELDS},
	{"block_rq_requeue", EXACT, KY_ABOUT_BLOCK, 0, ky_on_rq_requeue, RQ_FIELDS},
	{"block_rq_merge", EXACT, KY_ABOUT_BLOCK, 0, ky_on_rq_merge, RQ_FIELDS},
	{"block_rq_complete", EXACT, KY_ABOUT_BLOCK, KY_CAN_BLOCK, ky_on_rq_complete, RQ_FIELDS},
	{"block_rq_remap", EXACT, KY_ABOUT_BLOCK, 0, ky_on_rq_remap, RQ_FIELDS " old_sector"},
	{"block_bio_frontmerge", EXACT, KY_ABOUT_BLOCK, 0, ky_on_bio_frontmerge, RQ_FIELDS},

	{"net_dev_xmit", EXACT, KY_ABOUT_NET, KY_CAN_NET, ky_on_net_sent, "name len rc"},
	{"net_if_receive_skb", EXACT, KY_ABOUT_NET, KY_CAN_NET, ky_on_net_received, "name len"},
	/* LTTng before 2.8, and the kernel itself */
	{"netif_receive_skb", EXACT, KY_ABOUT_NET, KY_CAN_NET, ky_on_net_received, "name len"},

	{"ext4_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},
	{"jbd2_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},
	{"xfs_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},
	{"btrfs_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},
	{"f2fs_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},
	{"fuse_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},
	{"nfs_", PREFIX, KY_ABOUT_FS, KY_CAN_FS, ky_on_fs, ""},

	{"tcp_probe", EXACT, KY_ABOUT_TCP, KY_CAN_TCP, ky_on_tcp_probe,
	 "saddr daddr sport dport skaddr family data_len"},
	{"tcp_rcv_space_adjust", EXACT, KY_ABOUT_TCP, 0, ky_on_tcp_socket, TCP_FIELDS},
	{"sock_inet_sock_set_state", EXACT, KY_ABOUT_TCP, 0, ky_on_tcp_socket, TCP_FIELDS},
	{"inet_sock_set_state", EXACT, KY_ABOUT_TCP, 0, ky_on_tcp_socket, TCP_FIELDS},
	{"sock_send_length", EXACT, KY_ABOUT_TCP, 0, ky_on_sock_sent, "sk protocol ret"},

	{"timer_hrtimer_start", EXACT, KY_ABOUT_TIMERS, 0, ky_on_timer_start, "hrtimer function"},
	{"timer_hrtimer_expire_entry", EXACT, KY_ABOUT_TIMERS, KY_CAN_TIMERS, ky_on_hrtimer_entry,
	 "hrtimer function"},
	{"timer_hrtimer_expire_exit", EXACT, KY_ABOUT_TIMERS, 0, ky_on_timer_exit, "hrtimer"},
	/* The kernel's own names */
	{"hrtimer_start", EXACT, KY_ABOUT_TIMERS, 0, ky_on_timer_start, "hrtimer function"},
	{"hrtimer_expire_entry", EXACT, KY_ABOUT_TIMERS, KY_CAN_TIMERS, ky_on_hrtimer_entry,
	 "hrtimer function"},
	{"hrtimer_expire_exit", EXACT, KY_ABOUT_TIMERS, 0, ky_on_timer_exit, "hrtimer"},
	{"timer_start", EXACT, KY_ABOUT_TIMERS, 0, ky_on_timer_start, "timer function"},
	{"timer_expire_entry", EXACT, KY_ABOUT_TIMERS, KY_CAN_TIMERS, ky_on_timer_entry,
	 "timer function"},
	{"timer_expire_exit", EXACT, KY_ABOUT_TIMERS, 0, ky_on_timer_exit, "timer"},
	{"filemap_mm_filemap_add_to_page_cache", EXACT, KY_ABOUT_CACHE, KY_CAN_CACHE, ky_on_cache_add,
	 "s_dev i_ino order"},
	{"filemap_mm_filemap_delete_from_page_cache", EXACT, KY_ABOUT_CACHE, 0, ky_on_cache_delete,
	 "s_dev i_ino order"},
	{"mm_filemap_add_to_page_cache", EXACT, KY_ABOUT_CACHE, KY_CAN_CACHE, ky_on_cache_add,
	 "s_dev i_ino order"},
	{"mm_filemap_delete_from_page_cache", EXACT, KY_ABOUT_CACHE, 0, ky_on_cache_delete,
	 "s_dev i_ino order"},
	{"lock_contention_begin", EXACT, KY_ABOUT_CONTENTION, KY_CAN_CONTENTION,
	 ky_on_contention_begin, "lock_addr flags"},
	{"lock_contention_end", EXACT, KY_ABOUT_CONTENTION, 0, ky_on_contention_end, "lock_addr ret"},
	{"contention_begin", EXACT, KY_ABOUT_CONTENTION, KY_CAN_CONTENTION, ky_on_contention_begin,
	 "lock_addr flags"},
	{"contention_end", EXACT, KY_ABOUT_CONTENTION, 0, ky_on_contention_end, "lock_addr ret"},
	/* LTTng's name, and the kernel's. Exits have no number before Linux 5.12. */
	{"kvm_x86_entry", EXACT, KY_ABOUT_GUESTS, KY_CAN_GUESTS, ky_on_kvm_entry, "vcpu_id"},
	{"kvm_entry", EXACT, KY_ABOUT_GUESTS, KY_CAN_GUESTS, ky_on_kvm_entry, "vcpu_id"},
	{"kvm_x86_exit", EXACT, KY_ABOUT_GUESTS, 0, ky_on_kvm_exit, "vcpu_id"},
	{"kvm_exit", EXACT, KY_ABOUT_GUESTS, 0, ky_on_kvm_exit, "vcpu_id"},
	{"lttng_statedump_kvm_vcpu", EXACT, KY_ABOUT_GUESTS, 0, ky_on_dump_vcpu, "vcpu_id tid vm"},
	{"signal_generate", EXACT, KY_ABOUT_SIGNALS, KY_CAN_SIGNALS, ky_on_signal,
	 "sig code tid|pid comm result"},
	{"kmem_mm_page_alloc", EXACT, KY_ABOUT_MEMORY, KY_CAN_PAGES, ky_on_page_alloc, "order"},
	{"kmem_mm_page_free", EXACT, KY_ABOUT_MEMORY, KY_CAN_PAGES, ky_on_page_free, "order"},
	{"mm_page_alloc", EXACT, KY_ABOUT_MEMORY, KY_CAN_PAGES, ky_on_page_alloc, "order"},
	{"mm_page_free", EXACT, KY_ABOUT_MEMORY, KY_CAN_PAGES, ky_on_page_free, "order"},
	{"mm_vmscan_direct_reclaim_begin", EXACT, KY_ABOUT_MEMORY, 0, ky_on_reclaim_begin, ""},
	{"mm_vmscan_direct_reclaim_end", EXACT, KY_ABOUT_MEMORY, 0, ky_on_reclaim_end, "nr_reclaimed"},
	{"mm_vmscan_memcg_reclaim_begin", EXACT, KY_ABOUT_MEMORY, 0, ky_on_reclaim_begin, ""},
	{"mm_vmscan_memcg_reclaim_end", EXACT, KY_ABOUT_MEMORY, 0, ky_on_limit_reclaim_end,
	 "nr_reclaimed"},
	{"x86_exceptions_page_fault_user", EXACT, KY_ABOUT_MEMORY, KY_CAN_FAULT, ky_on_fault_user, ""},
	{"x86_exceptions_page_fault_kernel", EXACT, KY_ABOUT_MEMORY, KY_CAN_FAULT, ky_on_fault_kernel,
	 ""},
	{"page_fault_user", EXACT, KY_ABOUT_MEMORY, KY_CAN_FAULT, ky_on_fault_user, ""},
	{"page_fault_kernel", EXACT, KY_ABOUT_MEMORY, KY_CAN_FAULT, ky_on_fault_kernel, ""},
	{"rss_stat", EXACT, KY_ABOUT_MEMORY, KY_CAN_RSS, ky_on_rss, "member size mm_id curr"},
	{"kmem_rss_stat", EXACT, KY_ABOUT_MEMORY, KY_CAN_RSS, ky_on_rss, "member size mm_id curr"},

	{"syscall_entry_", PREFIX, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_entry,
	 "id|nr|__syscall_nr"},
	{"syscall_exit_", PREFIX, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_exit,
	 "id|nr|__syscall_nr ret"},
	{"sys_enter_", PREFIX, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_entry,
	 "id|nr|__syscall_nr"},
	{"sys_exit_", PREFIX, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_exit,
	 "id|nr|__syscall_nr ret"},
	{"sys_enter", EXACT, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_entry, "id|nr|__syscall_nr"},
	{"sys_exit", EXACT, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_exit,
	 "id|nr|__syscall_nr ret"},
	/* LTTng before 2.6: entries by name, one exit for all */
	{"exit_syscall", EXACT, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_exit, "- ret"},
	{"sys_", PREFIX_LTTNG, KY_ABOUT_ALWAYS, KY_CAN_SYSCALLS, ky_on_syscall_entry,
	 "id|nr|__syscall_nr"},
};
/* clang-format on */

#define N_CLASS_ROWS (sizeof(class_rows) / sizeof(*class_rows))

/* @name without perf's "sched:", and without LTTng's "compat_" (*compat then). */
static const char *model_classes_plain_name(const char *name, bool *compat)
{
	const char *colon = strrchr(name, ':');

	if (colon && strncmp(name, "irq_vectors:", 12) != 0)
		name = colon + 1;
	*compat = strncmp(name, "compat_sys", 10) == 0;
	return *compat ? name + 7 : name;
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && strcmp(name + len - end_len, end) == 0;
}

static bool row_fits(const struct class_row *row, const char *name, size_t len, bool lttng)
{
	if (strncmp(name, row->name, len) != 0)
		return false;
	switch (row->naming) {
	case EXACT:
		return !name[len];
	case PREFIX:
		return true;
	case PREFIX_LTTNG:
		return lttng;
	case VECTOR_ENTRY:
		return ends_in(name + len, "_entry");
	case VECTOR_EXIT:
		return ends_in(name + len, "_exit");
	}
	return false;
}

static const struct class_row *find_row(const char *name, bool lttng, const char **rest)
{
	for (size_t i = 0; i < N_CLASS_ROWS; i++) {
		size_t len;

		/* Metadata may have thousands of classes. */
		if (class_rows[i].name[0] != name[0])
			continue;
		len = strlen(class_rows[i].name);
		if (!row_fits(&class_rows[i], name, len, lttng))
			continue;
		*rest = name + len;
		return &class_rows[i];
	}
	return NULL;
}

/* Find the field that has one of the @names ("tid|pid"). Returns which of them it was, or -1. */
static int model_classes_find_field(struct ky_handle *handle, const struct ky_event_class *cls,
				    const char *names, size_t len)
{
	char name[64];

	for (int i = 0;; i++) {
		size_t n = strcspn(names, "| ");

		snprintf(name, sizeof(name), "%.*s", (int)n, names);
		if (ky_handle_find(handle, cls, KY_SCOPE_PAYLOAD, name))
			return i;
		if (n >= len)
			return -1;
		names += n + 1;
		len -= n + 1;
	}
}

/* The fields of @spec, from @fields on. Returns whether the kernel's own words were among them. */
static bool find_fields(struct ky_handle *fields, int n_fields, const char *spec,
			const struct ky_event_class *cls)
{
	bool kernel_words = false;

	for (int i = 0; i < n_fields && *spec; i++) {
		size_t len = strcspn(spec, " ");

		if (*spec != '-' && model_classes_find_field(&fields[i], cls, spec, len) > 0)
			kernel_words = true;
		spec += len + (spec[len] == ' ');
	}
	return kernel_words;
}

static bool model_classes_wakes(const struct class_row *row)
{
	return row->handle == ky_on_waking || row->handle == ky_on_wakeup ||
	       row->handle == ky_on_wakeup_new;
}

static void find_row_fields(struct ky_class_info *info, const struct class_row *row,
			    const struct ky_event_class *cls, unsigned int quirks)
{
	bool kernel_words = find_fields(info->fields, KY_CLASS_FIELDS, row->fields, cls);
	bool kernel_prio =
		kernel_words || (model_classes_wakes(row) && quirks & KY_QUIRK_WAKE_PRIO);

	info->prio_offset = kernel_prio ? -100 : 0;
	/* The kernel's child_pid is the thread's id, and then no field tells the process. */
	if (row->handle == ky_on_fork && kernel_words) {
		memset(&info->fields[KY_FORK_CHILD_PID], 0, sizeof(struct ky_handle));
		memset(&info->fields[KY_FORK_PARENT_PID], 0, sizeof(struct ky_handle));
	}
}

static void model_classes_find_context(struct ky_class_info *info, const struct ky_event_class *cls)
{
	static const enum ky_scope scopes[] = {KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_STREAM_CONTEXT};

	for (size_t i = 0; i < 2; i++) {
		if (!info->tid.cls)
			ky_handle_find(&info->tid, cls, scopes[i], "tid");
		if (!info->pid.cls)
			ky_handle_find(&info->pid, cls, scopes[i], "pid");
		if (!info->comm.cls)
			ky_handle_find(&info->comm, cls, scopes[i], "procname");
	}
	if (!ky_handle_find_any(&info->cpu, cls, "perf_cpu"))
		ky_handle_find(&info->cpu, cls, KY_SCOPE_EVENT_CONTEXT, "cpu_id");
	ky_handle_find(&info->cgroup, cls, KY_SCOPE_EVENT_CONTEXT, "cgroup");
	if (!info->cgroup.cls)
		ky_handle_find(&info->cgroup, cls, KY_SCOPE_STREAM_CONTEXT, "cgroup");
	if (!info->tid.cls && ky_handle_find_any(&info->tid, cls, "perf_tid"))
		ky_handle_find_any(&info->pid, cls, "perf_pid");
	if (!info->tid.cls)
		ky_handle_find(&info->tid, cls, KY_SCOPE_PAYLOAD, "common_pid");
}

uint32_t ky_model_syscall(struct ky_model *model, const char *name)
{
	uintptr_t found = (uintptr_t)ky_names_get(&model->syscall_ids, name);
	char *copy;

	if (found)
		return (uint32_t)(found - 1);
	copy = ky_arena_strdup(&model->arena, name);
	if (!copy || ky_vec_push(&model->syscalls, copy) < 0)
		return KY_NO_SYSCALL;
	if (ky_names_set(&model->syscall_ids, copy, (void *)(uintptr_t)model->syscalls.len) < 0)
		return KY_NO_SYSCALL;
	return (uint32_t)(model->syscalls.len - 1);
}

uint32_t ky_model_syscall_by_number(struct ky_model *model, int64_t number, bool compat)
{
	uint64_t key = ((uint64_t)number & INT64_MAX) | (uint64_t)compat << 63;
	uintptr_t found = (uintptr_t)ky_map_get(&model->syscall_numbers, key);
	char name[48];
	uint32_t index;

	if (found)
		return (uint32_t)(found - 1);
	snprintf(name, sizeof(name), "%ssyscall %lld", compat ? "compat " : "", (long long)number);
	index = ky_model_syscall(model, name);
	if (index != KY_NO_SYSCALL &&
	    ky_map_set(&model->syscall_numbers, key, (void *)(uintptr_t)(index + 1)) < 0)
		return KY_NO_SYSCALL;
	return index;
}

/* Entries and exits: which call; "unknown" ones tell by their number. */
static int resolve_syscall(struct ky_model *model, struct ky_class_info *info,
			   const struct class_row *row, const char *rest,
			   const struct ky_event_class *cls)
{
	char name[256];

	info->syscall = KY_NO_SYSCALL;
	if (row->naming == EXACT || strcmp(rest, "unknown") == 0)
		return 0;
	snprintf(name, sizeof(name), "%s%s", info->compat ? "compat_" : "", rest);
	info->syscall = ky_model_syscall(model, name);
	info->row = ky_call_row_find(rest);
	if (info->row)
		find_fields(info->fields + KY_SYSCALL_ARGS, KY_CLASS_FIELDS - KY_SYSCALL_ARGS,
			    ky_call_row_fields(info->row, row->handle == ky_on_syscall_exit), cls);
	return info->syscall == KY_NO_SYSCALL ? KYMO_E_MEMORY : 0;
}

/* Vectors have no number of their own in their line: their names tell them apart. */
static int resolve_vector(struct ky_model *model, struct ky_host *host, struct ky_class_info *info,
			  const struct class_row *row, const char *rest)
{
	size_t len = strlen(rest) - (row->naming == VECTOR_ENTRY ? 6 : 5);

	info->line = ky_irq_line_get(model, host, KY_IRQ_VECTOR, -1, rest, len);
	return info->line ? 0 : KYMO_E_MEMORY;
}

static bool model_classes_env_is(const struct ky_host *host, const char *name, const char *text)
{
	const struct ky_env *env = ky_env_find(host->trace->cls, name);

	return env && env->is_text && strcmp(env->text, text) == 0;
}

static void prefer_name(struct ky_host *host, size_t i)
{
	const char *name = host->trace->cls->events.data[i]->name;

	if (strcmp(name, "raw_syscalls:sys_enter") == 0 ||
	    strcmp(name, "raw_syscalls:sys_exit") == 0)
		host->classes[i].whole = NULL;
}

/* Calls by name make the kernel's raw_syscalls events, which tell numbers, superfluous. */
static void prefer_names(struct ky_host *host)
{
	bool named = false;

	for (size_t i = 0; i < host->trace->cls->events.len; i++)
		named = named || (host->classes[i].whole == ky_on_syscall_entry &&
				  host->classes[i].syscall != KY_NO_SYSCALL);
	for (size_t i = 0; named && i < host->trace->cls->events.len; i++)
		prefer_name(host, i);
}

static void model_classes_choose(struct ky_model *model, unsigned int subjects,
				 struct ky_host *host, size_t i)
{
	struct ky_class_info *info = &host->classes[i];

	info->handle = info->subject & ~subjects ? NULL : info->whole;
	if ((info->whole == ky_on_syscall_entry || info->whole == ky_on_syscall_exit) &&
	    !(subjects & KY_ABOUT_CALLS))
		info->handle = ky_on_syscall_sign;
	if (subjects & KY_ABOUT_ARGS && info->whole == ky_on_syscall_entry && !info->args)
		info->args = ky_args_plan_new(model, host->trace->cls->events.data[i]);
}

void ky_model_ask(struct ky_model *model, unsigned int subjects)
{
	model->subjects = subjects;
	ky_vec_foreach(&model->hosts, host) {
		size_t n = (*host)->trace->cls->events.len;

		for (size_t i = 0; i < n; i++)
			model_classes_choose(model, subjects, *host, i);
	}
}

/*
 * Between sched_switch and the switch itself the kernel changes the address space and the registers: events of that still have
 * the thread that leaves.
 */
static bool is_of_switch(const char *name)
{
	return strcmp(name, "tlb_flush") == 0 || strncmp(name, "x86_fpu_", 8) == 0;
}

/* ftrace writes the stack of an event behind it, and that of a switch is of the thread that has left. */
static bool is_stack_of_ftrace(const char *name)
{
	return strcmp(name, "kernel_stack") == 0 || strcmp(name, "user_stack") == 0;
}

static int resolve_class(struct ky_model *model, struct ky_host *host,
			 const struct ky_event_class *cls, bool lttng)
{
	struct ky_class_info *info = &host->classes[cls->index];
	const struct class_row *row;
	const char *name, *rest;

	name = model_classes_plain_name(cls->name, &info->compat);
	model_classes_find_context(info, cls);
	ky_stacks_find(info, cls,
		       model_classes_env_is(host, "tracer_name", "ftrace") ||
			       model_classes_env_is(host, "tracer_name", "systrace"));
	info->is_sample = info->has_stacks && strcmp(name, "sample") == 0;
	if (info->is_sample)
		ky_stacks_find_sample(info, cls);
	if (info->has_stacks)
		host->abilities |= KY_CAN_STACKS;
	info->of_before = ky_is_of_before(host->trace->cls, cls);
	info->no_sign = info->of_before || strncmp(name, "lttng_statedump_", 16) == 0 ||
			strncmp(name, "kymo_", 5) == 0 || info->is_sample || is_of_switch(name) ||
			is_stack_of_ftrace(name);
	if (info->tid.cls)
		host->abilities |= KY_CAN_CONTEXT;
	if (info->cgroup.cls)
		host->abilities |= KY_CAN_CGROUP;
	row = find_row(name, lttng, &rest);
	if (!row)
		return 0;
	info->whole = row->handle;
	info->subject = row->subject;
	host->abilities |= row->ability;
	find_row_fields(info, row, cls, host->trace->quirks);
	if (info->of_before) {
		/* Of what happens then sched_process_fork and the like tell, and know more. */
		info->before = row->handle;
		info->whole = NULL;
	}
	if (row->ability == KY_CAN_SYSCALLS)
		return resolve_syscall(model, info, row, rest, cls);
	if (row->handle == ky_on_fs)
		return ky_fs_resolve(model, info, name);
	if (row->naming == VECTOR_ENTRY || row->naming == VECTOR_EXIT)
		return resolve_vector(model, host, info, row, rest);
	return 0;
}

/* Programs' events tell nothing of the kernel's state; they may have call stacks, and tell of their functions. */
static void resolve_programs(struct ky_host *host)
{
	for (size_t i = 0; i < host->trace->cls->events.len; i++) {
		const struct ky_event_class *cls = host->trace->cls->events.data[i];
		struct ky_class_info *info = &host->classes[cls->index];

		bool is_call = ky_functions_find(info, cls);

		ky_stacks_find(info, cls, false);
		info->no_sign = true;
		if (!info->has_stacks && !is_call) {
			/* For periods. */
			ky_handle_find(&info->tid, cls, KY_SCOPE_STREAM_CONTEXT, "vtid");
			continue;
		}
		if (info->has_stacks)
			host->abilities |= KY_CAN_STACKS;
		if (!ky_handle_find(&info->tid, cls, KY_SCOPE_STREAM_CONTEXT, "vtid"))
			ky_handle_find(&info->tid, cls, KY_SCOPE_STREAM_CONTEXT, "vpid");
		ky_handle_find(&info->pid, cls, KY_SCOPE_STREAM_CONTEXT, "vpid");
		ky_handle_find(&info->comm, cls, KY_SCOPE_STREAM_CONTEXT, "procname");
		if (is_call && info->tid.cls)
			host->abilities |= KY_CAN_FUNCTIONS;
	}
}

int ky_model_resolve(struct ky_model *model, struct ky_host *host)
{
	const struct ky_trace_class *trace = host->trace->cls;
	bool lttng = model_classes_env_is(host, "tracer_name", "lttng-modules");
	size_t size = (trace->events.len + 1) * sizeof(*host->classes);
	int status = 0;

	free(host->classes);
	host->classes = aligned_alloc(KY_CLASS_INFO_ALIGN, size);
	if (!host->classes)
		return KYMO_E_MEMORY;
	memset(host->classes, 0, size);
	host->of_programs = model_classes_env_is(host, "domain", "ust");
	if (host->of_programs) {
		resolve_programs(host);
		return 0;
	}
	for (size_t i = 0; i < trace->events.len && !status; i++)
		status = resolve_class(model, host, trace->events.data[i], lttng);
	prefer_names(host);
	return status;
}
