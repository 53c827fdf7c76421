/* SPDX-License-Identifier: MIT */
/*
 * Which event is what, and what its fields are called. The only place that knows names: LTTng's
 * (old and new), and those that perf's conversion to CTF takes from the kernel's own formats.
 */
#include "analysis/model-internal.h"

#include <stdio.h>
#include <string.h>

enum field {
	F_NONE,
	F_PREV_TID,
	F_NEXT_TID,
	F_PREV_COMM,
	F_NEXT_COMM,
	F_PREV_PRIO,
	F_NEXT_PRIO,
	F_TID,
	F_PID,
	F_PPID,
	F_COMM,
	F_NAME,
	F_PRIO,
	F_NEW_PRIO,
	F_DEST_CPU,
	F_TARGET_CPU,
	F_CHILD_TID,
	F_CHILD_PID,
	F_CHILD_COMM,
	F_PARENT_TID,
	F_PARENT_PID,
	F_CLONE_FLAGS,
	F_OLD_TID,
	F_FILENAME,
	F_NEW_COMM,
	F_NUMBER,
	F_RET,
};

/* The names that a field may have; the kernel's own word for a thread id is "pid". */
static const char *const field_names[][3] = {
	[F_PREV_TID] = {"prev_tid", "prev_pid"},
	[F_NEXT_TID] = {"next_tid", "next_pid"},
	[F_PREV_COMM] = {"prev_comm"},
	[F_NEXT_COMM] = {"next_comm"},
	[F_PREV_PRIO] = {"prev_prio"},
	[F_NEXT_PRIO] = {"next_prio"},
	[F_TID] = {"tid", "pid"},
	[F_PID] = {"pid"},
	[F_PPID] = {"ppid"},
	[F_COMM] = {"comm"},
	[F_NAME] = {"name", "comm"},
	[F_PRIO] = {"prio"},
	[F_NEW_PRIO] = {"newprio"},
	[F_DEST_CPU] = {"dest_cpu"},
	[F_TARGET_CPU] = {"target_cpu"},
	[F_CHILD_TID] = {"child_tid", "child_pid"},
	[F_CHILD_PID] = {"child_pid"},
	[F_CHILD_COMM] = {"child_comm"},
	[F_PARENT_TID] = {"parent_tid", "parent_pid"},
	[F_PARENT_PID] = {"parent_pid"},
	[F_CLONE_FLAGS] = {"clone_flags"},
	[F_OLD_TID] = {"old_tid", "old_pid"},
	[F_FILENAME] = {"filename"},
	[F_NEW_COMM] = {"newcomm"},
	[F_NUMBER] = {"id", "nr", "__syscall_nr"},
	[F_RET] = {"ret"},
};

enum naming {
	EXACT,
	PREFIX,	      /* the rest is a system call's name */
	PREFIX_LTTNG, /* likewise, but only LTTng's word */
};

struct class_row {
	const char *name;
	enum naming naming;
	unsigned int ability;
	ky_event_handler handle;
	enum field fields[KY_CLASS_FIELDS];
};

/* The first row that fits is taken. */
static const struct class_row class_rows[] = {
	{"sched_switch",
	 EXACT,
	 KY_CAN_SWITCH,
	 ky_on_switch,
	 {F_PREV_TID, F_NEXT_TID, F_PREV_COMM, F_NEXT_COMM, F_PREV_PRIO, F_NEXT_PRIO}},
	{"sched_migrate_task",
	 EXACT,
	 KY_CAN_MIGRATE,
	 ky_on_migrate,
	 {F_TID, F_COMM, F_PRIO, F_DEST_CPU}},
	{"sched_waking", EXACT, 0, ky_on_wakeup, {F_TID, F_COMM, F_PRIO, F_TARGET_CPU}},
	{"sched_wakeup", EXACT, 0, ky_on_wakeup, {F_TID, F_COMM, F_PRIO, F_TARGET_CPU}},
	{"sched_wakeup_new", EXACT, 0, ky_on_wakeup, {F_TID, F_COMM, F_PRIO, F_TARGET_CPU}},
	{"sched_process_fork",
	 EXACT,
	 0,
	 ky_on_fork,
	 {F_CHILD_TID, F_CHILD_PID, F_CHILD_COMM, F_PARENT_TID, F_PARENT_PID}},
	{"sched_process_exec", EXACT, 0, ky_on_exec, {F_TID, F_OLD_TID, F_FILENAME}},
	{"sched_process_exit", EXACT, 0, ky_on_exit, {F_TID, F_COMM, F_PRIO}},
	{"sched_pi_setprio", EXACT, 0, ky_on_setprio, {F_TID, F_COMM, F_NEW_PRIO}},
	{"task_newtask", EXACT, 0, ky_on_newtask, {F_TID, F_COMM, F_CLONE_FLAGS}},
	{"task_rename", EXACT, 0, ky_on_rename, {F_TID, F_NEW_COMM}},
	{"lttng_statedump_process_state",
	 EXACT,
	 0,
	 ky_on_statedump,
	 {F_TID, F_PID, F_PPID, F_NAME}},
	{"syscall_entry_", PREFIX, KY_CAN_SYSCALLS, ky_on_syscall_entry, {F_NUMBER}},
	{"syscall_exit_", PREFIX, KY_CAN_SYSCALLS, ky_on_syscall_exit, {F_NUMBER, F_RET}},
	{"sys_enter_", PREFIX, KY_CAN_SYSCALLS, ky_on_syscall_entry, {F_NUMBER}},
	{"sys_exit_", PREFIX, KY_CAN_SYSCALLS, ky_on_syscall_exit, {F_NUMBER, F_RET}},
	{"sys_enter", EXACT, KY_CAN_SYSCALLS, ky_on_syscall_entry, {F_NUMBER}},
	{"sys_exit", EXACT, KY_CAN_SYSCALLS, ky_on_syscall_exit, {F_NUMBER, F_RET}},
	/* LTTng before 2.6: entries by name, one exit for all */
	{"exit_syscall", EXACT, KY_CAN_SYSCALLS, ky_on_syscall_exit, {F_NONE, F_RET}},
	{"sys_", PREFIX_LTTNG, KY_CAN_SYSCALLS, ky_on_syscall_entry, {F_NUMBER}},
};

