/* SPDX-License-Identifier: MIT */
#include "cli/query/query-lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/library.h"

#define HISTORY_LINES	1000
#define HISTORY_MAX_CAP 65536

/* Of libedit, in the form of readline; its header is of no use to programs that load it. */
typedef char **(*lines_completion)(const char *text, int start, int end);
typedef char *(*lines_generator)(const char *text, int state);

struct lines_library {
	char *(*readline)(const char *prompt);
	int (*add_history)(const char *line);
	void (*using_history)(void);
	int (*read_history)(const char *path);
	int (*write_history)(const char *path);
	void (*stifle_history)(int max);
	char **(*rl_completion_matches)(const char *text, lines_generator generator);
	lines_completion *rl_attempted_completion_function;
	int *rl_attempted_completion_over;
	char **rl_line_buffer;
};

#define SYMBOL(name)                                        \
	{                                                   \
#name, offsetof(struct lines_library, name) \
	}

static const struct ky_library_symbol symbols[] = {
	SYMBOL(readline),
	SYMBOL(add_history),
	SYMBOL(using_history),
	SYMBOL(read_history),
	SYMBOL(write_history),
	SYMBOL(stifle_history),
	SYMBOL(rl_completion_matches),
	SYMBOL(rl_attempted_completion_function),
	SYMBOL(rl_attempted_completion_over),
	SYMBOL(rl_line_buffer),
	{0},
};

/* The library calls back without data. */
static struct {
	struct lines_library library;
	bool is_loaded;
	ky_query_words words;
	void *data;
	char *history; /* NULL: it is not kept */
	char before[512];
	size_t next; /* word of the completion at hand */
} lines;

/* ---- completion ----------------------------------------------------------------------- */

static char *query_lines_next(const char *text, int state)
{
	const char *word;

	if (!state)
		lines.next = 0;
	word = lines.words(lines.data, lines.before, text, lines.next++);
	return word ? strdup(word) : NULL;
}

static char **query_lines_complete(const char *text, int start, int end)
{
	const char *line = *lines.library.rl_line_buffer;
	size_t len = start > 0 ? (size_t)start : 0;

	(void)end;
	/* No names of files. */
	*lines.library.rl_attempted_completion_over = 1;
	len = len < sizeof(lines.before) - 1 ? len : sizeof(lines.before) - 1;
	memcpy(lines.before, line ? line : "", line ? len : 0);
	lines.before[line ? len : 0] = '\0';
	return lines.library.rl_completion_matches(text, query_lines_next);
}

/* ---- history -------------------------------------------------------------------------- */

/* $XDG_STATE_HOME/kymo/query-history, in a directory of the user's alone. NULL: there is no such place. */
static char *query_lines_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *base = NULL, *path = NULL;
	struct stat st;

	if (state && state[0] == '/') {
		if (asprintf(&base, "%s", state) < 0)
			return NULL;
	} else if (home && home[0] == '/') {
		if (asprintf(&base, "%s/.local", home) < 0)
			return NULL;
		(void)mkdir(base, 0700);
		free(base);
		if (asprintf(&base, "%s/.local/state", home) < 0)
			return NULL;
	}
	if (!base)
		return NULL;
	(void)mkdir(base, 0700);
	if (asprintf(&path, "%s/kymo", base) < 0)
		path = NULL;
	free(base);
	if (path && (mkdir(path, 0700) == 0 || errno == EEXIST) && stat(path, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022)) {
		char *file = NULL;

		if (asprintf(&file, "%s/query-history", path) < 0)
			file = NULL;
		free(path);
		return file;
	}
	free(path);
	return NULL;
}

void ky_query_lines_begin(ky_query_words words, void *data)
{
	lines.words = words;
	lines.data = data;
	lines.is_loaded = ky_library_load("libedit.so.2", "libedit2", symbols, &lines.library,
					  NULL) == KYMO_OK;
	if (!lines.is_loaded)
		return;
	lines.library.using_history();
	lines.library.stifle_history(HISTORY_LINES);
	*lines.library.rl_attempted_completion_function = query_lines_complete;
	lines.history = query_lines_path();
	if (lines.history)
		(void)lines.library.read_history(lines.history);
}

void ky_query_lines_remember(const char *statement)
{
	char *line;

	if (!lines.is_loaded || strlen(statement) > HISTORY_MAX_CAP)
		return;
	line = strdup(statement);
	for (char *at = line; at && *at; at++)
		if (*at == '\n')
			*at = ' ';
	if (line)
		(void)lines.library.add_history(line);
	free(line);
}

void ky_query_lines_end(void)
{
	mode_t mask;

	if (!lines.history)
		return;
	/* Statements may name what is nobody else's business. */
	mask = umask(077);
	(void)lines.library.write_history(lines.history);
	(void)umask(mask);
	(void)chmod(lines.history, 0600);
	free(lines.history);
	lines.history = NULL;
}

/* ---- lines ---------------------------------------------------------------------------- */

static char *query_lines_plain(const char *prompt)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	fputs(prompt, stdout); /* lint: own text */
	fflush(stdout);
	len = getline(&line, &size, stdin);
	if (len <= 0) {
		free(line);
		return NULL;
	}
	if (line[len - 1] == '\n')
		line[len - 1] = '\0';
	return line;
}

char *ky_query_line(const char *prompt)
{
	fflush(stdout);
	return lines.is_loaded ? lines.library.readline(prompt) : query_lines_plain(prompt);
}
