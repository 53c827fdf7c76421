/* SPDX-License-Identifier: MIT */
/*
 * Call stacks in ftrace's text, which the options stacktrace and userstacktrace write: "<stack trace>" in place of an event, and a line
 * " => function" for each frame. Threads: one at a time per file.
 */
#ifndef KY_IMPORT_LOG_FTRACE_STACK_H
#define KY_IMPORT_LOG_FTRACE_STACK_H

#include "import/logs/log-ftrace-calls.h"

struct ky_ftrace_stack {
	bool is_user;
	const char *first; /* a frame in the line itself; NULL: none */
};

/* Does a call stack follow the line, which ends at @end? */
bool ky_ftrace_stack_begins(const struct ky_ftrace_line *line, const char *end,
			    struct ky_ftrace_stack *stack);

/* Reads the frames, as ky_perf_script_stack() does. The line ends at @end, and is a copy. 0 or negative. */
int ky_ftrace_stack_read(struct ky_log_file *log, const struct ky_ftrace_stack *stack,
			 const char *end, struct ky_strbuf *folded);

/* Notes that event @name is the newest of its CPU. 0 or negative. */
int ky_ftrace_stack_note(struct ky_log_file *log, const struct ky_ftrace_line *line,
			 const char *name);
/* Notes that events of @cpu are lost. */
void ky_ftrace_stack_forget(const struct ky_log_file *log, uint64_t cpu);
/*
 * The newest event of the line's CPU, which then has its stack. NULL: that event is of another thread, is unknown, or has a stack of this kind
 * already: an interrupt's event and stack may stand between an event and its stack.
 */
const char *ky_ftrace_stack_event(const struct ky_log_file *log, const struct ky_ftrace_line *line,
				  bool is_user);

#endif
