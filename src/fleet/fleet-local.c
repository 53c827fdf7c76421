/* SPDX-License-Identifier: MIT */
/* A store of one machine: DIR/fleet.db, a file of SQLite. A batch is a transaction. */
#include "fleet/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "sql/sql-library.h"

static const char make_batches[] =
	"CREATE TABLE IF NOT EXISTS kymo_batch (trace TEXT, of TEXT, number INTEGER, "
	"n_rows INTEGER, PRIMARY KEY (trace, of, number)) WITHOUT ROWID";

struct fleet_local {
	struct ky_fleet base;
	sqlite3 *db;	    /* for loading */
	struct ky_sql *sql; /* for asking */
	char *path;
};

static int fleet_local_fail(const struct fleet_local *local, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_IO, "the store cannot take it: %s",
		     ky_sqlite.sqlite3_errmsg(local->db));
	ky_error_path(err, local->path);
	return KYMO_E_IO;
}

/* A statement with up to three values, to its end. *value: the first column of its row, if it has one. */
static int fleet_local_run(struct fleet_local *local, const char *text, const char *first,
			   const char *second, const uint64_t *third, int64_t *value,
			   struct kymo_error *err)
{
	sqlite3_stmt *statement;
	int ret = ky_sqlite.sqlite3_prepare_v2(local->db, text, -1, &statement, NULL);

	if (ret != SQLITE_OK)
		return fleet_local_fail(local, err);
	if (first)
		(void)ky_sqlite.sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC);
	if (second)
		(void)ky_sqlite.sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
	if (third)
		(void)ky_sqlite.sqlite3_bind_int64(statement, 3, (sqlite3_int64)*third);
	while ((ret = ky_sqlite.sqlite3_step(statement)) == SQLITE_ROW)
		if (value)
			*value = ky_sqlite.sqlite3_column_int64(statement, 0);
	(void)ky_sqlite.sqlite3_finalize(statement);
	return ret == SQLITE_DONE ? KYMO_OK : fleet_local_fail(local, err);
}

static int fleet_local_simple(struct fleet_local *local, const char *text, struct kymo_error *err)
{
	return fleet_local_run(local, text, NULL, NULL, NULL, NULL, err);
}

static int fleet_local_add_column(struct fleet_local *local, const struct ky_fleet_table *table,
				  const struct ky_fleet_column *column, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t n = 0;
	int ret =
		fleet_local_run(local, "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2",
				table->name, column->name, NULL, &n, err);

	if (ret < 0 || n)
		return ret;
	ky_strbuf_adds(&text, "ALTER TABLE ");
	ky_fleet_put_name(&text, table->name);
	ky_strbuf_adds(&text, " ADD COLUMN ");
	ky_fleet_put_name(&text, column->name);
	ky_strbuf_adds(&text, column->is_text ? " TEXT" : " INTEGER");
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : fleet_local_simple(local, ky_strbuf_text(&text), err);
	ky_strbuf_fini(&text);
	return ret;
}

static int fleet_local_table(struct ky_fleet *store, const struct ky_fleet_table *table,
			     struct kymo_error *err)
{
	struct fleet_local *local = (struct fleet_local *)store;
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&text, "CREATE TABLE IF NOT EXISTS ");
	ky_fleet_put_name(&text, table->name);
	ky_strbuf_adds(&text, " (\"trace\" TEXT NOT NULL, \"batch\" INTEGER NOT NULL)");
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : fleet_local_simple(local, ky_strbuf_text(&text), err);
	for (size_t i = 0; i < table->columns.len && !ret; i++)
		ret = fleet_local_add_column(local, table, &table->columns.data[i], err);
	ky_strbuf_fini(&text);
	return ret;
}

static int fleet_local_find(struct ky_fleet *store, const struct ky_fleet_batch *batch,
			    uint64_t *n_rows, struct kymo_error *err)
{
	*n_rows = 0;
	return fleet_local_run((struct fleet_local *)store,
			       "SELECT n_rows FROM kymo_batch WHERE trace = ?1 AND of = ?2 AND "
			       "number = ?3",
			       batch->trace, batch->table->name, &batch->number, (int64_t *)n_rows,
			       err);
}

/* ---- rows ----------------------------------------------------------------------------- */

