/* SPDX-License-Identifier: MIT */
/*
 * Plans: which comparisons of a statement a table takes over. A plan is a text, which EXPLAIN QUERY PLAN shows:
 * "time>=;time<;tid==; reads name, tid": one word for each value that SQLite gives to xFilter, and the columns that are decoded.
 */
#ifndef KY_SQL_SQL_PLAN_H
#define KY_SQL_SQL_PLAN_H

#include "sql/sql-tables.h"

/* What the table can do with a comparison of @column by @op ("==", "<", "<=", ">", ">="). */
typedef bool (*ky_sql_takes)(const struct ky_sql_table *table, const struct ky_sql_column *column,
			     const char *op);

/* For xBestIndex: fills @info. @cost: of all rows. An SQLite status. */
int ky_sql_plan(const struct ky_sql_table *table, sqlite3_index_info *info, ky_sql_takes takes,
		double cost);
/*
 * The next word of *@plan, which moves on. *@op: as above, followed by other text. NULL: the plan is over, or malformed.
 */
const struct ky_sql_column *ky_sql_plan_next(const struct ky_sql_table *table, const char **plan,
					     const char **op);

#endif
