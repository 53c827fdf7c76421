/* SPDX-License-Identifier: MIT */
/*
 * Tables whose rows a pass over the events makes: those of the state model, and others that more than one event tells of.
 *
 * A table is a struct ky_sql_source: its columns, and what makes its rows. A cursor is a pass that stands still between two batches.
 * A statement that reads a table again (a join) gets its rows from memory, as far as they fit (sql-cache.h).
 */
#ifndef KY_SQL_SQL_PASS_H
#define KY_SQL_SQL_PASS_H

#include "analysis/state/model.h"
#include "sql/sql-cache.h"

struct ky_sql_pass;

struct ky_sql_source {
	const char *name, *about;
	const struct ky_sql_column *columns;
	size_t n_columns;
	/* With the model: what the table listens to. May be NULL. 0 or a status with @err. */
	int (*listen)(struct ky_sql_pass *pass, struct ky_listener *listener,
		      struct kymo_error *err);
	/* The pass is over. May be NULL. 1: there are more rows, after the next call; 0: that was all. */
	int (*finish)(struct ky_sql_pass *pass, struct kymo_error *err);
	/* Without the model: opens, and makes some rows; 1: there may be more; 0: that was all. */
	int (*open)(struct ky_sql_pass *pass, struct kymo_error *err);
	/* Makes rows of events; with the model, after it. May be NULL. 0 or a status with @err. */
	int (*take)(struct ky_sql_pass *pass, const struct ky_batch *batch, struct kymo_error *err);
	/* In place of events: some more rows; 1: there may be more; 0: that was all. */
	int (*next)(struct ky_sql_pass *pass, struct kymo_error *err);
	void (*close)(struct ky_sql_pass *pass); /* frees ->own; may be NULL */
	/* Its column "end" grows, or no row has an earlier one than the events at hand: a bound of it ends the pass. */
	bool by_end;
};

struct ky_causes;

/* What an earlier pass, over all events, found out. */
struct ky_sql_before {
	struct ky_model *model;
	struct ky_causes *causes; /* NULL: nobody asks */
};

/* Does the pass need events of @cls? */
typedef bool (*ky_sql_wants)(const struct ky_sql_pass *pass, const struct ky_event_class *cls);

struct ky_sql_pass {
	sqlite3_vtab_cursor base;
	const struct ky_sql_table *table;
	const struct ky_sql_source *source;
	struct ky_sql_rows rows;
	struct ky_model *model;
	struct ky_flow *flow;
	struct ky_focus focus;
	bool *only; /* streams that are read; NULL: all */
	KY_VEC(const char *) names;
	struct ky_arena arena;	  /* of names */
	void *own;		  /* the source's */
	int64_t begin_ns, end_ns; /* rows that end before, or after, are not wanted */
	bool is_over;
	bool is_finishing;  /* without events: the source makes its last rows */
	bool is_remembered; /* all rows stay, for being read again: their texts, too */
	/* A scan of several tables (sql-scan.h) gives it events and the model. */
	bool is_fed;
	bool wants_events;
	ky_sql_wants wanted;		    /* NULL: all */
	const struct ky_sql_before *before; /* NULL: not known */
	struct ky_sql_before own_before;
	struct kymo_error damage; /* that ends the rows */
	uint64_t n_filters;
	int64_t last_begin_ns, last_end_ns; /* the last range */
	struct ky_sql_cache cache;
	const struct ky_sql_cell *cached; /* the row; NULL: the end */
};

extern const struct sqlite3_module ky_sql_pass_module;

/* sql-pass-open.c */
/* A name as a wildcard that means nothing but itself, in @arena. NULL: memory is out. */
const char *ky_sql_quote_name(struct ky_arena *arena, const char *name);
/*
 * Opens the graph for the events that @wanted needs. NULL: all, for the model: the context of any event may prove a state, and the first
 * and the last one are the range. 1; 0: there are none.
 */
int ky_sql_pass_flow(struct ky_sql_pass *pass, ky_sql_wants wanted, struct kymo_error *err);
/* All events; of the streams of @only, unless it is NULL. */
int ky_sql_open_all(const struct ky_sql *sql, const bool *only, struct ky_flow **flow,
		    struct kymo_error *err);
/* sql-before.c */
/*
 * A pass over all events before the one that makes rows: with @causes, for what threads wait; with @locks, what is a lock. Damage ends it, without an
 * error.
 */
int ky_sql_before_run(struct ky_sql_before *before, const struct ky_sql *sql, const bool *only,
		      bool causes, bool locks, struct kymo_error *err);
void ky_sql_before_fini(struct ky_sql_before *before);
/* That of @pass alone, unless a scan has made it. */
int ky_sql_pass_before(struct ky_sql_pass *pass, bool causes, bool locks, struct kymo_error *err);
int ky_sql_pass_begin(struct ky_sql_pass *pass, struct kymo_error *err);
void ky_sql_pass_end(struct ky_sql_pass *pass);

/* What all tables with threads have. @columns: the first of tid, pid, comm. */
void ky_sql_put_thread(struct ky_sql_rows *rows, struct ky_sql_cell *cells,
		       const struct ky_thread *thread);
void ky_sql_put_host(struct ky_sql_cell *cell, const struct ky_host *host);

/* clang-format off */
#define KY_SQL_COL(name, type, about) {name, type, about, KY_SQL_MADE, 0, NULL, false}
#define KY_SQL_BEGIN_COL(about) {"time", "INTEGER", about, KY_SQL_TIME, 0, NULL, false}
#define KY_SQL_THREAD_COLS(prefix, of)                                   \
	KY_SQL_COL(prefix "tid", "INTEGER", of ": its thread id"),       \
	KY_SQL_COL(prefix "pid", "INTEGER", of ": its process id"),      \
	KY_SQL_COL(prefix "comm", "TEXT", of ": its name")
#define KY_SQL_HOST_COL {"host", "TEXT", "the machine's name", KY_SQL_HOST, 0, NULL, false}
#define KY_SQL_RANGE_COLS                                                                                     \
	{"range_begin", "INTEGER", "argument: the begin of the range, ns since 1970", KY_SQL_ARGUMENT, 0, NULL, false}, \
	{"range_end", "INTEGER", "argument: the end of the range, ns since 1970", KY_SQL_ARGUMENT, 0, NULL, false}
/* clang-format on */

#endif
