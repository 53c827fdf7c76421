/* SPDX-License-Identifier: MIT */
/*
 * tracefs: where it is mounted, and instances of our own in it.
 *
 * An instance has its own buffers, clock, events and filters, so recorders do not disturb each
 * other. Ours are called kymo-PID-START-NS: the recorder's pid, its start time in clock ticks
 * since boot, and the inode of its pid namespace. So a later recorder can distinguish an instance
 * of a dead recorder from one in use, even after the kernel has reused the pid, and it leaves
 * instances of other containers' recorders alone. A recorder's second instance, which shows changes
 * of users and groups, has "-watch" after that name.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_KERNEL_TRACEFS_TRACEFS_H
#define KY_KERNEL_TRACEFS_TRACEFS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/strbuf.h"

#define KY_TRACEFS_TEXT_MAX (1u << 20) /* no text file that we read is longer */

struct ky_tracefs {
	char path[64]; /* the mount point: "/sys/kernel/tracing" */
	int fd;	       /* the directory */
};

/*
 * Find tracefs, or mount it at /sys/kernel/tracing (which needs root).
 * Returns 0; KYMO_E_PERMISSION: not root; KYMO_E_UNSUPPORTED: the kernel has none. @err has a hint.
 */
int ky_tracefs_open(struct ky_tracefs *fs, struct kymo_error *err);
void ky_tracefs_close(struct ky_tracefs *fs);

/*
 * Read text file @name below @dir_fd into @text. 0 or an error that names the file.
 * @dir: the path of @dir_fd, for messages.
 */
int ky_tracefs_read(int dir_fd, const char *dir, const char *name, struct ky_strbuf *text,
		    struct kymo_error *err);

/*
 * Remove the instances of recorders that are dead.
 * Returns how many were removed. Failure to remove one is a warning to @log.
 */
unsigned int ky_tracefs_clean(const struct ky_tracefs *fs, const struct ky_log *log);

/* Is @name an instance of a Kymo recorder that has ended? */
bool ky_tracefs_is_stale(const char *name);

struct ky_instance {
	char name[80];
	char path[160];
	int fd;
};

/* Recordings of one process. */
#define KY_INSTANCES_MAX 9999

/* What this process' instance @number, from 1, is called: no other process ever has this name. */
void ky_instance_own_name(unsigned int number, char *name, size_t size);

/* What ky_tracefs_save_names() is to restore. */
struct ky_tracefs_names {
	bool changed;
	sigset_t signals;
};

/*
 * Until ky_tracefs_save_names(), instances that are created do not make the kernel save the names of threads. The kernel does
 * so with one more function at each switch and wake-up, for texts that a recorder does not read. Where the tracing of other
 * programs could lose names by it, nothing is changed. The thread's signals wait meanwhile: a few milliseconds.
 */
void ky_tracefs_save_no_names(const struct ky_tracefs *fs, struct ky_tracefs_names *names);
void ky_tracefs_save_names(const struct ky_tracefs *fs, const struct ky_tracefs_names *names);

/*
 * Create an instance of this process, switched off; @suffix: of its name: "", or "-watch" for the second one of a recording.
 * 0, KYMO_E_PERMISSION, KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_instance_create(const struct ky_tracefs *fs, const char *suffix,
		       struct ky_instance *instance, struct kymo_error *err);
/* Remove it and all that is in it; all its files must be closed. */
int ky_instance_remove(struct ky_instance *instance, struct kymo_error *err);

/* Write @text to a file of the instance in one write(), as tracefs wants it. */
int ky_instance_write(const struct ky_instance *instance, const char *name, const char *text,
		      struct kymo_error *err);
int ky_instance_write_u64(const struct ky_instance *instance, const char *name, uint64_t value,
			  struct kymo_error *err);

#endif
