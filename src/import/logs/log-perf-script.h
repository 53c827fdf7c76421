/* SPDX-License-Identifier: MIT */
/* The text of perf script: the head of a sample, and the lines of its call stack. Threads: one at a time per file. */
#ifndef KY_IMPORT_LOG_PERF_SCRIPT_H
#define KY_IMPORT_LOG_PERF_SCRIPT_H

#include "base/strbuf.h"
#include "import/logs/log-format.h"

struct ky_perf_script_head {
	int64_t tid, cpu, ns; /* ns -1: the line has no time */
	int64_t period;	      /* -1: the line has none */
	const char *comm;     /* the thread's name */
	size_t comm_len;      /* 0: perf did not know it */
	const char *event;
	size_t event_len; /* without the colon behind it */
	const char *rest; /* behind the colon: fields of a tracepoint, or one frame */
};

/*
 * "ls 32489/32489 [001] 64730.196334:  1001001 cpu-clock:pppH: REST", where the CPU and the period may be missing. False: the line is
 * another one.
 */
bool ky_perf_script_head(const char *text, size_t len, struct ky_perf_script_head *head);

/* The same of "node 31912 cpu-clock:", without a time, as older versions of perf and "perf script -F comm,tid,event,ip" write it. */
bool ky_perf_script_untimed_head(const char *text, size_t len, struct ky_perf_script_head *head);

/* Does the file with this beginning have samples without times? */
bool ky_perf_script_begins_untimed(const char *text, size_t len);

/* Is the line of @len bytes a frame: "	ffffffff8158c3e1 next_uptodate_folio+0xc1 ([kernel.kallsyms])"? */
bool ky_perf_script_is_frame(const char *text, size_t len);

/* May the next line be a frame, as far as the window goes? */
bool ky_perf_script_stack_follows(const struct ky_log_file *log);

/*
 * Reads the frames that follow: @folded gets the functions, the outermost first, with ';' between them, and "_[k]" behind those of the
 * kernel. 0 or negative.
 */
int ky_perf_script_stack(struct ky_log_file *log, struct ky_strbuf *folded);

/* The frames of a kind of text. */
struct ky_log_frames {
	bool (*is_frame)(const char *text, size_t len);
	/* Adds the frame's function; adds nothing: the frame is left out. */
	void (*add)(struct ky_strbuf *names, const char *text, size_t len);
};
/* The same of other frames; @first, of @len bytes, is a frame before the lines, unless @len is 0. The window may move. */
int ky_log_read_stack(struct ky_log_file *log, const struct ky_log_frames *frames,
		      const char *first, size_t len, struct ky_strbuf *folded);

/* Adds a function's name, with ':' for each ';' in it. A longer name is cut. */
void ky_perf_script_add_name(struct ky_strbuf *folded, const char *name, size_t len);
/* Adds the function of the frame at @text, as above. */
void ky_perf_script_add_function(struct ky_strbuf *folded, const char *text, size_t len);
/* The name of a thread in @text: without the blanks around it. *len is 0 where perf or ftrace does not know the name. */
const char *ky_perf_script_comm(const char *text, size_t *len);

#endif
