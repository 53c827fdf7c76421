/* SPDX-License-Identifier: MIT */
/* The text that a raw recording has in place of tracefs: which CPUs, threads and events there were. It is not trusted. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "os/file.h"
#include "record/kernel/raw-replay.h"

#define DESCRIPTION_MAX_BYTES (256u << 20)
#define CPU_MAX		      65536
#define LINE_MAX_BYTES	      600

static int raw_description_bad(const struct ky_raw_replay *replay, const char *what,
			       struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_FORMAT, "%s", what);
	char path[4200];

	snprintf(path, sizeof(path), "%s/raw/recording", replay->dir);
	ky_error_path(err, path);
	ky_error_line(err, replay->line, 1);
	return code;
}

/* 1: @line is the next; 0: none exists; -1: it is too long. */
static int raw_description_next_line(struct ky_raw_replay *replay, char line[LINE_MAX_BYTES])
{
	const char *stop;
	size_t len;

	if (replay->at >= replay->end)
		return 0;
	stop = memchr(replay->at, '\n', (size_t)(replay->end - replay->at));
	len = (size_t)((stop ? stop : replay->end) - replay->at);
	replay->line++;
	if (!stop || len >= LINE_MAX_BYTES)
		return -1;
	memcpy(line, replay->at, len);
	line[len] = '\0';
	replay->at = stop + 1;
	return 1;
}

static bool take_hex(const char *text, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int high = ky_digit_value(text[2 * i]);
		int low = high == KY_NO_DIGIT ? high : ky_digit_value(text[2 * i + 1]);

		if (low == KY_NO_DIGIT)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * n] == '\0';
}

/* Of a thread that an earlier line has. */
static bool take_nice(struct ky_raw_replay *replay, const char *line)
{
	struct ky_thread *thread;
	int tid, nice;

	if (!replay->kernel.has_threads || sscanf(line, "nice %d %d", &tid, &nice) != 2)
		return false;
	thread = ky_map_get(&replay->kernel.threads.map, (uint32_t)tid);
	if (thread)
		thread->nice = nice;
	return thread != NULL;
}

static bool take_thread(struct ky_raw_replay *replay, const char *line)
{
	struct ky_thread thread = {0};
	int at = 0;

	if (!replay->kernel.has_threads ||
	    sscanf(line, "thread %d %d %d %d %n", &thread.tid, &thread.pid, &thread.ppid,
		   &thread.prio, &at) != 4 ||
	    !at || !take_hex(line + at, (uint8_t *)thread.comm, KY_COMM_BYTES))
		return false;
	thread.nice = ky_thread_nice(thread.prio, 0);
	return ky_threads_put(&replay->kernel.threads, &thread) == 0;
}

static bool take_cpu(struct ky_raw_replay *replay, const char *line)
{
	struct ky_kernel_trace *kernel = &replay->kernel;
	struct ky_kernel_cpu *cpu;
	unsigned int number;
	uint64_t lost;
	int online;

	if (sscanf(line, "cpu %u %d %" SCNu64, &number, &online, &lost) != 3 || number >= CPU_MAX ||
	    kernel->cpus.len >= CPU_MAX)
		return false;
	cpu = malloc(sizeof(*cpu));
	if (!cpu || ky_vec_push(&kernel->cpus, cpu) < 0) {
		free(cpu);
		return false;
	}
	ky_kernel_cpu_init(cpu, kernel, number);
	cpu->online = online != 0;
	cpu->raw_lost = lost;
	return true;
}

/* The @len bytes that come next, and a line's end. NULL: they are not there. */
static const char *raw_description_take_text(struct ky_raw_replay *replay, size_t len)
{
	const char *text = replay->at;

	if (len > (size_t)(replay->end - replay->at))
		return NULL;
	for (size_t i = 0; i < len; i++)
		replay->line += text[i] == '\n';
	replay->at += len;
	return text;
}

static bool take_line_end(struct ky_raw_replay *replay)
{
	if (replay->at >= replay->end || *replay->at != '\n')
		return false;
	replay->at++;
	replay->line++;
	return true;
}

static bool take_header(struct ky_raw_replay *replay, const char *line)
{
	const char *text;
	size_t len, rest;

	if (sscanf(line, "header %zu %zu", &len, &rest) != 2 || rest || len > KY_TRACEFS_TEXT_MAX)
		return false;
	text = raw_description_take_text(replay, len);
	if (text)
		ky_strbuf_add(&replay->header, text, len);
	return text && take_line_end(replay);
}

