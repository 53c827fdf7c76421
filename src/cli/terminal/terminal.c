/* SPDX-License-Identifier: MIT */
/* What every command says to the terminal: errors, warnings, progress, and the last flush. */
#include "cli/terminal/command.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/foreign.h"
#include "os/file.h"
#include "os/now.h"

static volatile sig_atomic_t pipe_closed;

static void on_sigpipe(int number)
{
	(void)number;
	pipe_closed = 1;
}

void ky_cli_catch_sigpipe(void)
{
	struct sigaction action = {.sa_handler = on_sigpipe, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	sigaction(SIGPIPE, &action, NULL);
}

static void on_sigxfsz(int number)
{
	(void)number;
}

void ky_cli_catch_sigxfsz(void)
{
	/* By a handler, not SIG_IGN: what we run is to have the signal as it was. */
	struct sigaction action = {.sa_handler = on_sigxfsz, .sa_flags = SA_RESTART}, before;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &action, NULL);
}

bool ky_cli_pipe_closed(void)
{
	return pipe_closed;
}

void ky_cli_put_text(FILE *out, const char *text)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t len = strlen(text), n;

	for (; len; text += n, len -= n) {
		n = ky_foreign_plain(text, len);
		if (n) {
			fwrite(text, 1, n, out); /* lint: own text: looked at above */
			continue;
		}
		n = ky_foreign_next(text, len, escape);
		fputs(escape, out); /* lint: own text */
	}
}

void ky_cli_put_padded(FILE *out, const char *text, int width)
{
	struct ky_strbuf shown = KY_STRBUF_INIT;

	ky_foreign_adds(&shown, text);
	fprintf(out, "%-*s", width, ky_strbuf_text(&shown)); /* lint: own text: escaped above */
	ky_strbuf_fini(&shown);
}

static void put_prefix(const char *kind)
{
	const char *bold = ky_cli_colour(stderr) ? "\033[1m" : "";

	ky_cli_progress_end();
	fprintf(stderr, "%skymo:%s %s", bold, *bold ? "\033[0m" : "", kind);
}

const char *ky_cli_place(const struct kymo_error *err, char *buf, size_t size)
{
	int n = snprintf(buf, size, " (at byte %llu", (unsigned long long)err->offset);

	if (err->packet != KYMO_NO_OFFSET)
		n += snprintf(buf + n, size - (size_t)n, ", packet %llu",
			      (unsigned long long)err->packet);
	if (err->packet != KYMO_NO_OFFSET && err->event != KYMO_NO_OFFSET)
		n += snprintf(buf + n, size - (size_t)n, ", event %llu",
			      (unsigned long long)err->event);
	snprintf(buf + n, size - (size_t)n, ")");
	return buf;
}

/* The library names an input at the beginning, "<filter>"; the user gives it as an option. *rest: what follows. */
static const char *option_of(const char *text, const char **rest)
{
	static const char *const options[][2] = {
		{"<filter>", "--filter"},	    {"<log-format>", "--log-format"},
		{"<log-time>", "--log-time"},	    {"<kernel filter>", "--kernel ... if ..."},
		{"<context>", "--context"},	    {"<samples>", "--sample"},
		{"<patterns>", "--user"},	    {"<comm>", "--comm"},
		{"<period>", "--period"},	    {"<group>", "--group-by"},
		{"<relay space>", "--relay-space"}, {"<query space>", "--query-space"},
		{"<durations>", "--min, --max"},    {"<tables>", "--table"},
		{"<sort column>", "--sort"},	    {"<buffer size>", "--buffer-size"},
	};

	*rest = text;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size_t len = strlen(options[i][0]);

		if (strncmp(text, options[i][0], len) != 0)
			continue;
		*rest = text + len;
		return options[i][1];
	}
	return "";
}

static void put_with_option(FILE *out, const char *text)
{
	const char *rest, *option = option_of(text, &rest);

	fputs(option, out); /* lint: own text */
	ky_cli_put_text(out, rest);
}

