/* SPDX-License-Identifier: MIT */
/* What the two files of the screen share: all rows, and one of them. */
#ifndef KY_CLI_LATENCY_LATENCY_SCREEN_INTERNAL_H
#define KY_CLI_LATENCY_LATENCY_SCREEN_INTERNAL_H

#include <curses.h>

#include "cli/latency/latency-screen.h"

struct ky_screen {
	SCREEN *terminal;
	struct ky_latency_view *view;
	struct ky_members *members;
	struct ky_latency_rows rows;
	struct ky_latency_key selected; /* of the row that is chosen */
	bool is_paused;
	bool is_detail;	      /* the chosen row alone */
	bool is_whole;	      /* of its members: all; else those of the range */
	uint32_t first, last; /* the range, in octaves */
	uint32_t member;      /* which of those in the range is shown with its stack */
	int top;	      /* the first line of the panels that is on the screen */
};

/* The chosen row, or the first one; NULL: there are no rows. */
const struct ky_latency_row *ky_screen_row(struct ky_screen *screen);
/* Write foreign text at @x, @y, at most @width columns of it. */
void ky_screen_put(int y, int x, int width, const char *text);
/* The same of text without anything to escape. */
void ky_screen_putf(int y, int x, int width, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* "1.234 ms" */
const char *ky_screen_time(char *text, size_t size, uint64_t ns);

/* ---- latency-screen-row.c ------------------------------------------------------------------- */

void ky_screen_draw_row(struct ky_screen *screen, const struct ky_latency_row *row);
/* A key while one row is shown. */
void ky_screen_row_key(struct ky_screen *screen, int key);

#endif
