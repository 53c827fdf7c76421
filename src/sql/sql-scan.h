/* SPDX-License-Identifier: MIT */
/*
 * Rows of several tables by one pass over the events, without SQLite: for loading them elsewhere.
 *
 * The rows of a table are those of "SELECT columns FROM table", in the same order. Tables of the state model share one model. What only an earlier
 * pass can tell (causes of waits, what is a lock) costs that pass, once for all tables.
 */
#ifndef KY_SQL_SQL_SCAN_H
#define KY_SQL_SQL_SCAN_H

#include "sql/sql-rows.h"

struct ky_sql_scan_table {
	size_t number;		 /* of ky_sql_table() */
	const uint32_t *columns; /* those that are wanted, of ky_sql_column() */
	size_t n_columns;
};

struct ky_sql_scan_sink {
	void *data;
	/*
	 * A row of the @table-th table of the scan. @cells: of all columns of the table, of which only the wanted ones have values. Texts
	 * are valid during the call. 0, or what ends the scan.
	 */
	int (*row)(void *data, size_t table, const struct ky_sql_cell *cells,
		   struct kymo_error *err);
};

/* 0; the errors of reading, after the rows before a damage; what the sink returned. */
int ky_sql_scan(struct ky_sql *sql, const struct ky_sql_scan_table *tables, size_t n,
		const struct ky_sql_scan_sink *sink, struct kymo_error *err);

#endif
