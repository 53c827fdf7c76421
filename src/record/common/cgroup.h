/* SPDX-License-Identifier: MIT */
#ifndef KY_RECORD_COMMON_CGROUP_H
#define KY_RECORD_COMMON_CGROUP_H

/* Where control groups are: those of version 2, or a directory for each hierarchy. */
#define KY_CGROUP_ROOT "/sys/fs/cgroup"

#endif
