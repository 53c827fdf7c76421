/* SPDX-License-Identifier: MIT */
/*
 * Traces of many machines in one store: the tables of src/sql, filled batch by batch. A store is a SQLite file in a directory, or a ClickHouse server.
 *
 *	ky_fleet_open("DIR" or "http://HOST:8123", true, &store, err);
 *	ky_fleet_load(store, &set, &options, &result, err);
 *	ky_fleet_query(store, "SELECT ...", &sink, err);
 *	ky_fleet_close(store);
 *
 * Exactly once: a batch is known by trace, table and number, and goes in as a whole or not at all. Names of tables and columns are quoted
 * identifiers, values are bound or binary: traced text never becomes a part of a statement. Threads: one at a time per object.
 */
#ifndef KY_FLEET_FLEET_H
#define KY_FLEET_FLEET_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "fleet/fleet-batch.h"
#include "sql/sql.h"

/* Rows of a batch, at most; fewer, if their texts are long, or at the end of a day. */
#define KY_FLEET_BATCH_ROWS  262144
#define KY_FLEET_BATCH_BYTES ((size_t)64 << 20)

struct ky_fleet;

struct ky_fleet_ops {
	/* Makes the table, or adds columns that it lacks. Any thread. */
	int (*table)(struct ky_fleet *store, const struct ky_fleet_table *table,
		     struct kymo_error *err);
	/* Before the first batch of @trace, and after the last one. */
	int (*begin)(struct ky_fleet *store, const char *trace, struct kymo_error *err);
	int (*end)(struct ky_fleet *store, struct kymo_error *err);
	/*
	 * As a whole, unless the store has it: *is_known. In place of rows of the same batch of a trace that has grown. Any thread; the
	 * batches of one table one after the other.
	 */
	int (*put)(struct ky_fleet *store, const struct ky_fleet_batch *batch, bool *is_known,
		   struct kymo_error *err);
	/* Says in kymo_batch: batch @number of @of has @n_rows rows; or what number @number of KY_FLEET_SLICE means. */
	int (*note)(struct ky_fleet *store, const char *trace, const char *of, uint64_t number,
		    int64_t n_rows, struct kymo_error *err);
	/* Removes the rows of @trace from @table. */
	int (*drop)(struct ky_fleet *store, const struct ky_fleet_table *table, const char *trace,
		    struct kymo_error *err);
	/* Removes rows before @ns, or whole days of them; of tables without times, those of traces that ended before. */
	int (*expire)(struct ky_fleet *store, int64_t ns, struct kymo_error *err);
	int (*query)(struct ky_fleet *store, const char *text,
		     const struct ky_sql_parameter *parameters, size_t n,
		     const struct ky_sql_sink *sink, struct kymo_error *err);
	void (*close)(struct ky_fleet *store);
};

struct ky_fleet {
	const struct ky_fleet_ops *ops;
	bool is_clickhouse;
};

/*
 * @place: a directory, or http[s]://[USER@]HOST[:PORT][/DATABASE]. @writes: the directory or data base is made if need be.
 * KYMO_E_NOT_FOUND, KYMO_E_IO, KYMO_E_INVALID, KYMO_E_UNSUPPORTED.
 */
int ky_fleet_open(const char *place, bool writes, struct ky_fleet **store, struct kymo_error *err);
void ky_fleet_close(struct ky_fleet *store); /* NULL is allowed */

struct ky_fleet_options {
	/* Wildcards of the names of tables; none: those of intervals and the small ones. */
	const char *const *tables;
	size_t n_tables;
	/* Wildcards of kinds of events, whose tables are loaded, too. */
	const char *const *events;
	size_t n_events;
	/* Reports whose rows are loaded, too: ky_fleet_check_reports(). */
	const char *const *reports;
	size_t n_reports;
	bool with_texts;  /* also texts that may hold secrets */
	bool again;	  /* remove what is there of the traces first */
	const char *host; /* in place of the traces' host names; NULL: not */
	bool (*stop)(void);
	void (*progress)(void *data, uint64_t n_rows);
	void *data;
};

/*
 * A trace that grows is loaded slice by slice: the rows that end after the slice before, and not after this one. kymo_batch has a line
 * (trace, KY_FLEET_SLICE, number, end in ns) before the slice's rows, and one of KY_FLEET_SLICE_DONE after them, so that a slice that was begun
 * is loaded again with the same bounds. Its batches have the numbers from number << 32 on.
 */
#define KY_FLEET_SLICE	    "kymo_slice"
#define KY_FLEET_SLICE_DONE "kymo_slice_done"
/* What else a growing trace has there: its clocks. */
#define KY_FLEET_CLOCK "kymo_clock"

struct ky_fleet_result {
	uint64_t n_rows, n_batches; /* new ones */
	uint64_t n_known;	    /* rows that were there */
	uint64_t n_tables;
};

/* KYMO_E_INVALID: one of them is no report, or needs more than traces. */
int ky_fleet_check_reports(const char *const *names, size_t n, struct kymo_error *err);
/* fleet-choose.c: which tables and columns of ky_sql_table() and ky_sql_column() are loaded. */
bool ky_fleet_wants_table(const struct ky_fleet_options *options, const char *name,
			  const char *about);
bool ky_fleet_wants_column(const struct ky_fleet_options *options, const char *name,
			   const char *type, const char *about);

int ky_fleet_load(struct ky_fleet *store, const struct ky_trace_set *set,
		  const struct ky_fleet_options *options, struct ky_fleet_result *result,
		  struct kymo_error *err);

/*
 * The same for a trace that grows, which is open with `follow`. @is_complete: it grows no more. Its clocks may change. *is_whole: the store has all of it.
 */
int ky_fleet_load_growing(struct ky_fleet *store, const struct ky_trace_set *set,
			  const struct ky_fleet_options *options, bool is_complete, bool *is_whole,
			  struct ky_fleet_result *result, struct kymo_error *err);

static inline int ky_fleet_query(struct ky_fleet *store, const char *text,
				 const struct ky_sql_sink *sink, struct kymo_error *err)
{
	return store->ops->query(store, text, NULL, 0, sink, err);
}

/*
 * fleet-parameters.c: appends @text with the values of @parameters in place of ":NAME", as literals of ClickHouse: numbers, or texts in quotes.
 * What stands in quotes or comments stays, and names that have no value.
 */
void ky_fleet_put_parameters(struct ky_strbuf *out, const char *text,
			     const struct ky_sql_parameter *parameters, size_t n);

/* The first statement of @text, without ";": *len bytes; *rest: what follows it. NULL: only blanks and comments are left. */
const char *ky_fleet_statement(const char *text, size_t *len, const char **rest);

/* The integer that @text selects; 0: it selects no row. */
int ky_fleet_number(struct ky_fleet *store, const char *text, int64_t *number,
		    struct kymo_error *err);

/* fleet-schema.c: the tables of @store, with their columns, types, and what these are. As ky_fleet_query(). */
int ky_fleet_schema(struct ky_fleet *store, const struct ky_sql_sink *sink, struct kymo_error *err);

/* fleet-local.c, fleet-clickhouse.c. */
int ky_fleet_open_local(const char *dir, bool writes, struct ky_fleet **store,
			struct kymo_error *err);
int ky_fleet_open_clickhouse(const char *url, bool writes, struct ky_fleet **store,
			     struct kymo_error *err);

/* Appends @name as an identifier that both engines read: in double quotes. */
void ky_fleet_put_name(struct ky_strbuf *out, const char *name);

#endif
