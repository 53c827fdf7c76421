/* SPDX-License-Identifier: MIT */
#include "import/logs/log-ftrace-stack.h"

#include <ctype.h>

#include "base/error.h"
#include "import/logs/log-perf-script.h"

/* The number of CPUs in log-ftrace.c. A line of a further CPU has no event before it. */
#define CPUS_MAX 2048

/* ---- where a stack begins ------------------------------------------------------------- */

static bool stack_is(const char *text, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(text, what, len) == 0;
}

static const char *stack_skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* Old pages of systrace have lines of a string in JavaScript, which end with "\\n\\". */
static const char *stack_trim(const char *at, const char *end)
{
	if (end - at > 3 && memcmp(end - 3, "\\n\\", 3) == 0)
		end -= 3;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return end;
}

/* Behind "=>" and the blanks around it. NULL: the line is no frame. */
static const char *stack_frame(const char *text, const char *end)
{
	const char *at = stack_skip_blanks(text, end);

	if (end - at < 4 || memcmp(at, "=> ", 3) != 0)
		return NULL;
	at = stack_skip_blanks(at + 3, end);
	return at < end ? at : NULL;
}

/*
 * "<stack trace>" and "<user stack trace>" of the kernel; "kernel_stack:         <stack trace >" and "user_stack:  => (00007f...)" of
 * trace-cmd report.
 */
bool ky_ftrace_stack_begins(const struct ky_ftrace_line *line, const char *end,
			    struct ky_ftrace_stack *stack)
{
	bool is_kernel = stack_is(line->name, line->name_len, "kernel_stack");
	bool is_user = stack_is(line->name, line->name_len, "user_stack");
	const char *at = is_kernel || is_user ? stack_skip_blanks(line->fields, end) : line->name;
	const char *stop = stack_trim(at, end);
	size_t len = (size_t)(stop - at);

	*stack = (struct ky_ftrace_stack){.is_user = is_user};
	if (stack_is(at, len, "<stack trace>") || stack_is(at, len, "<stack trace >"))
		return true;
	if (stack_is(at, len, "<user stack trace>") || stack_is(at, len, "<user stack trace >"))
		return stack->is_user = true;
	if (is_kernel || is_user)
		stack->first = stack_frame(at, stop) ? at : NULL;
	return stack->first;
}

/* ---- frames --------------------------------------------------------------------------- */

static bool stack_is_frame(const char *text, size_t len)
{
	return stack_frame(text, text + len);
}

/* Where the address begins that ends the frame: " <ffffffff814b0cf5>", " (ffffffff814b0cf5)". NULL: no address does. */
static const char *stack_address(const char *at, const char *end)
{
	const char *from = end - 1;
	char open = *from == '>' ? '<' : '(';

	if (*from != '>' && *from != ')')
		return NULL;
	while (from > at && isxdigit((unsigned char)from[-1]))
		from--;
	if (end - from < 2 || from == at || from[-1] != open)
		return NULL;
	from--;
	return from == at || from[-1] == ' ' ? from : NULL;
}

/* A frame without a name. trace-cmd writes addresses of 0 behind the end of a program's stack: these frames are left out. */
static void stack_add_address(struct ky_strbuf *names, const char *at, const char *end)
{
	while (at < end && *at == '0')
		at++;
	if (at == end)
		return;
	ky_strbuf_adds(names, "0x");
	ky_strbuf_add(names, at, (size_t)(end - at));
}

/* "try_to_wake_up+0x1f/0x30 [module]": where the function's name ends. */
static const char *stack_function_end(const char *at, const char *end)
{
	if (end[-1] == ']') {
		const char *bracket = memrchr(at, '[', (size_t)(end - at));

		if (bracket && bracket > at + 1 && bracket[-1] == ' ')
			end = stack_trim(at, bracket);
	}
	for (const char *plus = end - 3; plus > at; plus--)
		if (memcmp(plus, "+0x", 3) == 0)
			return plus;
	return end;
}

