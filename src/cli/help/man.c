/* SPDX-License-Identifier: MIT */
/* Help as man page source, in mdoc. */
#include "cli/help/help.h"

#include <ctype.h>
#include <string.h>

#include <kymo/version.h>

/* The date of the manual's text, not of the build: builds stay reproducible. */
#define MANUAL_DATE "November 21, 2026"

/* @len characters of plain text, so that roff changes nothing of them. */
static void man_put_escaped(FILE *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\')
			fputs("\\e", out);
		else if (text[i] == '-')
			fputs("\\-", out);
		else
			fputc(text[i], out);
	}
}

/* One line; a dot or a quote at its beginning would be a request. */
static void man_put_line(FILE *out, const char *text, size_t len)
{
	if (len && (*text == '.' || *text == '\''))
		fputs("\\&", out);
	man_put_escaped(out, text, len);
	fputc('\n', out);
}

/* Refill @text[0..len): blanks are folded, and each sentence begins a line, as mdoc wants. */
static void put_sentences(FILE *out, const char *text, size_t len)
{
	const char *end = text + len, *start = text;

	for (const char *at = text; at < end; at++) {
		bool sentence =
			at + 2 < end && *at == '.' && at[1] == ' ' && isupper((unsigned char)at[2]);

		if (*at != '\n' && !sentence)
			continue;
		man_put_line(out, start, (size_t)(at - start) + sentence);
		start = at + 1;
		while (start < end && *start == ' ')
			start++;
		at = start - 1;
	}
	if (start < end)
		man_put_line(out, start, (size_t)(end - start));
}

static void man_put_literal(FILE *out, const char *text, size_t len)
{
	const char *end = text + len;

	fputs(".Bd -literal -offset indent\n", out);
	while (text < end) {
		size_t line = strcspn(text, "\n");

		if (line > (size_t)(end - text))
			line = (size_t)(end - text);
		man_put_line(out, text, line);
		text += line + 1;
	}
	fputs(".Ed\n", out);
}

static void put_description(FILE *out, const char *text)
{
	bool first = true;

	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		while (len && text[len - 1] == '\n')
			len--;
		if (text[0] == ' ' && text[1] == ' ') {
			man_put_literal(out, text, len);
		} else {
			if (!first)
				fputs(".Pp\n", out);
			put_sentences(out, text, len);
		}
		first = false;
		text += len;
		while (*text == '\n')
			text++;
	}
}

static void man_put_option(FILE *out, const struct ky_option_def *def)
{
	fputs(".It ", out);
	if (def->letter)
		fprintf(out, "Fl %c , ", def->letter);
	fputs("Fl \\-", out);
	man_put_escaped(out, def->name, strlen(def->name));
	if (def->arg) {
		fputs(" Ar \\&", out);
		man_put_escaped(out, def->arg, strlen(def->arg));
	}
	fputc('\n', out);
	put_sentences(out, def->help, strlen(def->help));
}

static void put_options(FILE *out, const struct ky_option_def *options)
{
	static const struct ky_option_def help = {.name = "help", .help = "Print the help."};

	fputs(".Sh OPTIONS\n.Bl -tag -width Ds\n", out);
	for (; options && options->name; options++)
		man_put_option(out, options);
	man_put_option(out, &help);
	fputs(".El\n", out);
}

static void put_exit_status(FILE *out)
{
	fputs(".Sh EXIT STATUS\n"
	      "0 on success, 1 when the input or the run failed, 2 on wrong usage.\n",
	      out);
}

static void man_put_title(FILE *out, const char *suffix)
{
	fputs(".Dd " MANUAL_DATE "\n.Dt KYMO", out);
	if (*suffix)
		fputc('-', out);
	for (; *suffix; suffix++)
		fputc(toupper((unsigned char)*suffix), out);
	fputs(" 1\n.Os kymo " KYMO_VERSION "\n", out);
}

static int compare_words(const char *a, size_t len_a, const char *b, size_t len_b)
{
	int order = memcmp(a, b, len_a < len_b ? len_a : len_b);

	return order ? order : (len_a > len_b) - (len_a < len_b);
}

/* Cross references in alphabetical order, as manuals have them. */
static void put_see_also(FILE *out, const char *names)
{
	size_t last_len = 0;
	const char *last = "";

	fputs(".Sh SEE ALSO\n.Xr kymo 1", out);
	for (;;) {
		const char *next = NULL;
		size_t next_len = 0;

		for (const char *at = names ? names : ""; *at; at += strspn(at, " ")) {
			size_t len = strcspn(at, " ");

			if (compare_words(at, len, last, last_len) > 0 &&
			    (!next || compare_words(at, len, next, next_len) < 0)) {
				next = at;
				next_len = len;
			}
			at += len;
		}
		if (!next)
			break;
		fprintf(out, " ,\n.Xr kymo-%.*s 1", (int)next_len, next);
		last = next;
		last_len = next_len;
	}
	fputc('\n', out);
}

static const char overview_example[] = "kymo record -o trace -- make\n"
				       "kymo report cpu trace\n"
				       "kymo print trace";

static int man_overview(FILE *out)
{
	man_put_title(out, "");
	fputs(".Sh NAME\n.Nm kymo\n.Nd record traces of Linux and analyse them\n"
	      ".Sh SYNOPSIS\n.Nm\n.Ar COMMAND\n.Op Ar options\n.Ar ...\n"
	      ".Nm\n.Fl \\-version\n"
	      ".Sh DESCRIPTION\n"
	      ".Nm\nrecords events of the Linux kernel and of programs into traces in the Common "
	      "Trace Format,\nprints traces, and computes reports from them.\nEach command has its "
	      "own manual page.\n"
	      ".Bl -tag -width Ds\n",
	      out);
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		fprintf(out, ".It Xr kymo-%s 1\n", (*command)->name);
		man_put_line(out, (*command)->summary, strlen((*command)->summary));
	}
	fputs(".El\n"
	      ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
	      ".It Ev NO_COLOR\nWhen it is set and not empty, kymo uses no colours.\n.El\n",
	      out);
	put_exit_status(out);
	fputs(".Sh EXAMPLES\nRecord a command, then read the trace:\n", out);
	man_put_literal(out, overview_example, strlen(overview_example));
	fputs(".Sh SEE ALSO\n.Xr babeltrace2 1 ,\n.Xr perf 1\n", out);
	return KY_EXIT_OK;
}

int ky_man_page(FILE *out, const struct ky_command *command)
{
	if (!command)
		return man_overview(out);
	man_put_title(out, command->name);
	fprintf(out, ".Sh NAME\n.Nm kymo-%s\n.Nd ", command->name);
	man_put_line(out, command->summary, strlen(command->summary));
	fprintf(out, ".Sh SYNOPSIS\n.Nm kymo %s\n", command->name);
	if (*command->usage)
		man_put_line(out, command->usage, strlen(command->usage));
	fputs(".Sh DESCRIPTION\n", out);
	if (command->description)
		put_description(out, command->description);
	put_options(out, command->options);
	put_exit_status(out);
	if (command->examples) {
		fputs(".Sh EXAMPLES\n", out);
		man_put_literal(out, command->examples, strlen(command->examples));
	}
	put_see_also(out, command->see_also);
	return KY_EXIT_OK;
}
