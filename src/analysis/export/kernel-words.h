/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own names of events and fields, for formats that have them: traces have LTTng's names, in which sched_switch has
 * prev_tid and softirq_entry is irq_softirq_entry.
 */
#ifndef KY_ANALYSIS_EXPORT_KERNEL_WORDS_H
#define KY_ANALYSIS_EXPORT_KERNEL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define KY_KERNEL_SYSTEM_SIZE 64
#define KY_KERNEL_EVENT_SIZE  192

struct ky_kernel_words {
	char system[KY_KERNEL_SYSTEM_SIZE]; /* "sched" */
	char event[KY_KERNEL_EVENT_SIZE];   /* "sched_switch" */
	bool is_syscall, is_exit;
};

/* Of the event @name of a kernel's trace. What is not known is of the system "kernel". */
void ky_kernel_words(struct ky_kernel_words *words, const char *name);

/* The field's name in the kernel: "prev_pid" for "prev_tid" of an event of the scheduler. */
const char *ky_kernel_field(const struct ky_kernel_words *words, const char *field);

/* Is the field a priority, which counts from 100 in the kernel where it counts from 0 in the trace? */
bool ky_kernel_field_is_prio(const struct ky_kernel_words *words, const char *field);

#endif
