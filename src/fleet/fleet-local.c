/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/fleet-block.h"

/* ---- statements ----------------------------------------------------------------------- */

/* A value of a statement. */
struct local_value {
	const char *text; /* else a number */
	size_t len;
	int64_t number;
	bool is_blob, is_null;
};

#define TEXT(value)                                   \
	{                                             \
		.text = (value), .len = strlen(value) \
	}

static int fleet_local_fail(const struct ky_fleet_local *local, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_IO, "the store cannot take it: %s",
		     ky_sqlite.sqlite3_errmsg(local->db));
	ky_error_path(err, local->path);
	return KYMO_E_IO;
}

static void fleet_local_bind(sqlite3_stmt *statement, int at, const struct local_value *value)
{
	if (value->is_null)
		(void)ky_sqlite.sqlite3_bind_null(statement, at);
	else if (value->is_blob)
		(void)ky_sqlite.sqlite3_bind_blob(statement, at, value->text, (int)value->len,
						  SQLITE_STATIC);
	else if (value->text)
		(void)ky_sqlite.sqlite3_bind_text(statement, at, value->text, (int)value->len,
						  SQLITE_STATIC);
	else
		(void)ky_sqlite.sqlite3_bind_int64(statement, at, value->number);
}

/* A statement to its end. *result: the first column of its row, if it has one. */
static int fleet_local_run(struct ky_fleet_local *local, const char *text,
			   const struct local_value *values, int n, int64_t *result,
			   struct kymo_error *err)
{
	sqlite3_stmt *statement;
	int ret = ky_sqlite.sqlite3_prepare_v2(local->db, text, -1, &statement, NULL);

	if (ret != SQLITE_OK)
		return fleet_local_fail(local, err);
	for (int i = 0; i < n; i++)
		fleet_local_bind(statement, i + 1, &values[i]);
	while ((ret = ky_sqlite.sqlite3_step(statement)) == SQLITE_ROW)
		if (result)
			*result = ky_sqlite.sqlite3_column_int64(statement, 0);
	if (ret != SQLITE_DONE)
		(void)fleet_local_fail(local, err);
	(void)ky_sqlite.sqlite3_finalize(statement);
	return ret == SQLITE_DONE ? KYMO_OK : KYMO_E_IO;
}

static int fleet_local_simple(struct ky_fleet_local *local, const char *text,
			      struct kymo_error *err)
{
	return fleet_local_run(local, text, NULL, 0, NULL, err);
}

static int fleet_local_begin_change(struct ky_fleet_local *local, struct kymo_error *err)
{
	return fleet_local_simple(local, "BEGIN IMMEDIATE", err);
}

/* What succeeded stays, and else nothing of it. */
static int fleet_local_end_change(struct ky_fleet_local *local, int status, struct kymo_error *err)
{
	if (!status)
		status = fleet_local_simple(local, "COMMIT", err);
	if (status < 0)
		(void)fleet_local_simple(local, "ROLLBACK", NULL);
	return status;
}

/* ---- tables --------------------------------------------------------------------------- */

/* The number of a column, which it gets with its first batch. */
static int fleet_local_column(struct ky_fleet_local *local, const struct ky_fleet_table *table,
			      const struct ky_fleet_column *column, int64_t *number,
			      struct kymo_error *err)
{
	const struct local_value values[] = {TEXT(table->name),
					     TEXT(column->name),
					     {.number = column->is_text	  ? KY_FLEET_TYPE_TEXT
							: column->is_real ? KY_FLEET_TYPE_REAL
									  : KY_FLEET_TYPE_INTEGER}};
	int ret = fleet_local_run(
		local,
		"INSERT INTO kymo_column SELECT ?1, (SELECT count(*) FROM kymo_column WHERE of = ?1), "
		"?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM kymo_column WHERE of = ?1 AND name = ?2)",
		values, 3, NULL, err);

