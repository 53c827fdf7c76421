/* SPDX-License-Identifier: MIT */
/* Syslog's files, of RFC 3164 and 5424. */
#include "import/logs/log-syslog.h"

#include <ctype.h>

#include "import/logs/log-format.h"

const char *ky_syslog_severity(int priority)
{
	static const char *const severities[8] = {"emergency", "alert",	 "critical", "error",
						  "warning",   "notice", "info",     "debug"};

	return severities[priority & 7];
}

struct message {
	int64_t ns;
	int priority; /* -1: none */
	const char *host, *program, *text;
	size_t host_len, program_len, text_len;
	int64_t pid; /* -1: none */
	bool is_bsd; /* the time is that of RFC 3164 */
	bool has_colon;
};

int ky_syslog_priority(const char **at, const char *end)
{
	const char *from = *at;
	int value = 0, n = 0;

	if (from >= end || *from != '<')
		return -1;
	for (from++; from < end && isdigit((unsigned char)*from) && n < 3; from++, n++)
		value = value * 10 + (*from - '0');
	if (!n || from >= end || *from != '>' || value > 191)
		return -1;
	*at = from + 1;
	return value;
}

static size_t word(const char *at, const char *end)
{
	size_t len = 0;

	while (at + len < end && at[len] != ' ')
		len++;
	return len;
}

/* "sshd[1234]: text", "kernel: text", "proftpd[1234] text"; "key=value:" is text */
static void take_tag(struct message *message, const char *at, const char *end)
{
	const char *tag = at;

	message->pid = -1;
	while (at < end && *at != ':' && *at != '[' && *at != ' ' && *at != '=')
		at++;
	message->program = tag;
	message->program_len = (size_t)(at - tag);
	if (at < end && *at == '[') {
		const char *from = ++at;
		int64_t pid = 0;

		while (at < end && isdigit((unsigned char)*at) && at - from < 10)
			pid = pid * 10 + (*at++ - '0');
		if (at < end && *at == ']' && at > from) {
			message->pid = pid;
			at++;
		} else {
			at = from - 1;
		}
	}
	message->has_colon = at < end && *at == ':';
	if (message->has_colon ||
	    (message->pid >= 0 && message->program_len && at < end && *at == ' ')) {
		at++;
		at += message->has_colon && at < end && *at == ' ';
	} else {
		/* No tag: all is text. */
		at = tag;
		message->program_len = 0;
		message->pid = -1;
	}
	message->text = at;
	message->text_len = (size_t)(end - at);
}

static bool take_line(struct ky_log_clock *clock, const char *line, size_t len,
		      struct message *message)
{
	const char *at = line, *end = line + len;

	*message = (struct message){.priority = ky_syslog_priority(&at, end)};
	message->is_bsd = ky_log_time_bsd(clock, &at, end, &message->ns);
	if (!message->is_bsd && !ky_log_time_iso(clock, &at, end, &message->ns))
		return false;
	if (at >= end || *at != ' ')
		return false;
	at++;
	message->host = at;
	message->host_len = word(at, end);
	at += message->host_len;
	if (!message->host_len || at >= end)
		return false;
	take_tag(message, at + 1, end);
	return true;
}

static bool syslog_probe(const char *line, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct message message;

	/* The kernel's log, which has no host: dmesg --time-format iso. */
	if (ky_log_dmesg.probe(line, len))
		return false;
	/* A tag is what makes it plain (behind other times, one with a colon), and a host, no level and no bracket in its place: other logs begin with a time, too. */
	return take_line(&clock, line, len, &message) && message.program_len &&
	       (message.is_bsd || message.has_colon) && isalnum((unsigned char)*message.host) &&
	       !ky_log_has_level(message.host, message.host_len);
}

