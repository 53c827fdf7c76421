/* SPDX-License-Identifier: MIT */
/* The access logs of web servers. */
#include <ctype.h>
#include <string.h>

#include "import/logs/log-format.h"

struct access_line {
	int64_t ns;
	struct ky_log_value values[12];
	size_t n;
};

/* The next word, or the text in quotes; *@text goes behind it and a blank. */
static bool log_access_word(const char **text, const char *end, const char **word, size_t *len)
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

static void log_access_add(struct access_line *access, const char *name, const char *text,
			   size_t len)
{
	access->values[access->n++] = ky_log_text(name, text, len);
}

/* "GET /index.html HTTP/1.1"; hostile clients send other things. */
static void log_access_request(struct access_line *access, const char *text, size_t len)
{
	const char *end = text + len, *blank = memchr(text, ' ', len), *last;

	last = blank ? memrchr(blank + 1, ' ', (size_t)(end - blank - 1)) : NULL;
	if (!last) {
		log_access_add(access, "method", "", 0);
		log_access_add(access, "path", text, len);
		log_access_add(access, "protocol", "", 0);
		return;
	}
	log_access_add(access, "method", text, (size_t)(blank - text));
	log_access_add(access, "path", blank + 1, (size_t)(last - blank - 1));
	log_access_add(access, "protocol", last + 1, (size_t)(end - last - 1));
}

static bool log_access_add_number(struct access_line *access, const char *name, const char **text,
				  const char *end)
{
	const char *word;
	int64_t number = 0;
	size_t len;

	if (!log_access_word(text, end, &word, &len) ||
	    (!ky_log_is_number(word, len, &number) && !(len == 1 && *word == '-')))
		return false;
	access->values[access->n++] = ky_log_number(name, number);
	return true;
}

/* "www.example.com:443" */
static bool log_access_is_vhost(const char *text, size_t len)
{
	size_t digits = 0;

	while (digits < len && isdigit((unsigned char)text[len - digits - 1]))
		digits++;
	return digits && digits < len - 1 && text[len - digits - 1] == ':';
}

/* The words before the time: CLIENT IDENTITY USER; in Apache's format vhost_combined, HOST:PORT is in front. */
static bool log_access_client(struct access_line *access, const char **text, const char *end)
{
	const char *words[4];
	size_t lens[4], n = 0, first;

	/* An address of IPv6 may be in brackets. */
	for (; n < 3 || (n < 4 && *text < end && **text != '['); n++)
		if (!log_access_word(text, end, &words[n], &lens[n]))
			return false;
	if (n == 4 &&
	    (!log_access_is_vhost(words[0], lens[0]) || (lens[1] == 1 && *words[1] == '-')))
		return false;
	first = n - 3;
	if (first)
		log_access_add(access, "vhost", words[0], lens[0]);
	log_access_add(access, "client", words[first], lens[first]);
	if (lens[first + 1] != 1 || *words[first + 1] != '-')
		log_access_add(access, "identity", words[first + 1], lens[first + 1]);
	log_access_add(access, "user", words[first + 2], lens[first + 2]);
	return true;
}

/* CLIENT IDENTITY USER [TIME] "REQUEST" STATUS BYTES, and "REFERER" "AGENT" in the combined format. */
static bool log_access(struct ky_log_clock *clock, const char *line, size_t size,
		       struct access_line *access)
{
	const char *at = line, *end = line + size, *word;
	size_t len;

	access->n = 0;
	if (!log_access_client(access, &at, end) || at >= end || *at++ != '[' ||
	    !ky_log_time_format(clock, "%d/%b/%Y:%H:%M:%S %z", &at, end, &access->ns) ||
	    end - at < 3 || memcmp(at, "] \"", 3) != 0)
		return false;
	at += 2;
	if (!log_access_word(&at, end, &word, &len))
		return false;
	log_access_request(access, word, len);
	if (!log_access_add_number(access, "status", &at, end) ||
	    !log_access_add_number(access, "bytes", &at, end))
		return false;
	if (at < end && *at == '"' && log_access_word(&at, end, &word, &len))
		log_access_add(access, "referer", word, len);
	if (at < end && *at == '"' && log_access_word(&at, end, &word, &len))
		log_access_add(access, "agent", word, len);
	/* Servers are often told to write more, such as the time of the request. */
	if (at < end)
		log_access_add(access, "rest", at, (size_t)(end - at));
	return true;
}

static bool log_access_probe(const char *line, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct access_line access;

	return log_access(&clock, line, len, &access);
}

static int log_access_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct access_line access;
	int ret;

	if (!log_access(&log->clock, line, len, &access))
		return 0;
	ret = ky_log_event(log, "request", access.ns, access.values, access.n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_access = {
	.name = "access",
	.description =
		"access logs of web servers: the common and the combined format, also behind HOST:PORT",
	.probe = log_access_probe,
	.line = log_access_line,
};
