/* SPDX-License-Identifier: MIT */
/* Help as text: the overview, and one command's page. */
#include "cli/help/help.h"

#include <string.h>

#define OPTION_COLUMN 26
#define MAX_COLUMNS   100 /* longer lines are hard to read */

static int text_columns(FILE *out)
{
	int columns = ky_cli_columns(out);

	return columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
}

static void heading(FILE *out, const char *text)
{
	if (ky_cli_colour(out))
		fprintf(out, "\n\033[1m%s\033[0m\n", text);
	else
		fprintf(out, "\n%s\n", text);
}

/* Display columns of UTF-8 text, one for each character. */
static int help_width_of(const char *text, size_t len)
{
	int width = 0;

	for (size_t i = 0; i < len; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

/*
 * Write the words of @text[0..len) between column @indent and the last; the cursor stands
 * at column @at. Ends with a line feed.
 */
static void help_wrap(FILE *out, const char *text, size_t len, int at, int indent, int columns)
{
	const char *end = text + len;
	bool first = true;

	while (text < end) {
		size_t word = strcspn(text, " \n");
		int width;

		if (word > (size_t)(end - text))
			word = (size_t)(end - text);
		width = help_width_of(text, word);
		if (!first && at + 1 + width > columns) {
			fputc('\n', out);
			at = 0;
			first = true;
		}
		if (word) {
			if (at < indent)
				at += fprintf(out, "%*s", indent - at, "");
			else if (!first)
				at += fprintf(out, " ");
			fwrite(text, 1, word, out);
			at += width;
			first = false;
		}
		text += word;
		while (text < end && (*text == ' ' || *text == '\n'))
			text++;
	}
	fputc('\n', out);
}

/* Lines that stay as they are, each indented. */
static void help_verbatim(FILE *out, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		size_t line = strcspn(text, "\n");

		if (line > (size_t)(end - text))
			line = (size_t)(end - text);
		fprintf(out, "  %.*s\n", (int)line, text);
		text += line + 1;
	}
}

/* The description's own small markup: see command.h. */
static void help_paragraphs(FILE *out, const char *text, int columns)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		if (text[0] == ' ' && text[1] == ' ')
			help_verbatim(out, text, len);
		else
			help_wrap(out, text, len, 0, 2, columns);
		text += len;
		while (*text == '\n')
			text++;
		if (*text)
			fputc('\n', out);
	}
}

static void option_row(FILE *out, const struct ky_option_def *def, int columns)
{
	char letter[8] = "    ";
	int at;

	if (def->letter)
		snprintf(letter, sizeof(letter), "-%c, ", def->letter);
	at = fprintf(out, "  %s--%s%s%s", letter, def->name, def->arg ? " " : "",
		     def->arg ? def->arg : "");
	if (at > OPTION_COLUMN - 2) {
		fputc('\n', out);
		at = 0;
	}
	help_wrap(out, def->help, strlen(def->help), at, OPTION_COLUMN, columns);
}

static void option_rows(FILE *out, const struct ky_command *command, int columns)
{
	static const struct ky_option_def help = {.name = "help", .help = "Print this help."};
	struct ky_option_def row = help;

	heading(out, "Options");
	row.letter = 'h';
	for (const struct ky_option_def *def = command->options; def && def->name; def++) {
		option_row(out, def, columns);
		if (def->letter == 'h')
			row.letter = 0;
	}
	option_row(out, &row, columns);
}

static void example_lines(FILE *out, const char *text)
{
	bool colour = ky_cli_colour(out);

	while (*text) {
		size_t len = strcspn(text, "\n");

		if (!len)
			fputc('\n', out);
		else if (*text == '#' && colour)
			fprintf(out, "  \033[2m%.*s\033[0m\n", (int)len, text);
		else
			fprintf(out, "  %.*s\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void see_also(FILE *out, const char *names)
{
	const char *comma = "";

	heading(out, "See also");
	fputs("  ", out);
	while (*names) {
		size_t len = strcspn(names, " ");

		fprintf(out, "%skymo %.*s", comma, (int)len, names);
		names += len + strspn(names + len, " ");
		comma = ", ";
	}
	fputc('\n', out);
}

int ky_help_command(FILE *out, const struct ky_command *command)
{
	int columns = text_columns(out);

	fprintf(out, "kymo %s: %s\n", command->name, command->summary);
	heading(out, "Usage");
	fprintf(out, "  kymo %s%s%s\n", command->name, *command->usage ? " " : "", command->usage);
	if (command->description) {
		heading(out, "Description");
		help_paragraphs(out, command->description, columns);
	}
	option_rows(out, command, columns);
	if (command->examples) {
		heading(out, "Examples");
		example_lines(out, command->examples);
	}
	if (command->see_also && *command->see_also)
		see_also(out, command->see_also);
	return KY_EXIT_OK;
}

/* The names alone, in lines of a screen's width. */
static void put_rare(FILE *out)
{
	int column = fprintf(out, "  also:       ");

	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		int len = (int)strlen((*command)->name) + 1;

		if (!(*command)->is_rare)
			continue;
		if (column + len > 80)
			column = fprintf(out, "\n              ") - 1;
		column += len;
		fprintf(out, " %s", (*command)->name);
	}
	fputc('\n', out);
}

int ky_help_overview(FILE *out)
{
	/* One screen of 24 lines holds it all. */
	fputs("kymo: record traces of Linux and analyse them\nUsage: kymo COMMAND [OPTIONS] ...\n",
	      out);
	heading(out, "Commands");
	for (const struct ky_command *const *command = ky_commands; *command; command++)
		if (!(*command)->is_rare)
			fprintf(out, "  %-12s %s\n", (*command)->name, (*command)->summary);
	put_rare(out);
	heading(out, "To begin");
	fputs("  kymo record -o trace -- sleep 1  record the kernel while a command runs\n"
	      "  kymo report why trace            show what is slow, and who causes it\n",
	      out);
	return KY_EXIT_OK;
}
