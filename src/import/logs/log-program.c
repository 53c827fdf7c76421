/* SPDX-License-Identifier: MIT */
/* Logs of programs: lines that begin with a time, as of Java's and Python's loggers, databases, containers, nginx and Apache. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "import/logs/log-format.h"

/* A time above this, three years, is no time since the start of a machine. */
#define WALL_NS INT64_C(100000000000000000)

/* ---- words ---------------------------------------------------------------------------- */

static const char *const levels[] = {"trace", "debug",	  "info",  "notice", "warn",  "warning",
				     "error", "critical", "fatal", "severe", "alert", "emerg"};

/* These are levels in brackets only: MySQL's and those of Serilog. */
static const char *const bracket_levels[] = {"note", "vrb", "dbg", "inf", "wrn", "err", "ftl"};
/* These are levels in capital letters only: java.util.logging's, which are also words. */
static const char *const java_levels[] = {"FINE", "FINER", "FINEST"};

#define LOG_PROGRAM_HAS(names, word, len) \
	log_program_has(names, sizeof(names) / sizeof((names)[0]), word, len)

static bool log_program_has(const char *const *names, size_t n, const char *word, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], word, len) == 0)
			return true;
	return false;
}

static bool log_program_is_level(const char *word, size_t len)
{
	return LOG_PROGRAM_HAS(levels, word, len) ||
	       (len && isupper((unsigned char)word[len - 1]) &&
		LOG_PROGRAM_HAS(java_levels, word, len));
}

static bool log_program_is_between(char c)
{
	return c == ' ' || c == '[' || c == ']' || c == ':' || c == '-' || c == '|' || c == '/' ||
	       c == '\t' || c == ',';
}

/* The word from @begin on, which ends at @stop; @text is where the search began. */
static bool log_program_take_level(const char *text, const char *end, const char *begin,
				   const char *stop, const char **level, size_t *len)
{
	const char *point;

	*level = begin;
	*len = (size_t)(stop - begin);
	if (log_program_is_level(begin, *len))
		return true;
	if (stop >= end || !*len)
		return false;
	if (*stop == ']' && begin > text && begin[-1] == '[')
		return LOG_PROGRAM_HAS(bracket_levels, begin, *len);
	/* "production.ERROR:" of Monolog, behind the name of a channel. */
	point = *stop == ':' ? memrchr(begin, '.', *len) : NULL;
	if (!point || point == begin || !isupper((unsigned char)stop[-1]))
		return false;
	*level = point + 1;
	*len = (size_t)(stop - *level);
	return log_program_is_level(*level, *len);
}

/* The level behind the first brackets: "[http-nio-8080-exec-9] WARN". */
static bool log_program_behind_brackets(const char *text, const char *end, const char **level,
					size_t *len)
{
	size_t left;
	const char *at;

	while (text < end && *text == ' ')
		text++;
	if (text == end || *text != '[')
		return false;
	left = (size_t)(end - text) < 128 ? (size_t)(end - text) : 128;
	at = memchr(text, ']', left);
	if (!at)
		return false;
	for (at++; at < end && *at == ' ';)
		at++;
	*level = at;
	while (at < end && isupper((unsigned char)*at))
		at++;
	*len = (size_t)(at - *level);
	return (at == end || log_program_is_between(*at)) && log_program_is_level(*level, *len);
}

/*
 * "INFO", "[error]", "WARN:", also with the name of a process or module in front ("[core:notice]"): one of the first words, or what stands
 * behind the first brackets.
 */
static bool log_program_find_level(const char *text, const char *end, const char **level,
				   size_t *len)
{
	const char *at = text;

	for (int words = 0; at < end && words < 4; words++) {
		const char *begin;

		while (at < end && log_program_is_between(*at))
			at++;
		begin = at;
		while (at < end && !log_program_is_between(*at))
			at++;
		if (log_program_take_level(text, end, begin, at, level, len))
			return true;
	}
	return log_program_behind_brackets(text, end, level, len);
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
	const char *text, *level, *stream, *tag; /* level, stream: NULL: none */
	size_t text_len, level_len;
	bool is_plain;	/* no other format writes the time so */
	bool is_uptime; /* since the start of the machine */
};

