/* SPDX-License-Identifier: MIT */
/* The processor's time stamp counter. tsc-x86.c has it; tsc-none.c is for everything else. */
#ifndef KY_OS_TSC_H
#define KY_OS_TSC_H

#include <stdint.h>

/* The counter now, not reordered with what stands before it; 0 where there is none. */
uint64_t ky_tsc_read(void);
/* NULL when it is invariant and the kernel keeps time by it; else why not (static text). */
const char *ky_tsc_unsound(void);

#endif