	*number = -1;
	if (!ret)
		ret = fleet_local_run(local,
				      "SELECT number FROM kymo_column WHERE of = ?1 AND name = ?2",
				      values, 2, number, err);
	if (!ret && (*number < 0 || *number >= KY_FLEET_COLUMNS_USED))
		ret = ky_error_set(err, KYMO_E_LIMIT, "the table '%s' has too many columns",
				   table->name);
	return ret;
}

/* Batches of other tables may be on their way. */
static int fleet_local_table(struct ky_fleet *store, const struct ky_fleet_table *table,
			     struct kymo_error *err)
{
	struct ky_fleet_local *local = (struct ky_fleet_local *)store;
	int64_t number;
	int ret;

	pthread_mutex_lock(&local->lock);
	ret = fleet_local_begin_change(local, err);
	for (size_t i = 0; i < table->columns.len && !ret; i++)
		ret = fleet_local_column(local, table, &table->columns.data[i], &number, err);
	ret = fleet_local_end_change(local, ret, err);
	pthread_mutex_unlock(&local->lock);
	return ret;
}

/* ---- batches -------------------------------------------------------------------------- */

static int fleet_local_find(struct ky_fleet_local *local, const struct ky_fleet_batch *batch,
			    int64_t *n_rows, struct kymo_error *err)
{
	const struct local_value values[] = {
		TEXT(batch->trace), TEXT(batch->table->name), {.number = (int64_t)batch->number}};

	*n_rows = 0;
	return fleet_local_run(
		local, "SELECT n_rows FROM kymo_batch WHERE trace = ?1 AND of = ?2 AND number = ?3",
		values, 3, n_rows, err);
}

/* @number NULL: all batches of the table. */
static int fleet_local_remove(struct ky_fleet_local *local, const struct ky_fleet_table *table,
			      const char *trace, const uint64_t *number, struct kymo_error *err)
{
	const struct local_value values[] = {
		TEXT(trace),
		TEXT(table->name),
		{.number = number ? (int64_t)*number : 0, .is_null = !number}};
	int ret = fleet_local_run(
		local,
		"DELETE FROM kymo_cells WHERE id IN (SELECT b.id * 4096 + c.number FROM kymo_batch AS b "
		"JOIN kymo_column AS c ON c.of = b.of WHERE b.trace = ?1 AND b.of = ?2 AND "
		"(?3 IS NULL OR b.number = ?3))",
		values, 3, NULL, err);

	return ret ? ret
		   : fleet_local_run(local,
				     "DELETE FROM kymo_batch WHERE trace = ?1 AND of = ?2 AND "
				     "(?3 IS NULL OR number = ?3)",
				     values, 3, NULL, err);
}

/* The only host of a batch; else NULL. */
static const char *fleet_local_host(const struct ky_fleet_batch *batch, size_t *len)
{
	for (size_t i = 0; i < batch->table->columns.len; i++) {
		const struct ky_fleet_vector *vector = &batch->vectors.data[i];

		if (strcmp(batch->table->columns.data[i].name, "host") == 0)
			return vector->ends.len == 1 && !vector->nulls.len
				       ? ky_fleet_text(vector, 0, len)
				       : NULL;
	}
	return NULL;
}

/* The batch's line, with its number in *id. */
static int fleet_local_note(struct ky_fleet_local *local, const struct ky_fleet_batch *batch,
			    int64_t *id, struct kymo_error *err)
{
	int time = batch->table->time;
	int64_t first = 0, last = batch->last_ns;
	size_t host_len = 0;
	const char *host = fleet_local_host(batch, &host_len);
	bool is_timed = time >= 0 && !batch->vectors.data[time].nulls.len &&
			ky_fleet_batch_bounds(batch, (size_t)time, &first, &last);
	const struct local_value values[] = {TEXT(batch->trace),
					     TEXT(batch->table->name),
					     {.number = (int64_t)batch->number},
					     {.number = (int64_t)batch->n_rows},
					     {.number = first, .is_null = !is_timed},
					     {.number = last},
					     {.text = host, .len = host_len, .is_null = !host}};

	return fleet_local_run(
		local,
		"INSERT INTO kymo_batch (trace, of, number, n_rows, n_left, first_ns, "
		"last_ns, host) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7) RETURNING id",
		values, 7, id, err);
}