#define N_CLASS_ROWS (sizeof(class_rows) / sizeof(*class_rows))

/* @name without perf's "sched:", and without LTTng's "compat_" (*compat then). */
static const char *plain_name(const char *name, bool *compat)
{
	const char *colon = strrchr(name, ':');

	if (colon)
		name = colon + 1;
	*compat = strncmp(name, "compat_sys", 10) == 0;
	return *compat ? name + 7 : name;
}

static const struct class_row *find_row(const char *name, bool lttng, const char **rest)
{
	for (size_t i = 0; i < N_CLASS_ROWS; i++) {
		const struct class_row *row = &class_rows[i];
		size_t len = strlen(row->name);

		if (row->naming == PREFIX_LTTNG && !lttng)
			continue;
		if (strncmp(name, row->name, len) != 0 || (row->naming == EXACT && name[len]))
			continue;
		*rest = name + len;
		return row;
	}
	return NULL;
}

/* Returns which of the names it was, or -1. */
static int find_field(struct ky_handle *handle, const struct ky_event_class *cls, enum field field)
{
	for (int i = 0; i < 3 && field_names[field][i]; i++) {
		if (ky_handle_find(handle, cls, KY_SCOPE_PAYLOAD, field_names[field][i]))
			return i;
	}
	return -1;
}

static void find_fields(struct ky_class_info *info, const struct class_row *row,
			const struct ky_event_class *cls)
{
	bool kernel_words = false;

	for (int i = 0; i < KY_CLASS_FIELDS; i++) {
		enum field field = row->fields[i];

		if (field == F_NONE)
			continue;
		if (find_field(&info->fields[i], cls, field) > 0 && field != F_NUMBER)
			kernel_words = true;
	}
	info->prio_offset = kernel_words ? -100 : 0;
	/* The kernel's child_pid is the thread's id, and then no field tells the process. */
	if (row->handle == ky_on_fork && kernel_words) {
		memset(&info->fields[KY_FORK_CHILD_PID], 0, sizeof(struct ky_handle));
		memset(&info->fields[KY_FORK_PARENT_PID], 0, sizeof(struct ky_handle));
	}
}

static void find_context(struct ky_class_info *info, const struct ky_event_class *cls)
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
			   const struct class_row *row, const char *rest)
{
	char name[256];

	info->syscall = KY_NO_SYSCALL;
	if (row->naming == EXACT || strcmp(rest, "unknown") == 0)
		return 0;
	snprintf(name, sizeof(name), "%s%s", info->compat ? "compat_" : "", rest);
	info->syscall = ky_model_syscall(model, name);
	return info->syscall == KY_NO_SYSCALL ? KYMO_E_MEMORY : 0;
}

static bool env_is(const struct ky_host *host, const char *name, const char *text)
{
	const struct ky_env *env = ky_env_find(host->trace->cls, name);

	return env && env->is_text && strcmp(env->text, text) == 0;
}

/* Calls by name make the kernel's raw_syscalls events, which tell numbers, superfluous. */
static void prefer_names(struct ky_host *host)
{
	bool named = false;

	for (size_t i = 0; i < host->trace->cls->events.len; i++)
		named = named || (host->classes[i].handle == ky_on_syscall_entry &&
				  host->classes[i].syscall != KY_NO_SYSCALL);
	for (size_t i = 0; named && i < host->trace->cls->events.len; i++) {
		const char *name = host->trace->cls->events.data[i]->name;

		if (strcmp(name, "raw_syscalls:sys_enter") == 0 ||
		    strcmp(name, "raw_syscalls:sys_exit") == 0)
			host->classes[i].handle = NULL;
	}
}

int ky_model_resolve(struct ky_model *model, struct ky_host *host)
{
	const struct ky_trace_class *trace = host->trace->cls;
	bool lttng = env_is(host, "tracer_name", "lttng-modules");

	host->classes = ky_arena_array(&model->arena, trace->events.len, sizeof(*host->classes));
	if (!host->classes)
		return trace->events.len ? KYMO_E_MEMORY : 0;
	if (env_is(host, "domain", "ust"))
		return 0;
	for (size_t i = 0; i < trace->events.len; i++) {
		const struct ky_event_class *cls = trace->events.data[i];
		struct ky_class_info *info = &host->classes[i];
		const struct class_row *row;
		const char *name, *rest;

		name = plain_name(cls->name, &info->compat);
		find_context(info, cls);
		info->no_sign = strncmp(name, "lttng_statedump_", 16) == 0;
		if (info->tid.cls)
			host->abilities |= KY_CAN_CONTEXT;
		row = find_row(name, lttng, &rest);
		if (!row)
			continue;
		info->handle = row->handle;
		host->abilities |= row->ability;
		find_fields(info, row, cls);
		if (row->ability == KY_CAN_SYSCALLS && resolve_syscall(model, info, row, rest) < 0)
			return KYMO_E_MEMORY;
	}
	prefer_names(host);
	return 0;
}
