/* SPDX-License-Identifier: MIT */
/* Memory files (memfd_create()) of other processes, which may be hostile. Threads: any. */
#ifndef KY_OS_MEMFD_H
#define KY_OS_MEMFD_H

#include <stdint.h>
#include <sys/types.h>

/* Where the kernel keeps memfds: no other file is on that device, as nobody can mount it. 0: there are none. */
dev_t ky_memfd_device(void);

/*
 * Open the memfd of @bytes that has @name in @dir_fd, as in /proc/PID/fd or map_files; @flags as of open(). A name that
 * speaks of a memfd may be any file's, of a bind mount in a user namespace, say; what is not a memfd of @device is not opened.
 * A descriptor, or -1.
 */
int ky_memfd_open(dev_t device, int dir_fd, const char *name, uint64_t bytes, int flags);

#endif
