/* SPDX-License-Identifier: MIT */
/* What the files of kymo timeline share. */
#ifndef KY_CLI_VIEW_TIMELINE_H
#define KY_CLI_VIEW_TIMELINE_H

#include "analysis/history/history.h"

/* A row of the picture. */
struct timeline_row {
	const struct ky_history_row *row;
	unsigned int depth;		 /* in the tree */
	struct ky_history_pixel *pixels; /* NULL: it has no states */
	double *events;			 /* of a stream; else NULL */
	double active;			 /* pixels in which a thread runs */
	bool hidden;
};

struct timeline {
	struct ky_history *history;
	bool built; /* by a pass over the trace */
	int64_t begin_ns, end_ns;
	size_t width;
	struct timeline_row *rows;
	size_t n_rows;
};

/* The picture as text. 0 or KYMO_E_MEMORY. */
int timeline_put_text(const struct timeline *timeline, bool colour, struct kymo_error *err);
/* The same as JSON. 0 or KYMO_E_MEMORY. */
int timeline_put_json(const struct timeline *timeline, struct kymo_error *err);
/* "CPU 0", "postgres (4711)": foreign text. @out has 300 bytes. */
void timeline_label(const struct ky_history_row *row, char *out, size_t size);

#endif
