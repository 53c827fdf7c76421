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

/* ---- opening -------------------------------------------------------------------------- */

/* The server takes one statement at a time. */
static int fleet_clickhouse_query_with(struct ky_fleet *store, const char *text,
				       const struct ky_sql_parameter *parameters, size_t n,
				       const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct ky_strbuf all = KY_STRBUF_INIT, one = KY_STRBUF_INIT;
	const char *at, *rest;
	size_t len;
	int ret = KYMO_OK;

	ky_fleet_put_parameters(&all, text, parameters, n);
	for (at = ky_strbuf_text(&all); !ret; at = rest) {
		const char *statement = ky_fleet_statement(at, &len, &rest);

		if (!statement)
			break;
		ky_strbuf_clear(&one);
		ky_strbuf_add(&one, statement, len);
		if (!ky_strbuf_failed(&one))
			ret = ky_fleet_clickhouse_query(store, ky_strbuf_text(&one), sink, err);
	}
	if (!ret && (ky_strbuf_failed(&all) || ky_strbuf_failed(&one)))
		ret = ky_error_nomem(err);
	ky_strbuf_fini(&all);
	ky_strbuf_fini(&one);
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
	.table = ky_fleet_clickhouse_table,
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
	return ret ? ret : ky_fleet_clickhouse_find_columns(ch, NULL, err);
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
