/* SPDX-License-Identifier: MIT */
/* Trackers of kymo latency: their options, what they tell, and actions. */
#ifndef KY_CLI_LATENCY_LATENCY_TRACK_H
#define KY_CLI_LATENCY_LATENCY_TRACK_H

#include "cli/reading/frames.h"
#include "cli/terminal/command.h"
#include "latency/layers/latency.h"

#define KY_TRACK_ACTIONS_MAX  8
#define KY_TRACK_CHILDREN_MAX 4

struct ky_track {
	struct ky_tracker_options options; /* its text is `text` */
	char *text;
	const char *actions[KY_TRACK_ACTIONS_MAX]; /* checked texts */
	size_t n_actions;
	bool has_over;	  /* --over was given */
	int64_t acted_ns; /* CLOCK_MONOTONIC, when they were carried out last */
	uint64_t n_told, n_held;
};

struct ky_tracks {
	struct ky_track list[KY_TRACKERS_MAX];
	size_t n;
	bool json;
	bool is_quiet; /* only act */
	struct ky_chain_options
		*chain; /* --over before all trackers is of the chain; NULL: no chain */
	struct ky_frames frames;
	struct ky_strbuf out; /* of a step */
	pid_t children[KY_TRACK_CHILDREN_MAX];
	size_t n_children;
};

/* From the options --track, --over, --timeout and --do in their order. An exit code. */
int ky_tracks_parse(const struct ky_command *command, const struct ky_text_list *list,
		    uint64_t max_open, bool stacks, struct ky_tracks *tracks);
/* Start them. An error shows its tracker as the input. */
int ky_tracks_start(struct ky_tracks *tracks, struct ky_latency *latency, struct kymo_error *err);
/* Print what took long, and carry out actions, for a moment. 1: there is more; 0; KYMO_E_MEMORY, KYMO_E_IO. */
int ky_tracks_step(struct ky_tracks *tracks, struct ky_latency *latency, struct kymo_error *err);
/* Waits for the commands that run. */
void ky_tracks_fini(struct ky_tracks *tracks);

/* ---- latency-actions.c ---------------------------------------------------------------------- */

/* Is @text an action? KYMO_E_INVALID. */
int ky_track_action_check(const char *text, struct kymo_error *err);
/* Warn of those whose recording does not run. */
void ky_track_actions_warn(const struct ky_track *track);
/* All actions of @track, in a process beside this one. At most once a second; false: held back. */
bool ky_track_act(struct ky_tracks *tracks, struct ky_track *track,
		  const struct ky_tracker *tracker, const struct ky_tracker_news *news);

#endif
