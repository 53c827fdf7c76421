/* SPDX-License-Identifier: MIT */
/* What the answers of the viewer share. Threads: as answer.h, unless a comment says otherwise. */
#ifndef KY_VIEW_ANSWER_INTERNAL_H
#define KY_VIEW_ANSWER_INTERNAL_H

#include "view/answers/answer.h"
#include "view/traces/view-internal.h"

/* "total": ..., "progress": 0 to 1, "error": text or null. */
void ky_view_put_state(const struct ky_view *view, struct ky_counts *counts,
		       const struct ky_counts_state *state, struct ky_strbuf *out);
void ky_view_put_text(struct ky_strbuf *out, const char *text);
/* The message of @err with its path and hint, as one text. */
void ky_view_put_error(struct ky_strbuf *out, const struct kymo_error *err);

/* How many pixels the picture of a request has: no more than its range has ns. *@end_ns: the exclusive end. */
size_t ky_view_n_pixels(const struct ky_view_request *request, int64_t *end_ns);
/* The pixel of @ns in a picture of @n pixels from @begin_ns to @end_ns, both inclusive. Other times are in the first or last. */
size_t ky_view_pixel_of(int64_t begin_ns, int64_t end_ns, size_t n, int64_t ns);
/*
 * Takes the history, and begins an answer of columns: how far the pass is, and "count": @n pixels. The caller must put the history
 * back, after an error, too. *@history may be NULL.
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
struct ky_view_column;
struct ky_view_runs;
/*
 * Add the @n pixels of a row to @runs, and to @values, of type KY_VIEW_REALS. Code 0: one value, which is the lowest, the mean and the
 * highest one; 1: these three.
 */
void ky_view_add_curve(struct ky_view_runs *runs, struct ky_view_column *values,
		       const struct ky_history_height *heights, size_t n);
int ky_view_fields(const struct ky_view *view, struct ky_strbuf *out);
int ky_view_field(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
int ky_view_marks(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);
/* The rows of @history that lack the lost events of @stream. Returns how many. */
size_t ky_view_stream_rows(const struct ky_row_index *index, const struct ky_history *history,
			   const struct ky_stream *stream, uint32_t rows[2]);
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
