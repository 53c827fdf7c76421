/* SPDX-License-Identifier: MIT */
/*
 * api/query: a statement of SQL for a range (:begin, :end), as the JSON of a report, so that its rows lead to the picture.
 *
 * The statement can read the traces and nothing else. It ends when the page has gone, or after a time; its rows, and what SQLite needs for
 * sorting, have limits. A few run at the same time. Threads: any.
 */
#ifndef KY_VIEW_QUERY_H
#define KY_VIEW_QUERY_H

#include "view/answers/answer-internal.h"

/* The same for the statements of @text, of a file @path: its comments tell what its tables are (sql/sql-report.h). */
int ky_view_statements(struct ky_view *view, const char *path, const char *text,
		       const struct ky_view_request *request, const struct ky_view_stop *stop,
		       struct ky_strbuf *out, struct kymo_error *err);
/* Of temporary files of each of them; before the first one. */
void ky_view_limit_statements(uint64_t bytes);
int ky_view_query(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err);

#endif
