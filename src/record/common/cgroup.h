/* SPDX-License-Identifier: MIT */
#ifndef KY_RECORD_COMMON_CGROUP_H
#define KY_RECORD_COMMON_CGROUP_H

/*
 * The root of control groups: the groups of version 2, or a directory per hierarchy of version 1.
 */
#define KY_CGROUP_ROOT "/sys/fs/cgroup"

#endif
