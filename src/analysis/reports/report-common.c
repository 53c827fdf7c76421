/* SPDX-License-Identifier: MIT */
/* What the reports share: their runs, cells and notes. */
#include "analysis/reports/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/state/errno-name.h"
#include "analysis/tables/render-cell.h"

/* ---- runs ------------------------------------------------------------------------------ */

void *ky_report_run(struct ky_model *model, size_t size, const struct ky_listener *listener)
{
	struct ky_listener mine = *listener;
	struct ky_model **run = calloc(1, size);

	if (!run)
		return NULL;
	*run = model;
	mine.data = run;
	if (ky_model_listen(model, &mine) == 0)
		return run;
	free(run);
	return NULL;
}

uint64_t ky_report_range_ns(const struct ky_model *model)
{
	if (ky_model_begin_ns(model) == INT64_MIN)
		return 0;
	return ky_ns_between(ky_model_begin_ns(model), ky_model_end_ns(model));
}

double ky_part(uint64_t value, uint64_t whole)
{
	return whole ? (double)((long double)value / (long double)whole) : 0;
}

/* ---- two traces ------------------------------------------------------------------------ */

static bool report_common_is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	while (len > 1 && top[len - 1] == '/')
		len--;
	return strncmp(path, top, len) == 0 &&
	       (!path[len] || path[len] == '/' || top[len - 1] == '/');
}

int ky_report_side(const char *const sides[2], const struct ky_model *model,
		   const struct ky_host *host)
{
	const char *path = host->trace->path;
	bool in_first = report_common_is_below(path, sides[0]);
	bool in_second = report_common_is_below(path, sides[1]);

	if (in_first && in_second)
		return strlen(sides[1]) > strlen(sides[0]);
	if (in_first || in_second)
		return in_second;
	return ky_model_n_hosts(model) == 2 ? (int)host->index : -1;
}

/* ---- rows ------------------------------------------------------------------------------ */

int ky_fill_groups(struct ky_table *table, struct ky_aggregation *aggregation, enum ky_by by,
		   bool keep_what, ky_group_filler fill, const void *run)
{
	struct ky_aggregation groups = {0};
	int status = ky_aggregation_group(&groups, aggregation, by, keep_what);

	for (size_t i = 0; i < groups.entries.len && status >= 0; i++)
		fill(run, table, groups.entries.data[i], by);
	ky_aggregation_fini(&groups);
	return status;
}

static void report_common_fill_pair(const void *data, struct ky_table *table,
				    const struct ky_entry *entry, enum ky_by by)
{
	const struct ky_model *model = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[KY_PAIR_THREAD], model, entry->thread, by);
	ky_cell_who(table, &row[KY_PAIR_OTHER], model, ky_model_thread(model, entry->what), by);
	ky_fill_stats(&row[KY_PAIR_STATS], &entry->stats);
}

int ky_fill_pairs(struct ky_table *table, struct ky_aggregation *pairs,
		  const struct ky_model *model, enum ky_by by)
{
	int status;

	ky_aggregation_unite(pairs, model, by);
	status = ky_fill_groups(table, pairs, by, true, report_common_fill_pair, model);
	ky_table_sort(table, KY_PAIR_STATS + KY_STATS_TOTAL, false);
	return status;
}

void ky_fill_records(struct ky_table *table, struct ky_records *records, ky_record_filler fill,
		     const void *run)
{
	ky_records_sort(records);
	for (size_t i = 0; i < records->len; i++)
		fill(run, table, ky_table_row(table), ky_records_at(records, i));
	table->n_omitted += records->seen - records->len;
}

void ky_happenings_init(struct ky_happenings *single, size_t size,
			const struct ky_report_options *options, const struct ky_report *report,
			size_t top, size_t log)
{
	single->wants_top = ky_report_wants(options, report, top);
	single->wants_log = ky_report_wants(options, report, log);
	ky_records_init(&single->top, size, ky_report_keep(options, report, top), true);
	ky_records_init(&single->log, size, ky_report_keep(options, report, log), false);
}

void ky_happenings_fini(struct ky_happenings *single)
{
	ky_records_fini(&single->top);
	ky_records_fini(&single->log);
}

/* ---- cells ----------------------------------------------------------------------------- */

static bool report_common_is_kernel(const struct ky_trace *trace)
{
	const struct ky_env *domain = ky_env_find(trace->cls, "domain");

	return domain && domain->is_text && strcmp(domain->text, "kernel") == 0;
}

