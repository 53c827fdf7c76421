/* SPDX-License-Identifier: MIT */
/* What the parts of the viewer know of its traces. Threads: as view.h, unless a comment says otherwise. */
#ifndef KY_VIEW_VIEW_INTERNAL_H
#define KY_VIEW_VIEW_INTERNAL_H

#include <pthread.h>

#include "analysis/history/history.h"
#include "flow/graph/flow.h"
#include "flow/graph/select.h"
#include "view/page/request.h"
#include "view/traces/counts.h"
#include "view/traces/view.h"

/* Counts of different filters at the same time: 4 MiB each. */
#define KY_VIEW_COUNTS 4
/* The resolution of estimates. */
#define KY_ESTIMATE_BUCKETS ((size_t)1 << 14)

/* Events that the tracer lost, or packets. */
struct ky_view_loss {
	int64_t begin_ns, end_ns;
	uint64_t events;
	uint32_t stream; /* ky_stream.index */
};

struct ky_row_index;

struct ky_view_counting {
	struct ky_counts *counts; /* NULL: free place */
	unsigned int n_users;	  /* answers in progress */
	uint64_t used;		  /* the least one is replaced first */
};

/* The state history, which a thread builds or finds. */
struct ky_view_history {
	pthread_t thread;
	atomic_bool stop;		/* relaxed, as the next one: only for the thread's end */
	atomic_uint_least64_t n_events; /* that the thread has read */
	pthread_mutex_t lock;		/* for what follows, and for questions to ->history */
	bool is_started, is_over;
	unsigned int n_damaged;	    /* histories in which damage was found */
	struct ky_history *history; /* NULL: not yet, or ->error */
	struct kymo_error error;
};

/* A recording that is followed (live.h), for the page. */
struct ky_view_recording {
	uint64_t generation; /* the number of this state of it; it grows */
	bool is_running;
	/* NULL: none; else why the view does not follow it any more. Release and acquire. */
	_Atomic(const struct kymo_error *) error;
};

struct ky_view {
	const struct ky_trace_set *set;
	int64_t begin_ns, end_ns; /* INT64_MIN: no event has a time */
	const struct ky_log *log; /* for what is no matter of one answer; may be NULL */
	/* Immutable after ky_view_new(): bits of packets by time, and losses by stream. */
	double *bits;
	KY_VEC(struct ky_view_loss) losses;
	pthread_mutex_t lock; /* for what follows */
	struct ky_view_counting counting[KY_VIEW_COUNTS];
	uint64_t clock;
	struct ky_view_history history;
	struct ky_view_history *shared; /* instead of it: of a recording that goes on; NULL: none */
	const struct ky_view_recording
		*recording; /* NULL: the traces are complete, and always were */
};

/*
 * The counts of @filter, begun if they do not exist. The caller must put them back. KYMO_E_LIMIT:
 * answers with other filters have all places.
 */
int ky_view_take_counts(struct ky_view *view, const char *filter, struct ky_counts **counts,
			struct kymo_error *err);
void ky_view_put_counts(struct ky_view *view, const struct ky_counts *counts);

/* The losses of a stream; *@n of them. */
const struct ky_view_loss *ky_view_losses_of(const struct ky_view *view, uint32_t stream,
					     size_t *n);
/* Estimated bits of packets from @begin_ns to @end_ns. */
double ky_view_bits(const struct ky_view *view, int64_t begin_ns, int64_t end_ns);
/* The time before which packets have about @bits bits after @from_ns. */
int64_t ky_view_time_after(const struct ky_view *view, int64_t from_ns, double bits);
/* Events per bit, from what was counted so far. */
double ky_view_rate(const struct ky_view *view, struct ky_counts *counts,
		    const struct ky_counts_state *state);
/* The number of events in all: exact once counting is over. */
uint64_t ky_view_total(const struct ky_view *view, struct ky_counts *counts,
		       const struct ky_counts_state *state);

/*
 * The graph of @view's events that @filter ("": all) selects, from @begin_ns on, up to @end_ns. It
 * ends with KYMO_E_INTERRUPTED when @stop is over; @stop is borrowed.
 */
int ky_view_flow(const struct ky_view *view, const char *filter, int64_t begin_ns, int64_t end_ns,
		 const struct ky_view_stop *stop, struct ky_flow **flow, struct kymo_error *err);
/* The same of the streams in @only, by ky_stream.index. */
int ky_view_flow_only(const struct ky_view *view, const bool *only, const char *filter,
		      int64_t begin_ns, int64_t end_ns, const struct ky_view_stop *stop,
		      struct ky_flow **flow, struct kymo_error *err);

/* The events of @input, which is taken over, that contain the text of @filter ("EXPR ?? TEXT"). */
int ky_view_match(struct ky_flow *input, const char *filter, struct ky_flow **flow,
		  struct kymo_error *err);
/* The expression of @filter, which @out gets: *@expression; NULL: it has none. 0 or KYMO_E_MEMORY. */
int ky_view_expression(const char *filter, struct ky_strbuf *out, const char **expression,
		       struct kymo_error *err);
/* The rest of @filter: "?? TEXT", or "". */
const char *ky_view_text(const char *filter);
struct ky_text;
/* The fields of @one, a batch of one event, as in a line of kymo print; valid until the next one. */
int ky_view_line(struct ky_text *text, const struct ky_batch *one, const char **line, size_t *len,
		 struct kymo_error *err);

/* The history that @view shows. */
static inline struct ky_view_history *ky_view_history_of(struct ky_view *view)
{
	return view->shared ? view->shared : &view->history;
}

void ky_view_history_init(struct ky_view_history *own);
/*
 * Take the state history for questions: *@history is NULL at first, and incomplete while the pass that builds it goes on. The
 * first call begins this pass, and so does the first one after damage was found in the history. The caller must put the history
 * back, after an error, too. 0 or a negative status: the pass has failed.
 */
int ky_view_take_history(struct ky_view *view, struct ky_history **history, struct kymo_error *err);
void ky_view_put_history(struct ky_view *view);
/* After an answer with KYMO_E_FORMAT: was it the history that is damaged? Then it is built again from now on. */
bool ky_view_renew_history(struct ky_view *view);
/* Nothing more will come of it, for the time being. The caller has the history. */
bool ky_view_history_is_over(struct ky_view *view);
/* "ready": ..., "read": ...: how far the pass is. The caller has the history. */
void ky_view_put_ready(struct ky_view *view, struct ky_strbuf *out);
/* Ends the thread. */
void ky_view_history_fini(struct ky_view_history *own);

#endif
