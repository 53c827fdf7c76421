/* SPDX-License-Identifier: MIT */
/*
 * Pages of mapped files that nobody needs any more: ranges are gathered, and go back to the kernel in
 * one call. Each call interrupts all other CPUs that run this process, so that they forget the pages;
 * one call for hundreds of ranges does that once.
 *
 * Linux lets a process do that to itself since 6.13. Where it does not, each range is given back alone.
 */
#ifndef KY_OS_PAGES_H
#define KY_OS_PAGES_H

#include <stddef.h>
#include <sys/uio.h>

#define KY_PAGES_RANGES 256

struct ky_pages {
	int pidfd; /* of this process; negative: ranges are given back one by one */
	size_t n;
	struct iovec ranges[KY_PAGES_RANGES];
};

void ky_pages_init(struct ky_pages *pages);
/* What was not given back stays where it is. */
void ky_pages_fini(struct ky_pages *pages);

/* Gather whole pages of a file's mapping; they are given back when many are there. */
void ky_pages_add(struct ky_pages *pages, const void *begin, size_t n_bytes);
/* Give back what was gathered. */
void ky_pages_give_back(struct ky_pages *pages);

#endif
