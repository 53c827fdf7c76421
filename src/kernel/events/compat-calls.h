/* SPDX-License-Identifier: MIT */
/*
 * System calls of 32-bit programs on x86-64: their numbers, names and arguments.
 *
 * tracefs has no events of them: its own leave these calls out. They are events of ours, in a system of ours,
 * and described as the kernel would: mostly as the kernel describes the 64-bit call of the same name. Names are
 * those of the kernel's functions, as LTTng's: 106 is `newstat`, 195 `stat64`.
 *
 * Threads: any.
 */
#ifndef KY_KERNEL_EVENTS_COMPAT_CALLS_H
#define KY_KERNEL_EVENTS_COMPAT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "kernel/tracefs/tracefs.h"

/* Of the events, where tracefs would say "syscalls". */
#define KY_COMPAT_SYSTEM "compat_syscalls"

/* The same of 64-bit calls that the kernel has no event for (native-calls.h): one event for all of them. */
#define KY_UNKNOWN_SYSTEM "unknown_syscalls"

/* Numbers are below this; the last one stands for all that have no name. */
#define KY_COMPAT_NUMBERS 512
#define KY_COMPAT_UNKNOWN (KY_COMPAT_NUMBERS - 1)

/* common_type of the calls' records, which the kernel gives to none of its own: plus the number. */
#define KY_COMPAT_ENTRY_ID  0xc000
#define KY_COMPAT_EXIT_ID   (KY_COMPAT_ENTRY_ID + KY_COMPAT_NUMBERS)
#define KY_UNKNOWN_ENTRY_ID (KY_COMPAT_EXIT_ID + KY_COMPAT_NUMBERS)
#define KY_UNKNOWN_EXIT_ID  (KY_UNKNOWN_ENTRY_ID + 1)

struct ky_compat_call {
	uint16_t number;
	const char *name; /* "stat64" */
	const char *like; /* the 64-bit call that takes the same, or whose content is the same */
	const char
		*params; /* "int fd, char * buf", where no 64-bit call takes the same; else NULL */
};

/* Is @system that of 32-bit calls? That of unknown 64-bit ones? */
bool ky_compat_is_system(const char *system);
bool ky_unknown_is_system(const char *system);

/* The @i-th call; NULL: there are no more. */
const struct ky_compat_call *ky_compat_call_at(size_t i);

/* The call of event "sys_enter_stat64", "sys_exit_stat64"; NULL: none exists. */
const struct ky_compat_call *ky_compat_call_find(const char *event, bool *is_exit);

/* Has @number a name? */
bool ky_compat_call_is_named(uint16_t number);

/* The 64-bit event whose content @event's is: "sys_enter_newstat". False: none exists. */
bool ky_compat_like(const char *event, char *name, size_t size);

/*
 * The description of @event of @system, one of these two, in the language of tracefs's format files, which has those of
 * 64-bit calls.
 * 0, KYMO_E_NOT_FOUND, KYMO_E_IO or KYMO_E_MEMORY.
 */
int ky_compat_format(const struct ky_tracefs *fs, const char *system, const char *event,
		     struct ky_strbuf *text, struct kymo_error *err);

#endif
