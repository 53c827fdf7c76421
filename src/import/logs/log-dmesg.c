/* SPDX-License-Identifier: MIT */
/* The kernel's log, as dmesg prints it. */
#include <ctype.h>

#include "import/logs/log-format.h"
#include "import/logs/log-syslog.h"

struct dmesg_line {
	int priority; /* -1: none */
	int64_t ns;
	const char *text;
};

/* Which of @n names "kern  :" at *@at is, which goes behind the colon. -1: none. */
static int dmesg_name(const char **at, const char *end, const char *const *names, int n)
{
	for (int i = 0; i < n; i++) {
		size_t len = strlen(names[i]);
		const char *behind = *at + len;

		if ((size_t)(end - *at) <= len || memcmp(*at, names[i], len) != 0)
			continue;
		while (behind < end && *behind == ' ')
			behind++;
		if (behind == end || *behind != ':')
			continue;
		*at = behind + 1;
		return i;
	}
	return -1;
}

/* "kern  :info  : " of dmesg -x. */
static int dmesg_decoded(const char **at, const char *end)
{
	static const char *const facilities[] = {"kern", "user",   "mail",     "daemon",
						 "auth", "syslog", "lpr",      "news",
						 "uucp", "cron",   "authpriv", "ftp"};
	static const char *const levels[] = {"emerg", "alert",	"crit", "err",
					     "warn",  "notice", "info", "debug"};
	const char *from = *at;
	int facility = dmesg_name(&from, end, facilities, 12), level;

	if (facility < 0)
		return -1;
	level = dmesg_name(&from, end, levels, 8);
	if (level < 0 || from == end || *from != ' ')
		return -1;
	*at = from + 1;
	return facility << 3 | level;
}

/* The kernel and dmesg write fractions of six digits; other programs, such as the X server, have other ones. */
static bool dmesg_is_fraction(const char *at, const char *end)
{
	int n = 0;

	while (n < 7 && at + n < end && isdigit((unsigned char)at[n]))
		n++;
	return n == 6;
}

/* "[   12.345678]": the time since the machine was started. */
static bool dmesg_uptime(const char **text, const char *end, int64_t *ns, bool is_strict)
{
	const char *at = *text, *from, *point;

	if (at >= end || *at++ != '[')
		return false;
	while (at < end && *at == ' ')
		at++;
	from = at;
	if (!ky_log_time_seconds(&at, end, ns) || *ns % 1000 || at >= end || *at != ']')
		return false;
	point = memchr(from, '.', (size_t)(at - from));
	if (!point || (is_strict && !dmesg_is_fraction(point + 1, end)))
		return false;
	*text = at + 1;
	return true;
}

/*
 * "2026-11-28T00:56:06,123456+00:00": syslog has a point where dmesg has a comma, and loggers of Java have three digits and no zone or "Z".
 */
static bool dmesg_iso(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns)
{
	const char *at = *text;

	if (end - at < 32 || at[10] != 'T' || at[19] != ',' || !dmesg_is_fraction(at + 20, end) ||
	    (at[26] != '+' && at[26] != '-') || at[29] != ':' ||
	    !ky_log_time_iso(clock, &at, end, ns) || at == end || *at != ' ')
		return false;
	*text = at;
	return true;
}

/*
 * "[Sat Nov 28 00:56:06 2026]" of dmesg -T. The error log of Apache has such times, too, so this is the kernel's log only with the names of
 * dmesg -x, or where the kernel's first line is there.
 */
static bool dmesg_is_first(const char *at, const char *end)
{
	static const char first[] = " Linux version ";

	return (size_t)(end - at) > sizeof(first) && memcmp(at, first, sizeof(first) - 1) == 0;
}

static bool dmesg_ctime(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns)
{
	const char *at = *text + 5;

	if (end - *text < 20 || **text != '[' || at[-1] != ' ' ||
	    !ky_log_time_format(clock, "%b %d %H:%M:%S %Y]", &at, end, ns))
		return false;
	*text = at;
	return true;
}

/* @is_strict: the line is to tell the format. */
static bool dmesg_take(struct ky_log_clock *clock, const char *text, size_t len, bool is_strict,
		       struct dmesg_line *line)
{
	const char *at = text, *end = text + len;
	bool is_decoded;

	line->priority = dmesg_decoded(&at, end);
	is_decoded = line->priority >= 0;
	if (!is_decoded)
		line->priority = ky_syslog_priority(&at, end);
	if (!dmesg_uptime(&at, end, &line->ns, is_strict) &&
	    !dmesg_iso(clock, &at, end, &line->ns) &&
	    (!dmesg_ctime(clock, &at, end, &line->ns) ||
	     (is_strict && !is_decoded && !dmesg_is_first(at, end))))
		return false;
	line->text = at + (at < end && *at == ' ');
	return true;
}

static bool dmesg_probe(const char *text, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct dmesg_line line;

	return dmesg_take(&clock, text, len, true, &line);
}

static int dmesg_line(struct ky_log_file *log, const char *text, size_t len)
{
	struct ky_log_value values[3];
	struct dmesg_line line;
	size_t n = 0;
	int ret;

	if (!dmesg_take(&log->clock, text, len, false, &line))
		return 0;
	if (line.priority >= 0) {
		const char *severity = ky_syslog_severity(line.priority);

		values[n++] = ky_log_number("facility", line.priority >> 3);
		values[n++] = ky_log_text("severity", severity, strlen(severity));
	}
	values[n++] = ky_log_text("message", line.text, (size_t)(text + len - line.text));
	ret = ky_log_event(log, "kernel", line.ns, values, n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_dmesg = {
	.name = "dmesg",
	.description = "the kernel's log, as dmesg prints it: times since the machine was started",
	.probe = dmesg_probe,
	.line = dmesg_line,
};
