/* SPDX-License-Identifier: MIT */
/* Samples, other events with call stacks, and the frames of these stacks. */
#include <stdlib.h>
#include <string.h>

#include "analysis/addresses/trace-symbols.h"
#include "base/error.h"
#include "sql/sql-sources.h"

/* So many different stacks have frames in one statement. */
#define STACKS_MAX ((size_t)1 << 22)

struct stacks {
	struct ky_trace_symbols *symbols; /* NULL: nobody asks for names */
	struct ky_map seen;		  /* number of a stack -> itself */
};

static int sql_stacks_begin(struct ky_sql_pass *pass, bool names, struct kymo_error *err)
{
	const struct ky_sql *sql = pass->table->sql;
	const struct ky_trace_symbols_options options = {
		.want_lines = true, .is_over = sql->stop, .over_data = sql->stop_data};
	struct stacks *stacks = calloc(1, sizeof(*stacks));
	int ret;

	if (!stacks)
		return ky_error_nomem(err);
	ky_map_init(&stacks->seen);
	pass->own = stacks;
	if (!names)
		return 0;
	/* Without symbols, addresses have no names: no reason to stop. */
	ret = ky_trace_symbols_open(sql->set, &options, &stacks->symbols, err);
	if (ret == KYMO_E_MEMORY)
		return ret;
	ky_error_clear(err);
	return 0;
}

static void sql_stacks_close(struct ky_sql_pass *pass)
{
	struct stacks *stacks = pass->own;

	if (!stacks)
		return;
	ky_trace_symbols_close(stacks->symbols);
	ky_map_fini(&stacks->seen);
	free(stacks);
}

/* The number of a stack: the same addresses of the same process have the same number. */
static int64_t sql_stacks_number(const struct ky_stack_seen *seen)
{
	uint64_t hash = ky_hash_u64(seen->host->index + 1);

	for (uint32_t i = 0; i < seen->n_names; i++)
		hash = ky_hash_u64(hash ^ ky_hash_bytes(seen->names[i].text, seen->names[i].len) ^
				   seen->names[i].is_kernel);
	for (uint32_t i = 0; i < seen->n_kernel; i++)
		hash = ky_hash_u64(hash ^ seen->kernel[i]);
	if (seen->n_user && seen->thread)
		hash = ky_hash_u64(hash ^ (uint32_t)seen->thread->pid);
	for (uint32_t i = 0; i < seen->n_user; i++)
		hash = ky_hash_u64(hash + seen->user[i]);
	return (int64_t)(hash >> 1);
}

static size_t sql_stacks_frames(const struct ky_sql_pass *pass, const struct ky_stack_seen *seen,
				uint64_t address, bool is_return,
				const struct ky_symbols_frame **frames)
{
	struct ky_trace_symbols *symbols = ((struct stacks *)pass->own)->symbols;

	return symbols ? ky_trace_symbols_resolve(symbols, seen->event, address, is_return, frames)
		       : 0;
}

/* ---- sample --------------------------------------------------------------------------- */

enum {
	SAMPLE_TIME,
	SAMPLE_CPU,
	SAMPLE_TID,
	SAMPLE_SOURCE = SAMPLE_TID + 3,
	SAMPLE_WEIGHT,
	SAMPLE_EVENT,
	SAMPLE_STACK,
	SAMPLE_FUNCTION,
	SAMPLE_HOST,
};

