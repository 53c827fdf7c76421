/* SPDX-License-Identifier: MIT */
/* The kernel's struct task_struct alone, for programs that need no other type. Threads: any. */
#ifndef KY_KERNEL_BPF_TASK_BTF_H
#define KY_KERNEL_BPF_TASK_BTF_H

struct btf;

/* Type information with pid, prio and comm of struct task_struct, which the caller frees. NULL: not found, or no memory. */
struct btf *ky_bpf_task_btf(void);

#endif
