/* SPDX-License-Identifier: MIT */
/* libbpf, loaded when it is needed. Its functions have their own names; a function that no file has called so far needs a line in libbpf.c. */
#ifndef KY_KERNEL_BPF_LIBBPF_H
#define KY_KERNEL_BPF_LIBBPF_H

#include <kymo/error.h>

/* Loads the library, once. KYMO_E_UNSUPPORTED: it is missing; the hint names the package. Threads: any. */
int ky_libbpf_load(struct kymo_error *err);

#endif
