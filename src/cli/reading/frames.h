/* SPDX-License-Identifier: MIT */
/*
 * Addresses in call stacks, with names where the machine knows them: the kernel's symbols, and the files that a process
 * has mapped, if it still runs.
 * Threads: one at a time per struct.
 */
#ifndef KY_CLI_READING_FRAMES_H
#define KY_CLI_READING_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "symbols/tables/kernel-table.h"

/* Zeroed is empty; the kernel's symbols are read when they are needed first. */
struct ky_frames {
	struct ky_kernel_table kernel;
	bool is_read;
};

void ky_frames_fini(struct ky_frames *frames);

/* A line for each of @addresses, each after @indent: "  ffffffff8110a2b0  schedule+0x20". */
void ky_frames_put_kernel(struct ky_frames *frames, struct ky_strbuf *out, const char *indent,
			  const uint64_t *addresses, size_t n);
/* The same of process @pid: "  00007f12f5a3b1f0  /usr/lib/libc.so.6+0xb1f0"; offsets are those in the file. */
void ky_frames_put_user(struct ky_strbuf *out, const char *indent, const uint64_t *addresses,
			size_t n, int64_t pid);
/* The name of one of the kernel's addresses; NULL: it is not known. */
const char *ky_frames_name(struct ky_frames *frames, uint64_t address, uint64_t *offset);

#endif