/* "Sun Dec 04 04:47:44.123456 2005", "Sun Dec  4 04:47:44 2005" */
static bool log_program_time_ctime(struct ky_log_clock *clock, const char **text, const char *end,
				   int64_t *ns)
{
	static const char *const formats[] = {"%b %d %H:%M:%S.%f %Y", "%b %d %H:%M:%S %Y"};
	static const char days[] = "Sun Mon Tue Wed Thu Fri Sat ";

	if (end - *text < 5 || (*text)[3] != ' ' || !memmem(days, sizeof(days) - 1, *text, 4))
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

/* "13-Mar-2019 11:29:06.901" of Tomcat and BIND. */
static bool log_program_time_month(struct ky_log_clock *clock, const char **text, const char *end,
				   int64_t *ns)
{
	static const char *const formats[] = {"%d-%b-%Y %H:%M:%S.%f", "%d-%b-%Y %H:%M:%S"};

	if (end - *text < 20 || (*text)[2] != '-' || (*text)[6] != '-')
		return false;
	return ky_log_time_format(clock, formats[0], text, end, ns) ||
	       ky_log_time_format(clock, formats[1], text, end, ns);
}

/* "130324  0:04:00" of MySQL. */
static bool log_program_time_mysql(struct ky_log_clock *clock, const char **text, const char *end,
				   int64_t *ns)
{
	const char *at = *text;

	if (end - at < 15 || at[6] != ' ' || at[9] != ':' || at[12] != ':')
		return false;
	return ky_log_time_format(clock, at[7] == ' ' ? "%y%m%d  %H:%M:%S" : "%y%m%d %H:%M:%S",
				  text, end, ns);
}

/* "[     6.319]" of the X server, "[00006.319]" and "[   6.3190000]" of other kernels: since the start of the machine. */
static bool log_program_time_uptime(const char **text, const char *end, int64_t *ns)
{
	const char *at = *text, *from, *point;

	while (at < end && *at == ' ' && at - *text < 8)
		at++;
	from = at;
	if (!ky_log_time_seconds(&at, end, ns) || at >= end || *at != ']')
		return false;
	point = memchr(from, '.', (size_t)(at - from));
	/* Six digits are those of the kernel's log, which is another format. */
	if (!point || at - point < 4 || at - point == 7)
		return false;
	*text = at;
	return true;
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

/* Whether only programs' own logs write this ISO time: with a blank, or as "18:24:53.123Z". Syslog's has an offset. */
static bool log_program_is_iso_plain(const char *begin, const char *end)
{
	return begin[10] == ' ' || (end - begin > 20 && begin[19] == ',') ||
	       (end - begin > 20 && begin[19] == '.' && end[-1] == 'Z');
}

/*
 * "2026-11-26 18:24:53" or with slashes, as nginx has it, also without the century, as Spark has it. *@is_plain: no other format writes the
 * time so.
 */
static bool log_program_time(struct ky_log_clock *clock, const char **text, const char *end,
			     int64_t *ns, bool *is_plain)
{
	static const char slashes[] = "%Y/%m/%d %H:%M:%S", two_digits[] = "%y/%m/%d %H:%M:%S";
	const char *begin = *text;

	*is_plain = true;
	if (ky_log_time_iso(clock, text, end, ns)) {
		*is_plain = log_program_is_iso_plain(begin, *text);
		return true;
	}
	if (log_program_time_month(clock, text, end, ns) ||
	    log_program_time_ctime(clock, text, end, ns) ||
	    ky_log_time_format(clock, slashes, text, end, ns))
		return true;
	/* "17/06/09" and "130324": only with a level behind it, as other orders of day and month are as usual. */
	*is_plain = false;
	return log_program_time_mysql(clock, text, end, ns) ||
	       ky_log_time_format(clock, two_digits, text, end, ns);
}

/* The colon of "2012-07-02 10:22:40,672:DEBUG:", "2011-12-25 17:09:20: text" and "2021-05-27 17:00:00 UTC:10.1.91.65:". */
static bool log_program_is_colon(const char *at, const char *end)
{
	return *at == ':' && end - at > 1 &&
	       (isalpha((unsigned char)at[1]) || at[1] == ' ' || isalpha((unsigned char)at[-1]));
}

/* A blank, a colon, or the comma of "2016-09-28 04:30:31, Info". */
static bool log_program_ends_time(const char *at, const char *end)
{
	return *at == ' ' || *at == '\t' || log_program_is_colon(at, end) ||
	       (*at == ',' && end - at > 1 && at[1] == ' ');
}

/* "stdout F text" behind the time of a container's log (Kubernetes' CRI). F: the line ends here; P: it goes on. */
static const char *log_program_cri(const char *at, const char *end, struct timed *timed)
{
	timed->stream = NULL;
	if (end - at < 9 || *at != ' ' ||
	    (memcmp(at + 1, "stdout ", 7) != 0 && memcmp(at + 1, "stderr ", 7) != 0) ||
	    (at[8] != 'F' && at[8] != 'P') || (end - at > 9 && at[9] != ' '))
		return at;
	timed->stream = at + 1;
	timed->tag = at + 8;
	timed->is_plain = true;
	return at + 9;
}

static bool log_program_take_time(struct ky_log_clock *clock, const char **text, const char *end,
				  struct timed *timed)
{
	const char *at = *text;
	bool is_quoted = at < end && *at == '[';

	at += is_quoted;
	timed->is_plain = true;
	timed->is_uptime = is_quoted && log_program_time_uptime(&at, end, &timed->ns);
	if (!timed->is_uptime && !log_program_time(clock, &at, end, &timed->ns, &timed->is_plain))
		return false;
	if (at >= end || (is_quoted ? *at != ']' && *at != ':' : !log_program_ends_time(at, end)))
		return false;
	at += is_quoted || *at == ':' || *at == ',';
	*text = at;
	return true;
}

static bool log_program_take(struct ky_log_clock *clock, const char *line, size_t len,
			     struct timed *timed)
{
	const char *at = line, *end = line + len;

	timed->stream = NULL;
	timed->is_uptime = false;
	if (log_program_take_glog(clock, line, len, timed))
		return true;
	if (!log_program_take_time(clock, &at, end, timed))
		return false;
	at = log_program_cri(at, end, timed);
	timed->level = NULL;
	if (log_program_find_level(at, end, &timed->level, &timed->level_len))
		timed->is_plain = true;
	else
		timed->level = NULL;
	/* A container's text may be indented. */
	at += timed->stream && at < end;
	while (!timed->stream && at < end && (*at == ' ' || *at == '\t'))
		at++;
	timed->text = at;
	timed->text_len = (size_t)(end - at);
	return true;
}

static bool log_program_probe(const char *line, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct timed timed;

	return log_program_take(&clock, line, len, &timed) && timed.is_plain &&
	       (timed.text_len || timed.stream);
}

static int log_program_line(struct ky_log_file *log, const char *line, size_t len)
{
	static const char kinds[2]; /* uptimes, wall times */
	const char *kind;
	struct ky_log_value values[4];
	struct timed timed;
	size_t n = 0;
	int ret;

	if (!log_program_take(&log->clock, line, len, &timed))
		return 0;
	/* The first line decides; a line of the other kind is text of another log. */
	kind = timed.is_uptime && timed.ns < WALL_NS ? &kinds[0] : &kinds[1];
	if (!log->state)
		log->state = (void *)(uintptr_t)kind;
	if (log->state != kind)
		return 0;
	if (timed.level)
		values[n++] = ky_log_text("level", timed.level, timed.level_len);
	if (timed.stream) {
		values[n++] = ky_log_text("output", timed.stream, 6);
		values[n++] = ky_log_text("tag", timed.tag, 1);
	}
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
