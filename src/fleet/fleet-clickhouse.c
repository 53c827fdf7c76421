/* SPDX-License-Identifier: MIT */
/*
 * A store on a ClickHouse server, by HTTP. A batch is one block of rows of one day, which the server takes as a whole; it is noted in kymo_batch
 * after that. A batch that was taken and not noted is found by its rows.
 */
#include "fleet/fleet-clickhouse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/fleet-tsv.h"

/* The first version with codecs and TTL of tables. */
#define CODECS_SINCE 20
/* What the server says when another process was faster. */
#define TABLE_IS_THERE "Code: 57,"

/* ---- statements ----------------------------------------------------------------------- */

static void fleet_clickhouse_target(const struct ky_fleet_clickhouse *ch, bool in_database,
				    struct ky_strbuf *target)
{
	ky_strbuf_adds(target, "/?wait_end_of_query=1&allow_experimental_low_cardinality_type=1"
			       "&max_query_size=8388608"
			       "&default_format=TabSeparatedWithNamesAndTypes");
	if (in_database)
		ky_strbuf_addf(target, "&database=%s", ch->url.database);
}

/* Results have names and types, and come when they are whole. */
static int fleet_clickhouse_ask(struct ky_fleet_clickhouse *ch, const char *text, bool in_database,
				int (*take)(void *, const char *, size_t, struct kymo_error *),
				void *data, struct kymo_error *err)
{
	struct ky_strbuf target = KY_STRBUF_INIT;
	struct ky_http_request request = {.body = text, .body_bytes = strlen(text)};
	int ret;

	fleet_clickhouse_target(ch, in_database, &target);
	request.target = ky_strbuf_text(&target);
	ret = ky_strbuf_failed(&target) ? ky_error_nomem(err)
					: ky_http_post(&ch->url, &request, take, data, err);
	ky_strbuf_fini(&target);
	return ret;
}

/* The blocks have no checksums of ClickHouse's: TCP and TLS have theirs. */
int ky_fleet_clickhouse_insert(struct ky_fleet_clickhouse *ch, const char *text,
			       const struct ky_strbuf *rows, bool is_packed, struct kymo_error *err)
{
	struct ky_strbuf target = KY_STRBUF_INIT;
	struct ky_http_request request = {.body = ky_strbuf_text(rows), .body_bytes = rows->len};
	int ret;

	fleet_clickhouse_target(ch, true, &target);
	if (is_packed)
		ky_strbuf_adds(&target,
			       "&decompress=1"
			       "&http_native_compression_disable_checksumming_on_decompress=1");
	if (text)
		ky_strbuf_adds(&target, "&query=");
	if (text)
		ky_http_put_encoded(&target, text, strlen(text));
	request.target = ky_strbuf_text(&target);
	ret = ky_strbuf_failed(&target) ? ky_error_nomem(err)
					: ky_http_post(&ch->url, &request, NULL, NULL, err);
	ky_strbuf_fini(&target);
	return ret;
}

int ky_fleet_clickhouse_run(struct ky_fleet_clickhouse *ch, struct ky_strbuf *text,
			    struct kymo_error *err)
{
	int ret = ky_strbuf_failed(text)
			  ? ky_error_nomem(err)
			  : fleet_clickhouse_ask(ch, ky_strbuf_text(text), true, NULL, NULL, err);

	ky_strbuf_fini(text);
	return ret;
}

int ky_fleet_clickhouse_query(struct ky_fleet *store, const char *text,
			      const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct ky_fleet_tsv tsv;
	int ret;

	ky_fleet_tsv_init(&tsv, sink);
	ret = fleet_clickhouse_ask((struct ky_fleet_clickhouse *)store, text, true,
				   ky_fleet_tsv_take, &tsv, err);
	if (!ret)
		ret = ky_fleet_tsv_end(&tsv, err);
	ky_fleet_tsv_fini(&tsv);
	return ret;
}

static int take_integer(void *data, const struct ky_sql_value *values, size_t n,
			struct kymo_error *err)
{
	int64_t *value = data;

	(void)err;
	if (n)
		*value = values[0].integer;
	return KYMO_OK;
}

