/* SPDX-License-Identifier: MIT */
/*
 * strace -f -ttt -T: calls become the events of a kernel trace, so that reports of system calls read them. Times of the day (-tt) are
 * of the day when the file was written. Each time of strace -r is the distance to the line before, of any thread.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/ftrace/foreign-calls.h"
#include "import/logs/log-format.h"

#define NAME_MAX_BYTES 64u
#define SECOND_NS      INT64_C(1000000000)

static const struct ky_maker_field context[] = {{.name = "tid", .kind = KY_MAKER_S32}};

struct strace_line {
	int64_t tid, ns;
	bool is_relative; /* ns: since the line before */
	const char *name; /* of the call; NULL: none */
	size_t name_len;
	const char *args, *rest; /* behind '(': to ')', or to the end; behind "= " */
	size_t args_len;
	bool is_resumed, is_unfinished;
	const char *note; /* "--- SIGCHLD ... ---", "+++ exited with 0 +++" */
};

/* Times since 1970 are above this, and no program waits so long. */
#define RELATIVE_MAX_NS (INT64_C(1000000000) * 1000000000)

/* "(+     0.000123) ", which -r adds to other times. */
static const char *strace_skip_relative(const char *at, const char *end)
{
	const char *stop = end - at > 2 && memcmp(at, "(+ ", 3) == 0
				   ? memchr(at, ')', (size_t)(end - at))
				   : NULL;

	return stop && end - stop > 1 && stop[1] == ' ' ? stop + 2 : at;
}

/* The time at *@at, which goes behind the blank that follows it. */
static bool strace_time(struct ky_log_clock *clock, const char **at, const char *end,
			struct strace_line *line)
{
	const char *from = *at;

	/* strace -r puts blanks before small numbers. */
	while (from < end && *from == ' ')
		from++;
	*at = from;
	if (ky_log_time_seconds(at, end, &line->ns) && *at < end && **at == ' ' &&
	    memchr(from, '.', (size_t)(*at - from))) {
		line->is_relative = line->ns < RELATIVE_MAX_NS;
	} else {
		*at = from;
		if (!ky_log_time_of_day(clock, at, end, &line->ns) || *at == end || **at != ' ')
			return false;
	}
	*at = strace_skip_relative(*at + 1, end);
	return true;
}

static bool strace_pid(const char **at, const char *end, int64_t *tid)
{
	const char *from = *at;
	bool bracket = end - from > 5 && memcmp(from, "[pid ", 5) == 0;
	int64_t value = 0;
	int n = 0;

	if (bracket)
		from += 5;
	while (from < end && *from == ' ')
		from++;
	for (; from < end && isdigit((unsigned char)*from) && n < 10; from++, n++)
		value = value * 10 + (*from - '0');
	if (!n || value > INT32_MAX || from >= end || *from != (bracket ? ']' : ' '))
		return false;
	from += bracket;
	while (from < end && *from == ' ')
		from++;
	*tid = value;
	*at = from;
	return true;
}