static void stack_add(struct ky_strbuf *names, const char *text, size_t len, bool is_user)
{
	const char *end = text + strnlen(text, len), *at = stack_frame(text, end), *address;

	if (!at)
		return;
	end = stack_trim(at, end);
	address = end > at ? stack_address(at, end) : NULL;
	if (address == at) {
		stack_add_address(names, at + 1, end - 1);
		at = end;
	} else if (address) {
		end = stack_trim(at, address);
	}
	/* In "/lib/libc.so.6[+0x1234]", the offset is what tells the function. */
	if (at < end && !is_user)
		end = stack_function_end(at, end);
	if (at < end)
		ky_perf_script_add_name(names, at, (size_t)(end - at));
}

static void stack_add_kernel(struct ky_strbuf *names, const char *text, size_t len)
{
	size_t before = names->len;

	stack_add(names, text, len, false);
	ky_strbuf_adds(names, names->len > before ? "_[k]" : "");
}

static void stack_add_user(struct ky_strbuf *names, const char *text, size_t len)
{
	stack_add(names, text, len, true);
}

int ky_ftrace_stack_read(struct ky_log_file *log, const struct ky_ftrace_stack *stack,
			 const char *end, struct ky_strbuf *folded)
{
	static const struct ky_log_frames kernel = {stack_is_frame, stack_add_kernel};
	static const struct ky_log_frames user = {stack_is_frame, stack_add_user};
	const char *first = stack->first ? stack->first : end;

	return ky_log_read_stack(log, stack->is_user ? &user : &kernel, first,
				 (size_t)(end - first), folded);
}

/* ---- the event of a stack ------------------------------------------------------------- */

struct stack_newest {
	int64_t tid;
	bool has_stack[2];		 /* the kernel's, the user's */
	char name[KY_FTRACE_NAME_BYTES]; /* empty: unknown */
};

/* The newest event of each CPU. */
struct stack_cpus {
	struct stack_newest *cpus[CPUS_MAX];
};

static struct stack_newest *stack_newest_of(const struct ky_log_file *log, uint64_t cpu)
{
	const struct stack_cpus *all = log->state;

	return all && cpu < CPUS_MAX ? all->cpus[cpu] : NULL;
}

static struct stack_newest *stack_newest_new(struct ky_log_file *log, uint64_t cpu)
{
	struct stack_cpus *all = log->state;

	if (!all) {
		all = ky_arena_new(&log->arena, struct stack_cpus);
		log->state = all;
	}
	return all ? all->cpus[cpu] = ky_arena_new(&log->arena, struct stack_newest) : NULL;
}

int ky_ftrace_stack_note(struct ky_log_file *log, const struct ky_ftrace_line *line,
			 const char *name)
{
	uint64_t cpu = (uint64_t)line->cpu;
	struct stack_newest *newest = stack_newest_of(log, cpu);

	if (!newest && cpu < CPUS_MAX) {
		newest = stack_newest_new(log, cpu);
		if (!newest)
			return ky_error_nomem(log->err);
	}
	if (newest) {
		newest->tid = line->tid;
		newest->has_stack[0] = newest->has_stack[1] = false;
		ky_ftrace_name(newest->name, "", name, KY_FTRACE_NAME_BYTES - 1);
	}
	return KYMO_OK;
}

void ky_ftrace_stack_forget(const struct ky_log_file *log, uint64_t cpu)
{
	struct stack_newest *newest = stack_newest_of(log, cpu);

	if (newest)
		newest->name[0] = '\0';
}

const char *ky_ftrace_stack_event(const struct ky_log_file *log, const struct ky_ftrace_line *line,
				  bool is_user)
{
	struct stack_newest *newest = stack_newest_of(log, (uint64_t)line->cpu);

	if (!newest || newest->tid != line->tid || !newest->name[0] || newest->has_stack[is_user])
		return NULL;
	newest->has_stack[is_user] = true;
	return newest->name;
}