static const char *fleet_local_bind(sqlite3_stmt *statement, int at, const char *cell)
{
	uint32_t bytes;
	int64_t number;

	switch ((enum ky_fleet_cell) * cell++) {
	case KY_FLEET_NULL:
		(void)ky_sqlite.sqlite3_bind_null(statement, at);
		return cell;
	case KY_FLEET_INTEGER:
		memcpy(&number, cell, sizeof(number));
		(void)ky_sqlite.sqlite3_bind_int64(statement, at, number);
		return cell + sizeof(number);
	case KY_FLEET_TEXT:
		break;
	}
	memcpy(&bytes, cell, sizeof(bytes));
	cell += sizeof(bytes);
	(void)ky_sqlite.sqlite3_bind_text(statement, at, cell, (int)bytes, SQLITE_STATIC);
	return cell + bytes;
}

static int fleet_local_insert(struct fleet_local *local, const struct ky_fleet_batch *batch,
			      sqlite3_stmt *statement, struct kymo_error *err)
{
	const char *cell = ky_strbuf_text(&batch->cells);
	int n = (int)batch->table->columns.len;

	(void)ky_sqlite.sqlite3_bind_text(statement, n + 1, batch->trace, -1, SQLITE_STATIC);
	(void)ky_sqlite.sqlite3_bind_int64(statement, n + 2, (sqlite3_int64)batch->number);
	for (uint64_t row = 0; row < batch->n_rows; row++) {
		for (int i = 0; i < n; i++)
			cell = fleet_local_bind(statement, i + 1, cell);
		if (ky_sqlite.sqlite3_step(statement) != SQLITE_DONE)
			return fleet_local_fail(local, err);
		(void)ky_sqlite.sqlite3_reset(statement);
	}
	return KYMO_OK;
}

static int fleet_local_rows(struct fleet_local *local, const struct ky_fleet_batch *batch,
			    struct kymo_error *err)
{
	const struct ky_fleet_table *table = batch->table;
	struct ky_strbuf text = KY_STRBUF_INIT;
	sqlite3_stmt *statement = NULL;
	int ret = KYMO_OK;

	ky_strbuf_adds(&text, "INSERT INTO ");
	ky_fleet_put_name(&text, table->name);
	ky_strbuf_adds(&text, " (");
	for (size_t i = 0; i < table->columns.len; i++) {
		ky_fleet_put_name(&text, table->columns.data[i].name);
		ky_strbuf_adds(&text, ", ");
	}
	ky_strbuf_adds(&text, "\"trace\", \"batch\") VALUES (?");
	for (size_t i = 0; i < table->columns.len + 1; i++)
		ky_strbuf_adds(&text, ", ?");
	ky_strbuf_addc(&text, ')');
	if (ky_strbuf_failed(&text))
		ret = ky_error_nomem(err);
	else if (ky_sqlite.sqlite3_prepare_v2(local->db, ky_strbuf_text(&text), -1, &statement,
					      NULL) != SQLITE_OK)
		ret = fleet_local_fail(local, err);
	if (!ret)
		ret = fleet_local_insert(local, batch, statement, err);
	(void)ky_sqlite.sqlite3_finalize(statement);
	ky_strbuf_fini(&text);
	return ret;
}

static int fleet_local_remove(struct fleet_local *local, const struct ky_fleet_table *table,
			      const char *trace, const uint64_t *number, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&text, "DELETE FROM ");
	ky_fleet_put_name(&text, table->name);
	/* ?2 is the table's name, which kymo_batch needs. */
	ky_strbuf_adds(&text, " WHERE trace = ?1 AND ?2 = ?2");
	ky_strbuf_adds(&text, number ? " AND batch = ?3" : "");
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : fleet_local_run(local, ky_strbuf_text(&text), trace,
							table->name, number, NULL, err);
	ky_strbuf_fini(&text);
	if (ret < 0)
		return ret;
	return fleet_local_run(local,
			       number ? "DELETE FROM kymo_batch WHERE trace = ?1 AND of = ?2 AND "
					"number = ?3"
				      : "DELETE FROM kymo_batch WHERE trace = ?1 AND of = ?2",
			       trace, table->name, number, NULL, err);
}

static int fleet_local_note(struct ky_fleet *store, const char *trace, const char *of,
			    uint64_t number, uint64_t n_rows, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(&text, "INSERT INTO kymo_batch VALUES (?1, ?2, ?3, %llu)",
		       (unsigned long long)n_rows);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : fleet_local_run((struct fleet_local *)store, ky_strbuf_text(&text), trace,
					of, &number, NULL, err);
	ky_strbuf_fini(&text);
	return ret;
}

