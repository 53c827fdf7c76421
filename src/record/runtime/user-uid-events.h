/* SPDX-License-Identifier: MIT */
/*
 * Changes of processes' users, as the kernel tells them (the process connector, PROC_EVENT_UID). A new user has no process
 * without such a change. Only root in the machine's first namespaces hears of them.
 *
 * Threads: one at a time per descriptor.
 */
#ifndef KY_RECORD_RUNTIME_USER_UID_EVENTS_H
#define KY_RECORD_RUNTIME_USER_UID_EVENTS_H

#include <stddef.h>
#include <sys/types.h>

/* A descriptor that becomes readable when a process has changed its user; -1: the kernel does not tell us. */
int ky_uid_events_open(void);
/* From now on, changes to these users do not count, as far as the kernel takes so many. */
void ky_uid_events_ignore(int fd, const uid_t *uids, size_t n);
/* Reads what there is. */
void ky_uid_events_clear(int fd);
/* -1 is allowed. */
void ky_uid_events_close(int fd);

#endif
