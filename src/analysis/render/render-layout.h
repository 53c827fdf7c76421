/* SPDX-License-Identifier: MIT */
/* The columns of a table on the screen: which ones fit, and how wide they are. */
#ifndef KY_ANALYSIS_RENDER_RENDER_LAYOUT_H
#define KY_ANALYSIS_RENDER_RENDER_LAYOUT_H

#include "analysis/render/render.h"

#define KY_LAYOUT_MAX 40 /* columns of text */
#define KY_LAYOUT_GAP 2

/* What of a cell a column of text shows: a process takes several. */
enum ky_layout_part { KY_PART_ALL, KY_PART_TID, KY_PART_PID, KY_PART_NAME, KY_PART_HOST };

struct ky_layout_column {
	size_t column;
	enum ky_layout_part part;
	const char *heading;
	bool left;
	int width;
	uint8_t spare;
	bool is_cut; /* texts are longer */
};

struct ky_layout {
	const struct ky_table *table;
	const struct ky_render_options *options;
	struct ky_layout_column shown[KY_LAYOUT_MAX];
	size_t n_shown;
	int bar_column; /* or -1 */
	int bar_width;	/* 0: no bar */
	double bar_full;
};

/* The layout of @table; the names of the columns that do not fit go to @left_out. */
void ky_layout_init(struct ky_layout *layout, const struct ky_table *table,
		    const struct ky_render_options *options, struct ky_strbuf *left_out);
/* The width of a line without its bar. @least: a left-aligned last column may stick out. */
int ky_layout_width(const struct ky_layout *layout, bool least);

/* A cell's text, or @part of it. */
void ky_layout_add_cell(struct ky_strbuf *out, const struct ky_column *column,
			const struct ky_cell *cell, enum ky_layout_part part);
void ky_layout_add_process(struct ky_strbuf *out, const struct ky_process *process,
			   enum ky_layout_part part);
/* "?" where it is unknown. */
void ky_layout_add_id(struct ky_strbuf *out, int32_t id);
/* Columns on the screen: one for each character. */
int ky_layout_text_width(const char *text);
void ky_layout_pad(struct ky_strbuf *out, int width);

#endif
