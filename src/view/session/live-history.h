/* SPDX-License-Identifier: MIT */
/* The state history of a recording that goes on: a file without a name, which grows while readers have it. */
#ifndef KY_VIEW_SESSION_LIVE_HISTORY_H
#define KY_VIEW_SESSION_LIVE_HISTORY_H

#include "view/traces/view-internal.h"

/* All zero: none. */
struct ky_live_history {
	int fd;
	struct ky_history_builder *builder; /* NULL: there are no rows */
	int64_t publish_ns;		    /* not before this time */
	bool has_news;			    /* events that were not published */
	unsigned int n_damaged;		    /* of the shared one, at the begin */
};

/* @set must outlive it. @shared is what readers ask. */
void ky_live_history_begin(struct ky_live_history *own, const struct ky_trace_set *set,
			   struct ky_view_history *shared);
void ky_live_history_end(struct ky_live_history *own);
void ky_live_history_feed(struct ky_live_history *own, const struct ky_batch *batch);
/* Readers see what there is of it. One that was begun again replaces the last one once it has as much: @is_whole. */
void ky_live_history_publish(struct ky_live_history *own, struct ky_view_history *shared,
			     bool is_whole);
/* A reader has found damage since the begin: all of it has to be read again. */
bool ky_live_history_is_damaged(const struct ky_live_history *own, struct ky_view_history *shared);

#endif
