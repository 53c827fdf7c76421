/* SPDX-License-Identifier: MIT */
/* A build without clang, bpftool or libbpf has no BPF programs; what needs them fails with this error. */
#ifndef KY_KERNEL_BPF_ABSENT_H
#define KY_KERNEL_BPF_ABSENT_H

#include <kymo/error.h>

/* Returns KYMO_E_UNSUPPORTED with "cannot @what: ...". */
int ky_bpf_absent(struct kymo_error *err, const char *what);

#endif
