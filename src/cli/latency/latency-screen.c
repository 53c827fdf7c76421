/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "base/foreign.h"
#include "cli/latency/latency-screen-internal.h"
#include "cli/terminal/command.h"
#include "os/now.h"

/* Of a panel, with a gap. */
#define PANEL_COLUMNS 62

/* ---- text ----------------------------------------------------------------------------------- */

/* So many bytes of @text are at most @width characters. */
static size_t latency_screen_cut(const char *text, int width)
{
	size_t n = 0;

	for (; text[n] && width >= 0; n++)
		if ((text[n] & 0xc0) != 0x80 && --width < 0)
			return n;
	return n;
}

static void put_safe(int y, int x, int width, const char *text)
{
	if (y < 0 || y >= LINES || x >= COLS || width <= 0)
		return;
	if (width > COLS - x)
		width = COLS - x;
	mvaddnstr(y, x, text, (int)latency_screen_cut(text, width));
}

void ky_screen_put(int y, int x, int width, const char *text)
{
	struct ky_strbuf safe = KY_STRBUF_INIT;

	ky_foreign_adds(&safe, text);
	put_safe(y, x, width, ky_strbuf_text(&safe));
	ky_strbuf_fini(&safe);
}

void ky_screen_putf(int y, int x, int width, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_safe(y, x, width, text);
}

const char *ky_screen_time(char *text, size_t size, uint64_t ns)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_render_duration(&out, (double)ns);
	snprintf(text, size, "%s", ky_strbuf_text(&out));
	ky_strbuf_fini(&out);
	return text;
}

/* ---- all rows ------------------------------------------------------------------------------- */

static size_t selected_index(const struct ky_screen *screen)
{
	for (size_t i = 0; i < screen->rows.len; i++)
		if (ky_latency_rows_is_key(&screen->rows.data[i].series->key, &screen->selected))
			return i;
	return 0;
}

const struct ky_latency_row *ky_screen_row(struct ky_screen *screen)
{
	return screen->rows.len ? &screen->rows.data[selected_index(screen)] : NULL;
}

/* The number of rows from @i on that are of one layer; those that are shown are fewer. */
static size_t layer_rows(const struct ky_screen *screen, size_t i)
{
	size_t n = 0;

	while (i + n < screen->rows.len &&
	       screen->rows.data[i + n].series->key.layer == screen->rows.data[i].series->key.layer)
		n++;
	return n;
}

static size_t shown_rows(const struct ky_screen *screen, size_t i)
{
	size_t n = layer_rows(screen, i);

	return screen->view->limit && n > screen->view->limit ? screen->view->limit : n;
}

static void put_row(const struct ky_screen *screen, int y, int x, const struct ky_latency_row *row)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	bool is_selected = ky_latency_rows_is_key(&row->series->key, &screen->selected);
	char p50[32], p99[32], max[32];

	ky_strbuf_adds(&text, row->series->name);
	if (row->series->owner)
		ky_strbuf_addf(&text, " %s", row->series->owner);
	if (is_selected)
		attron(A_REVERSE);
	ky_screen_putf(y, x, PANEL_COLUMNS - 2, "%*s", PANEL_COLUMNS - 2, "");
	ky_screen_put(y, x, 21, ky_strbuf_text(&text));
	ky_screen_putf(
		y, x + 22, 38, "%8llu %9s %9s %9s", (unsigned long long)row->histogram.count,
		ky_screen_time(p50, sizeof(p50), ky_histogram_percentile_ns(&row->histogram, 0.5)),
		ky_screen_time(p99, sizeof(p99), ky_histogram_percentile_ns(&row->histogram, 0.99)),
		ky_screen_time(max, sizeof(max), row->histogram.max_ns));
	attroff(A_REVERSE);
	ky_strbuf_fini(&text);
}

