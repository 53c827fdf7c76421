/* SPDX-License-Identifier: MIT */
#include "import/logs/log-ftrace-calls.h"

#include <stdlib.h>

#include "import/ftrace/foreign-calls.h"

bool ky_ftrace_begins(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

void ky_ftrace_name(char name[KY_FTRACE_NAME_BYTES], const char *front, const char *rest,
		    size_t len)
{
	size_t n = strlen(front), room = KY_FTRACE_NAME_BYTES - 1 - n;

	len = strnlen(rest, len < room ? len : room);
	memcpy(name, front, n);
	memcpy(name + n, rest, len);
	name[n + len] = '\0';
}

/* "NR 16 " at *@at, which goes behind it. False: it is no number of a call. */
static bool ftrace_call_number(const char **at, const char *end, int64_t *number)
{
	const char *from = *at, *stop;

	while (from < end && *from == ' ')
		from++;
	if (!ky_ftrace_begins(from, (size_t)(end - from), "NR "))
		return false;
	from += 3;
	stop = memchr(from, ' ', (size_t)(end - from));
	if (!stop || !ky_log_is_number(from, (size_t)(stop - from), number))
		return false;
	*at = stop + 1;
	return true;
}

/* The events of raw_syscalls. "sys_exit(error_code: 0)", without a colon, is the call "exit"; no call is "enter". */
static bool ftrace_is_raw_call(const struct ky_ftrace_line *line, bool *is_exit)
{
	*is_exit = line->name_len == 8 && memcmp(line->name, "sys_exit", 8) == 0 &&
		   line->fields[-1] == ':';
	return *is_exit || (line->name_len == 9 && memcmp(line->name, "sys_enter", 9) == 0);
}

/* "(1, 5401, 7ffd)" or "= -25", which follows the number. */
static bool ftrace_raw_value(const char *at, const char *end, bool is_exit,
			     struct ky_log_value *value)
{
	int64_t result;

	while (end > at && end[-1] == ' ')
		end--;
	if (!is_exit) {
		*value = ky_log_text("arguments", at + 1, (size_t)(end - at) - 2);
		return end - at >= 2 && *at == '(' && end[-1] == ')';
	}
	if (end - at < 3 || memcmp(at, "= ", 2) != 0 ||
	    ky_log_json_integer(at + 2, (size_t)(end - at - 2), &result) != KY_MAKER_S64)
		return false;
	*value = ky_log_number("ret", result);
	return true;
}

/*
 * "NR 16 (1, 5401, 7ffd)", "NR 16 = -25": the event is that of the call, as in perf.data; a call without a name here keeps its number. The number
 * of fields; 0: the line has no call.
 */
static size_t ftrace_raw_call(const struct ky_log_file *log, const struct ky_ftrace_line *line,
			      const char *end, bool is_exit, char name[KY_FTRACE_NAME_BYTES],
			      struct ky_log_value *values)
{
	const char *at = line->fields, *call;
	int64_t id;
	size_t n = 0;

	if (!ftrace_call_number(&at, end, &id))
		return 0;
	call = id < 0 || log->is_other_machine ? NULL : ky_foreign_call_name((uint64_t)id);
	if (!call)
		values[n++] = ky_log_number("id", id);
	if (!ftrace_raw_value(at, end, is_exit, &values[n]))
		return 0;
	if (call)
		ky_ftrace_name(name, is_exit ? "syscall_exit_" : "syscall_entry_", call,
			       strlen(call));
	return n + 1;
}

/* The number at @at, which ends at @end: no NUL does. */
static int64_t ftrace_calls_result(const char *at, const char *end)
{
	char text[32];
	size_t len = (size_t)(end - at) < sizeof(text) ? (size_t)(end - at) : sizeof(text) - 1;

	memcpy(text, at, len);
	text[len] = '\0';
	return (int64_t)strtoull(text, NULL, 0);
}

/* "sys_openat(dfd: ffffff9c, ...)", "sys_openat -> 0x3", trace-cmd's "sys_enter_openat: dfd: ..." and "sys_exit_openat: 0x3" */
static size_t ftrace_syscall(const struct ky_ftrace_line *line, const char *end,
			     char name[KY_FTRACE_NAME_BYTES], struct ky_log_value *value)
{
	const char *call = line->name + 4, *at = line->fields;
	size_t len = line->name_len - 4;
	bool is_exit = false;

	while (at < end && *at == ' ')
		at++;
	if (ky_ftrace_begins(call, len, "enter_")) {
		call += 6;
		len -= 6;
	} else if (ky_ftrace_begins(call, len, "exit_")) {
		is_exit = true;
		call += 5;
		len -= 5;
	} else if (end - at > 3 && memcmp(at, "-> ", 3) == 0) {
		is_exit = true;
		at += 3;
	}
	ky_ftrace_name(name, is_exit ? "syscall_exit_" : "syscall_entry_", call, len);
	if (is_exit)
		*value = ky_log_number("ret", ftrace_calls_result(at, end));
	else
		*value = ky_log_text("arguments", at, (size_t)(end - at));
	return 1;
}

size_t ky_ftrace_call(const struct ky_log_file *log, const struct ky_ftrace_line *line,
		      const char *end, char name[KY_FTRACE_NAME_BYTES],
		      struct ky_log_value values[2])
{
	bool is_exit;

	if (ftrace_is_raw_call(line, &is_exit)) {
		ky_ftrace_name(name, "raw_syscalls_sys_", is_exit ? "exit" : "enter", 5);
		return ftrace_raw_call(log, line, end, is_exit, name, values);
	}
	return ky_ftrace_begins(line->name, line->name_len, "sys_") && line->name_len > 5
		       ? ftrace_syscall(line, end, name, values)
		       : 0;
}
