/* SPDX-License-Identifier: MIT */
/*
 * The tables: what the metadata of the traces has, and those that a pass over the events makes.
 *
 *	event		all events, with their fields as JSON
 *	NAME		events of this name, with a column for each field
 *	syscall, ...	sql-sources.h
 */
#ifndef KY_SQL_SQL_TABLES_H
#define KY_SQL_SQL_TABLES_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "ctf/decode/decode.h"
#include "flow/graph/flow.h"
#include "sql/sql-temporary.h"
#include "sql/sql.h"

enum ky_sql_kind {
	KY_SQL_TIME,
	KY_SQL_CPU,
	KY_SQL_HOST,
	KY_SQL_STREAM,
	KY_SQL_NAME,
	KY_SQL_TID, /* of event */
	KY_SQL_FIELDS,
	KY_SQL_FIELD,
	KY_SQL_MADE,	 /* of tables that a pass makes: by its number */
	KY_SQL_ARGUMENT, /* hidden: an argument of the table */
};

struct ky_sql_column {
	const char *name; /* in SQL */
	const char *type, *about;
	enum ky_sql_kind kind;
	enum ky_scope scope; /* FIELD */
	const char *field;
	bool is_filtered; /* its comparisons can become a part of the filter */
};

/* An event class with the fields of its table's columns. */
struct ky_sql_class {
	const struct ky_event_class *cls;
	const char *host;
	struct ky_handle *handles; /* by column */
};

enum ky_sql_shape {
	KY_SQL_EVENTS,
	KY_SQL_ALL_EVENTS,
	KY_SQL_PASS,
};

struct ky_sql_source;

/* SQLite's tables have 2000 columns at most. Fields beyond it are in the column "fields" of table event. */
#define KY_SQL_COLUMNS_MAX 1900

struct ky_sql_table {
	struct ky_sql *sql;
	const char *name, *about;
	const char *event; /* EVENTS: the events' name */
	enum ky_sql_shape shape;
	const struct ky_sql_source *source; /* PASS */
	KY_VEC(struct ky_sql_column) columns;
	KY_VEC(struct ky_sql_class) classes;
	struct ky_map by_class; /* struct ky_event_class * -> number in classes plus 1 */
	struct ky_names taken;	/* names of columns, in small letters */
	bool is_known;		/* to SQLite: a statement has named it */
	bool is_cut;		/* events have more fields than a table has columns */
};

struct ky_sql {
	const struct ky_trace_set *set;
	sqlite3 *db;
	struct ky_sql_temporary temporary;
	struct ky_arena arena;
	KY_VEC(struct ky_sql_table *) tables;
	struct ky_names by_name;  /* of an event -> struct ky_sql_table * */
	struct ky_names taken;	  /* names of tables, in small letters */
	struct ky_names by_key;	  /* of these, struct ky_sql_table * */
	struct ky_map tids;	  /* struct ky_event_class * -> struct ky_handle *, of the thread */
	struct ky_map hosts;	  /* struct ky_trace_class * -> name of the host */
	struct kymo_error why;	  /* what a table failed with */
	bool (*stop)(void *data); /* NULL: nobody stops statements */
	void *stop_data;
};

/* sql-tables.c: finds all tables. 0 or KYMO_E_MEMORY. */
int ky_sql_find_tables(struct ky_sql *sql);
/* One more, after opening; @source outlives @sql. 0 or KYMO_E_MEMORY. */
int ky_sql_add_table(struct ky_sql *sql, const struct ky_sql_source *source);
/*
 * Tells SQLite of the tables that @text may name. SQLite is slow with many: it compares the name of each new one with a 64th of the others.
 * 0 or KYMO_E_MEMORY.
 */
int ky_sql_know_tables(struct ky_sql *sql, const char *text);
/* sql-events.c: the module of the first two shapes; that of the others is in sql-pass.h. */
extern const struct sqlite3_module ky_sql_event_module;

/* sql-events.c, for both: the table for SQLite, declared with its columns. */
struct ky_sql_vtab {
	sqlite3_vtab base;
	const struct ky_sql_table *table;
};
int ky_sql_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
		   char **why);
int ky_sql_disconnect(sqlite3_vtab *vtab);
/* Keeps the first failure, for the caller of the statement. Returns SQLITE_ERROR. */
int ky_sql_fail(const struct ky_sql_table *table, const struct kymo_error *err);
/* Does someone stop the statement? Then @err says so. */
bool ky_sql_is_stopped(const struct ky_sql *sql, struct kymo_error *err);
/* The host of @event. */
const char *ky_sql_host(const struct ky_sql *sql, const struct ky_event *event);
/* Takes the streams of other machines out of *@only, which is made if it is NULL: by ky_stream.index. 0 or KYMO_E_MEMORY. */
int ky_sql_choose_host(const struct ky_sql *sql, const char *host, bool **only);
/* Appends context and fields of @event as one JSON object. */
void ky_sql_fields_json(struct ky_strbuf *out, const struct ky_event *event);
/*
 * sql-fields.c: the value of a column of @table for @event, of @cls (of the table of all events: NULL). Texts belong to the event, or are in
 * @texts.
 */
struct ky_sql_rows;
struct ky_sql_cell;
void ky_sql_event_cell(const struct ky_sql_table *table, const struct ky_sql_class *cls,
		       const struct ky_event *event, uint32_t column, struct ky_sql_rows *texts,
		       struct ky_sql_cell *cell);

#endif