static const struct ky_sql_column sample_columns[] = {
	KY_SQL_BEGIN_COL("ns since 1970"),
	KY_SQL_COL("cpu", "INTEGER", "the CPU"),
	KY_SQL_THREAD_COLS("", "the thread that ran"),
	KY_SQL_COL("source", "TEXT", "what was sampled, such as 'cpu-clock'; NULL: no sample"),
	KY_SQL_COL("weight", "INTEGER", "what it stands for: ns of a clock, or events; else 1"),
	KY_SQL_COL("event", "TEXT", "the name of the event"),
	KY_SQL_COL("stack", "INTEGER", "the call stack: its number in the table stack"),
	KY_SQL_COL("function", "TEXT", "the innermost function"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static void sql_stacks_put_innermost(struct ky_sql_pass *pass, const struct ky_stack_seen *seen,
				     struct ky_sql_cell *row)
{
	const struct ky_symbols_frame *frames;

	if (seen->n_names)
		ky_sql_put_text(&pass->rows, &row[SAMPLE_FUNCTION], seen->names[0].text,
				seen->names[0].len);
	else if (sql_stacks_frames(pass, seen, seen->n_kernel ? seen->kernel[0] : seen->user[0],
				   false, &frames) &&
		 frames[0].function)
		ky_sql_put_text(&pass->rows, &row[SAMPLE_FUNCTION], frames[0].function,
				strlen(frames[0].function));
}

static int sql_stacks_on_sample(void *data, const struct ky_stack_seen *seen)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row;

	bool has_stack = seen->n_kernel || seen->n_user || seen->n_names;

	if (!seen->source && !has_stack)
		return 0;
	row = ky_sql_rows_new(&pass->rows);
	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_time(&row[SAMPLE_TIME], seen->event->ns);
	if (seen->cpu_id != UINT32_MAX)
		ky_sql_put(&row[SAMPLE_CPU], seen->cpu_id);
	ky_sql_put_thread(&pass->rows, &row[SAMPLE_TID], seen->thread);
	if (seen->source)
		ky_sql_put_text(&pass->rows, &row[SAMPLE_SOURCE], seen->source,
				strlen(seen->source));
	ky_sql_put(&row[SAMPLE_WEIGHT], (int64_t)seen->weight);
	ky_sql_put_name(&row[SAMPLE_EVENT], seen->event->cls->name);
	if (ky_sql_rows_uses(&pass->rows, SAMPLE_STACK) && has_stack)
		ky_sql_put(&row[SAMPLE_STACK], sql_stacks_number(seen));
	if (ky_sql_rows_uses(&pass->rows, SAMPLE_FUNCTION) && has_stack)
		sql_stacks_put_innermost(pass, seen, row);
	ky_sql_put_host(&row[SAMPLE_HOST], seen->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_stacks_listen_samples(struct ky_sql_pass *pass, struct ky_listener *listener,
				     struct kymo_error *err)
{
	listener->stack = sql_stacks_on_sample;
	return sql_stacks_begin(pass, ky_sql_rows_uses(&pass->rows, SAMPLE_FUNCTION), err);
}

const struct ky_sql_source ky_sql_source_sample = {
	.name = "sample",
	.about = "samples, and other events with call stacks, in the order of time",
	.columns = sample_columns,
	.n_columns = sizeof(sample_columns) / sizeof(*sample_columns),
	.listen = sql_stacks_listen_samples,
	.close = sql_stacks_close,
	.by_end = true,
};

/* ---- stack ---------------------------------------------------------------------------- */

enum {
	STACK_STACK,
	STACK_DEPTH,
	STACK_KIND,
	STACK_ADDRESS,
	STACK_FUNCTION,
	STACK_OBJECT,
	STACK_FILE,
	STACK_LINE,
	STACK_INLINED,
	STACK_HOST,
};

static const struct ky_sql_column stack_columns[] = {
	KY_SQL_COL("stack", "INTEGER", "its number, as the table sample has it"),
	KY_SQL_COL("depth", "INTEGER", "the frame: 0 is the innermost"),
	KY_SQL_COL("kind", "TEXT", "'kernel' or 'user'"),
	KY_SQL_COL(
		"address", "INTEGER",
		"a number with a sign; format('%x', address) shows it in hexadecimal; NULL: the text of perf script or ftrace has none"),
	KY_SQL_COL("function", "TEXT", "the function; NULL: not known"),
	KY_SQL_COL("object", "TEXT", "the file, or '[kernel]', or the module"),
	KY_SQL_COL("file", "TEXT", "the source file"),
	KY_SQL_COL("line", "INTEGER", "the line in it"),
	KY_SQL_COL("inlined", "INTEGER", "1: inlined into the function of the next frame"),
	KY_SQL_HOST_COL,
};

static void sql_stacks_put_frame(struct ky_sql_pass *pass, struct ky_sql_cell *row,
				 const struct ky_symbols_frame *frame)
{
	const char *const texts[] = {frame->function, frame->object, frame->file};

	for (int i = 0; i < 3; i++)
		if (texts[i])
			ky_sql_put_text(&pass->rows, &row[STACK_FUNCTION + i], texts[i],
					strlen(texts[i]));
	if (frame->line)
		ky_sql_put(&row[STACK_LINE], frame->line);
	ky_sql_put(&row[STACK_INLINED], frame->is_inlined);
}

static int sql_stacks_put_address(struct ky_sql_pass *pass, const struct ky_stack_seen *seen,
				  int64_t number, bool is_kernel, uint32_t i, int64_t *depth)
{
	uint64_t address = is_kernel ? seen->kernel[i] : seen->user[i];
	const struct ky_symbols_frame *frames = NULL;
	size_t n = sql_stacks_frames(pass, seen, address, i > 0, &frames), at = 0;

	do {
		struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

		if (!row)
			return KYMO_E_MEMORY;
		ky_sql_put(&row[STACK_STACK], number);
		ky_sql_put(&row[STACK_DEPTH], (*depth)++);
		ky_sql_put_name(&row[STACK_KIND], is_kernel ? "kernel" : "user");
		ky_sql_put(&row[STACK_ADDRESS], (int64_t)address);
		if (at < n)
			sql_stacks_put_frame(pass, row, &frames[at]);
		ky_sql_put_host(&row[STACK_HOST], seen->host);
		(void)ky_sql_rows_keep(&pass->rows);
	} while (++at < n);
	return 0;
}

static int sql_stacks_put_name(struct ky_sql_pass *pass, const struct ky_stack_seen *seen,
			       int64_t number, uint32_t i)
{
	const struct ky_stack_name *name = &seen->names[i];
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[STACK_STACK], number);
	ky_sql_put(&row[STACK_DEPTH], i);
	ky_sql_put_name(&row[STACK_KIND], name->is_kernel ? "kernel" : "user");
	ky_sql_put_text(&pass->rows, &row[STACK_FUNCTION], name->text, name->len);
	ky_sql_put_host(&row[STACK_HOST], seen->host);
	(void)ky_sql_rows_keep(&pass->rows);
	return 0;
}

static int sql_stacks_on_stack(void *data, const struct ky_stack_seen *seen)
{
	struct ky_sql_pass *pass = data;
	struct stacks *stacks = pass->own;
	int64_t number = sql_stacks_number(seen), depth = 0;
	int ret = 0;

	if (ky_map_get(&stacks->seen, (uint64_t)number) || stacks->seen.len >= STACKS_MAX)
		return 0;
	if (ky_map_set(&stacks->seen, (uint64_t)number, stacks) < 0)
		return KYMO_E_MEMORY;
	for (uint32_t i = 0; i < seen->n_names && !ret; i++)
		ret = sql_stacks_put_name(pass, seen, number, i);
	for (uint32_t i = 0; i < seen->n_kernel && !ret; i++)
		ret = sql_stacks_put_address(pass, seen, number, true, i, &depth);
	for (uint32_t i = 0; i < seen->n_user && !ret; i++)
		ret = sql_stacks_put_address(pass, seen, number, false, i, &depth);
	return ret;
}

static int sql_stacks_listen_stacks(struct ky_sql_pass *pass, struct ky_listener *listener,
				    struct kymo_error *err)
{
	bool names = false;

	for (uint32_t i = STACK_FUNCTION; i <= STACK_INLINED; i++)
		names |= ky_sql_rows_uses(&pass->rows, i);
	listener->stack = sql_stacks_on_stack;
	return sql_stacks_begin(pass, names, err);
}

const struct ky_sql_source ky_sql_source_stack = {
	.name = "stack",
	.about = "the frames of call stacks, each stack once",
	.columns = stack_columns,
	.n_columns = sizeof(stack_columns) / sizeof(*stack_columns),
	.listen = sql_stacks_listen_stacks,
	.close = sql_stacks_close,
};
