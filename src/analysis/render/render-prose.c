/* SPDX-License-Identifier: MIT */
/* Tables of sentences for people: each row is a numbered paragraph, with its other texts below. */
#include "analysis/render/render.h"

#include <stdio.h>
#include <string.h>

#include "base/foreign.h"

#define PROSE_WIDTH  100
#define PROSE_INDENT 5

static void render_prose_pad(struct ky_strbuf *out, size_t n)
{
	while (n--)
		ky_strbuf_addc(out, ' ');
}

/* The length of the first word of @text; a number and its unit are one word. */
static size_t render_prose_word(const char *text)
{
	static const char *const units[] = {"%", "ns", "us", "ms", "s",	  "min", "h",	"d",
					    "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "TiB"};
	size_t len = strcspn(text, " "), unit;

	if (!len || strspn(text, "0123456789.,") != len || text[len] != ' ')
		return len;
	unit = strcspn(text + len + 1, " .,;:)");
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strlen(units[i]) == unit && strncmp(text + len + 1, units[i], unit) == 0)
			return len + 1 + strcspn(text + len + 1, " ");
	}
	return len;
}

/* @text in lines of @width, behind @head in the first one and as many blanks in the others. */
static void render_prose_wrap(struct ky_strbuf *out, const char *head, const char *text,
			      size_t width)
{
	size_t indent = strlen(head), at = indent;

	ky_strbuf_adds(out, head);
	for (const char *word = text; *word;) {
		size_t len = render_prose_word(word), columns = 0;

		for (size_t i = 0; i < len; i++)
			columns += ((unsigned char)word[i] & 0xc0) != 0x80;
		if (at > indent && at + 1 + columns > width) {
			ky_strbuf_addc(out, '\n');
			render_prose_pad(out, indent);
			at = indent;
		} else if (at > indent) {
			ky_strbuf_addc(out, ' ');
			at++;
		}
		ky_strbuf_add(out, word, len); /* lint: of ky_render_cell() */
		at += columns;
		word += len + strspn(word + len, " ");
	}
	ky_strbuf_addc(out, '\n');
}

void ky_render_prose(struct ky_strbuf *out, const struct ky_table *table,
		     const struct ky_render_options *options)
{
	size_t width = options->columns > 40 && options->columns < PROSE_WIDTH
			       ? (size_t)options->columns
			       : PROSE_WIDTH;
	struct ky_strbuf text = KY_STRBUF_INIT;
	size_t commands = 0;

	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		const struct ky_cell *cells = ky_table_cells(table, i);

		for (size_t c = 0; c < table->def->n_columns; c++) {
			const struct ky_column *column = &table->def->columns[c];
			char head[64];

			/* Figures are in the sentences as well. */
			if (cells[c].type != KY_VALUE_TEXT)
				continue;
			ky_strbuf_clear(&text);
			ky_render_cell(&text, column, &cells[c]);
			commands += column->command;
			if (column->command && options->trace) {
				ky_strbuf_addc(&text, ' ');
				ky_foreign_adds(&text, options->trace);
			}
			if (c)
				snprintf(head, sizeof(head), "%*s%s: ", PROSE_INDENT, "",
					 column->title);
			else
				snprintf(head, sizeof(head), "%3zu. ", i + 1);
			render_prose_wrap(out, head, ky_strbuf_text(&text),
					  column->command ? SIZE_MAX : width);
		}
		ky_strbuf_addc(out, '\n');
	}
	if (commands && options->is_temporary)
		render_prose_wrap(
			out, "",
			"This trace is not kept. Before you use a command, record a trace "
			"with 'kymo record -o TRACE -- COMMAND', and run 'kymo report why TRACE': "
			"ids of threads differ.",
			width);
	ky_strbuf_fini(&text);
}