static int put_message(struct ky_log_file *log, const struct message *message)
{
	struct ky_log_value values[6];
	size_t n = 0;

	values[n++] = ky_log_text("host", message->host, message->host_len);
	values[n++] = ky_log_text("program", message->program, message->program_len);
	if (message->pid >= 0)
		values[n++] = ky_log_number("pid", message->pid);
	if (message->priority >= 0) {
		const char *severity = ky_syslog_severity(message->priority);

		values[n++] = ky_log_number("facility", message->priority >> 3);
		values[n++] = ky_log_text("severity", severity, strlen(severity));
	}
	values[n++] = ky_log_text("message", message->text, message->text_len);
	return ky_log_event(log, "log", message->ns, values, n);
}

static int syslog_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct message message;
	int ret;

	if (!take_line(&log->clock, line, len, &message))
		return 0;
	ret = put_message(log, &message);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_syslog = {
	.name = "syslog",
	.description = "syslog's files: RFC 3164, and lines that begin with an ISO 8601 time",
	.probe = syslog_probe,
	.line = syslog_line,
};

/* ---- RFC 5424 ------------------------------------------------------------------------- */

static bool is_5424(const char *line, size_t len)
{
	const char *at = line, *end = line + len;

	return ky_syslog_priority(&at, end) >= 0 && end - at > 2 && at[0] == '1' && at[1] == ' ';
}

static bool next_word(const char **at, const char *end, const char **text, size_t *len)
{
	*text = *at;
	*len = word(*at, end);
	*at += *len + (*at + *len < end);
	if (*len == 1 && **text == '-')
		*len = 0;
	return *text < end;
}

/* "[id key="value"][...]" or "-". */
static const char *skip_structured(const char *at, const char *end)
{
	if (at < end && *at == '-')
		return at + 1;
	while (at < end && *at == '[') {
		bool is_quoted = false;

		for (at++; at < end && (is_quoted || *at != ']'); at++) {
			if (*at == '\\' && at + 1 < end)
				at++;
			else if (*at == '"')
				is_quoted = !is_quoted;
		}
		at += at < end;
	}
	return at;
}

static int syslog_5424_line(struct ky_log_file *log, const char *line, size_t len)
{
	static const char bom[] = "\xef\xbb\xbf";
	const char *at = line, *end = line + len, *words[4], *data, *severity;
	size_t lens[4], n = 0;
	int64_t ns;
	struct ky_log_value values[8];
	int priority, ret;

	if (!is_5424(line, len))
		return 0;
	priority = ky_syslog_priority(&at, end);
	at += 2;
	if (at < end && *at == '-') {
		ns = log->last_ns;
		at++;
	} else if (!ky_log_time_iso(&log->clock, &at, end, &ns)) {
		return 0;
	}
	at += at < end && *at == ' ';
	for (int i = 0; i < 4; i++)
		if (!next_word(&at, end, &words[i], &lens[i]))
			return 0;
	data = at;
	at = skip_structured(at, end);
	severity = ky_syslog_severity(priority);
	values[n++] = ky_log_text("host", words[0], lens[0]);
	values[n++] = ky_log_text("program", words[1], lens[1]);
	values[n++] = ky_log_text("procid", words[2], lens[2]);
	values[n++] = ky_log_text("msgid", words[3], lens[3]);
	values[n++] = ky_log_number("facility", priority >> 3);
	values[n++] = ky_log_text("severity", severity, strlen(severity));
	/* A line may end before its data. */
	values[n++] =
		ky_log_text("data", data, at == data || *data == '-' ? 0 : (size_t)(at - data));
	at += at < end && *at == ' ';
	if (end - at >= 3 && memcmp(at, bom, 3) == 0)
		at += 3;
	values[n++] = ky_log_text("message", at, (size_t)(end - at));
	ret = ky_log_event(log, "log", ns, values, n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_syslog_5424 = {
	.name = "syslog-5424",
	.description = "syslog messages of RFC 5424",
	.probe = is_5424,
	.line = syslog_5424_line,
};
