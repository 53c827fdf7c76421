/* SPDX-License-Identifier: MIT */
/* A report's documentation as text and as Markdown; both from its struct. */
#include "analysis/reports/report.h"

#include <string.h>

/* Words of @text[0..len), wrapped, each line after the first behind @indent blanks. */
static void report_help_wrap(struct ky_strbuf *out, const char *text, size_t len, int at,
			     int indent, int columns)
{
	const char *end = text + len;
	bool first = true;

	while (text < end) {
		size_t word = 0;

		while (text + word < end && text[word] != ' ' && text[word] != '\n')
			word++;
		if (word && !first && at + 1 + (int)word > columns) {
			ky_strbuf_addc(out, '\n');
			at = 0;
			first = true;
		}
		if (word) {
			if (at < indent) {
				ky_strbuf_addf(out, "%*s", indent - at, "");
				at = indent;
			} else if (!first) {
				ky_strbuf_addc(out, ' ');
				at++;
			}
			ky_strbuf_add(out, text, word);
			at += (int)word;
			first = false;
		}
		text += word + (text + word < end);
	}
	ky_strbuf_addc(out, '\n');
}

static void report_help_paragraphs(struct ky_strbuf *out, const char *text, int indent, int columns)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		report_help_wrap(out, text, len, 0, indent, columns);
		text += len + strspn(text + len, "\n");
		if (*text)
			ky_strbuf_addc(out, '\n');
	}
}

/* The example, each line behind @indent blanks. */
static void report_help_verbatim(struct ky_strbuf *out, const char *text, int indent)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (len)
			ky_strbuf_addf(out, "%*s%.*s", indent, "", (int)len, text);
		ky_strbuf_addc(out, '\n');
		text += len + (text[len] == '\n');
	}
}

static void column_help(struct ky_strbuf *out, const struct ky_column *column, int columns)
{
	size_t begin = out->len;
	int at;

	ky_strbuf_addf(out, "    %s", column->title);
	if (strcmp(column->name, column->title) != 0)
		ky_strbuf_addf(out, " (%s)", column->name);
	at = (int)(out->len - begin);
	if (at > 26) {
		ky_strbuf_addc(out, '\n');
		at = 0;
	}
	report_help_wrap(out, column->help, strlen(column->help), at, 28, columns);
}

void ky_report_help(struct ky_strbuf *out, const struct ky_report *report, int columns)
{
	ky_strbuf_addf(out, "kymo report %s: ", report->name);
	ky_strbuf_addf(out, "%s\n\nUsage\n  kymo report %s [OPTIONS] %s\n\nDescription\n",
		       report->summary, report->name, report->wants_two ? "A B" : "TRACE...");
	report_help_paragraphs(out, report->description, 2, columns);
	ky_strbuf_adds(out, "\nEvents\n");
	report_help_paragraphs(out, report->events, 2, columns);
	ky_strbuf_adds(out, "\nTables and columns (with their names in JSON)\n");
	for (const struct ky_table_def *const *table = report->tables; *table; table++) {
		ky_strbuf_addf(out, "  %s (%s)\n", (*table)->title, (*table)->name);
		report_help_paragraphs(out, (*table)->help, 4, columns);
		for (size_t i = 0; i < (*table)->n_columns; i++)
			column_help(out, &(*table)->columns[i], columns);
		ky_strbuf_addc(out, '\n');
	}
	ky_strbuf_adds(out, "How to read it\n");
	report_help_paragraphs(out, report->reading, 2, columns);
	ky_strbuf_adds(out, "\nExample\n");
	report_help_verbatim(out, report->example, 2);
}

void ky_report_markdown(struct ky_strbuf *out, const struct ky_report *report)
{
	ky_strbuf_addf(out, "# kymo report %s\n\n", report->name);
	ky_strbuf_addf(out, "%c%s.\n\n## Description\n\n", report->summary[0] - 'a' + 'A',
		       report->summary + 1);
	report_help_paragraphs(out, report->description, 0, 90);
	ky_strbuf_adds(out, "\n## Events\n\n");
	report_help_paragraphs(out, report->events, 0, 90);
	for (const struct ky_table_def *const *table = report->tables; *table; table++) {
		ky_strbuf_addf(out, "\n## %s (`%s`)\n\n", (*table)->title, (*table)->name);
		report_help_paragraphs(out, (*table)->help, 0, 90);
		ky_strbuf_adds(out,
			       "\n| Column | In JSON | Class | Meaning |\n|---|---|---|---|\n");
		for (size_t i = 0; i < (*table)->n_columns; i++) {
			const struct ky_column *column = &(*table)->columns[i];

			ky_strbuf_addf(out, "| %s | `%s` | %s | %s |\n", column->title,
				       column->name, ky_cell_class_text(column->cls), column->help);
		}
	}
	ky_strbuf_adds(out, "\n## How to read it\n\n");
	report_help_paragraphs(out, report->reading, 0, 90);
	ky_strbuf_adds(out, "\n## Example\n\n");
	report_help_verbatim(out, report->example, 4);
}
