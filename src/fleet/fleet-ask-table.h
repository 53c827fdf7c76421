/* SPDX-License-Identifier: MIT */
/* One table of a report across hosts: its statement, and its rows. For fleet-ask.c and fleet-ask-own.c. Threads: one at a time per object. */
#ifndef KY_FLEET_FLEET_ASK_TABLE_H
#define KY_FLEET_FLEET_ASK_TABLE_H

#include "fleet/fleet-ask.h"
#include "fleet/fleet-report-fields.h"

/* How values of a column become one. */
enum ky_fleet_merge {
	KY_FLEET_KEY, /* rows with other values stay apart */
	KY_FLEET_SUM,
	KY_FLEET_MOST,
	KY_FLEET_LEAST,
	KY_FLEET_MEAN,	    /* by the number of what it is the mean of */
	KY_FLEET_OVER_TIME, /* the mean over the times of the traces */
	KY_FLEET_ONLY,	    /* it is known of one trace only: percentiles */
	KY_FLEET_TALLY,	    /* names with counts, which are added up */
	KY_FLEET_HOST,	    /* the host, or how many there are */
};

/* fleet-merge.c: of column @i of @def. */
enum ky_fleet_merge ky_fleet_merge_of(const struct ky_table_def *def, size_t i);
/* The column that counts what means are of; -1: the table has none. */
int ky_fleet_count_column(const struct ky_table_def *def);

/* A value of the statement's rows. */
struct ky_fleet_select {
	size_t column; /* of ->shown */
	enum ky_fleet_part part;
	enum ky_fleet_merge merge;
	const char *name;   /* in the store */
	const char *weight; /* of KY_FLEET_MEAN: the column with the numbers */
};

struct ky_fleet_ask_table {
	const struct ky_fleet_ask *ask;
	const char *name;	    /* in the store */
	struct ky_table_def *shown; /* the report's, with a column of hosts */
	KY_VEC(struct ky_fleet_select) selects;
	bool adds_up; /* else rows are single occurrences */
	bool merges_hosts;
	uint64_t n_merged; /* rows of several traces that lack figures for this reason */
};

/* fleet-ask.c, for a struct ky_sql_sink: names of columns that nobody needs. */
int ky_fleet_ask_skip_names(void *data, const char *const *names, size_t n, struct kymo_error *err);
/* A row of first time, last time, number of hosts and of traces widens the range of a struct ky_report_results, @data. */
int ky_fleet_ask_on_range(void *data, const struct ky_sql_value *row, size_t n,
			  struct kymo_error *err);

/* What the store has of a table. */
struct ky_fleet_has {
	const void *data;
	bool (*column)(const void *data, const char *table, const char *column);
};

/* Free it in any case. @arena has what it shows. 0 or KYMO_E_MEMORY. */
int ky_fleet_ask_table_init(struct ky_fleet_ask_table *table, struct ky_arena *arena,
			    const struct ky_fleet_ask *ask, const char *name,
			    const struct ky_table_def *def, const struct ky_fleet_has *has);
void ky_fleet_ask_table_fini(struct ky_fleet_ask_table *table);
/* Asks for the rows, as many as are wanted, into @to, which is empty. As ky_fleet_ask_reports(). */
int ky_fleet_ask_table_run(struct ky_fleet_ask_table *table, struct ky_fleet *store,
			   int64_t from_ns, struct ky_table *to, struct kymo_error *err);

/* fleet-ask-rows.c: a row of the answer; @data: a struct ky_fleet_ask_run. */
struct ky_fleet_ask_run {
	struct ky_fleet_ask_table *table;
	struct ky_table *to;
	uint64_t bytes;
};

int ky_fleet_ask_on_row(void *data, const struct ky_sql_value *values, size_t n,
			struct kymo_error *err);

/* fleet-ask-where.c: appends " WHERE ...": which hosts, and traces that end at @from_ns or later. */
void ky_fleet_ask_put_where(struct ky_strbuf *text, const struct ky_fleet_ask *ask,
			    bool is_clickhouse, int64_t from_ns);

#endif
