/* SPDX-License-Identifier: MIT */
/*
 * Pages of mapped files that are no longer needed. This code collects ranges and gives them back to
 * the kernel in one call. Each call interrupts all other CPUs that run this process, because they
 * must forget the pages; one call for hundreds of ranges interrupts them once.
 *
 * A process can do that to itself since Linux 6.13. With older kernels, each range takes a call of
 * its own.
 */
#ifndef KY_OS_PAGES_H
#define KY_OS_PAGES_H

#include <stddef.h>
#include <sys/uio.h>

#define KY_PAGES_RANGES 256

struct ky_pages {
	int pidfd; /* of this process; negative: each range takes a call of its own */
	size_t n;
	struct iovec ranges[KY_PAGES_RANGES];
};

void ky_pages_init(struct ky_pages *pages);
/* Ranges that were not given back stay in memory. */
void ky_pages_fini(struct ky_pages *pages);

/*
 * Collects whole pages of a file's mapping. After many ranges, the function gives all of them back.
 */
void ky_pages_add(struct ky_pages *pages, const void *begin, size_t n_bytes);
/* Gives the collected ranges back. */
void ky_pages_give_back(struct ky_pages *pages);

#endif
