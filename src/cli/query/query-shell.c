/* SPDX-License-Identifier: MIT */
#include "cli/query/query-shell.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/query/query-lines.h"
#include "cli/terminal/command.h"

#define INPUT_MAX_BYTES (1u << 20)

struct shell {
	struct ky_sql *sql;
	enum ky_query_form form;
	KY_VEC(struct ky_sql_parameter) parameters; /* their texts are the shell's */
	struct ky_strbuf text;			    /* a statement without its end */
	bool is_over;
	KY_VEC(const char *) words; /* of the completion at hand: borrowed */
};

static volatile sig_atomic_t interrupted;

static void query_shell_on_signal(int signal)
{
	(void)signal;
	interrupted = 1;
}

static bool query_shell_stop(void *data)
{
	(void)data;
	return interrupted;
}

/* ---- completion ----------------------------------------------------------------------- */

static const char *const keywords[] = {
	"SELECT",     "FROM",
	"WHERE",      "GROUP BY",
	"ORDER BY",   "HAVING",
	"LIMIT",      "JOIN",
	"CROSS JOIN", "LEFT JOIN",
	"WITH",	      "MATERIALIZED",
	"UNION ALL",  "DISTINCT",
	"BETWEEN",    "LIKE",
	"IS NULL",    "IS NOT NULL",
	"AND",	      "OR",
	"NOT",	      "AS",
	"ON",	      "CASE",
	"WHEN",	      "THEN",
	"ELSE",	      "END",
	"DESC",	      "count(",
	"sum(",	      "min(",
	"max(",	      "avg(",
	"time_text(", "duration_text(",
	"overlap(",   "EXPLAIN QUERY PLAN",
};

static const char *const commands[] = {
	".help", ".tables", ".schema", ".mode", ".param", ".read", ".quit",
};

static void query_shell_offer(struct shell *shell, const char *word, const char *text)
{
	if (strncasecmp(word, text, strlen(text)) != 0)
		return;
	ky_vec_foreach(&shell->words, known)
		if (strcmp(*known, word) == 0)
			return;
	(void)ky_vec_push(&shell->words, word);
}

/* Does @line name table @name, as a word? */
static bool query_shell_names(const char *line, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = line; (at = strstr(at, name)) != NULL; at++) {
		const char *letters =
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
		bool begins = at == line || !strchr(letters, at[-1]);

		if (begins && (!at[len] || !strchr(letters, at[len])))
			return true;
	}
	return false;
}

static void query_shell_offer_tables(struct shell *shell, const char *line, const char *text)
{
	const char *name, *about, *type;
	bool any = false;

	for (size_t i = 0; ky_sql_table(shell->sql, i, &name, &about); i++) {
		query_shell_offer(shell, name, text);
		if (!query_shell_names(line, name))
			continue;
		any = true;
		for (size_t c = 0; ky_sql_column(shell->sql, i, c, &name, &type, &about); c++)
			query_shell_offer(shell, name, text);
	}
	/* Nothing is named yet: SELECT comes before FROM. */
	for (size_t i = 0; !any && *text && ky_sql_table(shell->sql, i, &name, &about); i++)
		for (size_t c = 0; ky_sql_column(shell->sql, i, c, &name, &type, &about); c++)
			query_shell_offer(shell, name, text);
}

static const char *query_shell_words(void *data, const char *before, const char *text, size_t i)
{
	struct shell *shell = data;
	struct ky_strbuf line = KY_STRBUF_INIT;

	if (i)
		return i < shell->words.len ? shell->words.data[i] : NULL;
	ky_vec_clear(&shell->words);
	ky_strbuf_adds(&line, ky_strbuf_text(&shell->text));
	ky_strbuf_adds(&line, before);
	if (*text == '.' && !line.len)
		for (size_t c = 0; c < sizeof(commands) / sizeof(*commands); c++)
			query_shell_offer(shell, commands[c], text);
	query_shell_offer_tables(shell, ky_strbuf_text(&line), text);
	for (size_t k = 0; k < sizeof(keywords) / sizeof(*keywords); k++)
		query_shell_offer(shell, keywords[k], text);
	ky_strbuf_fini(&line);
	return shell->words.len ? shell->words.data[0] : NULL;
}

/* ---- statements ----------------------------------------------------------------------- */

static int query_shell_run(struct shell *shell, const char *text, struct kymo_error *err)
{
	interrupted = 0;
	return ky_query_run(shell->sql, shell->form, shell->parameters.data, shell->parameters.len,
			    text, err);
}

/* On a terminal, the user may try again. */
static void query_shell_try(struct shell *shell, const char *text)
{
	struct kymo_error err = {0};

	if (query_shell_run(shell, text, &err) < 0)
		ky_cli_error(&err);
}

/* ---- commands ------------------------------------------------------------------------- */

static void query_shell_help(void)
{
	puts("A statement ends with ';' and may have several lines. Tabulator completes tables and columns.\n"
	     "\n"
	     "  .tables           the tables\n"
	     "  .schema [TABLE]   tables with their columns and units\n"
	     "  .mode FORM        rows as table, json or csv\n"
	     "  .param NAME=VALUE the value of the parameter :NAME\n"
	     "  .read FILE        runs the statements of a file\n"
	     "  .quit             ends the shell, as the end of the input does\n"
	     "\n"
	     "Ctrl-C stops a statement. docs/sql.md explains the tables.");
}

static void query_shell_tables(const struct shell *shell)
{
	const char *name, *about;

	for (size_t i = 0; ky_sql_table(shell->sql, i, &name, &about); i++) {
		ky_cli_put_padded(stdout, name, 30);
		ky_cli_put_text(stdout, about);
		putchar('\n');
	}
}

