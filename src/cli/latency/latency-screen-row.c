/* SPDX-License-Identifier: MIT */
/* One row on the screen: its windows, its distribution, the members in a range of it. */
#include <string.h>

#include "cli/latency/latency-screen-internal.h"

/* The first octave has all that is less than 64 ns. */
#define OCTAVES (KY_LATENCY_BUCKETS / KY_LATENCY_SUBS)

struct octaves {
	uint64_t counts[OCTAVES], most;
	uint32_t first, last; /* with something in them */
};

static void count_octave(struct octaves *octaves, uint32_t i)
{
	if (!octaves->counts[i])
		return;
	octaves->most = octaves->counts[i] > octaves->most ? octaves->counts[i] : octaves->most;
	octaves->first = i < octaves->first ? i : octaves->first;
	octaves->last = i;
}

static void count_octaves(const struct ky_histogram *histogram, struct octaves *octaves)
{
	*octaves = (struct octaves){.most = 1, .first = OCTAVES - 1};
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		octaves->counts[i / KY_LATENCY_SUBS] += histogram->buckets[i];
	for (uint32_t i = 0; i < OCTAVES; i++)
		count_octave(octaves, i);
	if (octaves->first > octaves->last)
		octaves->first = octaves->last;
}

static uint64_t octave_begin_ns(uint32_t octave)
{
	return ky_bucket_begin_ns(octave * KY_LATENCY_SUBS);
}

/* ---- drawing -------------------------------------------------------------------------------- */

static void put_windows(struct ky_screen *screen, const struct ky_series *series)
{
	ky_screen_putf(3, 2, COLS, "%-4s %10s %10s %10s %10s %10s %10s", "", "count", "p50 ",
		       "p90 ", "p99 ", "p99.9 ", "max ");
	for (int i = 0; i < KY_PASTS; i++) {
		char times[KY_LATENCY_PARTS][32], max[32];
		struct ky_histogram histogram;

		ky_series_past(series, i, ky_latency_slot(screen->view->latency), &histogram);
		for (size_t part = 0; part < KY_LATENCY_PARTS; part++)
			ky_screen_time(times[part], sizeof(times[part]),
				       ky_histogram_percentile_ns(&histogram,
								  ky_latency_parts[part].part));
		ky_screen_putf(4 + i, 2, COLS, "%-4s %10llu %10s %10s %10s %10s %10s",
			       ky_past_name(i), (unsigned long long)histogram.count, times[0],
			       times[1], times[2], times[3],
			       ky_screen_time(max, sizeof(max), histogram.max_ns));
	}
}

static void put_octave(const struct ky_screen *screen, int y, uint32_t octave,
		       const struct octaves *octaves)
{
	char bar[32] = "", begin[32];
	int length = (int)(24.0 * (double)octaves->counts[octave] / (double)octaves->most);
	bool is_chosen = !screen->is_whole && octave >= screen->first && octave <= screen->last;

	if (octaves->counts[octave] && !length)
		length = 1;
	memset(bar, '#', (size_t)length);
	if (is_chosen)
		attron(A_REVERSE);
	ky_screen_putf(y, 2, 50, "%10s %10llu  %-24s",
		       ky_screen_time(begin, sizeof(begin), octave_begin_ns(octave)),
		       (unsigned long long)octaves->counts[octave], bar);
	attroff(A_REVERSE);
}

/* Is @member one of the row, and in the range? */
static bool latency_screen_row_is_member(const struct ky_screen *screen,
					 const struct ky_latency_row *row,
					 const struct ky_latency_member *member)
{
	uint32_t octave = ky_latency_bucket(member->ns) / KY_LATENCY_SUBS;

	if (screen->view->by == KY_LATENCY_BY_PROCESS && row->series->owner &&
	    (uint64_t)member->pid != row->series->key.who)
		return false;
	return screen->is_whole || (octave >= screen->first && octave <= screen->last);
}

static void put_stack(struct ky_screen *screen, int y, int x,
		      const struct ky_latency_member *member)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *line;

	ky_members_put(screen->members, &text, screen->view->latency, member, true);
	line = strchr(ky_strbuf_text(&text), '\n');
	while (line && line[1] && y < LINES - 1) {
		size_t len = strcspn(line + 1, "\n");

		ky_screen_putf(y++, x, COLS - x, "%.*s", (int)len, line + 1);
		line = line[1 + len] ? line + 1 + len : NULL;
	}
	ky_strbuf_fini(&text);
}

