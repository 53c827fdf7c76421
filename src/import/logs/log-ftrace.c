/* SPDX-License-Identifier: MIT */
/*
 * The text of ftrace's file "trace", of trace-cmd report, of perf script, and in pages of systrace: a task, a CPU, a time, an event
 * and its fields. Events of the scheduler get the names and numbers of Kymo's recordings, so that reports read them.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/logs/log-format.h"
#include "import/logs/log-ftrace-calls.h"
#include "import/logs/log-ftrace-stack.h"
#include "import/logs/log-perf-script.h"

const struct ky_maker_field ky_ftrace_context[KY_FTRACE_CONTEXT] = {
	{.name = "tid", .kind = KY_MAKER_S32},
	{.name = "procname", .kind = KY_MAKER_TEXT},
};

/* Machines with more CPUs are not known, and each CPU costs the trace a stream. */
#define CPUS_MAX 2048

/* "[003]", "[1023]": where it begins, and the number. NULL: none. */
static const char *find_cpu(const char *at, const char *end, int64_t *cpu)
{
	for (; at < end; at++) {
		const char *from = at + 1;
		int64_t number = 0;

		if (*at != '[')
			continue;
		while (from < end && isdigit((unsigned char)*from) && from - at < 6)
			number = number * 10 + (*from++ - '0');
		if (from - at >= 4 && from < end && *from == ']' && number < CPUS_MAX) {
			*cpu = number;
			return at;
		}
	}
	return NULL;
}

/* The name before the thread's number, @from: "bash-", "bash ", "bash  1977/", "bash 1977/-". */
static void ftrace_take_comm(const char *begin, const char *from, struct ky_ftrace_line *line)
{
	const char *end = from - 1;

	if (*end == '-' && end > begin && end[-1] == '/')
		end--;
	while (*end == '/' && end > begin && isdigit((unsigned char)end[-1]))
		for (end--; end > begin && isdigit((unsigned char)end[-1]);)
			end--;
	line->comm_len = (size_t)(end - begin);
	line->comm = ky_perf_script_comm(begin, &line->comm_len);
}

/* The digits before @end: "bash-1977   ", "bash 1977 ", "bash  1977/1978 ", "bash-1977 ( 1977)". */
static bool take_tid(const char *begin, const char *end, struct ky_ftrace_line *line)
{
	int64_t *tid = &line->tid;
	const char *from;
	char *stop;

	while (end > begin && end[-1] == ' ')
		end--;
	if (end > begin && end[-1] == ')') {
		while (end > begin && *end != '(')
			end--;
		while (end > begin && end[-1] == ' ')
			end--;
	}
	from = end;
	while (from > begin && isdigit((unsigned char)from[-1]))
		from--;
	if (from == end || from == begin || (from[-1] != '-' && from[-1] != ' ' && from[-1] != '/'))
		return false;
	*tid = strtoll(from, &stop, 10);
	if (*tid > INT32_MAX)
		return false;
	/* perf script: ":-1    -1 [001]", "-1/-1", nobody's. In "bash-1", the sign belongs to no number. */
	if (*tid == 1 && from[-1] == '-' &&
	    (from - 1 == begin || from[-2] == ' ' || from[-2] == '/'))
		*tid = -1;
	ftrace_take_comm(begin, from, line);
	return true;
}

/* "0: B|124|name": kernels of years ago do not name the function that writes a program's mark. */
static bool ftrace_is_mark(const struct ky_ftrace_line *line)
{
	/* What follows the colon is the line's. */
	return line->name_len == 1 && *line->name == '0' && line->fields == line->name + 2;
}

