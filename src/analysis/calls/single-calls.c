/* SPDX-License-Identifier: MIT */
/* System calls one by one. */
#include "analysis/calls/single-calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- documentation --------------------------------------------------------------------- */

enum {
	CALL_BEGIN,
	CALL_END,
	CALL_DURATION,
	CALL_SYSCALL,
	CALL_PROCESS,
	CALL_CPU,
	CALL_RET,
	CALL_ERROR,
	CALL_FILE,
	CALL_ARGUMENTS,
};

static const struct ky_column call_columns[] = {
	[CALL_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the call began.", .spare = 2},
	[CALL_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended."},
	[CALL_DURATION] = {"duration", "Duration", KY_CELL_DURATION,
			   "The duration of the call, with waiting."},
	[CALL_SYSCALL] = {"syscall", "System call", KY_CELL_SYSCALL, "As in the first table."},
	[CALL_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			  "The thread that made the call, with its last name."},
	[CALL_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The CPU on which it ended.", .spare = 3},
	[CALL_RET] =
		{"ret", "Result", KY_CELL_NUMBER,
		 "The return value: a descriptor, a number of bytes, an address, 0; for a failed "
		 "call, the negative error number.",
		 .spare = 2},
	[CALL_ERROR] = {"error", "Error", KY_CELL_TEXT, "The error that it returned, if any."},
	[CALL_FILE] =
		{"file", "File", KY_CELL_PATH,
		 "The file, socket or pipe of its argument: the path of a call that opens, else "
		 "what its descriptor refers to. Empty for calls without one, and where it is "
		 "unknown.",
		 .spare = 1},
	[CALL_ARGUMENTS] =
		{"arguments", "Arguments", KY_CELL_TEXT,
		 "The arguments at the begin of the call, as far as the trace has them: numbers, "
		 "addresses, and the first text or network address (of recordings with "
		 "--syscall-content), up to 64 bytes.",
		 .spare = 4},
};

const struct ky_table_def ky_calls_top =
	KY_TABLE_DEF("top", "The longest calls", "One row for each call, the longest first.",
		     call_columns, KY_TABLE_TOP);

const struct ky_table_def ky_calls_log =
	KY_TABLE_DEF("log", "Calls", "One row for each call, in the order of their ends.",
		     call_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("syscall", "System call", KY_CELL_SYSCALL, "As in the first table."),
};

const struct ky_table_def ky_calls_freq = KY_TABLE_DEF(
	"freq", "Distribution of durations",
	"One row for each step of duration, from the shortest, for each system call, the most "
	"frequent first; --limit sets the number of system calls.",
	freq_columns, KY_TABLE_FREQ);

/* ---- the pass -------------------------------------------------------------------------- */

struct one_call {
	int64_t begin_ns, end_ns, ret;
	const struct ky_thread *thread;
	const char *file;
	uint32_t syscall, cpu_id;
	bool has_ret;
	struct ky_call_args args;
};

void ky_calls_init(struct ky_calls *calls, const struct ky_report_options *options,
		   const struct ky_report *report, size_t top, size_t log, size_t freq)
{
	*calls = (struct ky_calls){.wants_freqs = ky_report_wants(options, report, freq)};
	ky_happenings_init(&calls->single, sizeof(struct one_call), options, report, top, log);
}

void ky_calls_fini(struct ky_calls *calls)
{
	ky_happenings_fini(&calls->single);
	ky_vec_fini(&calls->freqs);
}

static int single_calls_count(struct ky_calls *calls, uint32_t syscall, uint64_t ns)
{
	while (calls->freqs.len <= syscall) {
		if (ky_vec_push(&calls->freqs, (struct ky_freq){.n = 0}) < 0)
			return KYMO_E_MEMORY;
	}
	ky_freq_add(&calls->freqs.data[syscall], ns);
	return 0;
}

/* Few calls are kept; the others are not worth a copy. */
static int single_calls_keep(struct ky_calls *calls, const struct ky_call *call, uint64_t ns)
{
	struct one_call one = {.begin_ns = call->begin_ns,
			       .end_ns = call->end_ns,
			       .ret = call->ret,
			       .thread = call->thread,
			       .file = call->thread->syscall.file ? call->thread->syscall.file->name
								  : NULL,
			       .syscall = call->syscall,
			       .cpu_id = call->cpu_id,
			       .has_ret = call->has_ret};

	ky_call_args_get(call->thread, &one.args);
	return ky_happenings_add(&calls->single, ns, &one);
}

int ky_calls_add(struct ky_calls *calls, const struct ky_call *call)
{
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns);

	if (calls->wants_freqs && single_calls_count(calls, call->syscall, ns) < 0)
		return KYMO_E_MEMORY;
	if (__builtin_expect(ky_happenings_wants(&calls->single, ns), 0))
		return single_calls_keep(calls, call, ns);
	ky_happenings_skip(&calls->single);
	return 0;
}

/* ---- the tables ------------------------------------------------------------------------ */

static void single_calls_fill_call(const void *data, struct ky_table *table, struct ky_cell *row,
				   const void *record)
{
	const struct ky_model *model = data;
	const struct one_call *one = record;
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_cell_i64(&row[CALL_BEGIN], one->begin_ns);
	ky_cell_i64(&row[CALL_END], one->end_ns);
	ky_cell_u64(&row[CALL_DURATION], ky_ns_between(one->begin_ns, one->end_ns));
	ky_cell_text(table, &row[CALL_SYSCALL], ky_model_syscall_name(model, one->syscall));
	ky_cell_thread(table, &row[CALL_PROCESS], model, one->thread);
	if (one->cpu_id != UINT32_MAX)
		ky_cell_u64(&row[CALL_CPU], one->cpu_id);
	if (one->file)
		ky_cell_text(table, &row[CALL_FILE], one->file);
	ky_call_args_text(&text, &one->args);
	if (ky_strbuf_text(&text)[0])
		ky_cell_text(table, &row[CALL_ARGUMENTS], ky_strbuf_text(&text));
	table->failed |= ky_strbuf_failed(&text);
	ky_strbuf_fini(&text);
	if (!one->has_ret)
		return;
	ky_cell_i64(&row[CALL_RET], one->ret);
	if (one->ret < 0 && one->ret >= -4095)
		ky_cell_errno(table, &row[CALL_ERROR], (int)-one->ret);
}

void ky_calls_fill(struct ky_calls *calls, const struct ky_model *model, struct ky_table *top,
		   struct ky_table *log)
{
	ky_fill_records(top, &calls->single.top, single_calls_fill_call, model);
	ky_fill_records(log, &calls->single.log, single_calls_fill_call, model);
}

struct named_freq {
	const char *name;
	const struct ky_freq *freq;
};

static int compare_freqs(const void *a, const void *b)
{
	const struct named_freq *left = a, *right = b;

	if (left->freq->n != right->freq->n)
		return left->freq->n > right->freq->n ? -1 : 1;
	return strcmp(left->name, right->name);
}

int ky_calls_fill_freq(const struct ky_calls *calls, const struct ky_model *model,
		       struct ky_table *table, uint64_t limit)
{
	struct named_freq *list = calloc(calls->freqs.len + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < calls->freqs.len; i++) {
		if (calls->freqs.data[i].n)
			list[n++] = (struct named_freq){ky_model_syscall_name(model, (uint32_t)i),
							&calls->freqs.data[i]};
	}
	qsort(list, n, sizeof(*list), compare_freqs);
	for (size_t i = 0; i < n; i++) {
		struct ky_cell what = {0};

		ky_cell_text(table, &what, list[i].name);
		ky_fill_freq(table, list[i].freq, &what);
	}
	free(list);
	table->max_groups = limit;
	return 0;
}