static int latency_screen_put_member(struct ky_screen *screen, int y, int x,
				     const struct ky_latency_member *member, bool is_chosen)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_members_put(screen->members, &text, screen->view->latency, member, false);
	if (is_chosen)
		attron(A_BOLD);
	ky_screen_putf(y, x, COLS - x, "%.*s", (int)strcspn(ky_strbuf_text(&text), "\n"),
		       ky_strbuf_text(&text));
	attroff(A_BOLD);
	ky_strbuf_fini(&text);
	return y + 1;
}

/* The last members in the range, the newest first; below them the stack of the chosen one. */
static void put_members(struct ky_screen *screen, const struct ky_latency_row *row, int y, int x)
{
	const struct ky_members_kept *kept =
		ky_members_of(screen->members, row->series->key.layer, row->series->key.sub);
	const struct ky_latency_member *chosen = NULL;
	uint64_t n_kept = !kept ? 0 : kept->n < KY_MEMBERS_KEPT ? kept->n : KY_MEMBERS_KEPT;
	uint32_t n = 0;

	attron(A_BOLD);
	ky_screen_putf(y++, x, COLS - x, "Last members%s",
		       n_kept ? "" : ": none longer than --members");
	attroff(A_BOLD);
	for (uint64_t i = 0; i < n_kept && y < LINES - 6; i++) {
		const struct ky_latency_member *member =
			&kept->last[(kept->n - 1 - i) % KY_MEMBERS_KEPT];

		if (!latency_screen_row_is_member(screen, row, member))
			continue;
		if (n <= screen->member)
			chosen = member;
		y = latency_screen_put_member(screen, y, x, member, n++ == screen->member);
	}
	if (chosen)
		put_stack(screen, y + 1, x, chosen);
}

void ky_screen_draw_row(struct ky_screen *screen, const struct ky_latency_row *row)
{
	struct octaves octaves;
	int y = 9, members_y = 9, members_x = 54;

	attron(A_BOLD);
	ky_screen_put(1, 2, 40, ky_latency_layer_title(row->series->key.layer));
	attroff(A_BOLD);
	ky_screen_put(1, 44, COLS - 44, row->series->name);
	if (row->series->owner)
		ky_screen_put(2, 44, COLS - 44, row->series->owner);
	ky_screen_put(2, 2, 40, ky_latency_layer_help(row->series->key.layer));
	put_windows(screen, row->series);
	count_octaves(&row->histogram, &octaves);
	if (!screen->is_whole) { /* also where nothing is in it at this moment */
		octaves.first = screen->first < octaves.first ? screen->first : octaves.first;
		octaves.last = screen->last > octaves.last ? screen->last : octaves.last;
	}
	for (uint32_t i = octaves.first; i <= octaves.last && y < LINES - 1; i++)
		put_octave(screen, y++, i, &octaves);
	if (COLS < 110) {
		members_y = y + 1;
		members_x = 2;
	}
	put_members(screen, row, members_y, members_x);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void choose_range(struct ky_screen *screen, const struct octaves *octaves)
{
	if (!screen->is_whole)
		return;
	screen->is_whole = false;
	screen->first = screen->last = octaves->last;
}

static void move_range(struct ky_screen *screen, int by, const struct octaves *octaves)
{
	if (screen->is_whole) {
		choose_range(screen, octaves);
	} else if (by < 0 && screen->first > octaves->first) {
		screen->first--;
		screen->last--;
	} else if (by > 0 && screen->last < octaves->last) {
		screen->first++;
		screen->last++;
	}
}

void ky_screen_row_key(struct ky_screen *screen, int key)
{
	const struct ky_latency_row *row = ky_screen_row(screen);
	struct octaves octaves;

	if (!row)
		return;
	count_octaves(&row->histogram, &octaves);
	switch (key) {
	case KEY_UP:
	case 'k':
		move_range(screen, -1, &octaves);
		break;
	case KEY_DOWN:
	case 'j':
		move_range(screen, 1, &octaves);
		break;
	case KEY_LEFT:
		choose_range(screen, &octaves);
		screen->first += screen->first < screen->last;
		break;
	case KEY_RIGHT:
		choose_range(screen, &octaves);
		screen->first -= screen->first > 0;
		break;
	case 'a':
		screen->is_whole = true;
		break;
	case 'n':
		screen->member++;
		return;
	case 'p':
		screen->member -= screen->member > 0;
		return;
	default:
		return;
	}
	screen->member = 0;
}
