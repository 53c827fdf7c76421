/* SPDX-License-Identifier: MIT */
/*
 * Reports across hosts: the rows that `kymo fleet load --report` put into a store, added up by its engine.
 *
 *	ky_fleet_ask_reports(store, &ask, &answer, err);
 *	ky_render_text(&out, &answer.results, ...);
 *	ky_fleet_answer_fini(&answer);
 *
 * The tables are those of the reports, with a column for the host. Threads: one at a time per object.
 */
#ifndef KY_FLEET_FLEET_ASK_H
#define KY_FLEET_FLEET_ASK_H

#include "analysis/reports/report.h"
#include "fleet/fleet.h"
#include "sql/sql-report.h"

struct ky_fleet_ask {
	const struct ky_report *const *reports;
	size_t n_reports;
	const struct ky_report_options *options; /* limit, tables, order */
	const char *place;			 /* of the store, for people */
	const char *const *hosts;		 /* wildcards, as of ky_glob_choose() */
	size_t n_hosts;
	uint64_t since_ns; /* of traces that end in this time before the newest one; 0: all */
	bool merges_hosts; /* one row for all hosts, except in tables of single occurrences */
};

struct ky_fleet_answer {
	struct ky_report_results results;
	struct ky_trace_set none;
	struct ky_arena arena;	   /* of definitions */
	struct ky_sql_report *own; /* of ky_fleet_ask_own() */
};

/*
 * KYMO_E_NOT_FOUND: the store has no rows of these reports; KYMO_E_LIMIT: too many rows; KYMO_E_INVALID: no such table or column; the errors of the
 * store. Free @answer in any case.
 */
int ky_fleet_ask_reports(struct ky_fleet *store, const struct ky_fleet_ask *ask,
			 struct ky_fleet_answer *answer, struct kymo_error *err);

/* A user's own report: src/sql/sql-report.h. */
struct ky_fleet_own {
	const char *path, *text; /* of the file */
	const struct ky_sql_parameter *parameters;
	size_t n_parameters;
	const struct ky_report_options *options; /* limit, tables, order */
	const char *place;
	uint64_t since_ns;
};

/*
 * The statements run in the store. :begin and :end are the times of the first and of the last row in the tables that they name.
 * KYMO_E_INVALID: the file, a name of a table or of a column makes no sense; the errors of the store. Free @answer in any case.
 */
int ky_fleet_ask_own(struct ky_fleet *store, const struct ky_fleet_own *own,
		     struct ky_fleet_answer *answer, struct kymo_error *err);
void ky_fleet_answer_fini(struct ky_fleet_answer *answer);

#endif