static void query_shell_mode(struct shell *shell, const char *form)
{
	if (strcmp(form, "json") == 0)
		shell->form = KY_QUERY_JSON;
	else if (strcmp(form, "csv") == 0)
		shell->form = KY_QUERY_CSV;
	else if (strcmp(form, "table") == 0)
		shell->form = KY_QUERY_TABLE;
	else
		puts(".mode: table, json or csv is expected");
}

static void query_shell_param(struct shell *shell, const char *text)
{
	char *name = strdup(text), *equals = name ? strchr(name, '=') : NULL;

	if (!equals) {
		puts(".param: NAME=VALUE is expected");
		free(name);
		return;
	}
	*equals = '\0';
	if (ky_vec_push(&shell->parameters, (struct ky_sql_parameter){name, equals + 1}) < 0)
		free(name);
}

static void query_shell_read(struct shell *shell, const char *path)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct kymo_error err = {0};

	if (ky_query_read_statement(path, &text, &err) < 0)
		ky_cli_error(&err);
	else
		query_shell_try(shell, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

static void query_shell_command(struct shell *shell, char *line)
{
	char *rest = line + strcspn(line, " ");

	if (*rest)
		*rest++ = '\0';
	rest += strspn(rest, " ");
	if (strcmp(line, ".quit") == 0 || strcmp(line, ".exit") == 0)
		shell->is_over = true;
	else if (strcmp(line, ".tables") == 0)
		query_shell_tables(shell);
	else if (strcmp(line, ".mode") == 0)
		query_shell_mode(shell, rest);
	else if (strcmp(line, ".param") == 0)
		query_shell_param(shell, rest);
	else if (strcmp(line, ".read") == 0)
		query_shell_read(shell, rest);
	else if (strcmp(line, ".schema") != 0)
		query_shell_help();
	else if (!ky_query_put_schema(shell->sql, *rest ? rest : NULL))
		puts("there is no such table; .tables lists them");
}

/* ---- the loop ------------------------------------------------------------------------- */

static void query_shell_line(struct shell *shell, char *line)
{
	if (!shell->text.len && line[0] == '.') {
		ky_query_lines_remember(line);
		query_shell_command(shell, line);
		return;
	}
	if (!shell->text.len && !line[strspn(line, " \t")])
		return;
	ky_strbuf_adds(&shell->text, line);
	ky_strbuf_addc(&shell->text, '\n');
	if (shell->text.len < INPUT_MAX_BYTES && !ky_strbuf_failed(&shell->text) &&
	    !ky_sql_is_complete(ky_strbuf_text(&shell->text)))
		return;
	/* Without the last line's end. */
	shell->text.data[--shell->text.len] = '\0';
	ky_query_lines_remember(ky_strbuf_text(&shell->text));
	query_shell_try(shell, ky_strbuf_text(&shell->text));
	ky_strbuf_clear(&shell->text);
}

static void query_shell_loop(struct shell *shell)
{
	const struct sigaction action = {.sa_handler = query_shell_on_signal};
	struct sigaction before;
	char *line;

	(void)sigaction(SIGINT, &action, &before);
	ky_query_lines_begin(query_shell_words, shell);
	ky_sql_set_stop(shell->sql, query_shell_stop, NULL);
	puts("SQL over traces. .help lists commands, .tables the tables.");
	while (!shell->is_over && !ky_cli_pipe_closed()) {
		line = ky_query_line(shell->text.len ? "  ...> " : "kymo> ");
		if (!line && interrupted) {
			/* The line goes, the shell stays. */
			interrupted = 0;
			clearerr(stdin);
			ky_strbuf_clear(&shell->text);
			putchar('\n');
			continue;
		}
		if (!line)
			break;
		query_shell_line(shell, line);
		free(line);
	}
	ky_query_lines_end();
	(void)sigaction(SIGINT, &before, NULL);
}

static int query_shell_pipe(struct shell *shell, struct kymo_error *err)
{
	char block[4096];
	size_t n;

	while ((n = fread(block, 1, sizeof(block), stdin)) > 0) {
		ky_strbuf_add(&shell->text, block, n);
		if (shell->text.len > INPUT_MAX_BYTES)
			return ky_error_set(err, KYMO_E_LIMIT,
					    "the standard input has more than 1 MiB of statements");
	}
	if (ky_strbuf_failed(&shell->text))
		return ky_error_nomem(err);
	return ky_query_run(shell->sql, shell->form, shell->parameters.data, shell->parameters.len,
			    ky_strbuf_text(&shell->text), err);
}

int ky_query_shell(struct ky_sql *sql, enum ky_query_form form,
		   const struct ky_sql_parameter *parameters, size_t n, struct kymo_error *err)
{
	struct shell shell = {.sql = sql, .form = form};
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && !ret; i++)
		if (ky_vec_push(&shell.parameters, parameters[i]) < 0)
			ret = ky_error_nomem(err);
	if (!ret && isatty(STDIN_FILENO))
		query_shell_loop(&shell);
	else if (!ret)
		ret = query_shell_pipe(&shell, err);
	ky_sql_set_stop(sql, NULL, NULL);
	for (size_t i = n; i < shell.parameters.len; i++)
		free((char *)(uintptr_t)shell.parameters.data[i].name);
	ky_vec_fini(&shell.parameters);
	ky_vec_fini(&shell.words);
	ky_strbuf_fini(&shell.text);
	return ret;
}