/* Where " = " is that ends the call: the last one outside of quotes. */
static const char *find_result(const char *at, const char *end)
{
	const char *found = NULL;
	bool is_quoted = false;

	for (; at < end; at++) {
		if (*at == '\\')
			at++;
		else if (*at == '"')
			is_quoted = !is_quoted;
		else if (!is_quoted && *at == '=' && at[-1] == ' ' && at + 1 < end && at[1] == ' ')
			found = at;
	}
	return found;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool strace_call(struct strace_line *line, const char *at, const char *end)
{
	static const char unfinished[] = " <unfinished ...>";
	const char *equals, *stop;

	if (end - at > 5 && memcmp(at, "<... ", 5) == 0) {
		line->is_resumed = true;
		at += 5;
	}
	line->name = at;
	while (at < end && is_name(*at))
		at++;
	line->name_len = (size_t)(at - line->name);
	if (!line->name_len || line->name_len >= NAME_MAX_BYTES || at >= end)
		return false;
	if (line->is_resumed) {
		at = memchr(at, '>', (size_t)(end - at));
		if (!at)
			return false;
	} else if (*at != '(') {
		return false;
	}
	line->args = ++at;
	line->is_unfinished =
		(size_t)(end - at) >= sizeof(unfinished) - 1 &&
		memcmp(end - (sizeof(unfinished) - 1), unfinished, sizeof(unfinished) - 1) == 0;
	equals = line->is_unfinished ? NULL : find_result(at, end);
	stop = equals ? equals : line->is_unfinished ? end - (sizeof(unfinished) - 1) : end;
	while (stop > at && (stop[-1] == ' ' || (equals && stop[-1] == ')')))
		if (*--stop == ')')
			break;
	line->args_len = (size_t)(stop - at);
	line->rest = equals ? equals + 2 : NULL;
	return equals || line->is_unfinished;
}

/* "[ 257] " of strace -n, the number of the call, and "[00007f6ce3b4a1b4] " of strace -i. */
static const char *strace_skip_brackets(const char *at, const char *end)
{
	while (at < end && *at == '[') {
		const char *from = at + 1;

		while (from < end &&
		       (*from == ' ' || *from == '?' || isxdigit((unsigned char)*from)))
			from++;
		if (end - from < 2 || from[0] != ']' || from[1] != ' ')
			break;
		at = from + 2;
	}
	return at;
}

/* strace -ff: the thread is in the name of the file, "out.1234", and not in its lines. */
static int64_t strace_file_tid(const char *name)
{
	static const char *const packed[] = {".gz", ".xz", ".zst", ".bz2"};
	size_t len = strlen(name), begin;
	int64_t tid;

	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		size_t n = strlen(packed[i]);

		if (len > n && memcmp(name + len - n, packed[i], n) == 0) {
			len -= n;
			break;
		}
	}
	for (begin = len; begin && name[begin - 1] != '.';)
		begin--;
	return begin && ky_log_is_number(name + begin, len - begin, &tid) && tid > 0 &&
			       tid <= INT32_MAX
		       ? tid
		       : 1;
}

/* What follows the thread and the time. */
static bool strace_take_rest(struct strace_line *line, const char *at, const char *end)
{
	at = strace_skip_brackets(at, end);
	if (end - at > 4 && (memcmp(at, "--- ", 4) == 0 || memcmp(at, "+++ ", 4) == 0)) {
		line->note = at;
		return true;
	}
	return strace_call(line, at, end);
}

/* A line without a time, which strace writes unless it gets -ttt or the like. */
static bool strace_take_untimed(int64_t tid, const char *text, size_t len, struct strace_line *line)
{
	const char *at = text, *end = text + len;

	*line = (struct strace_line){.tid = tid};
	(void)strace_pid(&at, end, &line->tid);
	return strace_take_rest(line, at, end);
}

/* @tid: of a line that has none. */
static bool strace_take(struct ky_log_clock *clock, int64_t tid, const char *text, size_t len,
			struct strace_line *line)
{
	const char *at = text, *end = text + len;

	*line = (struct strace_line){.tid = tid};
	/* A number with a blank behind it may be the time of a line without a pid. */
	if (strace_pid(&at, end, &line->tid) && !strace_time(clock, &at, end, line))
		return false;
	if (at == text && !strace_time(clock, &at, end, line))
		return false;
	return strace_take_rest(line, at, end);
}

static const char *strace_name(const struct strace_line *line, char name[NAME_MAX_BYTES]);

/* Without a time, the line is plain only if its name is that of a call. */
static bool strace_is_call(const struct strace_line *line)
{
	char name[NAME_MAX_BYTES];
	const char *known;

	(void)strace_name(line, name);
	for (uint64_t i = 0; i < KY_FOREIGN_CALLS; i++) {
		known = ky_foreign_call_name(i);
		if (known && strcmp(known, name) == 0)
			return true;
	}
	return false;
}

/* "= 0", "= -1 ENOENT", "= ? ERESTARTSYS"; code and prose have other things there. */
static bool strace_has_result(const struct strace_line *line, const char *end)
{
	const char *at = line->rest;

	if (!at)
		return line->is_unfinished;
	while (at < end && *at == ' ')
		at++;
	at += at < end && *at == '-';
	return at < end && (*at == '?' || isdigit((unsigned char)*at));
}

static bool strace_probe(const char *text, size_t len)
{
	struct ky_log_clock clock = {.now_s = 0};
	struct strace_line line;

	if (strace_take(&clock, 1, text, len, &line))
		return line.name;
	return strace_take_untimed(1, text, len, &line) && line.name && !line.is_resumed &&
	       strace_is_call(&line) && strace_has_result(&line, text + len);
}

