/* SPDX-License-Identifier: MIT */
/* System calls in the text of ftrace and perf script. Threads: any. */
#ifndef KY_IMPORT_LOG_FTRACE_CALLS_H
#define KY_IMPORT_LOG_FTRACE_CALLS_H

#include "import/logs/log-format.h"

struct ky_ftrace_line {
	int64_t tid, cpu, ns;
	const char *name, *fields;
	size_t name_len;
	const char *comm; /* the thread's name */
	size_t comm_len;  /* 0: the line does not tell it */
};

/* The context of these events: the thread, and its name. (log-ftrace.c) */
#define KY_FTRACE_CONTEXT 2
extern const struct ky_maker_field ky_ftrace_context[KY_FTRACE_CONTEXT];

#define KY_FTRACE_NAME_BYTES 192

/* The name of an event: @front, then @len bytes of @rest, or fewer where there is no room. */
void ky_ftrace_name(char name[KY_FTRACE_NAME_BYTES], const char *front, const char *rest,
		    size_t len);
bool ky_ftrace_begins(const char *text, size_t len, const char *with);
/*
 * The event of a system call: its fields, which point into the line, and its @name. The line ends at @end. The number of fields; 0: the line
 * has no call, and @name is still changed if it is one of raw_syscalls.
 */
size_t ky_ftrace_call(const struct ky_log_file *log, const struct ky_ftrace_line *line,
		      const char *end, char name[KY_FTRACE_NAME_BYTES],
		      struct ky_log_value values[2]);

#endif
