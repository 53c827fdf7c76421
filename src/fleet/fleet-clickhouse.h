/* SPDX-License-Identifier: MIT */
/* A store on a ClickHouse server: what its files share. */
#ifndef KY_FLEET_FLEET_CLICKHOUSE_H
#define KY_FLEET_FLEET_CLICKHOUSE_H

#include <pthread.h>

#include "base/arena.h"
#include "base/hash.h"
#include "fleet/fleet.h"
#include "fleet/http.h"

enum ky_fleet_form_kind {
	KY_FLEET_NUMBER,
	KY_FLEET_SMALL_NUMBER, /* of 32 bits */
	KY_FLEET_REAL,
	KY_FLEET_TEXT,
	KY_FLEET_DICTIONARY,
	KY_FLEET_COMPUTED, /* by the server, from other columns: is not sent */
};

/* How a table has the values of a column. */
struct ky_fleet_form {
	const char *type;
	bool is_nullable;
	enum ky_fleet_form_kind kind;
};

/* A batch that the server has, by its line in kymo_batch. */
struct ky_fleet_noted {
	char *of;
	uint64_t number, n_rows;
};

struct ky_fleet_clickhouse {
	struct ky_fleet base;
	struct ky_http_url url;
	int version;
	struct ky_arena arena;
	struct ky_names known; /* "table.column" -> struct ky_fleet_form */
	/* Of the trace that is loaded: */
	char trace[17];
	KY_VEC(struct ky_fleet_noted) noted;
	bool was_begun;		/* an earlier load may have left a batch without its line */
	pthread_mutex_t lock;	/* of these: */
	struct ky_strbuf notes; /* lines that go in together at the end */
	struct ky_names fresh;	/* tables of which the server has no further batches */
};

/* ---- fleet-clickhouse.c ---- */

/* "INSERT ... FORMAT ..." with @rows of that format; @is_packed: in compressed blocks. @text NULL: @rows begin with it, and a line feed. */
int ky_fleet_clickhouse_insert(struct ky_fleet_clickhouse *ch, const char *text,
			       const struct ky_strbuf *rows, bool is_packed,
			       struct kymo_error *err);
/* The statement of @text, which is emptied. */
int ky_fleet_clickhouse_run(struct ky_fleet_clickhouse *ch, struct ky_strbuf *text,
			    struct kymo_error *err);
/* The number in its row. */
int ky_fleet_clickhouse_number(struct ky_fleet_clickhouse *ch, struct ky_strbuf *text,
			       int64_t *value, struct kymo_error *err);
int ky_fleet_clickhouse_query(struct ky_fleet *store, const char *text,
			      const struct ky_sql_sink *sink, struct kymo_error *err);
/* For a sink that needs no names. */
int ky_fleet_clickhouse_names(void *data, const char *const *names, size_t n,
			      struct kymo_error *err);
/* ---- fleet-clickhouse-table.c ---- */
/* Makes the table, or the columns that it does not have. */
int ky_fleet_clickhouse_table(struct ky_fleet *store, const struct ky_fleet_table *table,
			      struct kymo_error *err);
/* All tables with their columns at once, since traces may have hundreds; or those of @table. */
int ky_fleet_clickhouse_find_columns(struct ky_fleet_clickhouse *ch, const char *table,
				     struct kymo_error *err);
/* Of those that were there when the store was opened, or made since. */
bool ky_fleet_clickhouse_has_table(struct ky_fleet_clickhouse *ch, const char *table);
/* Of column @i: as the server's table has it. */
const struct ky_fleet_form *ky_fleet_clickhouse_form(struct ky_fleet_clickhouse *ch,
						     const struct ky_fleet_table *table, size_t i);

/* ---- fleet-clickhouse-rows.c ---- */
/* One block of the format Native, which the server takes as a whole. */
void ky_fleet_clickhouse_put_rows(struct ky_fleet_clickhouse *ch, struct ky_strbuf *out,
				  const struct ky_fleet_batch *batch);
int ky_fleet_clickhouse_pack(const struct ky_strbuf *rows, struct ky_strbuf *out,
			     struct kymo_error *err);

/* ---- fleet-clickhouse-load.c: the operations of struct ky_fleet_ops ---- */

int ky_fleet_clickhouse_begin(struct ky_fleet *store, const char *trace, struct kymo_error *err);
int ky_fleet_clickhouse_end(struct ky_fleet *store, struct kymo_error *err);
int ky_fleet_clickhouse_put(struct ky_fleet *store, const struct ky_fleet_batch *batch,
			    bool *is_known, struct kymo_error *err);
int ky_fleet_clickhouse_note(struct ky_fleet *store, const char *trace, const char *of,
			     uint64_t number, int64_t n_rows, struct kymo_error *err);
int ky_fleet_clickhouse_drop(struct ky_fleet *store, const struct ky_fleet_table *table,
			     const char *trace, struct kymo_error *err);
void ky_fleet_clickhouse_forget(struct ky_fleet_clickhouse *ch);
/* Removes the rows of @table for which @where is true, and waits for it. */
int ky_fleet_clickhouse_delete(struct ky_fleet_clickhouse *ch, const char *table, const char *where,
			       struct kymo_error *err);

/* ---- fleet-clickhouse-expire.c ---- */

int ky_fleet_clickhouse_expire(struct ky_fleet *store, int64_t ns, struct kymo_error *err);

#endif
