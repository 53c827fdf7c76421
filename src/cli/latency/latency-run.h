/* SPDX-License-Identifier: MIT */
/* A run of kymo latency: measures, and tells as its options say, until it is over. */
#ifndef KY_CLI_LATENCY_RUN_H
#define KY_CLI_LATENCY_RUN_H

#include "cli/latency/latency-chain.h"
#include "cli/latency/latency-members.h"
#include "cli/latency/latency-metrics.h"
#include "cli/latency/latency-output.h"
#include "cli/latency/latency-screen.h"
#include "cli/latency/latency-track.h"

/* Longer durations are members that the screen can show. */
#define KY_LATENCY_SCREEN_MEMBERS_NS 10000000

struct ky_latency_run {
	struct ky_latency_view view;
	struct ky_tracks tracks;
	struct ky_chain_options chain;
	struct ky_members members;
	bool json, csv, once, plain, has_chain;
	const char *listen; /* NULL: nowhere */
	uint64_t every_ns, members_ns;
	/* Its own. */
	struct ky_metrics_server *server; /* NULL: none */
	struct ky_screen *screen;	  /* NULL: none */
	int signal_fd;
	bool is_over;
};

/* Is it for a person at a terminal? What trackers and the chain tell is a text without an end. */
bool ky_latency_run_wants_screen(const struct ky_latency_run *run);
/* Until a signal, or as the options say. 0 or an error. */
int ky_latency_run(struct ky_latency_run *run, const struct ky_latency_options *wanted,
		   struct kymo_error *err);
void ky_latency_run_fini(struct ky_latency_run *run);

#endif
