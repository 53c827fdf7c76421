/* SPDX-License-Identifier: MIT */
/*
 * Reports: one const struct each, with its documentation beside its code. A report listens to
 * the state model during the pass and then fills typed tables. Any number of reports run in
 * one pass; render.h shows their results.
 *
 * A new report: report-NAME.c, its line in report-list.h, and its page in docs/reports.
 */
#ifndef KY_ANALYSIS_REPORTS_REPORT_H
#define KY_ANALYSIS_REPORTS_REPORT_H

#include "analysis/reports/aggregation.h"
#include "analysis/stacks/call-chart.h"
#include "analysis/stacks/stack-tree.h"
#include "analysis/state/model.h"
#include "analysis/tables/table.h"
#include "base/strbuf.h"

#define KY_LIMIT_DEFAULT UINT64_MAX

struct ky_thread_pool;

struct ky_history;
struct ky_causes;

struct ky_report_options {
	/*
	 * Rows (or groups) of tables that are not fixed; 0: all. KY_LIMIT_DEFAULT: all for machines, ten
	 * for people; of the longest ten for both.
	 */
	uint64_t limit;
	bool for_people;
	const char *const *tables; /* names: "threads", "cpu.threads"; NULL: all but logs */
	size_t n_tables;
	const char *sort; /* a column's name; NULL: as the report likes it */
	bool ascending;
	enum ky_by by;
	uint64_t interval_ns;		  /* a set of tables for each; 0: one for the whole range */
	struct ky_focus focus;		  /* what the reports cover */
	const struct ky_periods *periods; /* of report periods, borrowed; NULL: none */
	const char *of;	 /* what reports on causes explain: ky_of_parse(); NULL: threads */
	int64_t at_ns;	 /* only the members that contain this time; INT64_MIN: all */
	uint64_t member; /* only the member with this number; 0: all */
	/* Directories with debug files, for names of functions; borrowed. */
	const char *const *symbol_dirs;
	size_t n_symbol_dirs;
	bool inlines; /* inlined functions are functions of their own */
	bool chart;   /* report calls: its single calls, for an export */
	bool (*is_over)(
		void *data); /* of the pass for names, as struct ky_trace_symbols_options has it */
	void *over_data;
	/* The two traces of report compare, as the user names them, borrowed; NULL: none. */
	const char *sides[2];
	int64_t side_begin_ns[2], side_end_ns[2]; /* what of each; INT64_MIN and INT64_MAX: all */
	uint64_t cell_column,
		cell_row; /* only those in this cell of report heatmap; column 0: all */
	/*
	 * Of the same traces, for a flow of all their events, borrowed: reports of a range begin with a state that it has, where that
	 * is enough. NULL: with the first event.
	 */
	struct ky_history *history;
	/* What reports on causes use instead of one of their own, borrowed; of ky_reports_run_each(). */
	struct ky_causes *causes;
	struct ky_thread_pool
		*pool; /* finishes several reports at once, borrowed; NULL: one after the other */
};

/* Everything, for people. */
void ky_report_options_init(struct ky_report_options *options);
void ky_report_options_fini(struct ky_report_options *options);

struct ky_report_result;

/* What some reports have no use for. */
enum ky_ignored {
	KY_IGNORES_BY = 1,	 /* --group-by: no rows of threads */
	KY_IGNORES_DURATION = 2, /* --min, --max: nothing that has a duration of its own */
};

struct ky_report {
	const char *name;    /* "cpu" */
	const char *summary; /* half a line, lower case, no full stop */
	/* Paragraphs separated by blank lines. */
	const char *description; /* what it tells, and how it comes to it */
	const char *events;	 /* from which events, and what is missing without some of them */
	const char *reading;	 /* how to read it */
	const char *example;	 /* a command and its output, as on a terminal of 80 columns */
	/* What to look at next: lines of "sched -t pairs|who took the CPUs"; NULL: nothing. */
	const char *next;
	const struct ky_table_def *const *tables; /* ends with NULL; in the order of the output */
	unsigned int needs;	/* enum ky_ability: without all of them there is nothing to tell */
	const char *needs_text; /* the same for people: "sched_switch events" */
	const char *needs_hint; /* how to record them */
	bool wants_periods;	/* it tells of options->periods, and of nothing else */
	unsigned int ignores;	/* enum ky_ignored: options that it can not heed */
	/*
	 * It needs all threads from the first event on, and chooses what it shows itself: so it does not run with a
	 * selection and other reports, in intervals, or as events come.
	 */
	bool whole;
	bool own_of;	     /* --of is its own */
	bool has_cpu_groups; /* --group-by cpu */
	bool wants_two;	     /* it compares options->sides */
	bool wants_of;	     /* without --of it has nothing to tell */
	bool wants_choice;   /* it tells of some threads, or of what --of selects */

