/* SPDX-License-Identifier: MIT */
/*
 * All rows of a table in memory, sorted by one of its columns and by time, for statements that read the table again and again.
 */
#ifndef KY_SQL_SQL_CACHE_H
#define KY_SQL_SQL_CACHE_H

#include "sql/sql-rows.h"

struct ky_sql_cache {
	bool is_built, is_refused; /* refused: there are too many rows */
	struct ky_sql_rows rows;
	KY_VEC(uint32_t) order;
	uint32_t key, time; /* columns; UINT32_MAX: none */
	size_t at, end;	    /* of ->order: rows that the cursor still has */
	bool is_in_order;   /* by time: they have one key */
};

void ky_sql_cache_fini(struct ky_sql_cache *cache);
/* Takes over the rows that wait in @rows, which are all of the table. 0 or KYMO_E_MEMORY. */
int ky_sql_cache_build(struct ky_sql_cache *cache, struct ky_sql_rows *rows, uint32_t key,
		       uint32_t time);
/* The rows of @conditions, to be read by ky_sql_cache_next(). */
void ky_sql_cache_find(struct ky_sql_cache *cache, const struct ky_sql_rows *conditions);
/* The next row; NULL: the rows are over. */
const struct ky_sql_cell *ky_sql_cache_next(struct ky_sql_cache *cache,
					    const struct ky_sql_rows *conditions);

#endif