static int fleet_local_put(struct ky_fleet *store, const struct ky_fleet_batch *batch,
			   bool replaces, struct kymo_error *err)
{
	struct fleet_local *local = (struct fleet_local *)store;
	uint64_t there = 0;
	int ret = fleet_local_simple(local, "BEGIN IMMEDIATE", err);

	if (ret < 0)
		return ret;
	/* Another process may load the same trace. */
	ret = fleet_local_find(store, batch, &there, err);
	if (!ret && there != batch->n_rows) {
		if (there || replaces)
			ret = fleet_local_remove(local, batch->table, batch->trace, &batch->number,
						 err);
		ret = ret ? ret : fleet_local_rows(local, batch, err);
		ret = ret ? ret
			  : fleet_local_note(store, batch->trace, batch->table->name, batch->number,
					     batch->n_rows, err);
	}
	if (ret < 0) {
		(void)fleet_local_simple(local, "ROLLBACK", NULL);
		return ret;
	}
	return fleet_local_simple(local, "COMMIT", err);
}

static int fleet_local_drop(struct ky_fleet *store, const struct ky_fleet_table *table,
			    const char *trace, struct kymo_error *err)
{
	return fleet_local_remove((struct fleet_local *)store, table, trace, NULL, err);
}

static int fleet_local_expire(struct ky_fleet *store, const char *table, int64_t ns,
			      struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&text, "DELETE FROM ");
	ky_fleet_put_name(&text, table);
	ky_strbuf_addf(&text, " WHERE \"time\" < %lld", (long long)ns);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : fleet_local_simple((struct fleet_local *)store, ky_strbuf_text(&text), err);
	ky_strbuf_fini(&text);
	return ret;
}

/* ---- opening -------------------------------------------------------------------------- */

static int fleet_local_query(struct ky_fleet *store, const char *text,
			     const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct fleet_local *local = (struct fleet_local *)store;
	int ret = local->sql ? KYMO_OK : ky_sql_open_file(local->path, &local->sql, err);

	return ret ? ret : ky_sql_run(local->sql, text, NULL, 0, sink, err);
}

static void fleet_local_close(struct ky_fleet *store)
{
	struct fleet_local *local = (struct fleet_local *)store;

	if (local->db)
		(void)ky_sqlite.sqlite3_close_v2(local->db);
	ky_sql_close(local->sql);
	free(local->path);
	free(local);
}

static const struct ky_fleet_ops fleet_local_ops = {
	.table = fleet_local_table,
	.find = fleet_local_find,
	.put = fleet_local_put,
	.note = fleet_local_note,
	.drop = fleet_local_drop,
	.expire = fleet_local_expire,
	.query = fleet_local_query,
	.close = fleet_local_close,
};

/* SQLite would let everybody read it; its other files get the rights of this one. */
static int fleet_local_create(const struct fleet_local *local, struct kymo_error *err)
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

static int fleet_local_prepare(struct fleet_local *local, const char *dir, struct kymo_error *err)
{
	static const char *const first[] = {
		"PRAGMA busy_timeout = 60000",
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = NORMAL",
		"PRAGMA cache_size = -65536",
		make_batches,
	};
	int ret = KYMO_OK;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		ret = ky_error_errno(err, errno, "cannot make the store");
		ky_error_path(err, dir);
		return ret;
	}
	ret = fleet_local_create(local, err);
	if (ret < 0)
		return ret;
	if (ky_sqlite.sqlite3_open_v2(local->path, &local->db,
				      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
					      SQLITE_OPEN_NOFOLLOW,
				      NULL) != SQLITE_OK)
		return fleet_local_fail(local, err);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]) && !ret; i++)
		ret = fleet_local_simple(local, first[i], err);
	return ret;
}

static int fleet_local_missing(const struct fleet_local *local, const char *dir,
			       struct kymo_error *err)
{
	int ret = ky_error_errno(err, errno, "cannot open the store");

	ky_error_path(err, local->path);
	ky_error_hint(err, "kymo fleet load --to %s TRACE makes a store", dir);
	return ret;
}

int ky_fleet_open_local(const char *dir, bool writes, struct ky_fleet **out, struct kymo_error *err)
{
	struct fleet_local *local = calloc(1, sizeof(*local));
	int ret = ky_sqlite_load(err);

	*out = NULL;
	if (!local || asprintf(&local->path, "%s/fleet.db", dir) < 0) {
		free(local);
		return ky_error_nomem(err);
	}
	local->base.ops = &fleet_local_ops;
	if (!ret && writes)
		ret = fleet_local_prepare(local, dir, err);
	else if (!ret && access(local->path, R_OK) < 0)
		ret = fleet_local_missing(local, dir, err);
	if (ret < 0)
		fleet_local_close(&local->base);
	else
		*out = &local->base;
	return ret;
}