	/*
	 * State of one run: subscribes to @model. NULL: out of memory. @options outlive it. The run of
	 * an interval is one of its own.
	 */
	void *(*begin)(struct ky_model *model, const struct ky_report_options *options);
	/*
	 * The range, or an interval of it, is over: fill result->tables, which are empty, in the order
	 * that suits best, and add notes. What was asked for of order and number of rows is done after.
	 * Others may finish at the same time, in other threads: the model is not to be changed.
	 */
	int (*finish)(void *run, const struct ky_report_options *options,
		      struct ky_report_result *result);
	void (*free)(void *run);
};

/* clang-format off */
/* Of reports on system calls. */
#define KY_NEEDS_SYSCALLS                                                                          \
	.needs = KY_CAN_SYSCALLS,                                                                  \
	.needs_text = "system call events",                                                        \
	.needs_hint = "record them with: kymo record -k syscalls"
/* clang-format on */

/* Ends with NULL. */
extern const struct ky_report *const ky_reports[];
/* NULL when none exists of that name. */
const struct ky_report *ky_report_find(const char *name);

/* What one report found. */
struct ky_report_result {
	const struct ky_report *report;
	const struct ky_model *model;
	struct ky_table *tables; /* as many as report->tables */
	size_t n_tables;
	struct ky_stack_tree *stacks; /* of reports flame and calls; else NULL */
	struct ky_call_chart
		*chart;	      /* of report calls, with names in @stacks, by threads; else NULL */
	KY_VEC(char *) notes; /* what the reader must know: losses, what is missing */
	bool is_interval;
	int64_t begin_ns, end_ns; /* what of the trace it is about; INT64_MIN: there was no event */
};