static void put_shape_of(const struct ky_screen *screen, int y, int x,
			 const struct ky_latency_row *row)
{
	struct ky_strbuf shape = KY_STRBUF_INIT;

	(void)screen;
	ky_latency_put_shape(&shape, &row->histogram, ky_cli_locale_is_utf8());
	put_safe(y, x, 22, ky_strbuf_text(&shape));
	ky_strbuf_fini(&shape);
}

/* Where the next panel goes: the column that is shortest so far. */
struct place {
	int n, heights[8], width;
};

static int shortest(const struct place *place)
{
	int best = 0;

	for (int i = 1; i < place->n; i++)
		if (place->heights[i] < place->heights[best])
			best = i;
	return best;
}

static void put_panel(struct ky_screen *screen, struct place *place, size_t at, size_t n)
{
	int column = shortest(place), x = column * place->width, y = place->heights[column];
	bool has_shape = place->width >= PANEL_COLUMNS + 23;

	attron(A_BOLD);
	ky_screen_put(y + 1 - screen->top, x, 21,
		      ky_latency_layer_title(screen->rows.data[at].series->key.layer));
	attroff(A_BOLD);
	ky_screen_putf(y + 1 - screen->top, x + 22, 38, "%8s %9s %9s %9s", "count", "p50 ", "p99 ",
		       "max ");
	if (has_shape)
		put_safe(y + 1 - screen->top, x + PANEL_COLUMNS, 22, KY_LATENCY_SHAPE_TITLE);
	for (size_t i = 0; i < n; i++) {
		int line = y + 2 + (int)i - screen->top;

		if (line < 1 || line >= LINES - 1)
			continue;
		put_row(screen, line, x, &screen->rows.data[at + i]);
		if (has_shape)
			put_shape_of(screen, line, x + PANEL_COLUMNS, &screen->rows.data[at + i]);
	}
	place->heights[column] = y + (int)n + 2;
}

static void draw_panels(struct ky_screen *screen)
{
	struct place place = {.n = COLS / PANEL_COLUMNS};

	place.n = place.n < 1 ? 1 : place.n > 8 ? 8 : place.n;
	/* The picture of the distribution is worth more than a third column. */
	if (COLS >= 2 * (PANEL_COLUMNS + 23))
		place.n = COLS / (PANEL_COLUMNS + 23) > 8 ? 8 : COLS / (PANEL_COLUMNS + 23);
	place.width = COLS / place.n;
	for (size_t i = 0; i < screen->rows.len; i += layer_rows(screen, i))
		put_panel(screen, &place, i, shown_rows(screen, i));
	if (!screen->rows.len)
		ky_screen_putf(2, 2, 60, "(nothing in this time)");
}

static void draw_title(const struct ky_screen *screen)
{
	char window[32];

	attron(A_REVERSE);
	ky_screen_putf(0, 0, COLS, "%*s", COLS, "");
	ky_screen_putf(
		0, 1, COLS - 1, "kymo latency   %s: the last %s%s%s",
		ky_past_name(screen->view->window),
		ky_screen_time(window, sizeof(window),
			       ky_latency_window_ns(screen->view->latency, screen->view->window)),
		screen->view->by ? "   by " : "",
		screen->view->by ? ky_latency_by_name(screen->view->by) : "");
	if (screen->is_paused)
		ky_screen_putf(0, COLS - 9, 8, "paused");
	attroff(A_REVERSE);
	attron(A_DIM);
	ky_screen_putf(
		LINES - 1, 1, COLS - 1, "%s",
		screen->is_detail
			? "Esc all rows  up/down range  left/right its size  a all  n/p member  w window  q end"
			: "up/down row  Tab layer  Enter one row  w window  space pause  q end");
	attroff(A_DIM);
}