static bool raw_description_take_event(struct ky_raw_replay *replay, const char *line)
{
	struct ky_catalogue *catalogue = &replay->kernel.catalogue;
	char system[KY_EVENT_NAME_BYTES], event[KY_EVENT_NAME_BYTES], name[KY_EVENT_NAME_BYTES];
	struct ky_event_source source = {0};
	const char *format, *filter;
	size_t len, filter_len;
	int selected, hidden;

	if (sscanf(line, "event %127s %127s %d %d %zu %zu", system, event, &selected, &hidden, &len,
		   &filter_len) != 6 ||
	    len > KY_TRACEFS_TEXT_MAX || filter_len > KY_TRACEFS_TEXT_MAX)
		return false;
	format = raw_description_take_text(replay, len);
	filter = format ? raw_description_take_text(replay, filter_len) : NULL;
	if (!filter || !take_line_end(replay))
		return false;
	ky_event_name(system, event, name);
	source.system = ky_arena_strdup(&catalogue->arena, system);
	source.event = ky_arena_strdup(&catalogue->arena, event);
	source.name = ky_arena_strdup(&catalogue->arena, name);
	source.format = format;
	source.format_len = len;
	source.selected = selected & 1;
	source.stacks = source.selected
				? (unsigned int)selected >> 1 & (KY_STACK_KERNEL | KY_STACK_USER)
				: 0;
	source.hidden = hidden != 0;
	if (filter_len)
		source.filter = ky_arena_strndup(&catalogue->arena, filter, filter_len);
	return source.system && source.event && source.name && (!filter_len || source.filter) &&
	       ky_vec_push(&catalogue->events, source) == 0;
}

/* What names in the events' formats are worth: checked here, used when the trace model is built. */
static bool take_constant(struct ky_kernel_trace *kernel, const char *line)
{
	char name[256];
	int64_t value;
	int end = 0;

	if (!kernel->has_constants ||
	    sscanf(line, "constant %255[A-Za-z0-9_] %" SCNd64 "%n", name, &value, &end) != 2 ||
	    line[end] != '\0')
		return false;
	ky_strbuf_adds(&kernel->constants, line);
	ky_strbuf_addc(&kernel->constants, '\n');
	return !ky_strbuf_failed(&kernel->constants);
}

static bool starts(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

/* The recorder's own threads: two at least. */
static bool take_own(struct ky_kernel_trace *kernel, const char *line)
{
	int n = 0, at = 0;

	while (n < KY_CONVERT_OWN_TIDS &&
	       sscanf(line, "%d%n", &kernel->convert.own_tids[n], &at) == 1) {
		line += at;
		n++;
	}
	return n >= 2;
}

static bool raw_description_take_line(struct ky_raw_replay *replay, const char *line)
{
	struct ky_kernel_trace *kernel = &replay->kernel;
	int threads;

	if (starts(line, "uuid "))
		return take_hex(line + 5, kernel->uuid, 16);
	if (starts(line, "order "))
		return strcmp(line + 6,
			      __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "big" : "little") == 0;
	if (starts(line, "page "))
		return sscanf(line, "page %u", &kernel->page_bytes) == 1 &&
		       kernel->page_bytes >= 1024 && kernel->page_bytes <= 1u << 20;
	if (starts(line, "context "))
		return sscanf(line, "context %u", &kernel->context) == 1 &&
		       !(kernel->context &
			 ~((KY_CONTEXT_OF_THREADS | KY_CONTEXT_OF_RECORDS | KY_CONTEXT_OF_STACKS) &
			   ~KY_CONTEXT_OF_IDS));
	if (starts(line, "threads ")) {
		if (sscanf(line, "threads %d", &threads) != 1)
			return false;
		/* Never taken back: those that were read by then have to be freed. */
		kernel->has_threads |= threads != 0;
		return true;
	}
	if (starts(line, "own "))
		return take_own(kernel, line + 3);
	if (starts(line, "time "))
		return sscanf(line, "time %" SCNu64 " %" SCNu64, &kernel->start_cycles,
			      &replay->end_cycles) == 2;
	if (strcmp(line, "flight") == 0)
		return kernel->is_flight = true;
	if (strcmp(line, "constants") == 0)
		return kernel->has_constants = true;
	if (starts(line, "constant "))
		return take_constant(kernel, line);
	if (starts(line, "cpu "))
		return take_cpu(replay, line);
	if (starts(line, "thread "))
		return take_thread(replay, line);
	if (starts(line, "nice "))
		return take_nice(replay, line);
	if (starts(line, "header "))
		return take_header(replay, line);
	return starts(line, "event ") && raw_description_take_event(replay, line);
}

int ky_raw_read_description(struct ky_raw_replay *replay, struct kymo_error *err)
{
	char line[LINE_MAX_BYTES], path[4200];
	int ret;

	snprintf(path, sizeof(path), "%s/raw/recording", replay->dir);
	ret = ky_read_regular(AT_FDCWD, path, DESCRIPTION_MAX_BYTES, &replay->text);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
		return ret;
	}
	replay->at = ky_strbuf_text(&replay->text);
	replay->end = replay->at + replay->text.len;
	if (raw_description_next_line(replay, line) != 1 || strcmp(line, "kymo-raw 1") != 0)
		return raw_description_bad(replay, "this is not a raw recording that Kymo can read",
					   err);
	while ((ret = raw_description_next_line(replay, line)) > 0)
		if (!raw_description_take_line(replay, line))
			return raw_description_bad(
				replay, "this line is malformed, or memory ran out", err);
	if (ret < 0)
		return raw_description_bad(replay, "the file is cut, or a line is too long", err);
	if (!replay->kernel.page_bytes || !replay->header.len ||
	    !replay->kernel.catalogue.events.len)
		return raw_description_bad(replay, "the description is incomplete", err);
	return KYMO_OK;
}