int ky_fleet_clickhouse_names(void *data, const char *const *names, size_t n,
			      struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

int ky_fleet_clickhouse_number(struct ky_fleet_clickhouse *ch, struct ky_strbuf *text,
			       int64_t *value, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {value, ky_fleet_clickhouse_names, take_integer};
	int ret;

	*value = 0;
	ret = ky_strbuf_failed(text)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_query(&ch->base, ky_strbuf_text(text), &sink, err);
	ky_strbuf_fini(text);
	return ret;
}

/* ---- tables --------------------------------------------------------------------------- */

bool ky_fleet_clickhouse_is_key(const struct ky_fleet_table *table, size_t i)
{
	return (int)i == table->time || strcmp(table->columns.data[i].name, "host") == 0;
}

static void put_column(const struct ky_fleet_clickhouse *ch, struct ky_strbuf *text,
		       const struct ky_fleet_table *table, size_t i)
{
	const struct ky_fleet_column *column = &table->columns.data[i];
	bool has_codecs = ch->version >= CODECS_SINCE;

	ky_fleet_put_name(text, column->name);
	if (ky_fleet_clickhouse_is_key(table, i))
		ky_strbuf_adds(text, column->is_text ? " LowCardinality(String)" : " Int64");
	else if (column->is_text)
		/* count() of old versions takes NULL for a value of LowCardinality. */
		ky_strbuf_adds(text, has_codecs ? " LowCardinality(Nullable(String))"
						: " Nullable(String)");
	else
		ky_strbuf_adds(text, " Nullable(Int64)");
	if (has_codecs && !column->is_text)
		ky_strbuf_adds(text,
			       (int)i == table->time ? " CODEC(Delta, ZSTD)" : " CODEC(ZSTD)");
}

static bool has_column(const struct ky_fleet_table *table, const char *name)
{
	ky_vec_foreach(&table->columns, column)
		if (strcmp(column->name, name) == 0)
			return true;
	return false;
}

/* Tables are made by several threads. */
static bool fleet_clickhouse_knows(struct ky_fleet_clickhouse *ch, const char *table,
				   const char *column)
{
	char name[600];
	bool is_known;

	(void)snprintf(name, sizeof(name), "%s.%s", table, column);
	pthread_mutex_lock(&ch->lock);
	is_known = ky_names_get(&ch->known, name) != NULL;
	pthread_mutex_unlock(&ch->lock);
	return is_known;
}

static int fleet_clickhouse_learn(struct ky_fleet_clickhouse *ch, const char *table,
				  const char *column)
{
	const char *name;
	int ret;

	pthread_mutex_lock(&ch->lock);
	name = ky_arena_printf(&ch->arena, "%s.%s", table, column);
	ret = name ? ky_names_set(&ch->known, name, ch) : KYMO_E_MEMORY;
	pthread_mutex_unlock(&ch->lock);
	return ret;
}

bool ky_fleet_clickhouse_has_table(struct ky_fleet_clickhouse *ch, const char *table)
{
	return fleet_clickhouse_knows(ch, table, "trace");
}

static int fleet_clickhouse_take_column(void *data, const struct ky_sql_value *values, size_t n,
					struct kymo_error *err)
{
	if (n < 2 || values[0].type != KY_SQL_TEXT || values[1].type != KY_SQL_TEXT)
		return KYMO_OK;
	return fleet_clickhouse_learn(data, values[0].text, values[1].text) < 0
		       ? ky_error_nomem(err)
		       : KYMO_OK;
}

/* All tables with their columns at once, since traces may have hundreds; or those of @table. */
static int fleet_clickhouse_find_columns(struct ky_fleet_clickhouse *ch, const char *table,
					 struct kymo_error *err)
{
	const struct ky_sql_sink sink = {ch, ky_fleet_clickhouse_names,
					 fleet_clickhouse_take_column};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(&text, "SELECT table, name FROM system.columns WHERE database = '%s'",
		       ch->url.database);
	if (table) {
		ky_strbuf_adds(&text, " AND table = '");
		ky_fleet_tsv_put_quoted(&text, table);
		ky_strbuf_adds(&text, "'");
	}
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_query(&ch->base, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	return ret;
}

/* Those that the table of an earlier load does not have. */
static int fleet_clickhouse_add_columns(struct ky_fleet_clickhouse *ch,
					const struct ky_fleet_table *table, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < table->columns.len && !ret; i++) {
		struct ky_strbuf text = KY_STRBUF_INIT;
		const char *name = table->columns.data[i].name;

		if (fleet_clickhouse_knows(ch, table->name, name))
			continue;
		ky_strbuf_adds(&text, "ALTER TABLE ");
		ky_fleet_put_name(&text, table->name);
		ky_strbuf_adds(&text, " ADD COLUMN ");
		put_column(ch, &text, table, i);
		ret = ky_fleet_clickhouse_run(ch, &text, err);
		if (!ret && fleet_clickhouse_learn(ch, table->name, name) < 0)
			ret = ky_error_nomem(err);
	}
	return ret;
}

/* Another process has made it meanwhile, maybe with other columns. */
static int fleet_clickhouse_was_made(struct ky_fleet_clickhouse *ch,
				     const struct ky_fleet_table *table, struct kymo_error *err)
{
	int ret;

	ky_error_clear(err);
	ret = fleet_clickhouse_find_columns(ch, table->name, err);
	return ret ? ret : fleet_clickhouse_add_columns(ch, table, err);
}

static int fleet_clickhouse_made(struct ky_fleet_clickhouse *ch, const struct ky_fleet_table *table,
				 struct kymo_error *err)
{
	int ret = fleet_clickhouse_learn(ch, table->name, "trace");

	for (size_t i = 0; i < table->columns.len && !ret; i++)
		ret = fleet_clickhouse_learn(ch, table->name, table->columns.data[i].name);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int fleet_clickhouse_table(struct ky_fleet *store, const struct ky_fleet_table *table,
				  struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	if (ky_fleet_clickhouse_has_table(ch, table->name))
		return fleet_clickhouse_add_columns(ch, table, err);
	ky_strbuf_adds(&text, "CREATE TABLE ");
	ky_fleet_put_name(&text, table->name);
	ky_strbuf_adds(&text, " (\"trace\" LowCardinality(String), \"batch\" Int64");
	for (size_t i = 0; i < table->columns.len; i++) {
		ky_strbuf_adds(&text, ", ");
		put_column(ch, &text, table, i);
	}
	ky_strbuf_adds(&text, ") ENGINE = MergeTree");
	if (table->time >= 0)
		ky_strbuf_adds(
			&text,
			" PARTITION BY toYYYYMMDD(toDateTime(intDiv(\"time\", 1000000000)))");
	ky_strbuf_adds(&text, " ORDER BY (");
	ky_strbuf_adds(&text, has_column(table, "host") ? "\"host\", " : "");
	ky_strbuf_adds(&text, table->time >= 0 ? "\"time\")" : "\"trace\")");
	ret = ky_fleet_clickhouse_run(ch, &text, err);
	if (ret == KYMO_E_IO && strstr(err->message, TABLE_IS_THERE))
		return fleet_clickhouse_was_made(ch, table, err);
	return ret ? ret : fleet_clickhouse_made(ch, table, err);
}

/* ---- opening -------------------------------------------------------------------------- */

static int fleet_clickhouse_query_with(struct ky_fleet *store, const char *text,
				       const struct ky_sql_parameter *parameters, size_t n,
				       const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct ky_strbuf own = KY_STRBUF_INIT;
	int ret;

	if (!n)
		return ky_fleet_clickhouse_query(store, text, sink, err);
	ky_fleet_put_parameters(&own, text, parameters, n);
	ret = ky_strbuf_failed(&own)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_query(store, ky_strbuf_text(&own), sink, err);
	ky_strbuf_fini(&own);
	return ret;
}

/* It has passwords. Apart, as compilers take the store that callers see for all of it. */
static __attribute__((noinline)) void fleet_clickhouse_wipe(struct ky_fleet_clickhouse *ch)
{
	explicit_bzero(ch, sizeof(*ch));
}

static void fleet_clickhouse_close(struct ky_fleet *store)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;

	ky_fleet_clickhouse_forget(ch);
	pthread_mutex_destroy(&ch->lock);
	ky_names_fini(&ch->known);
	ky_arena_fini(&ch->arena);
	fleet_clickhouse_wipe(ch);
	free(ch);
}

static const struct ky_fleet_ops fleet_clickhouse_ops = {
	.table = fleet_clickhouse_table,
	.begin = ky_fleet_clickhouse_begin,
	.end = ky_fleet_clickhouse_end,
	.put = ky_fleet_clickhouse_put,
	.note = ky_fleet_clickhouse_note,
	.drop = ky_fleet_clickhouse_drop,
	.expire = ky_fleet_clickhouse_expire,
	.query = fleet_clickhouse_query_with,
	.close = fleet_clickhouse_close,
};

static int fleet_clickhouse_prepare(struct ky_fleet_clickhouse *ch, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t version = 0;
	int ret;

	ky_strbuf_addf(&text, "CREATE DATABASE IF NOT EXISTS \"%s\"", ch->url.database);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : fleet_clickhouse_ask(ch, ky_strbuf_text(&text), false, NULL, NULL, err);
	ky_strbuf_clear(&text);
	ky_strbuf_adds(&text, "SELECT toInt64(splitByChar('.', version())[1])");
	if (!ret)
		ret = ky_fleet_clickhouse_number(ch, &text, &version, err);
	else
		ky_strbuf_fini(&text);
	ch->version = (int)version;
	if (ret < 0)
		return ret;
	text = (struct ky_strbuf)KY_STRBUF_INIT;
	ky_strbuf_adds(
		&text,
		"CREATE TABLE IF NOT EXISTS kymo_batch (trace String, of String, "
		"number Int64, n_rows Int64, last Int64) ENGINE = MergeTree ORDER BY (trace, of, "
		"number)");
	ret = ky_fleet_clickhouse_run(ch, &text, err);
	return ret ? ret : fleet_clickhouse_find_columns(ch, NULL, err);
}

int ky_fleet_open_clickhouse(const char *url, bool writes, struct ky_fleet **out,
			     struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = calloc(1, sizeof(*ch));
	int ret = ch ? ky_http_parse(url, &ch->url, err) : ky_error_nomem(err);

	*out = NULL;
	if (!ret) {
		ch->base.ops = &fleet_clickhouse_ops;
		ch->base.is_clickhouse = true;
		pthread_mutex_init(&ch->lock, NULL);
		ky_names_init(&ch->known);
		ky_arena_init(&ch->arena);
	}
	if (!ret && writes)
		ret = fleet_clickhouse_prepare(ch, err);
	if (ret < 0) {
		if (ch && ch->base.ops)
			fleet_clickhouse_close(&ch->base);
		else
			free(ch);
		return ret;
	}
	*out = &ch->base;
	return KYMO_OK;
}