void ky_cli_put_error(FILE *out, const struct kymo_error *err)
{
	char place[KY_CLI_PLACE_BYTES];

	if (err->path[0]) {
		put_with_option(out, err->path);
		if (err->line)
			fprintf(out, ":%u", err->line);
		if (err->line && err->column)
			fprintf(out, ":%u", err->column);
		fputs(": ", out);
	}
	ky_cli_put_text(out, err->message[0] ? err->message : kymo_status_text(err->code));
	if (err->offset != KYMO_NO_OFFSET && err->path[0] && !err->line)
		fputs(ky_cli_place(err, place, sizeof(place)), out);
	/* One line, so that logs and grep keep the advice with what it is about. */
	if (err->hint[0]) {
		fputs("; ", out);
		put_with_option(out, err->hint);
	}
}

int ky_cli_error(const struct kymo_error *err)
{
	/* The reader has gone (`| head`): that it could not be written is no news. */
	if (pipe_closed)
		return KY_EXIT_FAIL;
	fflush(stdout);
	put_prefix("");
	ky_cli_put_error(stderr, err);
	fputc('\n', stderr);
	return KY_EXIT_FAIL;
}

int ky_cli_usage(const struct ky_command *command, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fflush(stdout);
	ky_cli_progress_end();
	fprintf(stderr, "kymo %s: ", command->name);
	ky_cli_put_text(stderr, text);
	fprintf(stderr, "; see kymo %s --help\n", command->name);
	return KY_EXIT_USAGE;
}

static void terminal_write_log(void *data, enum ky_log_level level, const char *text)
{
	(void)data;
	fflush(stdout);
	put_prefix(level == KY_LOG_WARNING ? "warning: " : "");
	put_with_option(stderr, text);
	fputc('\n', stderr);
}

const struct ky_log ky_cli_log = {terminal_write_log, NULL};

bool ky_cli_colour(FILE *out)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_colour && *no_colour)
		return false;
	return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
}

bool ky_cli_locale_is_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

int ky_cli_columns(FILE *out)
{
	struct winsize size;

	if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

/* Of the first write to the standard output that failed; stdio forgets it. */
static int write_errnum;

void ky_cli_write(const struct ky_strbuf *text)
{
	int ret = fflush(stdout) == 0 ? ky_write_all(STDOUT_FILENO, text->data, text->len) : -errno;

	if (ret < 0 && !write_errnum)
		write_errnum = -ret;
}

int ky_cli_finish(int code)
{
	int failed, errnum;

	errno = 0;
	failed = fflush(stdout) != 0;
	errnum = write_errnum ? write_errnum : errno;
	failed |= ferror(stdout) || write_errnum;
	if (pipe_closed)
		return KY_EXIT_OK;
	if (!failed)
		return code;
	put_prefix("");
	fprintf(stderr, "cannot write standard output: %s\n",
		errnum ? strerror(errnum) : "write error");
	clearerr(stdout);
	return KY_EXIT_FAIL;
}

static bool progress_shown;

static bool progress_due(void)
{
	static int64_t last_ms = -1000;
	int64_t now_ms = ky_os_now_ms();

	if (now_ms - last_ms < 100)
		return false;
	last_ms = now_ms;
	return true;
}

void ky_cli_progress(const char *what, uint64_t done, uint64_t total)
{
	if (!progress_due() || !isatty(STDERR_FILENO))
		return;
	progress_shown = true;
	fputc('\r', stderr);
	ky_cli_put_text(stderr, what);
	if (total)
		fprintf(stderr, " %3.0f %%\033[K", 100.0 * (double)done / (double)total);
	else
		fprintf(stderr, " %llu\033[K", (unsigned long long)done);
	fflush(stderr);
}

void ky_cli_progress_end(void)
{
	if (!progress_shown)
		return;
	progress_shown = false;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}