static bool ftrace_take(const char *text, size_t len, struct ky_ftrace_line *line)
{
	const char *end = text + len, *at = find_cpu(text, end, &line->cpu), *word;

	/* The name of a thread, 15 bytes, may have what looks like a CPU. */
	for (int i = 0; at && !take_tid(text, at, line); i++)
		at = i < 3 ? find_cpu(at + 1, end, &line->cpu) : NULL;
	if (!at)
		return false;
	at = (const char *)memchr(at, ']', (size_t)(end - at)) + 1;
	/* Flags, if any, then the time, with a colon behind it. */
	for (;;) {
		while (at < end && *at == ' ')
			at++;
		word = at;
		while (at < end && *at != ' ')
			at++;
		if (at == word)
			return false;
		if (at[-1] == ':' && ky_log_time_seconds(&word, at, &line->ns) && word == at - 1)
			break;
	}
	while (at < end && *at == ' ')
		at++;
	line->name = at;
	while (at < end && *at != ':' && *at != ' ' && *at != '(')
		at++;
	/* perf script: "sched:sched_switch:", and system calls as "sys_openat(dfd: ..." or "sys_openat -> 0x3". */
	if (at + 1 < end && *at == ':' && at[1] != ' ') {
		line->name = ++at;
		while (at < end && *at != ':' && *at != ' ')
			at++;
	}
	line->name_len = (size_t)(at - line->name);
	line->fields = at + (at < end && *at == ':');
	/* The period of a sample is no event. */
	return ftrace_is_mark(line) ||
	       (line->name_len > 1 && line->name_len < 128 && !isdigit((unsigned char)*line->name));
}

static bool ftrace_of_head(const struct ky_perf_script_head *head, struct ky_ftrace_line *line);

static bool ftrace_probe(const char *text, size_t len)
{
	/* The second is that of perf script --header. */
	static const char head[] = "# tracer:", perf_head[] = "# ========";
	struct ky_perf_script_head sample;
	struct ky_ftrace_line line;

	return (len >= sizeof(head) - 1 && memcmp(text, head, sizeof(head) - 1) == 0) ||
	       (len == sizeof(perf_head) - 1 && memcmp(text, perf_head, len) == 0) ||
	       ftrace_take(text, len, &line) || (len == 6 && memcmp(text, "TRACE:", 6) == 0) ||
	       (ky_perf_script_head(text, len, &sample) &&
		(sample.period >= 0 || sample.rest == text + len ||
		 ftrace_of_head(&sample, &line)));
}

/* ---- fields --------------------------------------------------------------------------- */

/* Where "key=" begins that follows @at; @end: none does. Values may have blanks. */
static const char *next_key(const char *at, const char *end)
{
	const char *word = NULL;

	for (; at < end; at++) {
		if (*at == ' ')
			word = at + 1;
		else if (*at == '=' && word && at > word && (at + 1 == end || at[1] != '=') &&
			 at[-1] != '=')
			return word;
		else if (word && !isalnum((unsigned char)*at) && *at != '_')
			word = NULL;
	}
	return end;
}

static bool is(const struct ky_log_value *value, const char *name)
{
	return strlen(name) == value->name_len && memcmp(value->name, name, value->name_len) == 0;
}

/* What the kernel's text shows of a thread's state: a letter for each bit, and '+' for a thread that lost its CPU while it could run. */
static int64_t state_of(const char *text, size_t len)
{
	static const char letters[] = "SDTtXZPI+";
	int64_t state = 0;

	for (size_t i = 0; i < len; i++) {
		const char *at = text[i] ? strchr(letters, text[i]) : NULL;

		if (at)
			state |= INT64_C(1) << (at - letters);
	}
	return state;
}

/* LTTng's names and numbers: threads are tids, and priorities count from 0. */
static void ftrace_rename(struct ky_log_value *value)
{
	static const char *const names[][2] = {
		{"pid", "tid"},		  {"prev_pid", "prev_tid"},
		{"next_pid", "next_tid"}, {"child_pid", "child_tid"},
		{"orig_cpu", "orig_cpu"},
	};

	if (is(value, "prev_state") && value->kind == KY_MAKER_TEXT) {
		value->number = state_of(value->text, value->len);
		value->kind = KY_MAKER_S64;
	} else if ((is(value, "prio") || is(value, "prev_prio") || is(value, "next_prio")) &&
		   value->kind == KY_MAKER_S64) {
		value->number -= 100;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is(value, names[i][0])) {
			value->name = names[i][1];
			value->name_len = strlen(names[i][1]);
			return;
		}
}