static int fleet_local_insert(struct ky_fleet_local *local, const struct ky_fleet_batch *batch,
			      const struct ky_strbuf *cells, struct kymo_error *err)
{
	int64_t id = 0, number;
	int ret = fleet_local_note(local, batch, &id, err);

	for (size_t i = 0; i < batch->table->columns.len && !ret; i++) {
		struct local_value values[2] = {
			{.number = 0},
			{.text = ky_strbuf_text(&cells[i]), .len = cells[i].len, .is_blob = true}};

		ret = fleet_local_column(local, batch->table, &batch->table->columns.data[i],
					 &number, err);
		values[0].number = id * KY_FLEET_COLUMNS_MAX + number;
		if (!ret)
			ret = fleet_local_run(local, "INSERT INTO kymo_cells VALUES (?1, ?2)",
					      values, 2, NULL, err);
	}
	return ret;
}

/* Another process may load the same trace: looks again. */
static int fleet_local_put_cells(struct ky_fleet_local *local, const struct ky_fleet_batch *batch,
				 const struct ky_strbuf *cells, bool *is_known,
				 struct kymo_error *err)
{
	int64_t there = 0;
	int ret = fleet_local_begin_change(local, err);

	if (ret < 0)
		return ret;
	ret = fleet_local_find(local, batch, &there, err);
	*is_known = !ret && there == (int64_t)batch->n_rows;
	if (!ret && !*is_known) {
		if (there)
			ret = fleet_local_remove(local, batch->table, batch->trace, &batch->number,
						 err);
		ret = ret ? ret : fleet_local_insert(local, batch, cells, err);
	}
	return fleet_local_end_change(local, ret, err);
}

/* Packing takes most of the time: several threads do it at once. */
static int fleet_local_put(struct ky_fleet *store, const struct ky_fleet_batch *batch,
			   bool *is_known, struct kymo_error *err)
{
	struct ky_fleet_local *local = (struct ky_fleet_local *)store;
	struct ky_strbuf *cells;
	int64_t there = 0;
	int ret;

	pthread_mutex_lock(&local->lock);
	ret = fleet_local_find(local, batch, &there, err);
	pthread_mutex_unlock(&local->lock);
	*is_known = !ret && there == (int64_t)batch->n_rows;
	if (ret < 0 || *is_known)
		return ret;
	cells = calloc(batch->table->columns.len, sizeof(*cells));
	if (!cells)
		return ky_error_nomem(err);
	for (size_t i = 0; i < batch->table->columns.len && !ret; i++)
		ret = ky_fleet_block_encode(batch, i, &cells[i], err);
	pthread_mutex_lock(&local->lock);
	ret = ret ? ret : fleet_local_put_cells(local, batch, cells, is_known, err);
	pthread_mutex_unlock(&local->lock);
	for (size_t i = 0; i < batch->table->columns.len; i++)
		ky_strbuf_fini(&cells[i]);
	free(cells);
	return ret;
}

/* A line without rows. */
static int fleet_local_say(struct ky_fleet *store, const char *trace, const char *of,
			   uint64_t number, int64_t n_rows, struct kymo_error *err)
{
	const struct local_value values[] = {
		TEXT(trace), TEXT(of), {.number = (int64_t)number}, {.number = n_rows}};

	return fleet_local_run(
		(struct ky_fleet_local *)store,
		"INSERT OR REPLACE INTO kymo_batch (trace, of, number, n_rows, n_left) "
		"VALUES (?1, ?2, ?3, ?4, 0)",
		values, 4, NULL, err);
}

static int fleet_local_begin(struct ky_fleet *store, const char *trace, struct kymo_error *err)
{
	(void)store;
	(void)trace;
	(void)err;
	return KYMO_OK;
}

