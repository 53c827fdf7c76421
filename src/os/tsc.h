/* SPDX-License-Identifier: MIT */
/*
 * The processor's time stamp counter. tsc-x86.c implements it; tsc-none.c is for other processors.
 */
#ifndef KY_OS_TSC_H
#define KY_OS_TSC_H

#include <stdint.h>

/*
 * The counter now; the CPU does not move the reading before earlier instructions. 0 without a
 * counter.
 */
uint64_t ky_tsc_read(void);
/* NULL when the TSC is invariant and the kernel's clocksource; else the reason (static text). */
const char *ky_tsc_unsound(void);

#endif