static struct ky_log_value ftrace_value(const char *name, size_t name_len, const char *text,
					size_t len)
{
	struct ky_log_value value;

	while (len && (text[len - 1] == ' ' || text[len - 1] == ','))
		len--;
	/* "prev_state=S ==> next_comm=bash" */
	if (len > 3 && memcmp(text + len - 3, "==>", 3) == 0)
		len -= 4;
	/* "000" of a CPU is a number here. */
	while (len > 1 && *text == '0' && isdigit((unsigned char)text[1])) {
		text++;
		len--;
	}
	value = ky_log_guess(name, name_len, text, len);
	/* Names of threads may look like numbers. */
	if (name_len >= 4 && memcmp(name + name_len - 4, "comm", 4) == 0)
		value.kind = KY_MAKER_TEXT;
	return value;
}

/* The words before the first field, @at: "(do_sys_openat2+0x0/0x160) path=x", "bdi 8:0: ino=7". */
static size_t ftrace_front(const struct ky_ftrace_line *line, const char *at,
			   struct ky_log_value *value)
{
	const char *from = line->fields;

	while (from < at && *from == ' ')
		from++;
	while (at > from && at[-1] == ' ')
		at--;
	*value = ky_log_text("message", from, (size_t)(at - from));
	return at > from;
}

static size_t ftrace_fields(const struct ky_ftrace_line *line, const char *end, bool is_sched,
			    struct ky_log_value *values)
{
	const char *at =
		next_key(line->fields > line->name && line->fields < end && *line->fields == ' '
				 ? line->fields - 1
				 : line->fields,
			 end);
	size_t n = at < end ? ftrace_front(line, at, values) : 0;

	while (at < end && n < KY_LOG_FIELDS_MAX) {
		const char *equals = memchr(at, '=', (size_t)(end - at));
		const char *next = equals ? next_key(equals + 1, end) : end;

		if (!equals)
			break;
		values[n] = ftrace_value(at, (size_t)(equals - at), equals + 1,
					 (size_t)(next - equals - 1));
		if (is_sched)
			ftrace_rename(&values[n]);
		n++;
		at = next;
	}
	return n;
}

static int ftrace_put(struct ky_log_file *log, const struct ky_ftrace_line *line, const char *name,
		      struct ky_log_value *values, size_t n)
{
	int ret;

	log->stream = (uint32_t)line->cpu;
	ret = ky_log_begin(log, name, line->ns, values, n);
	if (ret < 0)
		return ret;
	ky_log_context_number(log, line->tid);
	ky_log_context_text(log, line->comm, line->comm_len);
	ret = ky_log_put(log, values, n);
	return ret < 0 ? ret : 1;
}

/* What trace-cmd report says before the events. */
static bool ftrace_is_head(const char *text, size_t len)
{
	static const char empty[] = " is empty";
	size_t n = sizeof(empty) - 1;

	return ky_ftrace_begins(text, len, "version = ") || ky_ftrace_begins(text, len, "TRACE:") ||
	       ky_ftrace_begins(text, len, "capturing trace") ||
	       ky_ftrace_begins(text, len, "cpus=") ||
	       (ky_ftrace_begins(text, len, "CPU ") && len > n &&
		memcmp(text + len - n, empty, n) == 0);
}

/*
 * "CPU:1 [LOST 34 EVENTS]" of the kernel, "CPU:1 [34 EVENTS DROPPED]" of trace-cmd; the number may be missing. 1: it was such a line; 0: it was not;
 * negative.
 */