static int fleet_local_end(struct ky_fleet *store, struct kymo_error *err)
{
	(void)store;
	(void)err;
	return KYMO_OK;
}

static int fleet_local_drop(struct ky_fleet *store, const struct ky_fleet_table *table,
			    const char *trace, struct kymo_error *err)
{
	struct ky_fleet_local *local = (struct ky_fleet_local *)store;
	int ret = fleet_local_begin_change(local, err);

	if (!ret)
		ret = fleet_local_end_change(
			local, fleet_local_remove(local, table, trace, NULL, err), err);
	return ret;
}

/* Batches that are older; of those that begin before, the older rows are not seen from now on. */
static int fleet_local_expire(struct ky_fleet *store, int64_t ns, struct kymo_error *err)
{
	static const char *const steps[] = {
		"DELETE FROM kymo_cells WHERE id IN (SELECT b.id * 4096 + c.number FROM kymo_batch AS b "
		"JOIN kymo_column AS c ON c.of = b.of WHERE b.last_ns < ?1 AND b.n_left > 0)",
		"UPDATE kymo_batch SET n_left = 0 WHERE last_ns < ?1",
		"UPDATE kymo_batch SET from_ns = ?1 WHERE first_ns < ?1 AND last_ns >= ?1 AND "
		"(from_ns IS NULL OR from_ns < ?1)",
	};
	struct ky_fleet_local *local = (struct ky_fleet_local *)store;
	const struct local_value before = {.number = ns};
	int ret = fleet_local_begin_change(local, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !ret; i++)
		ret = fleet_local_run(local, steps[i], &before, 1, NULL, err);
	return fleet_local_end_change(local, ret, err);
}

/* ---- opening -------------------------------------------------------------------------- */

static int fleet_local_query(struct ky_fleet *store, const char *text,
			     const struct ky_sql_parameter *parameters, size_t n,
			     const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct ky_fleet_local *local = (struct ky_fleet_local *)store;
	int ret = local->sql ? KYMO_OK : ky_fleet_local_open_sql(local, err);

	return ret ? ret : ky_sql_run(local->sql, text, parameters, n, sink, err);
}

static void fleet_local_close(struct ky_fleet *store)
{
	struct ky_fleet_local *local = (struct ky_fleet_local *)store;

	/* The last one to close moves SQLite's log into the file and removes it, which only a writer can: the store is one file, and may be copied. */
	ky_sql_close(local->sql);
	if (local->db)
		(void)ky_sqlite.sqlite3_close_v2(local->db);
	pthread_mutex_destroy(&local->lock);
	free(local->path);
	free(local);
}

static const struct ky_fleet_ops fleet_local_ops = {
	.table = fleet_local_table,
	.begin = fleet_local_begin,
	.end = fleet_local_end,
	.put = fleet_local_put,
	.note = fleet_local_say,
	.drop = fleet_local_drop,
	.expire = fleet_local_expire,
	.query = fleet_local_query,
	.close = fleet_local_close,
};

/* SQLite would let everybody read it; its other files get the rights of this one. */
static int fleet_local_create(const struct ky_fleet_local *local, struct kymo_error *err)
{
	int fd = open(local->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), ret;

	if (fd >= 0) {
		close(fd);
		return KYMO_OK;
	}
	ret = ky_error_errno(err, errno, "cannot make the store");
	ky_error_path(err, local->path);
	return ret;
}

/* SQLite waits at a FIFO. */
static int fleet_local_check(const struct ky_fleet_local *local, struct kymo_error *err)
{
	struct stat st;
	int ret = stat(local->path, &st) < 0 ? ky_error_errno(err, errno, "cannot open the store")
		  : S_ISREG(st.st_mode)
			  ? KYMO_OK
			  : ky_error_set(err, KYMO_E_FORMAT, "the store is not a regular file");

	if (ret < 0) {
		ky_error_path(err, local->path);
		ky_error_hint(err, "kymo fleet load makes a store");
	}
	return ret;
}