/* Names of the kernel's functions, which differ from those of the C library. */
static const char *strace_name(const struct strace_line *line, char name[NAME_MAX_BYTES])
{
	static const char *const pairs[][2] = {
		{"stat", "newstat"},   {"fstat", "newfstat"},	   {"lstat", "newlstat"},
		{"uname", "newuname"}, {"sendfile", "sendfile64"}, {"umount2", "umount"},
	};

	memcpy(name, line->name, line->name_len);
	name[line->name_len] = '\0';
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (strcmp(name, pairs[i][0]) == 0)
			return pairs[i][1];
	return name;
}

/*
 * When the thread's line is: not before its call before has ended. Times of strace -t are whole seconds, so the durations of a second's
 * calls add up there; a line without a time has no other.
 */
static int64_t strace_begin(const struct ky_log_file *log, const struct strace_line *line)
{
	uint64_t known = (uintptr_t)ky_map_get(log->state, (uint64_t)line->tid);
	int64_t end_ns = known ? (int64_t)(known - 1) : 0;

	return end_ns > line->ns && (log->is_untimed || end_ns - line->ns < SECOND_NS) ? end_ns
										       : line->ns;
}

/* The thread's call has ended, or has begun and not ended. 0 or negative. */
static int strace_note_end(struct ky_log_file *log, const struct strace_line *line, int64_t ns)
{
	void *value = (void *)(uintptr_t)((uint64_t)(ns > 0 ? ns : 0) + 1);

	return ky_map_set(log->state, (uint64_t)line->tid, value) < 0 ? ky_error_nomem(log->err)
								      : KYMO_OK;
}

static int strace_put(struct ky_log_file *log, const char *prefix, const struct strace_line *line,
		      int64_t ns, struct ky_log_value *values, size_t n)
{
	char event[NAME_MAX_BYTES + 32], name[NAME_MAX_BYTES];
	int ret;

	snprintf(event, sizeof(event), "%s%s", prefix, strace_name(line, name));
	ret = ky_log_begin(log, event, ns, values, n);
	if (ret < 0)
		return ret;
	ky_log_context_number(log, line->tid);
	return ky_log_put(log, values, n);
}

/* Where " 3</etc/passwd> <0.000012>" ends before its duration; *ns: -1: it has none. */
static const char *strace_duration(const char *at, const char *end, int64_t *ns)
{
	const char *from = end > at && end[-1] == '>' ? memrchr(at, '<', (size_t)(end - at)) : NULL;
	const char *number = from ? from + 1 : NULL;

	*ns = -1;
	if (!from || !ky_log_time_seconds(&number, end, ns) || number != end - 1) {
		*ns = -1;
		return end;
	}
	while (from > at && from[-1] == ' ')
		from--;
	return from;
}

/* The number of an error's name, also of those that only the kernel and its tracers see; 0: unknown. */
static int strace_errno(const char *name, size_t len)
{
	static const char *const of_kernel[] = {
		"ERESTARTSYS",
		"ERESTARTNOINTR",
		"ERESTARTNOHAND",
		"ENOIOCTLCMD",
		"ERESTART_RESTARTBLOCK",
		"EPROBE_DEFER",
		"EOPENSTALE",
		"ENOPARAM",
		"",
		"EBADHANDLE",
		"ENOTSYNC",
		"EBADCOOKIE",
		"ENOTSUPP",
		"ETOOSMALL",
		"ESERVERFAULT",
		"EBADTYPE",
		"EJUKEBOX",
		"EIOCBQUEUED",
		"ERECALLCONFLICT",
	};

	for (int i = 0; i < (int)(sizeof(of_kernel) / sizeof(of_kernel[0])); i++)
		if (len && strlen(of_kernel[i]) == len && memcmp(of_kernel[i], name, len) == 0)
			return 512 + i;
	for (int i = 1; i < 200; i++) {
		const char *known = strerrorname_np(i);

		if (known && strlen(known) == len && memcmp(known, name, len) == 0)
			return i;
	}
	return 0;
}

/* Behind "-1" or "?": "ENOENT (No such file or directory)", "(errno 530)". 0: no error is there. */
static int64_t strace_error(const char *at, const char *end, const char **error, size_t *error_len)
{
	static const char unnamed[] = "(errno ";
	int64_t number;

	at += at < end && *at == ' ';
	if ((size_t)(end - at) > sizeof(unnamed) && memcmp(at, unnamed, sizeof(unnamed) - 1) == 0) {
		number = strtoll(at + sizeof(unnamed) - 1, NULL, 10);
		return number > 0 && number < 4096 ? -number : 0;
	}
	*error = at;
	while (at < end &&
	       (isupper((unsigned char)*at) || isdigit((unsigned char)*at) || *at == '_'))
		at++;
	*error_len = (size_t)(at - *error);
	return -(int64_t)strace_errno(*error, *error_len);
}

