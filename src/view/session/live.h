/* SPDX-License-Identifier: MIT */
/*
 * A recording that goes on, for the viewer: a sequence of views, each of the whole packets that there were at one time.
 *
 * A thread follows the recording (store/read/follow.h). When there is more, it opens the traces again, and makes a view of them, which
 * takes over what the last one had counted. Answers in progress keep the view that they began with. The same thread feeds the
 * state history, as events come. When the recording has ended, the last view is that of the complete traces.
 *
 * Memory is that of two views. The history is a file without a name.
 *
 * Threads: open and close in one thread; take and put in any.
 */
#ifndef KY_VIEW_LIVE_H
#define KY_VIEW_LIVE_H

#include "store/read/follow.h"
#include "view/traces/view.h"

struct ky_view_live;

enum ky_view_live_how {
	KY_VIEW_LIVE_FOLLOWED, /* the set will grow */
	KY_VIEW_LIVE_NOW,      /* what can be read now */
	KY_VIEW_LIVE_COMPLETE, /* nothing more comes */
};

struct ky_view_live_source {
	/* Opens the traces. KYMO_E_NOT_FOUND: no trace exists yet. The following thread calls it. */
	int (*open)(void *data, enum ky_view_live_how how, struct ky_trace_set *set,
		    struct kymo_error *err);
	/* May traces still come? The following thread calls it. */
	bool (*is_recorded)(void *data);
	void *data;
	const char *const *paths; /* on this machine */
	size_t n_paths;
	struct ky_feed *const *feeds; /* at relays */
	size_t n_feeds;
};

/*
 * Open the first view and begin to follow. @source is borrowed. Without a trace yet, the first view has none. Errors: those of
 * opening.
 */
int ky_view_live_open(const struct ky_view_live_source *source, struct ky_view_live **live,
		      struct kymo_error *err);
/* No view may be taken. NULL is allowed. */
void ky_view_live_close(struct ky_view_live *live);

/* The latest view. The caller must put it back. */
struct ky_view *ky_view_live_take(struct ky_view_live *live);
void ky_view_live_put(struct ky_view_live *live, struct ky_view *view);

#endif
