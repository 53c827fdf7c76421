/* SPDX-License-Identifier: MIT */
/* What the files of a saved page share. */
#ifndef KY_VIEW_SAVE_INTERNAL_H
#define KY_VIEW_SAVE_INTERNAL_H

#include "view/save/save.h"
#include "view/answers/answer-internal.h"

/* More than a page can have: KYMO_E_LIMIT, with what to do. */
int ky_saved_too_much(const char *what, struct kymo_error *err);

/* Offsets of states are closer to the range than that, or -KY_SAVED_FAR_NS: since ever. */
#define KY_SAVED_FAR_NS ((int64_t)1 << 51)

/* A thread of the range, and how long it ran in it. */
struct ky_saved_thread {
	int32_t tid;
	double ran_ns;
};

KY_VEC_TYPE(ky_saved_threads, struct ky_saved_thread);

/*
 * save-rows.c: the section "rows", from @begin_ns to @end_ns; @broken: streams that damage ended. @threads gets those that have
 * states in the range. @again: the history on disk was damaged, and is no longer there: a second try builds it again.
 */
int ky_saved_rows(const struct ky_view *view, int64_t begin_ns, int64_t end_ns,
		  const struct ky_broken_list *broken, struct ky_saved_threads *threads,
		  struct ky_strbuf *out, bool *again, struct kymo_error *err);

/* Reports on causes: the ones of all but paths, the paths, and what each report is of, as a list of texts. */
struct ky_saved_causes {
	struct ky_strbuf reports, path, ofs;
};

struct ky_view_range {
	int64_t begin_ns, end_ns;
};

/* save-causes.c; sorts @threads. Texts stay empty if the traces have not the events. */
int ky_saved_causes(const struct ky_view *view, const struct ky_view_range *range,
		    const struct ky_view_stop *stop, struct ky_saved_threads *threads,
		    struct ky_saved_causes *out, struct kymo_error *err);
/* save-losses.c: lost events and damage of the range: [{"stream": its name, "rows": [...], "lost": [begin, end, events, ...], "broken": time or null}, ...] */
int ky_saved_losses(const struct ky_view *view, const struct ky_history *history, int64_t begin_ns,
		    int64_t end_ns, const struct ky_broken_list *broken, struct ky_strbuf *out,
		    struct kymo_error *err);

/* save-page.c: the page with @data, to @fd. */
int ky_saved_page(const struct ky_strbuf *head, const struct ky_strbuf *data, int fd,
		  struct kymo_error *err);

#endif