/* Before anything in the file changes. */
static int fleet_local_check_tables(struct ky_fleet_local *local, struct kymo_error *err)
{
	static const struct {
		const char *query, *why;
	} checks[] = {
		{"SELECT (SELECT count(*) FROM sqlite_master WHERE name = 'kymo_batch') > "
		 "(SELECT count(*) FROM pragma_table_info('kymo_column') WHERE name = 'type')",
		 "an earlier version made this store"},
		{"SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'kymo_%' AND name NOT LIKE 'sqlite_%'",
		 "this is another program's data base"},
	};
	int64_t is_so = 0;
	int ret = KYMO_OK;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !ret; i++) {
		ret = fleet_local_run(local, checks[i].query, NULL, 0, &is_so, err);
		if (ret || !is_so)
			continue;
		ret = ky_error_set(err, KYMO_E_UNSUPPORTED, "%s", checks[i].why);
		ky_error_path(err, local->path);
		ky_error_hint(err, "load into a new directory");
	}
	return ret;
}

static int fleet_local_make_tables(struct ky_fleet_local *local, struct kymo_error *err)
{
	static const char *const steps[] = {
		("CREATE TABLE IF NOT EXISTS kymo_batch (id INTEGER PRIMARY KEY, trace TEXT, of TEXT COLLATE NOCASE, "
		 "number INTEGER, n_rows INTEGER, n_left INTEGER, first_ns INTEGER, last_ns INTEGER, "
		 "from_ns INTEGER, host TEXT, UNIQUE (trace, of, number))"),
		("CREATE TABLE IF NOT EXISTS kymo_column (of TEXT COLLATE NOCASE, number INTEGER, name TEXT "
		 "COLLATE NOCASE, type INTEGER, PRIMARY KEY (of, number), UNIQUE (of, name)) WITHOUT ROWID"),
		"CREATE TABLE IF NOT EXISTS kymo_cells (id INTEGER PRIMARY KEY, data BLOB)",
	};
	int ret = fleet_local_begin_change(local, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !ret; i++)
		ret = fleet_local_simple(local, steps[i], err);
	return fleet_local_end_change(local, ret, err);
}

static int fleet_local_prepare(struct ky_fleet_local *local, const char *dir,
			       struct kymo_error *err)
{
	static const char *const first[] = {"PRAGMA journal_mode = WAL",
					    "PRAGMA synchronous = NORMAL",
					    "PRAGMA cache_size = -16384"};
	int ret = KYMO_OK;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		ret = ky_error_errno(err, errno, "cannot make the store");
		ky_error_path(err, dir);
		return ret;
	}
	ret = fleet_local_create(local, err);
	if (!ret)
		ret = fleet_local_check(local, err);
	if (ret < 0)
		return ret;
	if (ky_sqlite.sqlite3_open_v2(local->path, &local->db,
				      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
					      SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_FULLMUTEX,
				      NULL) != SQLITE_OK)
		return fleet_local_fail(local, err);
	ret = fleet_local_simple(local, "PRAGMA busy_timeout = 60000", err);
	if (!ret)
		ret = fleet_local_check_tables(local, err);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]) && !ret; i++)
		ret = fleet_local_simple(local, first[i], err);
	return ret ? ret : fleet_local_make_tables(local, err);
}

int ky_fleet_open_local(const char *dir, bool writes, struct ky_fleet **out, struct kymo_error *err)
{
	struct ky_fleet_local *local = calloc(1, sizeof(*local));
	int ret = ky_sqlite_load(err);

	*out = NULL;
	if (!local || asprintf(&local->path, "%s/fleet.db", dir) < 0) {
		free(local);
		return ky_error_nomem(err);
	}
	local->base.ops = &fleet_local_ops;
	pthread_mutex_init(&local->lock, NULL);
	if (!ret && writes)
		ret = fleet_local_prepare(local, dir, err);
	else if (!ret)
		ret = fleet_local_check(local, err);
	if (ret < 0)
		fleet_local_close(&local->base);
	else
		*out = &local->base;
	return ret;
}
