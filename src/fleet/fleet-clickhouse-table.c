/* SPDX-License-Identifier: MIT */
/* The tables of a ClickHouse server: which columns they have, and of which types. */
#include "fleet/fleet-clickhouse.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "fleet/fleet-tsv.h"

/* The first version with codecs and TTL of tables. */
#define CODECS_SINCE 20

enum {
	FORM_OTHER,
	FORM_INT64,
	FORM_NULLABLE_INT64,
	FORM_NULLABLE_INT32,
	FORM_NULLABLE_REAL,
	FORM_DICTIONARY,
	FORM_TEXT,
	FORM_NULLABLE_DICTIONARY,
	FORM_COMPUTED,
};

static const struct ky_fleet_form fleet_clickhouse_forms[] = {
	[FORM_OTHER] = {"", false, KY_FLEET_NUMBER},
	[FORM_INT64] = {"Int64", false, KY_FLEET_NUMBER},
	[FORM_NULLABLE_INT64] = {"Nullable(Int64)", true, KY_FLEET_NUMBER},
	[FORM_NULLABLE_INT32] = {"Nullable(Int32)", true, KY_FLEET_SMALL_NUMBER},
	[FORM_NULLABLE_REAL] = {"Nullable(Float64)", true, KY_FLEET_REAL},
	[FORM_DICTIONARY] = {"LowCardinality(String)", false, KY_FLEET_DICTIONARY},
	[FORM_TEXT] = {"Nullable(String)", true, KY_FLEET_TEXT},
	[FORM_NULLABLE_DICTIONARY] = {"LowCardinality(Nullable(String))", true, KY_FLEET_TEXT},
	[FORM_COMPUTED] = {"Nullable(Int64)", true, KY_FLEET_COMPUTED},
};

static bool fleet_clickhouse_is_whole(const struct ky_fleet_table *table, size_t i)
{
	return (int)i == table->time || table->columns.data[i].is_whole ||
	       strcmp(table->columns.data[i].name, "host") == 0;
}

/* Old servers have no codecs, and numbers that grow are large there: an interval's end is computed. */
static const struct ky_fleet_form *
fleet_clickhouse_choose_form(const struct ky_fleet_clickhouse *ch,
			     const struct ky_fleet_table *table, size_t i)
{
	const struct ky_fleet_column *column = &table->columns.data[i];
	bool is_new = ch->version >= CODECS_SINCE;

	if (fleet_clickhouse_is_whole(table, i))
		return &fleet_clickhouse_forms[column->is_text ? FORM_DICTIONARY : FORM_INT64];
	/* count() of old versions takes NULL for a value of LowCardinality. */
	if (column->is_text)
		return &fleet_clickhouse_forms[is_new ? FORM_NULLABLE_DICTIONARY : FORM_TEXT];
	if (!is_new && (int)i == table->end && table->is_interval)
		return &fleet_clickhouse_forms[FORM_COMPUTED];
	if (column->is_real)
		return &fleet_clickhouse_forms[FORM_NULLABLE_REAL];
	return &fleet_clickhouse_forms[column->is_small ? FORM_NULLABLE_INT32
							: FORM_NULLABLE_INT64];
}

static void fleet_clickhouse_table_put_column(const struct ky_fleet_clickhouse *ch,
					      struct ky_strbuf *text,
					      const struct ky_fleet_table *table, size_t i)
{
	const struct ky_fleet_column *column = &table->columns.data[i];
	const struct ky_fleet_form *form = fleet_clickhouse_choose_form(ch, table, i);

	ky_fleet_put_name(text, column->name);
	ky_strbuf_addf(text, " %s", form->type);
	if (form->kind == KY_FLEET_COMPUTED)
		ky_strbuf_adds(text, " ALIAS \"time\" + \"duration\"");
	if (ch->version >= CODECS_SINCE && !column->is_text && !column->is_real)
		ky_strbuf_addf(text, " CODEC(%s, ZSTD)",
			       column->is_time || (int)i == table->time ? "Delta" : "T64");
}

static bool fleet_clickhouse_has(const struct ky_fleet_table *table, const char *name)
{
	ky_vec_foreach(&table->columns, column)
		if (strcmp(column->name, name) == 0)
			return true;
	return false;
}

/* Tables are made by several threads. NULL: the server does not have it. */
static const struct ky_fleet_form *fleet_clickhouse_known(struct ky_fleet_clickhouse *ch,
							  const char *table, const char *column)
{
	const struct ky_fleet_form *form;
	char name[600];

	(void)snprintf(name, sizeof(name), "%s.%s", table, column);
	pthread_mutex_lock(&ch->lock);
	form = ky_names_get(&ch->known, name);
	pthread_mutex_unlock(&ch->lock);
	return form;
}

static int fleet_clickhouse_learn(struct ky_fleet_clickhouse *ch, const char *table,
				  const char *column, const struct ky_fleet_form *form)
{
	const char *name;
	int ret;

	pthread_mutex_lock(&ch->lock);
	name = ky_arena_printf(&ch->arena, "%s.%s", table, column);
	ret = name ? ky_names_set(&ch->known, name, (void *)form) : KYMO_E_MEMORY;
	pthread_mutex_unlock(&ch->lock);
	return ret;
}