struct strace_result {
	int64_t value;
	const char *error,
		*text; /* text: what strace says besides: "</etc/passwd>", "(flags O_RDWR)" */
	size_t error_len, text_len;
};

/* What the kernel returned: -ERRNO is shown as -1 and a name, and what the kernel alone sees as '?' and a name. False: the call did not return. */
static bool strace_take_result(const char *at, const char *end, struct strace_result *result)
{
	char *stop;

	*result = (struct strace_result){.error = "", .text = ""};
	while (at < end && *at == ' ')
		at++;
	if (at >= end)
		return false;
	if (*at == '?') {
		result->value = strace_error(at + 1, end, &result->error, &result->error_len);
		return result->value != 0 || result->error_len;
	}
	/* Addresses go up to 2^64. */
	result->value = *at == '-' ? strtoll(at, &stop, 0) : (int64_t)strtoull(at, &stop, 0);
	if (result->value == -1 && *at == '-') {
		result->value = strace_error(stop, end, &result->error, &result->error_len);
		result->value = result->value ? result->value : -1;
		return true;
	}
	at = stop;
	while (at < end && *at == ' ')
		at++;
	result->text = at;
	result->text_len = at < end ? (size_t)(end - at) : 0;
	return true;
}

/* What the call returned. The number of fields; 0: it did not return. */
static size_t strace_values(const struct strace_line *line, const char *end,
			    struct ky_log_value values[3])
{
	struct strace_result result;
	size_t n = 0;

	if (!strace_take_result(line->rest, end, &result))
		return 0;
	values[n++] = ky_log_number("ret", result.value);
	values[n++] = ky_log_text("error", result.error, result.error_len);
	if (result.text_len)
		values[n++] = ky_log_text("result", result.text, result.text_len);
	return n;
}

/*
 * A call that strace showed in one piece ends its duration after it began. Without a duration (-T), nothing tells when it ended: the
 * entry has the result, and there is no exit, which would be a duration of 0.
 */
static int strace_whole(struct ky_log_file *log, const struct strace_line *line, const char *end)
{
	struct ky_log_value entry[4] = {ky_log_text("arguments", line->args, line->args_len)};
	struct ky_log_value values[3];
	int64_t duration_ns = -1, end_ns;
	size_t n = 0;
	int ret;

	if (line->rest) {
		end = strace_duration(line->rest, end, &duration_ns);
		n = strace_values(line, end, values);
	}
	if (duration_ns < 0) {
		log->n_unmeasured += n > 0;
		memcpy(entry + 1, values, n * sizeof(values[0]));
		ret = strace_put(log, "syscall_entry_", line, line->ns, entry, 1 + n);
		return ret < 0 ? ret : strace_note_end(log, line, line->ns);
	}
	ret = strace_put(log, "syscall_entry_", line, line->ns, entry, 1);
	if (__builtin_add_overflow(line->ns, duration_ns, &end_ns))
		end_ns = line->ns;
	if (ret >= 0)
		ret = strace_put(log, "syscall_exit_", line, end_ns, values, n);
	return ret < 0 ? ret : strace_note_end(log, line, end_ns);
}

/* The end of a call whose begin was in a line before. */
static int strace_resumed(struct ky_log_file *log, const struct strace_line *line, const char *end)
{
	struct ky_log_value values[4];
	int64_t duration_ns, end_ns = line->ns;
	size_t n;
	int ret;

	if (!line->rest)
		return 0;
	end = strace_duration(line->rest, end, &duration_ns);
	n = strace_values(line, end, values);
	/* What the call has filled in: strace shows it at the exit. */
	if (line->args_len)
		values[n++] = ky_log_text("arguments", line->args, line->args_len);
	if (log->is_untimed && duration_ns > 0 &&
	    __builtin_add_overflow(line->ns, duration_ns, &end_ns))
		end_ns = line->ns;
	ret = strace_put(log, "syscall_exit_", line, end_ns, values, n);
	return ret < 0 ? ret : strace_note_end(log, line, end_ns);
}

static int strace_note(struct ky_log_file *log, const struct strace_line *line, const char *end)
{
	struct ky_log_value text = ky_log_text("message", line->note, (size_t)(end - line->note));
	int ret = ky_log_begin(log, line->note[0] == '-' ? "signal" : "exit", line->ns, &text, 1);

	if (ret < 0)
		return ret;
	ky_log_context_number(log, line->tid);
	return ky_log_put(log, &text, 1);
}

