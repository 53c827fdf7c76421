/* SPDX-License-Identifier: MIT */
/* Single long durations of kymo latency: its members, as lines or as JSON, and the last few for the screen. */
#ifndef KY_CLI_LATENCY_LATENCY_MEMBERS_H
#define KY_CLI_LATENCY_LATENCY_MEMBERS_H

#include "cli/reading/frames.h"
#include "latency/layers/latency.h"

#define KY_MEMBERS_KEPT	  32
#define KY_MEMBERS_SERIES 256

/* The last members of a layer's row. */
struct ky_members_kept {
	uint32_t layer;
	uint64_t sub;
	uint64_t n; /* how many came; the last one is at (n - 1) % KY_MEMBERS_KEPT */
	struct ky_latency_member last[KY_MEMBERS_KEPT];
};

struct ky_members {
	bool json;
	bool is_kept; /* not printed, but kept */
	struct ky_frames frames;
	KY_VEC(struct ky_members_kept *) kept; /* at most KY_MEMBERS_SERIES */
};

/* Those of a layer's row; NULL: none came. */
const struct ky_members_kept *ky_members_of(const struct ky_members *members, uint32_t layer,
					    uint64_t sub);
/* Print what has come, for a moment. 1: there is more; 0; KYMO_E_IO. */
int ky_members_step(struct ky_members *members, struct ky_latency *latency, struct kymo_error *err);
/* The line of one, and the lines of its stacks. */
void ky_members_put(struct ky_members *members, struct ky_strbuf *out, struct ky_latency *latency,
		    const struct ky_latency_member *member, bool stacks);
void ky_members_fini(struct ky_members *members);

#endif
