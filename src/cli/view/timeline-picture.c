/* SPDX-License-Identifier: MIT */
/* kymo timeline: rows as text, a character for each pixel. */
#include "cli/view/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "base/foreign.h"
#include "cli/terminal/command.h"

#define LABEL_WIDTH 26
#define LETTERS	    26

void timeline_label(const struct ky_history_row *row, char *out, size_t size)
{
	switch (row->kind) {
	case KY_ROW_PROCESS:
		snprintf(out, size, "process %s (%lld)", row->name, (long long)row->number);
		break;
	case KY_ROW_THREAD:
		snprintf(out, size, "%s (%lld)", row->name, (long long)row->number);
		break;
	case KY_ROW_SPANS:
	case KY_ROW_REQUESTS:
		snprintf(out, size, "%s %lld", row->name, (long long)row->number);
		break;
	default:
		snprintf(out, size, "%s", row->name);
	}
}

/* ---- letters ------------------------------------------------------------------------------------ */

/* States that get letters: the threads of CPUs capital ones, spans small ones. */
struct letter {
	uint64_t state;
	size_t n_pixels;
};

struct letters {
	struct letter *all;
	size_t n;
};

static bool has_letter(uint64_t state)
{
	return ky_state_kind(state) == KY_STATE_RUNS || ky_state_kind(state) == KY_STATE_SPAN;
}

static int by_state(const void *left, const void *right)
{
	const struct letter *a = left, *b = right;

	return a->state < b->state ? -1 : a->state > b->state;
}

static int by_pixels(const void *left, const void *right)
{
	const struct letter *a = left, *b = right;

	if (a->n_pixels != b->n_pixels)
		return a->n_pixels > b->n_pixels ? -1 : 1;
	return by_state(left, right);
}

/* Runs of pixels become states, the most frequent first. 0 or KYMO_E_MEMORY. */
static int find_letters(const struct timeline *timeline, struct letters *letters)
{
	size_t n = 0, kept = 0;

	letters->all = calloc(timeline->n_rows * timeline->width + 1, sizeof(*letters->all));
	if (!letters->all)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < timeline->n_rows; i++) {
		const struct timeline_row *row = &timeline->rows[i];

		for (size_t x = 0; !row->hidden && row->pixels && x < timeline->width; x++) {
			if (has_letter(row->pixels[x].state))
				letters->all[n++] = (struct letter){row->pixels[x].state, 1};
		}
	}
	qsort(letters->all, n, sizeof(*letters->all), by_state);
	for (size_t i = 0; i < n; i++) {
		if (kept && letters->all[kept - 1].state == letters->all[i].state)
			letters->all[kept - 1].n_pixels++;
		else
			letters->all[kept++] = letters->all[i];
	}
	qsort(letters->all, kept, sizeof(*letters->all), by_pixels);
	letters->n = kept;
	return 0;
}

static char letter_of(const struct letters *letters, uint64_t state)
{
	enum ky_state_kind kind = ky_state_kind(state);
	int at = 0;

	for (size_t i = 0; i < letters->n && at < LETTERS; i++) {
		if (ky_state_kind(letters->all[i].state) != kind)
			continue;
		if (letters->all[i].state == state)
			return (char)((kind == KY_STATE_RUNS ? 'A' : 'a') + at);
		at++;
	}
	return '#';
}

/* ---- characters ----------------------------------------------------------------------------------- */

struct look {
	char sign;
	const char *colour, *text;
};