/* Add a note. 0 or KYMO_E_MEMORY. */
int ky_report_note(struct ky_report_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct ky_report_results;
/* Whether @note of interval @at is new: a note that equals the last interval's appears once. */
bool ky_report_note_is_new(const struct ky_report_results *results, size_t at, const char *note);

struct ky_report_results {
	struct ky_model *model;
	const struct ky_trace_set *set;
	int64_t begin_ns, end_ns; /* INT64_MIN: there was no event */
	uint64_t n_events;
	/* Where the rows come from, if not from traces that are here: a store of many hosts; borrowed. NULL: from @set. */
	const char *store;
	uint64_t n_hosts, n_traces;	      /* of the store: those that have rows */
	bool tables_chosen;		      /* by their names */
	bool resumed;			      /* they began with a state of options->history */
	KY_VEC(struct ky_report_result) list; /* of intervals: one after the other */
};

/*
 * Run @reports over the events of @flow, which come from @set, in one pass. Intervals need a
 * second pass when the first pass found the state of a CPU too late.
 *
 * Returns 0; KYMO_E_INVALID for options that no report supports; KYMO_E_UNSUPPORTED when the traces
 * lack the events of all reports (one report of several that lacks its events has a note about it);
 * KYMO_E_MEMORY; or the error of the reader: then the results contain everything before the
 * error. Free them in every case.
 */
int ky_reports_run(const struct ky_report *const *reports, size_t n_reports,
		   const struct ky_trace_set *set, struct ky_flow *flow,
		   const struct ky_report_options *options, struct ky_report_results *results,
		   struct kymo_error *err);
/*
 * The same with options for each of @n_reports, which may have the same report several times: results are in this order. All have
 * the range of the first options, no intervals and no periods. Reports on causes keep what happened once.
 */
int ky_reports_run_each(const struct ky_report *const *reports,
			const struct ky_report_options *options, size_t n_reports,
			const struct ky_trace_set *set, struct ky_flow *flow,
			struct ky_report_results *results, struct kymo_error *err);
void ky_report_results_fini(struct ky_report_results *results);
/* ---- reports of traces that are still being written ------------------------------------ */

struct ky_live_reports;

/*
 * Begin @reports over events of @set that the caller feeds. options->interval_ns is not 0, and options->periods is NULL. @done
 * gets the results of each interval when it is over, and returns 0 or a negative status, which ends the reports. What
 * is found later about an interval does not change its results. Errors as of ky_reports_run().
 */
int ky_live_reports_open(const struct ky_report *const *reports, size_t n_reports,
			 const struct ky_trace_set *set, const struct ky_report_options *options,
			 int (*done)(void *data, const struct ky_report_results *results,
				     struct kymo_error *err),
			 void *data, struct ky_live_reports **live, struct kymo_error *err);
/* The traces were opened again, as @set; the earlier set must still be open. 0 or KYMO_E_MEMORY. */
int ky_live_reports_rebind(struct ky_live_reports *live, const struct ky_trace_set *set,
			   struct kymo_error *err);
/* The next events. 0, what @done returned, or KYMO_E_MEMORY. */
int ky_live_reports_feed(struct ky_live_reports *live, const struct ky_batch *batch,
			 struct kymo_error *err);
/* All events before @ns were fed. As above. */
int ky_live_reports_reach(struct ky_live_reports *live, int64_t ns, struct kymo_error *err);
/* No more events: @done gets the interval that has begun. As above. */
int ky_live_reports_end(struct ky_live_reports *live, struct kymo_error *err);
void ky_live_reports_free(struct ky_live_reports *live); /* NULL is allowed */

/* Have the traces of @set what @report needs? 0, KYMO_E_UNSUPPORTED or KYMO_E_MEMORY. */
int ky_report_check(const struct ky_report *report, const struct ky_trace_set *set,
		    struct kymo_error *err);

/* ---- what reports share -------------------------------------------------------------- */

/*
 * A run of @size bytes, all zero but for its first member, which must be a struct ky_model * and is
 * @model. The model passes what @listener asks for to it, with the run as data. The caller
 * frees it; NULL: out of memory.
 */
void *ky_report_run(struct ky_model *model, size_t size, const struct ky_listener *listener);

/* Write the rows of one group of an aggregation, or the one row of a single occurrence. */
typedef void (*ky_group_filler)(const void *run, struct ky_table *table,
				const struct ky_entry *entry, enum ky_by by);
typedef void (*ky_record_filler)(const void *run, struct ky_table *table, struct ky_cell *row,
				 const void *record);

/* @fill for each group of @aggregation, as ky_aggregation_group() makes them. 0 or KYMO_E_MEMORY. */
int ky_fill_groups(struct ky_table *table, struct ky_aggregation *aggregation, enum ky_by by,
		   bool keep_what, ky_group_filler fill, const void *run);
/*
 * The rows of pairs of threads: the entry's thread, the thread with the number `what`, and the statistics, the longest time
 * first. 0 or KYMO_E_MEMORY.
 */
enum { KY_PAIR_THREAD, KY_PAIR_OTHER, KY_PAIR_STATS };
int ky_fill_pairs(struct ky_table *table, struct ky_aggregation *pairs,
		  const struct ky_model *model, enum ky_by by);
/* @fill for each of @records, in their order; nothing may be added to them after it. */
void ky_fill_records(struct ky_table *table, struct ky_records *records, ky_record_filler fill,
		     const void *run);

/* Single occurrences, for the tables called top and log: copies of the report's own structs. */
struct ky_happenings {
	struct ky_records top, log;
	bool wants_top, wants_log; /* else none are kept for it */
};

/* @top and @log are numbers of tables of @report. */
void ky_happenings_init(struct ky_happenings *single, size_t size,
			const struct ky_report_options *options, const struct ky_report *report,
			size_t top, size_t log);
void ky_happenings_fini(struct ky_happenings *single);
/* May something that lasted @ns be kept? */
static inline bool ky_happenings_wants(const struct ky_happenings *single, uint64_t ns)
{
	return (single->wants_log && !single->log.full) ||
	       (single->wants_top && (!single->top.full || ns > single->top.least));
}
/* Count something that ky_happenings_wants() refused. */
static inline void ky_happenings_skip(struct ky_happenings *single)
{
	single->log.seen += single->wants_log;
	single->top.seen += single->wants_top;
}
/* Something lasted @ns. 0 or KYMO_E_MEMORY. */
static inline int ky_happenings_add(struct ky_happenings *single, uint64_t ns, const void *record)
{
	if (single->wants_log && ky_records_add(&single->log, 0, record) < 0)
		return KYMO_E_MEMORY;
	return single->wants_top ? ky_records_add(&single->top, ns, record) : 0;
}

/* Is the table to be shown? Logs need not be kept when not. */
bool ky_report_wants(const struct ky_report_options *options, const struct ky_report *report,
		     size_t table);
/* How many rows of a table of this kind are wanted at most; 0: all. */
uint64_t ky_report_limit(const struct ky_report_options *options, enum ky_table_kind kind);
/* The same of a table. */
uint64_t ky_report_table_limit(const struct ky_report_options *options,
			       const struct ky_table_def *def);
/*
 * How many occurrences have to be kept for a table of them; 0: all, as those that are wanted are known
 * when all are sorted.
 */
uint64_t ky_report_keep(const struct ky_report_options *options, const struct ky_report *report,
			size_t table);
/* @options->by, or what the report likes. */
enum ky_by ky_report_by(const struct ky_report_options *options, enum ky_by liked);
/* The duration of the range, or of the interval; 0 without events. */
uint64_t ky_report_range_ns(const struct ky_model *model);
/* Which of two traces a host is of, 0 or 1, by the path of its trace; of two hosts elsewhere, the first is of the first. -1: of none. */
int ky_report_side(const char *const sides[2], const struct ky_model *model,
		   const struct ky_host *host);
/* @value as a part of @whole; 0 of nothing. */
double ky_part(uint64_t value, uint64_t whole);
/* How long it is from @begin to @end; 0 when that goes backwards. */
static inline uint64_t ky_ns_between(int64_t begin, int64_t end)
{
	return end > begin ? (uint64_t)end - (uint64_t)begin : 0;
}

/* What tells @host from the others where there are several, else NULL: for ky_cell_process(). */
const char *ky_report_host(const struct ky_model *model, const struct ky_host *host);
/* That in a cell of its own: empty where there is only one host. */
void ky_cell_host(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		  const struct ky_host *host);
/* A thread's cell. */
void ky_cell_thread(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		    const struct ky_thread *thread);
/* "slept 8.04 ms in clock_nanosleep, ran 120 us": the largest parts. */
void ky_did_text(struct ky_strbuf *out, const struct ky_model *model, const struct ky_did *did);
void ky_cell_did(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		 const struct ky_did *did);
/* A file's cell; empty for NULL. */
void ky_cell_file(struct ky_table *table, struct ky_cell *cell, const struct ky_file *file);
/* "disk", "net", "pipe", "other", "unknown"; static. */
const char *ky_file_kind_text(enum ky_file_kind kind);
/* "open", "read", "write", "sync", "copy"; static. */
const char *ky_io_kind_text(enum ky_io_kind kind);
/* "ENOENT", "errno 4711". */
void ky_cell_errno(struct ky_table *table, struct ky_cell *cell, int number);
/* An interrupt's cell. */
void ky_cell_line(struct ky_table *table, struct ky_cell *cell, const struct ky_irq_line *line);
/* "hard", "soft", "vector"; static. */
const char *ky_irq_kind_text(enum ky_irq_kind kind);
/* A note on lost events, where there were any. */
int ky_report_note_losses(struct ky_report_result *result);
/* A note on switches that were not recorded, where an event shows that there must have been some. */
int ky_report_note_switches(struct ky_report_result *result);
/* A note on waits for a CPU that could not be measured for that reason, with their upper bounds. */
int ky_report_note_waits(struct ky_report_result *result);
/* A note on the CPU time that threads can have had before the first sign of them, for that reason. */
int ky_report_note_cpu_time(struct ky_report_result *result);
/* The same as for losses, for reports on files, and on what is not known of their names. */
int ky_report_note_files(struct ky_report_result *result);

/* ---- documentation ------------------------------------------------------------------- */

/* What `kymo report NAME --help` prints, wrapped at @columns. */
void ky_report_help(struct ky_strbuf *out, const struct ky_report *report, int columns);
/* The same as Markdown: docs/reports/NAME.md. */
void ky_report_markdown(struct ky_strbuf *out, const struct ky_report *report);

#endif
