/* SPDX-License-Identifier: MIT */
/*
 * What block devices are called.
 *
 * Threads: any.
 */
#ifndef KY_OS_BLOCK_NAME_H
#define KY_OS_BLOCK_NAME_H

#include <stdint.h>

#include "base/strbuf.h"

/* Append "vda1"; "252:1" where this machine has no such device. Foreign text. */
void ky_os_block_name(struct ky_strbuf *out, uint32_t major, uint32_t minor);

#endif