/* One kernel's trace, and traces of programs or of other tools of the same machine. */
static bool report_common_is_one_machine(const struct ky_model *model)
{
	const struct ky_host *first = ky_model_host(model, 0);
	size_t n_kernels = 0;

	for (size_t i = 0; i < ky_model_n_hosts(model); i++) {
		const struct ky_host *host = ky_model_host(model, i);

		n_kernels += report_common_is_kernel(host->trace);
		if (!host->name[0] || strcmp(host->name, first->name) != 0)
			return false;
	}
	return n_kernels == 1;
}

const char *ky_report_host(const struct ky_model *model, const struct ky_host *host)
{
	return ky_model_n_hosts(model) < 2 || report_common_is_one_machine(model) ? NULL
										  : host->label;
}

void ky_cell_host(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		  const struct ky_host *host)
{
	const char *label = ky_report_host(model, host);

	if (label)
		ky_cell_text(table, cell, label);
}

void ky_cell_thread(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		    const struct ky_thread *thread)
{
	ky_cell_process(table, cell, thread->tid, thread->pid < 0 ? -1 : thread->pid, thread->comm,
			ky_report_host(model, thread->host));
}

void ky_cell_file(struct ky_table *table, struct ky_cell *cell, const struct ky_file *file)
{
	if (file)
		ky_cell_text(table, cell, file->name);
}

void ky_cell_errno(struct ky_table *table, struct ky_cell *cell, int number)
{
	const char *name = ky_errno_name(number);
	char text[24];

	snprintf(text, sizeof(text), "errno %d", number);
	ky_cell_text(table, cell, name ? name : text);
}

/* ", slept 8.04 ms in clock_nanosleep" */
static void add_blocked(struct ky_strbuf *out, const struct ky_model *model,
			const struct ky_did *did)
{
	static const char *const verbs[KY_OFF_KINDS] = {
		[KY_OFF_SLEEP] = "slept ",
		[KY_OFF_DISK] = "was blocked ",
		[KY_OFF_OTHER] = "was stopped ",
	};
	const char *verb = verbs[did->most_kind];

	ky_strbuf_adds(out, verb ? verb : "was off the CPU ");
	ky_render_duration(out, (double)did->most_ns);
	if (did->most_syscall != KY_NO_SYSCALL) {
		ky_strbuf_adds(out, " in ");
		ky_strbuf_adds(out, ky_model_syscall_name(model, did->most_syscall));
	}
	if (did->blocked_ns > did->most_ns) {
		ky_strbuf_adds(out, " and ");
		ky_render_duration(out, (double)(did->blocked_ns - did->most_ns));
		ky_strbuf_adds(out, " elsewhere");
	}
}

#define DID_PARTS 3
#define DID_LEAST 20 /* of all: what is less is not worth the words */

void ky_did_text(struct ky_strbuf *out, const struct ky_model *model, const struct ky_did *did)
{
	uint64_t ns[DID_PARTS] = {did->rest_ns, did->ready_ns, did->blocked_ns};
	uint64_t whole = ns[0] + ns[1] + ns[2];
	const char *between = "";

	for (int n = 0; n < DID_PARTS; n++) {
		int most = 0;

		for (int i = 1; i < DID_PARTS; i++)
			most = ns[i] > ns[most] ? i : most;
		if (!ns[most] || (n && ns[most] < whole / DID_LEAST))
			return;
		ky_strbuf_adds(out, between);
		between = ", ";
		if (most == 2) {
			add_blocked(out, model, did);
		} else {
			ky_strbuf_adds(out, most ? "waited " : "ran ");
			ky_render_duration(out, (double)ns[most]);
			ky_strbuf_adds(out, most	      ? " for a CPU"
					    : did->is_partial ? " or unknown"
							      : "");
		}
		ns[most] = 0;
	}
}

void ky_cell_did(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		 const struct ky_did *did)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_did_text(&text, model, did);
	if (text.len)
		ky_cell_text(table, cell, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

const char *ky_file_kind_text(enum ky_file_kind kind)
{
	static const char *const texts[] = {
		[KY_FILE_UNKNOWN] = "unknown", [KY_FILE_DISK] = "disk",	  [KY_FILE_NET] = "net",
		[KY_FILE_PIPE] = "pipe",       [KY_FILE_OTHER] = "other",
	};

	return texts[kind];
}

const char *ky_io_kind_text(enum ky_io_kind kind)
{
	static const char *const texts[] = {
		[KY_IO_NONE] = "none",	 [KY_IO_OPEN] = "open", [KY_IO_READ] = "read",
		[KY_IO_WRITE] = "write", [KY_IO_SYNC] = "sync", [KY_IO_COPY] = "copy",
	};

	return texts[kind];
}