const struct ky_fleet_form *ky_fleet_clickhouse_form(struct ky_fleet_clickhouse *ch,
						     const struct ky_fleet_table *table, size_t i)
{
	const struct ky_fleet_form *form =
		fleet_clickhouse_known(ch, table->name, table->columns.data[i].name);

	return form && form != &fleet_clickhouse_forms[FORM_OTHER]
		       ? form
		       : fleet_clickhouse_choose_form(ch, table, i);
}

bool ky_fleet_clickhouse_has_table(struct ky_fleet_clickhouse *ch, const char *table)
{
	return fleet_clickhouse_known(ch, table, "trace") != NULL;
}

/* A type that Kymo does not make is a user's: the server says whether it takes the rows. */
static const struct ky_fleet_form *fleet_clickhouse_find_form(const char *type, bool is_computed)
{
	for (size_t i = FORM_OTHER + 1; i < FORM_COMPUTED; i++)
		if (!is_computed && strcmp(fleet_clickhouse_forms[i].type, type) == 0)
			return &fleet_clickhouse_forms[i];
	return &fleet_clickhouse_forms[is_computed ? FORM_COMPUTED : FORM_OTHER];
}

enum { COLUMN_TABLE, COLUMN_NAME, COLUMN_TYPE, COLUMN_DEFAULT, COLUMN_COLUMNS };

static int fleet_clickhouse_take_column(void *data, const struct ky_sql_value *values, size_t n,
					struct kymo_error *err)
{
	const struct ky_fleet_form *form;

	for (size_t i = 0; i < COLUMN_COLUMNS; i++)
		if (n <= i || values[i].type != KY_SQL_TEXT)
			return KYMO_OK;
	form = fleet_clickhouse_find_form(values[COLUMN_TYPE].text,
					  strcmp(values[COLUMN_DEFAULT].text, "ALIAS") == 0);
	return fleet_clickhouse_learn(data, values[COLUMN_TABLE].text, values[COLUMN_NAME].text,
				      form) < 0
		       ? ky_error_nomem(err)
		       : KYMO_OK;
}

int ky_fleet_clickhouse_find_columns(struct ky_fleet_clickhouse *ch, const char *table,
				     struct kymo_error *err)
{
	const struct ky_sql_sink sink = {ch, ky_fleet_clickhouse_names,
					 fleet_clickhouse_take_column};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(&text,
		       "SELECT table, name, type, default_kind FROM system.columns WHERE "
		       "database = '%s'",
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

		if (fleet_clickhouse_known(ch, table->name, name))
			continue;
		ky_strbuf_adds(&text, "ALTER TABLE ");
		ky_fleet_put_name(&text, table->name);
		ky_strbuf_adds(&text, " ADD COLUMN ");
		fleet_clickhouse_table_put_column(ch, &text, table, i);
		ret = ky_fleet_clickhouse_run(ch, &text, err);
		if (!ret && fleet_clickhouse_learn(ch, table->name, name,
						   fleet_clickhouse_choose_form(ch, table, i)) < 0)
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
	ret = ky_fleet_clickhouse_find_columns(ch, table->name, err);
	return ret ? ret : fleet_clickhouse_add_columns(ch, table, err);
}

static int fleet_clickhouse_made(struct ky_fleet_clickhouse *ch, const struct ky_fleet_table *table,
				 struct kymo_error *err)
{
	int ret = fleet_clickhouse_learn(ch, table->name, "trace",
					 &fleet_clickhouse_forms[FORM_DICTIONARY]);

	for (size_t i = 0; i < table->columns.len && !ret; i++)
		ret = fleet_clickhouse_learn(ch, table->name, table->columns.data[i].name,
					     fleet_clickhouse_choose_form(ch, table, i));
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* What the server says when another process was faster. */
static bool fleet_clickhouse_is_there(const struct kymo_error *err)
{
	return strstr(err->message, "Code: 57,") || strstr(err->message, "Code: 57.");
}

int ky_fleet_clickhouse_table(struct ky_fleet *store, const struct ky_fleet_table *table,
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
		fleet_clickhouse_table_put_column(ch, &text, table, i);
	}
	ky_strbuf_adds(&text, ") ENGINE = MergeTree");
	if (table->time >= 0)
		ky_strbuf_adds(
			&text,
			" PARTITION BY toYYYYMMDD(toDateTime(intDiv(\"time\", 1000000000)))");
	ky_strbuf_adds(&text, " ORDER BY (");
	ky_strbuf_adds(&text, fleet_clickhouse_has(table, "host") ? "\"host\", " : "");
	ky_strbuf_adds(&text, table->time >= 0 ? "\"time\")" : "\"trace\")");
	ret = ky_fleet_clickhouse_run(ch, &text, err);
	if (ret == KYMO_E_IO && fleet_clickhouse_is_there(err))
		return fleet_clickhouse_was_made(ch, table, err);
	return ret ? ret : fleet_clickhouse_made(ch, table, err);
}