static int ftrace_lost(struct ky_log_file *log, const char *text, size_t len)
{
	char line[64], *at;
	unsigned long cpu;
	uint64_t n;

	if (!ky_ftrace_begins(text, len, "CPU:") || len >= sizeof(line))
		return 0;
	memcpy(line, text, len);
	line[len] = '\0';
	cpu = strtoul(line + 4, &at, 10);
	if (strncmp(at, " [", 2) != 0 || cpu >= CPUS_MAX ||
	    (!strstr(at, "LOST") && !strstr(at, "EVENTS DROPPED")))
		return 0;
	at += strcspn(at, "0123456789]");
	n = strtoull(at, NULL, 10);
	ky_ftrace_stack_forget(log, cpu);
	return ky_maker_lost(log->maker, (uint32_t)cpu, n ? n : 1, log->err) < 0 ? log->err->code
										 : 1;
}

/* A sample: what was counted, how much, and where. */
static int ftrace_sample(struct ky_log_file *log, const struct ky_perf_script_head *head,
			 const char *end, const struct ky_strbuf *stack)
{
	struct ky_log_value values[3] = {ky_log_text("event", head->event, head->event_len)};
	const struct ky_ftrace_line line = {
		.tid = head->tid,
		.cpu = head->cpu,
		.ns = head->ns < 0 ? log->last_ns : head->ns,
		.comm = head->comm,
		.comm_len = head->comm_len,
	};
	struct ky_strbuf function = KY_STRBUF_INIT;
	size_t n = 1;
	int ret;

	log->n_timeless += head->ns < 0;
	if (head->period >= 0)
		values[n++] = ky_log_number("period", head->period);
	if (stack->len) {
		values[n++] = ky_log_text("callstack", ky_strbuf_text(stack), stack->len);
	} else if (head->rest < end) {
		ky_perf_script_add_function(&function, head->rest, (size_t)(end - head->rest));
		values[n++] = ky_log_text("callstack", ky_strbuf_text(&function), function.len);
	}
	ret = ky_strbuf_failed(&function) ? ky_error_nomem(log->err)
					  : ftrace_put(log, &line, "sample", values, n);
	ky_strbuf_fini(&function);
	return ret;
}

/* The head of a tracepoint that has a period, or no CPU. */
static bool ftrace_of_head(const struct ky_perf_script_head *head, struct ky_ftrace_line *line)
{
	const char *colon = memchr(head->event, ':', head->event_len);

	if (!colon || head->event_len > 128 ||
	    (head->period < 0 && !isalpha((unsigned char)*head->event)))
		return false;
	*line = (struct ky_ftrace_line){
		.tid = head->tid,
		.cpu = head->cpu,
		.ns = head->ns,
		.comm = head->comm,
		.comm_len = head->comm_len,
		.name = colon + 1,
		.name_len = (size_t)(head->event + head->event_len - colon - 1),
		.fields = head->event + head->event_len + 1,
	};
	/* "cpu-clock:pppH:" is no tracepoint. */
	return line->name_len > 4 &&
	       memchr(head->event, '-', (size_t)(colon - head->event)) == NULL;
}

