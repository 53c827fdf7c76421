/* SPDX-License-Identifier: MIT */
/* What is too old: whole days of tables with times, and of the others the rows of traces that ended before. */
#include "fleet/fleet-clickhouse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Traces in one statement. */
#define TRACES_MAX 500

/* A day of a table (2026-11-26 is 20261126); 0: a table without times. */
struct clickhouse_part {
	char *table;
	int64_t day;
};

KY_VEC_TYPE(clickhouse_parts, struct clickhouse_part);

static int expire_take_part(void *data, const struct ky_sql_value *values, size_t n,
			    struct kymo_error *err)
{
	struct clickhouse_parts *parts = data;
	struct clickhouse_part part;

	if (n < 2 || values[0].type != KY_SQL_TEXT)
		return ky_error_set(err, KYMO_E_FORMAT, "system.parts has other columns");
	part.day = values[1].type == KY_SQL_TEXT ? strtoll(values[1].text, NULL, 10)
						 : values[1].integer;
	part.table = strndup(values[0].text, values[0].len);
	if (part.table && ky_vec_push(parts, part) == 0)
		return KYMO_OK;
	free(part.table);
	return ky_error_nomem(err);
}

static int expire_find_parts(struct ky_fleet_clickhouse *ch, int64_t ns,
			     struct clickhouse_parts *parts, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {parts, ky_fleet_clickhouse_names, expire_take_part};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(
		&text,
		"SELECT DISTINCT table, toInt64OrZero(partition) AS day FROM system.parts WHERE "
		"active AND database = '%s' AND table NOT LIKE 'kymo%%' AND day < "
		"toYYYYMMDD(toDateTime(intDiv(%" PRId64 ", 1000000000)))",
		ch->url.database, ns);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_query(&ch->base, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	return ret;
}

static int expire_day(struct ky_fleet_clickhouse *ch, const struct clickhouse_part *part,
		      struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_adds(&text, "ALTER TABLE ");
	ky_fleet_put_name(&text, part->table);
	ky_strbuf_addf(&text, " DROP PARTITION %" PRId64, part->day);
	return ky_fleet_clickhouse_run(ch, &text, err);
}

/* ---- tables without times ------------------------------------------------------------- */

struct expire_traces {
	struct ky_strbuf where;
	size_t n;
};

/* Ids of traces are hexadecimal digits; what is not, was no id. */
static int expire_take_trace(void *data, const struct ky_sql_value *values, size_t n,
			     struct kymo_error *err)
{
	struct expire_traces *traces = data;

	if (n < 1 || values[0].type != KY_SQL_TEXT || values[0].len != 16 ||
	    strspn(values[0].text, "0123456789abcdef") != 16)
		return KYMO_OK;
	ky_strbuf_addf(&traces->where, "%s'%.16s'", traces->n++ ? ", " : "\"trace\" IN (",
		       values[0].text);
	return ky_strbuf_failed(&traces->where) ? ky_error_nomem(err) : KYMO_OK;
}

static int expire_some_traces(struct ky_fleet_clickhouse *ch, const char *table, int64_t ns,
			      size_t *n, struct kymo_error *err)
{
	struct expire_traces traces = {.where = KY_STRBUF_INIT};
	const struct ky_sql_sink sink = {&traces, ky_fleet_clickhouse_names, expire_take_trace};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&text, "SELECT DISTINCT trace FROM ");
	ky_fleet_put_name(&text, table);
	ky_strbuf_addf(
		&text,
		" WHERE trace IN (SELECT trace FROM kymo_batch WHERE last > 0 GROUP BY trace "
		"HAVING max(last) < %" PRId64 ") LIMIT %d",
		ns, TRACES_MAX);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_clickhouse_query(&ch->base, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	ky_strbuf_adds(&traces.where, ")");
	*n = traces.n;
	if (!ret && traces.n)
		ret = ky_strbuf_failed(&traces.where)
			      ? ky_error_nomem(err)
			      : ky_fleet_clickhouse_delete(ch, table, ky_strbuf_text(&traces.where),
							   err);
	ky_strbuf_fini(&traces.where);
	return ret;
}

static int expire_traces(struct ky_fleet_clickhouse *ch, const char *table, int64_t ns,
			 struct kymo_error *err)
{
	size_t n = TRACES_MAX;
	int ret = KYMO_OK;

	while (!ret && n == TRACES_MAX)
		ret = expire_some_traces(ch, table, ns, &n, err);
	return ret;
}

int ky_fleet_clickhouse_expire(struct ky_fleet *store, int64_t ns, struct kymo_error *err)
{
	struct ky_fleet_clickhouse *ch = (struct ky_fleet_clickhouse *)store;
	struct clickhouse_parts parts = KY_VEC_INIT;
	int ret = expire_find_parts(ch, ns, &parts, err);

	ky_vec_foreach(&parts, part) {
		if (!ret)
			ret = part->day ? expire_day(ch, part, err)
					: expire_traces(ch, part->table, ns, err);
		free(part->table);
	}
	ky_vec_fini(&parts);
	return ret;
}
