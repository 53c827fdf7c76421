/* SPDX-License-Identifier: MIT */
/* Shared by sync-guests.c and sync-guests-match.c. */
#ifndef KY_ANALYSIS_SYNC_SYNC_GUESTS_INTERNAL_H
#define KY_ANALYSIS_SYNC_SYNC_GUESTS_INTERNAL_H

#include "analysis/sync/sync-guests.h"

#define KY_GUESTS_VCPUS_MAX 4096

/* From an entry to the next exit, by the host's clock. */
struct ky_guest_stay {
	int64_t begin_ns, end_ns;
};

struct ky_guest_vcpu {
	int32_t tid, vm; /* 0: unknown */
	uint32_t vcpu_id;
	bool is_first;	    /* of its virtual machine */
	uint32_t n_offsets; /* how often it had a new one */
	int64_t offset; /* the last one; the guest's counter: (host's * ratio >> bits) + offset */
	uint64_t ratio; /* 0: 1 */
	unsigned int ratio_bits;
	int64_t entered_ns; /* INT64_MIN: it is not in the guest */
	KY_VEC(struct ky_guest_stay) stays;
};

/* An event of a CPU of what may be a guest. */
struct ky_guest_seen {
	int64_t ns;
	uint32_t cpu;
};

/* A machine: as a host, and as a guest. */
struct ky_guest_host {
	KY_VEC(struct ky_guest_vcpu *) vcpus;
	struct ky_map by_tid; /* -> struct ky_guest_vcpu * */
	size_t n_stays;
	KY_VEC(struct ky_guest_seen) seen;
	uint64_t n_seen, thinned;  /* all; which of them are kept: those without these bits */
	int64_t first_ns, last_ns; /* of what was seen */
};

#endif
