/* SPDX-License-Identifier: MIT */
/*
 * Logs of programs and web servers: lines that begin with a time, as of Java's and Python's loggers, nginx and Apache, and the access logs of
 * web servers.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "import/logs/log-format.h"

/* ---- words ---------------------------------------------------------------------------- */

static const char *const levels[] = {"trace", "debug",	  "info",  "notice", "warn",  "warning",
				     "error", "critical", "fatal", "severe", "alert", "emerg"};

static bool log_program_is_level(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strlen(levels[i]) == len && strncasecmp(levels[i], word, len) == 0)
			return true;
	return false;
}

static bool log_program_is_between(char c)
{
	return c == ' ' || c == '[' || c == ']' || c == ':' || c == '-' || c == '|' || c == '/' ||
	       c == '\t' || c == ',';
}

/* "INFO", "[error]", "WARN:", also with the name of a process or module in front ("[core:notice]"): one of the first words. */
static bool log_program_find_level(const char *text, const char *end, const char **level,
				   size_t *len)
{
	for (int words = 0; text < end && words < 4; words++) {
		const char *begin;

		while (text < end && log_program_is_between(*text))
			text++;
		begin = text;
		while (text < end && !log_program_is_between(*text))
			text++;
		*level = begin;
		*len = (size_t)(text - begin);
		if (log_program_is_level(begin, *len))
			return true;
	}
	return false;
}

bool ky_log_has_level(const char *text, size_t len)
{
	const char *level;
	size_t ignored;

	return log_program_find_level(text, text + len, &level, &ignored);
}

/* ---- lines with a time ---------------------------------------------------------------- */

struct timed {
	int64_t ns;
	const char *text, *level; /* level: NULL: none */
	size_t text_len, level_len;
	bool is_plain; /* no other format writes the time so */
};

/* "Sun Dec 04 04:47:44.123456 2005" */
static bool log_program_time_apache(struct ky_log_clock *clock, const char **text, const char *end,
				    int64_t *ns)
{
	static const char *const formats[] = {"%b %d %H:%M:%S.%f %Y", "%b %d %H:%M:%S %Y"};

	if (end - *text < 5 || (*text)[3] != ' ' || !isalpha((unsigned char)**text))
		return false;
	for (int i = 0; i < 2; i++) {
		const char *at = *text + 4;

		if (ky_log_time_format(clock, formats[i], &at, end, ns)) {
			*text = at;
			return true;
		}
	}
	return false;
}

/* "E0517 15:04:22.619632" of glog and Kubernetes: the level is the letter. */
static bool log_program_take_glog(struct ky_log_clock *clock, const char *line, size_t len,
				  struct timed *timed)
{
	static const char letters[] = "IWEF";
	static const char *const names[] = {"INFO", "WARNING", "ERROR", "FATAL"};
	const char *letter = len > 21 ? strchr(letters, *line) : NULL;
	const char *at = line + 1, *end = line + len;

	if (!letter || !*letter || line[5] != ' ' || line[14] != '.' ||
	    !ky_log_time_format(clock, "%m%d %H:%M:%S.%f", &at, end, &timed->ns) || at == end ||
	    *at != ' ')
		return false;
	timed->is_plain = true;
	timed->level = names[letter - letters];
	timed->level_len = strlen(timed->level);
	while (at < end && *at == ' ')
		at++;
	timed->text = at;
	timed->text_len = (size_t)(end - at);
	return true;
}

/* "2026-11-26 18:24:53" or with slashes, as nginx has it, also without the century, as Spark has it. */
static bool log_program_time(struct ky_log_clock *clock, const char **text, const char *end,
			     int64_t *ns, bool *has_blank)
{
	static const char slashes[] = "%Y/%m/%d %H:%M:%S", two_digits[] = "%y/%m/%d %H:%M:%S";
	const char *begin = *text;

	*has_blank = true;
	if (ky_log_time_iso(clock, text, end, ns)) {
		*has_blank = begin[10] == ' ';
		return true;
	}
	if (ky_log_time_format(clock, slashes, text, end, ns))
		return true;
	/* "17/06/09": only with a level behind it, as other orders of day and month are as usual. */
	*has_blank = false;
	return ky_log_time_format(clock, two_digits, text, end, ns);
}

/* A blank, the colon of "2012-07-02 10:22:40,672:DEBUG:", or the comma of "2016-09-28 04:30:31, Info". */
static bool log_program_ends_time(const char *at, const char *end)
{
	return *at == ' ' || *at == '\t' ||
	       (*at == ':' && end - at > 1 && isalpha((unsigned char)at[1])) ||
	       (*at == ',' && end - at > 1 && at[1] == ' ');
}

static bool log_program_take(struct ky_log_clock *clock, const char *line, size_t len,
			     struct timed *timed)
{
	const char *at = line, *end = line + len;
	bool is_quoted = len && *line == '[';

	if (log_program_take_glog(clock, line, len, timed))
		return true;
	at += is_quoted;
	if (is_quoted && log_program_time_apache(clock, &at, end, &timed->ns))
		timed->is_plain = true;
	else if (!log_program_time(clock, &at, end, &timed->ns, &timed->is_plain))
		return false;
	if (at >= end || (is_quoted ? *at != ']' && *at != ':' : !log_program_ends_time(at, end)))
		return false;
	at += is_quoted || *at == ':' || *at == ',';
	timed->level = NULL;
	if (log_program_find_level(at, end, &timed->level, &timed->level_len))
		timed->is_plain = true;
	else
		timed->level = NULL;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	timed->text = at;
	timed->text_len = (size_t)(end - at);
	return true;
}

