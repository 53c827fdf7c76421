/* SPDX-License-Identifier: MIT */
/*
 * The size of SQLite's temporary files, with what a statement sorts, groups and compares beyond the cache. SQLite knows no limit for them.
 *
 * Each data base has a file system (VFS) of its own: SQLite's, whose temporary files count what they have.
 */
#ifndef KY_SQL_SQL_TEMPORARY_H
#define KY_SQL_SQL_TEMPORARY_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/sql-library.h"

struct ky_sql_temporary {
	sqlite3_vfs vfs;
	sqlite3_vfs *base; /* NULL: not registered */
	char name[40];
	uint64_t bytes, max_bytes; /* of all files: now, and at most */
	bool is_full;		   /* a file would have needed more */
};

/* Registers @own, which stays where it is: sqlite3_open_v2() takes ->name. 0 or KYMO_E_MEMORY. Threads: any. */
int ky_sql_temporary_init(struct ky_sql_temporary *own);
/* After the close of the data base. */
void ky_sql_temporary_fini(struct ky_sql_temporary *own);

#endif