/* What programs and trace_printk() of the kernel write: all is text, also what looks like a field. */
static bool ftrace_is_text(const char *name)
{
	static const char *const names[] = {"print", "bprint", "bputs", "tracing_mark_write"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int ftrace_event(struct ky_log_file *log, const struct ky_ftrace_line *line, const char *end,
			const struct ky_strbuf *stack)
{
	static const char mark[] = "tracing_mark_write";
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	const char *at = line->fields;
	char name[KY_FTRACE_NAME_BYTES];
	size_t n;

	ky_ftrace_name(name, "", line->name, line->name_len);
	n = ky_ftrace_call(log, line, end, name, values);
	if (ftrace_is_mark(line))
		ky_ftrace_name(name, "", mark, sizeof(mark) - 1);
	else if (!n && !ftrace_is_text(name))
		n = ftrace_fields(line, end, ky_ftrace_begins(name, strlen(name), "sched_"),
				  values);
	log->n_shortened += n == KY_LOG_FIELDS_MAX;
	if (!n) {
		while (at < end && *at == ' ')
			at++;
		values[n++] = ky_log_text("message", at, (size_t)(end - at));
	}
	if (stack->len && n < KY_LOG_FIELDS_MAX)
		values[n++] = ky_log_text("callstack", ky_strbuf_text(stack), stack->len);
	if (ky_ftrace_stack_note(log, line, name) < 0)
		return log->err->code;
	return ftrace_put(log, line, name, values, n);
}

/*
 * What each line with a call stack below has: "<stack trace>" at its end, or "kernel_stack:" behind the thread and the time. Few other lines
 * do.
 */
static bool ftrace_may_begin_stack(const char *text, size_t len)
{
	static const char trace[] = "stack trace", event[] = "_stack:";
	size_t n = len < 16 ? len : 16, front = len < 128 ? len : 128;

	return len &&
	       ((text[len - 1] == '>' && memmem(text + len - n, n, trace, sizeof(trace) - 1)) ||
		memmem(text, front, event, sizeof(event) - 1));
}

/* "bash-7 [001] d..2. 12.000001: <stack trace>", and the frames behind it. 1: it was such a line; 0: it was not; negative. */
static int ftrace_stack(struct ky_log_file *log, const char *text, size_t len)
{
	struct ky_strbuf head = KY_STRBUF_INIT, folded = KY_STRBUF_INIT;
	struct ky_ftrace_stack stack;
	struct ky_ftrace_line line;
	struct ky_log_value values[2];
	const char *event;
	size_t n = 0;
	int ret = 0;

	if (!ftrace_may_begin_stack(text, len) || !ftrace_take(text, len, &line) ||
	    !ky_ftrace_stack_begins(&line, text + len, &stack))
		return 0;
	/* The line is in the window, which reading on may move. */
	ky_strbuf_add(&head, text, len);
	text = ky_strbuf_text(&head);
	if (ky_strbuf_failed(&head) || !ftrace_take(text, len, &line) ||
	    !ky_ftrace_stack_begins(&line, text + len, &stack))
		ret = ky_error_nomem(log->err);
	if (!ret)
		ret = ky_ftrace_stack_read(log, &stack, text + len, &folded);
	if (!ret) {
		event = ky_ftrace_stack_event(log, &line, stack.is_user);
		if (event)
			values[n++] = ky_log_text("event_before", event, strlen(event));
		values[n++] = ky_log_text("callstack", ky_strbuf_text(&folded), folded.len);
		ret = ftrace_put(log, &line, stack.is_user ? "user_stack" : "kernel_stack", values,
				 n);
	}
	ky_strbuf_fini(&head);
	ky_strbuf_fini(&folded);
	return ret;
}

static bool ftrace_head(const char *text, size_t len, struct ky_perf_script_head *head)
{
	return ky_perf_script_head(text, len, head) && head->cpu < CPUS_MAX;
}

/* 1: it was an event; 0: it was not; negative. */
static int ftrace_any(struct ky_log_file *log, const char *text, size_t len,
		      const struct ky_strbuf *stack)
{
	struct ky_perf_script_head head;
	struct ky_ftrace_line line;
	bool is_head = stack->len && ftrace_head(text, len, &head);

	/* "java 7 [000] 12.000001: cycles:", and a call stack: a sample, whose period is not in the text. */
	if (is_head && head.rest == text + len)
		return ftrace_sample(log, &head, text + len, stack);
	if (ftrace_take(text, len, &line))
		return ftrace_event(log, &line, text + len, stack);
	if (!is_head && !ftrace_head(text, len, &head))
		return 0;
	return ftrace_of_head(&head, &line) ? ftrace_event(log, &line, text + len, stack)
					    : ftrace_sample(log, &head, text + len, stack);
}

static bool ftrace_is_event(const char *text, size_t len)
{
	struct ky_perf_script_head head;
	struct ky_ftrace_line line;

	return ftrace_take(text, len, &line) || ftrace_head(text, len, &head) ||
	       ky_perf_script_untimed_head(text, len, &head);
}

/* The lines behind @text, which is an event, are its call stack. */
static int ftrace_with_stack(struct ky_log_file *log, const char *text, size_t len)
{
	struct ky_strbuf head = KY_STRBUF_INIT, stack = KY_STRBUF_INIT;
	struct ky_perf_script_head untimed;
	int ret;

	ky_strbuf_add(&head, text, len);
	ret = ky_perf_script_stack(log, &stack);
	if (!ret && ky_strbuf_failed(&head))
		ret = ky_error_nomem(log->err);
	if (!ret)
		ret = ftrace_any(log, ky_strbuf_text(&head), head.len, &stack);
	if (!ret && stack.len &&
	    ky_perf_script_untimed_head(ky_strbuf_text(&head), head.len, &untimed))
		ret = ftrace_sample(log, &untimed, ky_strbuf_text(&head) + head.len, &stack);
	/* At the end of a window, a line without a time may have no stack. */
	if (!ret)
		ret = ky_log_stray(log, ky_strbuf_text(&head), head.len) < 0 ? log->err->code : 1;
	ky_strbuf_fini(&head);
	ky_strbuf_fini(&stack);
	return ret;
}

/* "# arch : aarch64" of perf script --header: numbers of system calls have other meanings there. */
static void ftrace_note_head(struct ky_log_file *log, const char *text, size_t len)
{
	static const char arch[] = "# arch : ", known[] = "# arch : x86_64";

	if (ky_ftrace_begins(text, len, arch))
		log->is_other_machine = len != sizeof(known) - 1 || memcmp(text, known, len) != 0;
	log->is_graph |= ky_ftrace_begins(text, len, "# tracer: function_graph");
}

/* " 3)   0.081 us    |  schedule();" of the tracer function_graph. */
static bool ftrace_is_graph(const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	while (at < end && *at == ' ')
		at++;
	text = at;
	while (at < end && isdigit((unsigned char)*at))
		at++;
	return at > text && end - at > 3 && *at == ')' && at[1] == ' ' &&
	       memmem(at, (size_t)(end - at), " | ", 3);
}

/* The lines of function_graph mostly have no times. */
static int ftrace_check_graph(const struct ky_log_file *log, const char *text, size_t len)
{
	if (!log->is_graph || log->has_event || !ftrace_is_graph(text, len))
		return KYMO_OK;
	return ky_foreign_bad(&log->file, log->line_at,
			      "the text of ftrace's tracer function_graph is not read", log->err);
}

static int ftrace_line(struct ky_log_file *log, const char *text, size_t len)
{
	const struct ky_strbuf none = KY_STRBUF_INIT;
	int ret;

	if (len && *text == '#') {
		ftrace_note_head(log, text, len);
		return 1;
	}
	ret = ftrace_stack(log, text, len);
	if (ret)
		return ret;
	if (ky_perf_script_stack_follows(log) && ftrace_is_event(text, len))
		return ftrace_with_stack(log, text, len);
	ret = ftrace_any(log, text, len, &none);
	if (ret)
		return ret;
	if (ftrace_is_head(text, len))
		return 1;
	ret = ftrace_lost(log, text, len);
	return ret ? ret : ftrace_check_graph(log, text, len);
}

const struct ky_log_format ky_log_ftrace = {
	.name = "ftrace",
	.description = "ftrace's text, also that of trace-cmd report and perf script",
	.domain = "kernel",
	.context = ky_ftrace_context,
	.n_context = KY_FTRACE_CONTEXT,
	.has_cpus = true,
	.probe = ftrace_probe,
	.probe_head = ky_perf_script_begins_untimed,
	.line = ftrace_line,
};
