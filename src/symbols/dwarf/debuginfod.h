/* SPDX-License-Identifier: MIT */
/*
 * Files by build ID from servers of debuginfod, if the user has set DEBUGINFOD_URLS: libdebuginfod asks them, and keeps what they
 * answer in the user's cache.
 *
 * Threads: any.
 */
#ifndef KY_SYMBOLS_DWARF_DEBUGINFOD_H
#define KY_SYMBOLS_DWARF_DEBUGINFOD_H

#include <stdint.h>

/* The executable or library itself, else its debug file. A descriptor, or -1: no server has it, or none is to be asked. */
int ky_debuginfod_open(const uint8_t *build_id, uint32_t bytes);

#endif
