/* SPDX-License-Identifier: MIT */
/*
 * The histograms of a program's own trackers (KYMO_LATENCY_BEGIN, KYMO_LATENCY_END): a memfd that the library makes at the
 * first BEGIN of a process, and maps. The library keeps no descriptor of it: a reader finds it in /proc/PID/maps and opens it
 * in /proc/PID/map_files, which takes root. The kernel removes it with the process. A forked child makes a file of its
 * own at its first BEGIN or END, and has its parent's still mapped, whose pid is another one.
 *
 * Counts only grow. Each tracker has several histograms, the whole is their sum. Threads on one of the first CPUs add to that CPU's own
 * histogram, in restartable sequences. All others share out some among themselves.
 *
 * Trust. Check: a regular file on the kernel's device for memfds, of this size. A reader copies by pread(), which a file that
 * shrinks does not kill, and checks all of the copy: any number can be there, and can be less than before.
 */
#ifndef KY_ABI_LATENCY_FILE_H
#define KY_ABI_LATENCY_FILE_H

#include <stdint.h>

#include "abi/latency-buckets.h"

#define KY_LATENCY_MEMFD	"kymo-latency"
#define KY_LATENCY_FILE_MAGIC	UINT64_C(0x31746c6f6d796b00)
#define KY_LATENCY_FILE_VERSION 2
#define KY_LATENCY_TRACKERS_MAX 64
#define KY_LATENCY_SHARED	8 /* stripes that CPUs share: atomic additions */
#define KY_LATENCY_OWN		8 /* stripes of one CPU each, the first ones: behind the shared ones */
#define KY_LATENCY_STRIPES	(KY_LATENCY_SHARED + KY_LATENCY_OWN)
#define KY_LATENCY_NAME_BYTES	64 /* of a tracker, with its NUL: letters, digits, '_' */

struct ky_latency_stripe {
	uint64_t sum_ns, max_ns;
	uint64_t buckets[KY_LATENCY_BUCKETS];
} __attribute__((aligned(64)));

struct ky_latency_tracker {
	char name[KY_LATENCY_NAME_BYTES];
	struct ky_latency_stripe stripes[KY_LATENCY_STRIPES];
};

struct ky_latency_head {
	uint64_t magic; /* stored last */
	uint32_t version;
	uint32_t pid;	     /* in the process' namespace */
	uint64_t created_ns; /* CLOCK_MONOTONIC */
	uint32_t n_trackers; /* that have names */
	uint32_t n_refused;  /* call sites of trackers for which there was no room */
	uint64_t n_full;     /* begins for which the table of open pairs had no room */
	uint64_t n_again;    /* begins whose key was open: the earlier one is forgotten */
	uint64_t reserved[2];
};

struct ky_latency_file {
	struct ky_latency_head head;
	struct ky_latency_tracker trackers[KY_LATENCY_TRACKERS_MAX];
};

#endif
