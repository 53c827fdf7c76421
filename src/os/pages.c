/* SPDX-License-Identifier: MIT */
#include "os/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void ky_pages_init(struct ky_pages *pages)
{
	pages->n = 0;
	pages->pidfd = -1;
#if defined(SYS_pidfd_open) && defined(SYS_process_madvise)
	pages->pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
#endif
}

void ky_pages_fini(struct ky_pages *pages)
{
	if (pages->pidfd >= 0)
		close(pages->pidfd);
	pages->pidfd = -1;
}

/* False: the kernel does not do that; nothing, or not all, was given back. */
static bool give_back_together(const struct ky_pages *pages)
{
#if defined(SYS_pidfd_open) && defined(SYS_process_madvise)
	return pages->pidfd >= 0 && syscall(SYS_process_madvise, pages->pidfd, pages->ranges,
					    pages->n, MADV_DONTNEED, 0) >= 0;
#else
	(void)pages;
	return false;
#endif
}

void ky_pages_give_back(struct ky_pages *pages)
{
	if (pages->n && !give_back_together(pages)) {
		/* It will not be asked again. */
		ky_pages_fini(pages);
		for (size_t i = 0; i < pages->n; i++)
			(void)madvise(pages->ranges[i].iov_base, pages->ranges[i].iov_len,
				      MADV_DONTNEED);
	}
	pages->n = 0;
}

void ky_pages_add(struct ky_pages *pages, const void *begin, size_t n_bytes)
{
	if (pages->n == KY_PAGES_RANGES)
		ky_pages_give_back(pages);
	pages->ranges[pages->n++] =
		(struct iovec){.iov_base = (void *)(uintptr_t)begin, .iov_len = n_bytes};
}
