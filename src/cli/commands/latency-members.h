/* SPDX-License-Identifier: MIT */
/* Single long durations of kymo latency: its members, as lines or as JSON, and the last few for the screen. */
#ifndef KY_CLI_COMMANDS_LATENCY_MEMBERS_H
#define KY_CLI_COMMANDS_LATENCY_MEMBERS_H

#include "cli/commands/frames.h"
#include "latency/latency.h"

#define KY_MEMBERS_KEPT 256

struct ky_members {
	bool json, is_quiet; /* quiet: only keep them */
	struct ky_frames frames;
	struct ky_latency_member *kept; /* a circle of KY_MEMBERS_KEPT; NULL: none are kept */
	uint64_t n; /* how many came; the last one is at (n - 1) % KY_MEMBERS_KEPT */
};

/* Keep the last ones. 0 or KYMO_E_MEMORY. */
int ky_members_keep(struct ky_members *members, struct kymo_error *err);
/* Print what has come. 0 or KYMO_E_IO. */
int ky_members_step(struct ky_members *members, struct ky_latency *latency, struct kymo_error *err);
/* The line of one, and the lines of its stacks. */
void ky_members_put(struct ky_members *members, struct ky_strbuf *out, struct ky_latency *latency,
		    const struct ky_latency_member *member, bool stacks);
void ky_members_fini(struct ky_members *members);

#endif
