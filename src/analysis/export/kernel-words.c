/* SPDX-License-Identifier: MIT */
#include "analysis/export/kernel-words.h"

#include <stdio.h>
#include <string.h>

/* What stands in a trace's name; the kernel's system and what its event begins with instead. The first that fits counts. */
static const struct {
	const char *prefix, *system, *instead;
	bool is_syscall, is_exit;
} rules[] = {
	{"syscall_entry_", "syscalls", "sys_enter_", true, false},
	{"syscall_exit_", "syscalls", "sys_exit_", true, true},
	{"compat_syscall_entry_", "syscalls", "sys_enter_", true, false},
	{"compat_syscall_exit_", "syscalls", "sys_exit_", true, true},
	{"raw_syscalls_", "raw_syscalls", "", false, false},
	{"irq_handler_", "irq", "irq_handler_", false, false},
	{"irq_", "irq", "", false, false},
	{"x86_irq_vectors_", "irq_vectors", "", false, false},
	{"x86_exceptions_", "exceptions", "", false, false},
	{"net_if_", "net", "netif_", false, false},
	{"net_", "net", "net_", false, false},
	{"skb_kfree", "skb", "kfree_skb", false, false},
	{"skb_consume", "skb", "consume_skb", false, false},
	{"skb_", "skb", "skb_", false, false},
	{"task_", "task", "task_", false, false},
	{"sched_", "sched", "sched_", false, false},
	{"power_", "power", "", false, false},
	{"timer_hrtimer_", "timer", "hrtimer_", false, false},
	{"timer_itimer_", "timer", "itimer_", false, false},
	{"timer_tick_", "timer", "tick_", false, false},
	{"timer_", "timer", "timer_", false, false},
	{"kmem_cache_", "kmem", "kmem_cache_", false, false},
	{"kmem_", "kmem", "", false, false},
	{"block_", "block", "block_", false, false},
	{"signal_", "signal", "signal_", false, false},
	{"workqueue_", "workqueue", "workqueue_", false, false},
	{"writeback_", "writeback", "writeback_", false, false},
	{"cgroup_", "cgroup", "cgroup_", false, false},
	{"ext4_", "ext4", "ext4_", false, false},
	{"jbd2_", "jbd2", "jbd2_", false, false},
	{"xfs_", "xfs", "xfs_", false, false},
	{"btrfs_", "btrfs", "btrfs_", false, false},
	{"filemap_", "filemap", "", false, false},
	{"tcp_", "tcp", "tcp_", false, false},
	{"sock_", "sock", "", false, false},
	{"napi_", "napi", "napi_", false, false},
	{"rcu_", "rcu", "rcu_", false, false},
	{"kvm_x86_", "kvm", "kvm_", false, false},
	{"kvm_", "kvm", "kvm_", false, false},
	{"printk_", "printk", "", false, false},
	{"probe_", "probe", "", false, false},
	{"", "kernel", "", false, false},
};

void ky_kernel_words(struct ky_kernel_words *words, const char *name)
{
	const char *colon = strchr(name, ':');

	memset(words, 0, sizeof(*words));
	/* perf's conversion to CTF has them so. */
	if (colon && (size_t)(colon - name) < sizeof(words->system)) {
		snprintf(words->system, sizeof(words->system), "%.*s", (int)(colon - name), name);
		snprintf(words->event, sizeof(words->event), "%.*s", KY_KERNEL_EVENT_SIZE - 1,
			 colon + 1);
		return;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		size_t len = strlen(rules[i].prefix);

		if (strncmp(name, rules[i].prefix, len) != 0)
			continue;
		words->is_syscall = rules[i].is_syscall;
		words->is_exit = rules[i].is_exit;
		snprintf(words->system, sizeof(words->system), "%s", rules[i].system);
		snprintf(words->event, sizeof(words->event), "%s%.*s", rules[i].instead,
			 KY_KERNEL_EVENT_SIZE - 32, name + len);
		return;
	}
}

static bool kernel_words_of_threads(const struct ky_kernel_words *words)
{
	return strcmp(words->system, "sched") == 0 || strcmp(words->system, "task") == 0 ||
	       strcmp(words->system, "signal") == 0;
}

const char *ky_kernel_field(const struct ky_kernel_words *words, const char *field)
{
	static const char *const names[][2] = {
		{"tid", "pid"},
		{"prev_tid", "prev_pid"},
		{"next_tid", "next_pid"},
		{"child_tid", "child_pid"},
		{"parent_tid", "parent_pid"},
		{"old_tid", "old_pid"},
	};

	for (size_t i = 0; kernel_words_of_threads(words) && i < sizeof(names) / sizeof(*names);
	     i++) {
		if (strcmp(names[i][0], field) == 0)
			return names[i][1];
	}
	return field;
}

bool ky_kernel_field_is_prio(const struct ky_kernel_words *words, const char *field)
{
	static const char *const names[] = {"prio", "prev_prio", "next_prio", "oldprio", "newprio"};

	for (size_t i = 0; kernel_words_of_threads(words) && i < sizeof(names) / sizeof(*names);
	     i++) {
		if (strcmp(names[i], field) == 0)
			return true;
	}
	return false;
}
