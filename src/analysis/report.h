/* SPDX-License-Identifier: MIT */
/*
 * Reports: one const struct each, with its documentation beside its code. A report listens to
 * the state model during the pass and then fills typed tables. Any number of reports run in
 * one pass; render.h shows their results.
 *
 * A new report: report-NAME.c, a row in ky_reports[], and its page in docs/reports.
 */
#ifndef KY_ANALYSIS_REPORT_H
#define KY_ANALYSIS_REPORT_H

#include "analysis/model.h"
#include "analysis/table.h"
#include "base/strbuf.h"

struct ky_report_options {
	uint64_t limit; /* rows (or groups) of the tables that rank; 0: all */
};

struct ky_report_result;

struct ky_report {
	const char *name;    /* "cpu" */
	const char *summary; /* half a line, lower case, no full stop */
	/* Paragraphs separated by blank lines. */
	const char *description; /* what it tells, and how it comes to it */
	const char *events;	 /* from which events, and what is missing without some of them */
	const char *reading;	 /* how to read it */
	const char *example;	 /* a command and its output, as on a terminal of 80 columns */
	const struct ky_table_def *const *tables; /* ends with NULL; in the order of the output */
	unsigned int needs;	/* enum ky_ability: without all of them there is nothing to tell */
	const char *needs_text; /* the same for people: "sched_switch events" */
	const char *needs_hint; /* how to record them */

	/* State of one run: subscribes to @model. NULL: out of memory. */
	void *(*begin)(struct ky_model *model);
	/* The model has ended: fill result->tables, which are empty, and add notes. */
	int (*finish)(void *run, const struct ky_report_options *options,
		      struct ky_report_result *result);
	void (*free)(void *run);
};

/* Ends with NULL. */
extern const struct ky_report *const ky_reports[];
/* NULL when there is none of that name. */
const struct ky_report *ky_report_find(const char *name);

/* What one report found. */
struct ky_report_result {
	const struct ky_report *report;
	const struct ky_model *model;
	struct ky_table *tables; /* as many as report->tables */
	size_t n_tables;
	KY_VEC(char *) notes; /* what the reader must know: losses, what is missing */
};

/* Add a note. 0 or KYMO_E_MEMORY. */
int ky_report_note(struct ky_report_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct ky_report_results {
	struct ky_model *model;
	const struct ky_trace_set *set;
	int64_t begin_ns, end_ns; /* INT64_MIN: there was no event */
	uint64_t n_events;
	KY_VEC(struct ky_report_result) list;
};

/*
 * Run @reports over the events of @flow, which come from @set, in one pass.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when the traces hold what none of the reports needs (a report
 * among several that only lacks its events says so in a note); KYMO_E_MEMORY; or what reading
 * failed with: then the results hold what could be read. Free them in every case.
 */
int ky_reports_run(const struct ky_report *const *reports, size_t n_reports,
		   const struct ky_trace_set *set, struct ky_flow *flow,
		   const struct ky_report_options *options, struct ky_report_results *results,
		   struct kymo_error *err);
void ky_report_results_fini(struct ky_report_results *results);

/* ---- what reports share -------------------------------------------------------------- */

/* What tells @host from the others where there are several, else NULL: for ky_cell_process(). */
const char *ky_report_host(const struct ky_model *model, const struct ky_host *host);
/* A thread's cell. */
void ky_cell_thread(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		    const struct ky_thread *thread);
/* A note on lost events, where there were any. */
int ky_report_note_losses(struct ky_report_result *result);

/* ---- documentation ------------------------------------------------------------------- */

/* What `kymo report NAME --help` prints, wrapped at @columns. */
void ky_report_help(struct ky_strbuf *out, const struct ky_report *report, int columns);
/* The same as Markdown: docs/reports/NAME.md. */
void ky_report_markdown(struct ky_strbuf *out, const struct ky_report *report);

#endif