static const struct look looks[KY_STATE_KINDS] = {
	[KY_STATE_NONE] = {' ', "", NULL},
	[KY_STATE_IDLE] = {'-', "", "the CPU is idle"},
	[KY_STATE_USER] = {'#', "\033[32m", "runs in user space"},
	[KY_STATE_RUNNING] = {'#', "\033[32m", "runs"},
	[KY_STATE_SYSCALL] = {'s', "\033[34m", "runs in a system call"},
	[KY_STATE_IRQ] = {'i', "\033[35m", "interrupted by a handler"},
	[KY_STATE_SOFTIRQ] = {'o', "\033[35m", "interrupted by a softirq"},
	[KY_STATE_WAIT_CPU] = {'w', "\033[33m", "waits for a CPU"},
	[KY_STATE_BLOCKED] = {'.', "", "waits for something"},
	[KY_STATE_DISK] = {'d', "\033[31m", "waits uninterruptibly: for a disk, most often"},
	[KY_STATE_LOCK] = {'l', "\033[31m", "waits for a lock (futex)"},
	[KY_STATE_NETWORK] = {'n', "", "waits for a socket"},
	[KY_STATE_TIMER] = {'t', "", "sleeps for a time"},
	[KY_STATE_STOPPED] = {'x', "", "stopped, traced, parked, or a kernel thread without work"},
	[KY_STATE_ACTIVE] = {'#', "\033[35m", "the handler runs"},
	[KY_STATE_READ] = {'r', "\033[34m", "a read request"},
	[KY_STATE_WRITE] = {'W', "\033[31m", "a write request"},
	[KY_STATE_OTHER] = {'q', "", "another request"},
};

/* Something happens in it, but for less than half of the time. */
#define LITTLE '\''

static char sign_of(const struct letters *letters, const struct ky_history_pixel *pixel)
{
	uint64_t state = pixel->state;
	enum ky_state_kind kind = ky_state_kind(state);

	if (kind == KY_STATE_NONE && pixel->more)
		return LITTLE;
	if (has_letter(state))
		return letter_of(letters, state);
	if (kind == KY_STATE_VALUE)
		return (char)(ky_state_value(state) < 10 ? '0' + (char)ky_state_value(state) : '+');
	return looks[kind].sign ? looks[kind].sign : '#';
}

static const char *timeline_picture_colour_of(uint64_t state)
{
	const char *colour = looks[ky_state_kind(state)].colour;

	if (ky_state_kind(state) == KY_STATE_RUNS)
		return "\033[32m";
	return colour ? colour : "";
}

static void timeline_picture_put_states(struct ky_strbuf *out, const struct timeline *timeline,
					const struct timeline_row *row,
					const struct letters *letters, bool colour)
{
	const char *last = "";

	for (size_t x = 0; x < timeline->width; x++) {
		const char *now = colour ? timeline_picture_colour_of(row->pixels[x].state) : "";

		if (strcmp(now, last) != 0)
			ky_strbuf_adds(out, *now ? now : "\033[0m");
		last = now;
		ky_strbuf_addc(out, sign_of(letters, &row->pixels[x]));
	}
	if (*last)
		ky_strbuf_adds(out, "\033[0m");
}

static void put_densities(struct ky_strbuf *out, const struct timeline *timeline,
			  const struct timeline_row *row)
{
	static const char steps[] = " .:-=+*%@";
	double most = 0;

	for (size_t x = 0; x < timeline->width; x++)
		most = row->events[x] > most ? row->events[x] : most;
	for (size_t x = 0; x < timeline->width; x++) {
		size_t step =
			row->events[x] > 0
				? 1 + (size_t)(row->events[x] / most * (sizeof(steps) - 2.001))
				: 0;

		ky_strbuf_addc(out, steps[step < sizeof(steps) - 1 ? step : sizeof(steps) - 2]);
	}
	ky_strbuf_addf(out, " up to %.0f events", most);
}

/* At most @width characters of foreign text, and blanks up to there. */
static void put_label(struct ky_strbuf *out, unsigned int depth, const char *label, size_t width)
{
	size_t len = strlen(label), used = 0;

	for (; used < (size_t)depth * 2 && used < width; used++)
		ky_strbuf_addc(out, ' ');
	while (len && used < width) {
		char escape[KY_FOREIGN_ESCAPE_BYTES];
		size_t n = ky_foreign_next(label, len, escape),
		       needs = *escape ? strlen(escape) : 1;

		if (used + needs > width)
			break;
		ky_strbuf_add(out, *escape ? escape : label, *escape ? needs : n);
		used += needs;
		label += n;
		len -= n;
	}
	for (; used < width; used++)
		ky_strbuf_addc(out, ' ');
}

/* ---- the text ---------------------------------------------------------------------------------------- */

