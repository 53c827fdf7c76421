/* SPDX-License-Identifier: MIT */
/*
 * A store of one machine: DIR/fleet.db, a file of SQLite, which makes batches whole or not at all. Its tables are for Kymo:
 *
 *	kymo_batch	the batches: trace, table, number, rows, times, host
 *	kymo_column	the columns of the tables, by number
 *	kymo_cells	a column of a batch (fleet-block.h), by CELLS_OF_BATCH * batch + number of the column
 *
 * Statements see tables that read them (fleet-local-read.c).
 */
#ifndef KY_FLEET_FLEET_LOCAL_H
#define KY_FLEET_FLEET_LOCAL_H

#include <pthread.h>

#include "fleet/fleet.h"
#include "sql/sql-library.h"

#define KY_FLEET_COLUMNS_MAX 4096 /* keys of cells */
/* SQLite reads no more of a table. */
#define KY_FLEET_COLUMNS_USED 1990

/* kymo_column.type. The first batch that has a column decides. */
enum ky_fleet_type {
	KY_FLEET_TYPE_INTEGER,
	KY_FLEET_TYPE_TEXT,
	KY_FLEET_TYPE_REAL,
};

struct ky_fleet_local {
	struct ky_fleet base;
	sqlite3 *db;	    /* for loading */
	struct ky_sql *sql; /* for asking */
	pthread_mutex_t lock;
	char *path;
};

/* fleet-local-read.c: opens ->sql, with a table for each one of the store. */
int ky_fleet_local_open_sql(struct ky_fleet_local *local, struct kymo_error *err);

#endif