/* The time of a line, @ns after the line before it. Sums that 64 bits do not hold are lies. */
static int64_t strace_sum(struct ky_log_file *log, int64_t ns)
{
	if (__builtin_add_overflow(log->origin_ns, ns, &log->origin_ns))
		log->origin_ns = INT64_MAX;
	return log->origin_ns;
}

/* 1: @line has events; negative. @end: of its text. */
static int strace_events(struct ky_log_file *log, struct strace_line *line, const char *end)
{
	int ret;

	line->ns = strace_begin(log, line);
	if (line->note)
		ret = strace_note(log, line, end);
	else if (line->is_resumed)
		ret = strace_resumed(log, line, end);
	else
		ret = strace_whole(log, line, end);
	return ret < 0 ? ret : 1;
}

/* Does one of the next lines have a time? Then a line without one is cut, as the first one of a part of a log is. */
static bool strace_is_timed(struct ky_log_file *log)
{
	struct strace_line line;
	size_t len;
	const char *text = ky_log_window(log, &len), *end = text + len;

	for (int i = 0; i < 10 && text < end; i++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		stop = stop ? stop : end;
		if (strace_take(&log->clock, 1, text, (size_t)(stop - text), &line))
			return true;
		text = stop + 1;
	}
	return false;
}

/* The first event of a file decides whether its lines have times. */
static bool strace_read(struct ky_log_file *log, const char *text, size_t len,
			struct strace_line *line)
{
	int64_t tid = strace_file_tid(log->name);

	if (!log->is_untimed && strace_take(&log->clock, tid, text, len, line))
		return true;
	if ((!log->is_untimed && log->has_event) || !strace_take_untimed(tid, text, len, line) ||
	    (line->name && !strace_is_call(line)) || (!log->is_untimed && strace_is_timed(log)))
		return false;
	log->is_untimed = true;
	return true;
}

/*
 * strace -f on the terminal writes its own message into the line of a call that makes a thread, "vfork(strace: Process 15 attached", and the
 * call's " <unfinished ...>" into the next line.
 */
static void strace_mend(char *text)
{
	static const char message[] = "strace: Process ", attached[] = " attached";
	static const char unfinished[] = " <unfinished ...>";
	char *at = strstr(text, message);
	size_t len = at ? strlen(at) : 0;

	if (!at || !memchr(text, '(', (size_t)(at - text)) || len < sizeof(unfinished) ||
	    strcmp(at + len - (sizeof(attached) - 1), attached) != 0)
		return;
	memcpy(at, unfinished, sizeof(unfinished));
}

static bool strace_is_rest(const char *text)
{
	return strcmp(text + strspn(text, " "), "<unfinished ...>") == 0;
}

static int strace_start(struct ky_log_file *log)
{
	struct ky_map *ends = malloc(sizeof(*ends));

	if (!ends)
		return ky_error_nomem(log->err);
	ky_map_init(ends);
	log->state = ends;
	return KYMO_OK;
}

static void strace_end(struct ky_log_file *log)
{
	if (log->state)
		ky_map_fini(log->state);
	free(log->state);
	log->state = NULL;
}

static int strace_line(struct ky_log_file *log, const char *text, size_t len)
{
	struct strace_line line;
	char *copy;
	bool is_known;
	int ret = 0;

	/* strace writes none; what follows it would be lost. */
	if (memchr(text, '\0', len))
		return 0;
	/* strtoll() must not go beyond the line. */
	copy = strndup(text, len);
	if (!copy)
		return ky_error_nomem(log->err);
	strace_mend(copy);
	is_known = strace_read(log, copy, strlen(copy), &line);
	/* The time of a line that says nothing else counts, too. */
	if (line.is_relative)
		line.ns = strace_sum(log, line.ns);
	if (is_known)
		ret = strace_events(log, &line, copy + strlen(copy));
	else if (strace_is_rest(copy))
		ret = 1;
	free(copy);
	return ret;
}

const struct ky_log_format ky_log_strace = {
	.name = "strace",
	.description = "strace -f -ttt -T (or -tt): entries and exits of system calls",
	.domain = "kernel",
	.context = context,
	.n_context = 1,
	.probe = strace_probe,
	.begin = strace_start,
	.line = strace_line,
	.end = strace_end,
};