static void timeline_picture_put_head(struct ky_strbuf *out, const struct timeline *timeline)
{
	ky_render_time(out, timeline->begin_ns, true);
	ky_strbuf_adds(out, " to ");
	ky_render_time(out, timeline->end_ns, true);
	ky_strbuf_adds(out, ", a character is ");
	ky_render_duration(out, ((double)(timeline->end_ns - timeline->begin_ns)) /
					(double)timeline->width);
	ky_strbuf_adds(out, "\n\n");
}

static void timeline_picture_put_row(struct ky_strbuf *out, const struct timeline *timeline,
				     const struct timeline_row *row, const struct letters *letters,
				     bool colour)
{
	char label[300];

	timeline_label(row->row, label, sizeof(label));
	put_label(out, row->depth, label, LABEL_WIDTH);
	if (row->pixels || row->events)
		ky_strbuf_adds(out, " |");
	if (row->events)
		put_densities(out, timeline, row);
	else if (row->pixels)
		timeline_picture_put_states(out, timeline, row, letters, colour);
	if (row->pixels)
		ky_strbuf_adds(out, "|");
	ky_strbuf_addc(out, '\n');
}

/* Which kinds of states are in the picture: bits. */
static uint64_t kinds_in(const struct timeline *timeline)
{
	uint64_t kinds = 0;

	for (size_t i = 0; i < timeline->n_rows; i++) {
		const struct timeline_row *row = &timeline->rows[i];

		for (size_t x = 0; !row->hidden && row->pixels && x < timeline->width; x++)
			kinds |= UINT64_C(1) << ky_state_kind(row->pixels[x].state);
	}
	return kinds;
}

static void put_letter(struct ky_strbuf *out, const struct timeline *timeline,
		       const struct letters *letters, uint64_t state)
{
	char sign = letter_of(letters, state), label[300];
	uint64_t value = ky_state_value(state);

	if (sign == '#')
		return;
	if (ky_state_kind(state) == KY_STATE_SPAN)
		snprintf(label, sizeof(label), "%s", ky_history_name(timeline->history, value));
	else if (value < ky_history_n_rows(timeline->history))
		timeline_label(ky_history_row(timeline->history, (uint32_t)value), label,
			       sizeof(label));
	else
		return;
	ky_strbuf_addf(out, "  %c  ", sign);
	ky_foreign_adds(out, label);
	ky_strbuf_addc(out, '\n');
}

static void put_legend(struct ky_strbuf *out, const struct timeline *timeline,
		       const struct letters *letters)
{
	uint64_t kinds = kinds_in(timeline);

	ky_strbuf_adds(out, "\n     nothing, or unknown\n");
	ky_strbuf_addf(out, "  %c  something else for a part of the time\n", LITTLE);
	for (int kind = 1; kind < KY_STATE_KINDS; kind++) {
		if (kinds >> kind & 1 && looks[kind].text)
			ky_strbuf_addf(out, "  %c  %s\n", looks[kind].sign, looks[kind].text);
	}
	for (size_t i = 0; i < letters->n; i++)
		put_letter(out, timeline, letters, letters->all[i].state);
}

int timeline_put_text(const struct timeline *timeline, bool colour, struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct letters letters = {0};
	size_t n_hidden = 0;
	int status = find_letters(timeline, &letters);

	if (status >= 0) {
		timeline_picture_put_head(&out, timeline);
		for (size_t i = 0; i < timeline->n_rows; i++) {
			n_hidden += timeline->rows[i].hidden;
			if (!timeline->rows[i].hidden)
				timeline_picture_put_row(&out, timeline, &timeline->rows[i],
							 &letters, colour);
		}
		if (n_hidden)
			ky_strbuf_addf(&out, "(%zu more row%s; --rows '*' shows all rows)\n",
				       n_hidden, n_hidden == 1 ? "" : "s");
		put_legend(&out, timeline, &letters);
	}
	if (ky_strbuf_failed(&out))
		status = KYMO_E_MEMORY;
	if (status >= 0)
		ky_cli_write(&out);
	free(letters.all);
	ky_strbuf_fini(&out);
	return status < 0 ? ky_error_nomem(err) : 0;
}