/* SPDX-License-Identifier: MIT */
/* Names of the errors that system calls return. */
#ifndef KY_ANALYSIS_STATE_ERRNO_NAME_H
#define KY_ANALYSIS_STATE_ERRNO_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's rule: -1 to -4095 are errors, everything else is a result. */
static inline bool ky_is_error(int64_t ret)
{
	return ret < 0 && ret >= -4095;
}

/*
 * "ENOENT" for 2; also the kernel's own ones that a tracer sees and a program never
 * (ERESTARTSYS, 512). NULL when @number has no name. Static storage.
 */
const char *ky_errno_name(int number);

#endif
