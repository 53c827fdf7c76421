/* SPDX-License-Identifier: MIT */
/* What the answers of the viewer share. Threads: as view.h, unless a comment says otherwise. */
#ifndef KY_VIEW_VIEW_INTERNAL_H
#define KY_VIEW_VIEW_INTERNAL_H

#include <pthread.h>

#include "analysis/history/history.h"
#include "flow/graph/flow.h"
#include "flow/graph/select.h"
#include "view/counts.h"
#include "view/view.h"

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
	/* Immutable after ky_view_new(): bits of packets by time, and losses by begin. */
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

/* "total": ..., "progress": 0 to 1, "error": text or null. */
void ky_view_put_state(const struct ky_view *view, struct ky_counts *counts,
		       const struct ky_counts_state *state, struct ky_strbuf *out);
void ky_view_put_text(struct ky_strbuf *out, const char *text);
struct ky_history_row;
/* The begin of a row's array: "[id, parent or null, kind, number, name, origin,". @any: rows are before it. */
void ky_view_put_row(struct ky_strbuf *out, const struct ky_history_row *row, bool any);
/* The message of @err with its path and hint, as one text. */
void ky_view_put_error(struct ky_strbuf *out, const struct kymo_error *err);

/*
 * The graph of @view's events that @filter ("": all) selects, from @begin_ns on, up to @end_ns. It
 * ends with KYMO_E_INTERRUPTED when @stop is over; @stop is borrowed.
 */
int ky_view_flow(const struct ky_view *view, const char *filter, int64_t begin_ns, int64_t end_ns,
		 const struct ky_view_stop *stop, struct ky_flow **flow, struct kymo_error *err);

/*
 * The events of @input, which is taken over, that contain the text of @filter ("EXPR ?? TEXT"). @yields: batches may be empty, so that
 * the caller has the control from time to time.
 */
int ky_view_match(struct ky_flow *input, const char *filter, bool yields, struct ky_flow **flow,
		  struct kymo_error *err);
/* The expression of @filter, in @expression; NULL: it has none. */
const char *ky_view_expression(const char *filter, char expression[KY_VIEW_FILTER_BYTES]);
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
 * first call begins this pass. The caller must put the history back, after an error, too. 0 or a negative status: the pass has failed.
 */
int ky_view_take_history(struct ky_view *view, struct ky_history **history, struct kymo_error *err);
void ky_view_put_history(struct ky_view *view);
/* Nothing more will come of it, for the time being. The caller has the history. */
bool ky_view_history_is_over(struct ky_view *view);
/* "ready": ..., "read": ...: how far the pass is. The caller has the history. */
void ky_view_put_ready(struct ky_view *view, struct ky_strbuf *out);
/* Ends the thread. A history that another process builds is waited for. */
void ky_view_history_fini(struct ky_view_history *own);

/* How many pixels the picture of a request has: no more than its range has ns. *@end_ns: the exclusive end. */
size_t ky_view_n_pixels(const struct ky_view_request *request, int64_t *end_ns);
/* The pixel of @ns in a picture of @n pixels from @begin_ns to @end_ns, both inclusive. Other times are in the first or last. */
size_t ky_view_pixel_of(int64_t begin_ns, int64_t end_ns, size_t n, int64_t ns);
/*
 * Takes the history, and begins an answer of @n pixels for rows: "{..., \"rows\": [". The caller must put the history back, after an
 * error, too. *@history may be NULL.
 */
int ky_view_begin_rows(struct ky_view *view, size_t n, struct ky_history **history,
		       struct ky_strbuf *out, struct kymo_error *err);

/* The answers; see ky_view_answer(). */
int ky_view_info(const struct ky_view *view, struct ky_strbuf *out);
int ky_view_density(struct ky_view *view, const struct ky_view_request *request,
		    const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
int ky_view_rank(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
/* Several rows, or one event. */
int ky_view_rows(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
int ky_view_tree(struct ky_view *view, struct ky_strbuf *out, struct kymo_error *err);
int ky_view_activity(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out,
		     struct kymo_error *err);
int ky_view_curves(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
/* Pixels of a curve, as an answer has them: from, to, low, mean, high, and so on. */
void ky_view_put_curve(struct ky_strbuf *out, const struct ky_history_height *heights, size_t n);
int ky_view_fields(const struct ky_view *view, struct ky_strbuf *out);
int ky_view_field(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
int ky_view_marks(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
/* The rows of @history that lack the lost events of @stream, as numbers of a JSON list. */
void ky_view_put_stream_rows(struct ky_strbuf *out, const struct ky_row_index *index,
			     const struct ky_history *history, const struct ky_stream *stream);
int ky_view_losses(struct ky_view *view, const struct ky_view_request *request,
		   struct ky_strbuf *out, struct kymo_error *err);
/* From, to (rows), begin, end (pixels) of each wake-up of a thread's row. */
int ky_view_arrows(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
int ky_view_moment(struct ky_view *view, const struct ky_view_request *request,
		   struct ky_strbuf *out, struct kymo_error *err);
int ky_view_timeline(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out,
		     struct kymo_error *err);
/* Of a row of a thread: what it waited for before a time, and who woke it. */
int ky_view_cause(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
/*
 * Give all events of a range to @put, each as {"line": as a row, "event": all fields}. An error of @put ends the walk.
 * @damage is set when the traces are damaged, and @broken has the streams: the walk has what could be read.
 */
int ky_view_walk(const struct ky_view *view, int64_t begin_ns, int64_t end_ns,
		 const struct ky_view_stop *stop,
		 int (*put)(void *data, int64_t ns, const struct ky_strbuf *json,
			    struct kymo_error *err),
		 void *data, struct kymo_error *damage, struct ky_broken_list *broken,
		 struct kymo_error *err);
/* Whether it asks for a report on two traces. */
bool ky_view_is_of_two(const struct ky_view_request *request);
int ky_view_report(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);

#endif