static void latency_screen_draw(struct ky_screen *screen)
{
	const struct ky_latency_row *row = ky_screen_row(screen);

	erase();
	if (row)
		screen->selected = row->series->key;
	if (screen->is_detail && row)
		ky_screen_draw_row(screen, row);
	else
		draw_panels(screen);
	draw_title(screen);
	refresh();
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* The row @by rows further; a row beyond the limit of its layer is not shown. */
static void move_row(struct ky_screen *screen, int by)
{
	long i = (long)selected_index(screen) + by;

	if (i >= 0 && i < (long)screen->rows.len)
		screen->selected = screen->rows.data[i].series->key;
}

static bool latency_screen_is_shown(const struct ky_screen *screen, size_t row)
{
	size_t at = 0;

	while (at + layer_rows(screen, at) <= row)
		at += layer_rows(screen, at);
	return row - at < shown_rows(screen, at);
}

static void step_row(struct ky_screen *screen, int by)
{
	size_t before;

	if (!screen->rows.len)
		return;
	do {
		before = selected_index(screen);
		move_row(screen, by);
	} while (selected_index(screen) != before &&
		 !latency_screen_is_shown(screen, selected_index(screen)));
}

static void next_layer(struct ky_screen *screen)
{
	size_t i = 0, selected = selected_index(screen);

	while (i < screen->rows.len && i <= selected)
		i += layer_rows(screen, i);
	if (screen->rows.len)
		screen->selected = screen->rows.data[i < screen->rows.len ? i : 0].series->key;
}

static int latency_screen_reread(struct ky_screen *screen)
{
	ky_latency_rows_fini(&screen->rows);
	return ky_latency_rows_find(screen->view, &screen->rows);
}

static void main_key(struct ky_screen *screen, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		step_row(screen, -1);
		break;
	case KEY_DOWN:
	case 'j':
		step_row(screen, 1);
		break;
	case '\t':
		next_layer(screen);
		break;
	case KEY_NPAGE:
		screen->top += LINES / 2;
		break;
	case KEY_PPAGE:
		screen->top = screen->top > LINES / 2 ? screen->top - LINES / 2 : 0;
		break;
	case '\n':
	case KEY_ENTER:
		screen->is_detail = screen->rows.len > 0;
		screen->is_whole = true;
		screen->member = 0;
		break;
	default:
		break;
	}
}

static void obey(struct ky_screen *screen, int key)
{
	if (key == ' ') {
		screen->is_paused = !screen->is_paused;
	} else if (key == 'w') {
		screen->view->window = (screen->view->window + 1) % KY_PASTS;
		(void)latency_screen_reread(screen);
	} else if (key == 27) {
		screen->is_detail = false;
	} else if (screen->is_detail) {
		ky_screen_row_key(screen, key);
	} else {
		main_key(screen, key);
	}
}

bool ky_screen_keys(struct ky_screen *screen)
{
	bool is_any = false;
	int key;

	while ((key = getch()) != ERR) {
		if (key == 'q')
			return false;
		obey(screen, key);
		is_any = true;
	}
	if (is_any)
		latency_screen_draw(screen);
	return true;
}

/* ---- begin and end -------------------------------------------------------------------------- */

int ky_screen_open(struct ky_latency_view *view, struct ky_members *members,
		   struct ky_screen **result, struct kymo_error *err)
{
	struct ky_screen *screen = calloc(1, sizeof(*screen));

	*result = NULL;
	if (!screen)
		return ky_error_nomem(err);
	setlocale(LC_CTYPE, "");
	screen->view = view;
	screen->members = members;
	set_escdelay(25);
	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal) {
		free(screen);
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "the terminal is not known");
	}
	view->kept = &screen->selected; /* a row stays while nothing happens in it */
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
	*result = screen;
	return KYMO_OK;
}

void ky_screen_close(struct ky_screen *screen)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen->terminal);
	ky_latency_rows_fini(&screen->rows);
	screen->view->kept = NULL;
	free(screen);
}

int ky_screen_update(struct ky_screen *screen, struct kymo_error *err)
{
	/* Rows borrow series, which may go: they are found anew in any case. */
	if (latency_screen_reread(screen) < 0)
		return ky_error_nomem(err);
	if (!screen->is_paused)
		latency_screen_draw(screen);
	return KYMO_OK;
}