static bool log_program_probe(const char *line, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct timed timed;

	return log_program_take(&clock, line, len, &timed) && timed.is_plain && timed.text_len;
}

static int log_program_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct ky_log_value values[2];
	struct timed timed;
	size_t n = 0;
	int ret;

	if (!log_program_take(&log->clock, line, len, &timed))
		return 0;
	if (timed.level)
		values[n++] = ky_log_text("level", timed.level, timed.level_len);
	values[n++] = ky_log_text("message", timed.text, timed.text_len);
	ret = ky_log_event(log, "log", timed.ns, values, n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_program = {
	.name = "program",
	.description = "lines that begin with date and time, as loggers of programs write them",
	.probe = log_program_probe,
	.line = log_program_line,
};

/* ---- access logs ---------------------------------------------------------------------- */

struct access_line {
	int64_t ns;
	struct ky_log_value values[11];
	size_t n;
};

/* The next word, or the text in quotes; *@text goes behind it and a blank. */
static bool log_program_word(const char **text, const char *end, const char **word, size_t *len)
{
	bool is_quoted = *text < end && **text == '"';
	const char *at = *text + is_quoted;

	*word = at;
	while (at < end && (is_quoted ? *at != '"' : *at != ' '))
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	*len = (size_t)(at - *word);
	if (is_quoted && at >= end)
		return false;
	at += is_quoted;
	*text = at < end && *at == ' ' ? at + 1 : at;
	return *len > 0 || is_quoted;
}

static void log_program_add(struct access_line *access, const char *name, const char *text,
			    size_t len)
{
	access->values[access->n++] = ky_log_text(name, text, len);
}

/* "GET /index.html HTTP/1.1"; hostile clients send other things. */
static void log_program_request(struct access_line *access, const char *text, size_t len)
{
	const char *end = text + len, *blank = memchr(text, ' ', len), *last;

	last = blank ? memrchr(blank + 1, ' ', (size_t)(end - blank - 1)) : NULL;
	if (!last) {
		log_program_add(access, "method", "", 0);
		log_program_add(access, "path", text, len);
		log_program_add(access, "protocol", "", 0);
		return;
	}
	log_program_add(access, "method", text, (size_t)(blank - text));
	log_program_add(access, "path", blank + 1, (size_t)(last - blank - 1));
	log_program_add(access, "protocol", last + 1, (size_t)(end - last - 1));
}

static bool log_program_add_number(struct access_line *access, const char *name, const char **text,
				   const char *end)
{
	const char *word;
	int64_t number = 0;
	size_t len;

	if (!log_program_word(text, end, &word, &len) ||
	    (!ky_log_is_number(word, len, &number) && !(len == 1 && *word == '-')))
		return false;
	access->values[access->n++] = ky_log_number(name, number);
	return true;
}

/* CLIENT IDENTITY USER [TIME] "REQUEST" STATUS BYTES, and "REFERER" "AGENT" in the combined format. */
static bool log_program_access(struct ky_log_clock *clock, const char *line, size_t size,
			       struct access_line *access)
{
	const char *at = line, *end = line + size, *client, *identity, *user, *word;
	size_t n_client, n_identity, n_user, len;

	access->n = 0;
	if (!log_program_word(&at, end, &client, &n_client) ||
	    !log_program_word(&at, end, &identity, &n_identity) ||
	    !log_program_word(&at, end, &user, &n_user) || at >= end || *at++ != '[' ||
	    !ky_log_time_format(clock, "%d/%b/%Y:%H:%M:%S %z", &at, end, &access->ns) ||
	    end - at < 3 || memcmp(at, "] \"", 3) != 0)
		return false;
	at += 2;
	log_program_add(access, "client", client, n_client);
	if (n_identity != 1 || *identity != '-')
		log_program_add(access, "identity", identity, n_identity);
	log_program_add(access, "user", user, n_user);
	if (!log_program_word(&at, end, &word, &len))
		return false;
	log_program_request(access, word, len);
	if (!log_program_add_number(access, "status", &at, end) ||
	    !log_program_add_number(access, "bytes", &at, end))
		return false;
	if (at < end && *at == '"' && log_program_word(&at, end, &word, &len))
		log_program_add(access, "referer", word, len);
	if (at < end && *at == '"' && log_program_word(&at, end, &word, &len))
		log_program_add(access, "agent", word, len);
	/* Servers are often told to write more, such as the time of the request. */
	if (at < end)
		log_program_add(access, "rest", at, (size_t)(end - at));
	return true;
}

static bool log_program_access_probe(const char *line, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct access_line access;

	return log_program_access(&clock, line, len, &access);
}

static int log_program_access_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct access_line access;
	int ret;

	if (!log_program_access(&log->clock, line, len, &access))
		return 0;
	ret = ky_log_event(log, "request", access.ns, access.values, access.n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_access = {
	.name = "access",
	.description = "access logs of web servers: the common and the combined format",
	.probe = log_program_access_probe,
	.line = log_program_access_line,
};
