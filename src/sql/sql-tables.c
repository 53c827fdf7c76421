/* SPDX-License-Identifier: MIT */
#include "sql/sql-sources.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"

static const struct ky_sql_column base_columns[] = {
	{"time", "INTEGER", "ns since 1970", KY_SQL_TIME, 0, NULL, false},
	{"cpu", "INTEGER", "the CPU of the event's stream", KY_SQL_CPU, 0, NULL, false},
	{"host", "TEXT", "the machine's name", KY_SQL_HOST, 0, NULL, false},
	{"stream", "TEXT", "the data stream's file", KY_SQL_STREAM, 0, NULL, false},
};

static const struct ky_sql_column all_columns[] = {
	{"name", "TEXT", "the event's name", KY_SQL_NAME, 0, NULL, false},
	{"tid", "INTEGER", "the thread, by the event's context", KY_SQL_TID, 0, NULL, false},
	{"fields", "TEXT", "context and fields, as JSON", KY_SQL_FIELDS, 0, NULL, false},
};

#define SOURCE(name) &ky_sql_source_##name,
static const struct ky_sql_source *const sources[] = {KY_SQL_SOURCES(SOURCE)};
#undef SOURCE

#define LETTERS	  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define LEN(list) (sizeof(list) / sizeof((list)[0]))

#define NAME_MAX_BYTES 120

/* The last number that was put behind a name which others have. */
#define TAKEN ((void *)(uintptr_t)1)

/* Columns that tables of a store have beside those of traces, and those of ClickHouse's engines. */
static const char *const store_columns[] = {"trace",	   "batch",	    "_part",
					    "_part_index", "_partition_id", "_sample_factor",
					    "_shard_num",  "_table"};

static int sql_tables_add_columns(struct ky_sql_table *table, const struct ky_sql_column *columns,
				  size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ky_vec_push(&table->columns, columns[i]) < 0 ||
		    ky_names_set(&table->taken, columns[i].name, TAKEN) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

/* ---- names ---------------------------------------------------------------------------- */

/* A name without quotes in SQL: letters, digits and '_'; others become '_'. It is a file's name on a server. */
static char *sql_tables_name(struct ky_sql *sql, const char *from)
{
	char *name = ky_arena_printf(&sql->arena, "%s%.*s",
				     isdigit((unsigned char)*from) || !*from ? "_" : "",
				     NAME_MAX_BYTES, from);

	for (char *at = name; at && *at; at++)
		if (!isalnum((unsigned char)*at) || !isascii((unsigned char)*at))
			*at = '_';
	return name;
}

static char *sql_tables_lower(struct ky_sql *sql, const char *from)
{
	char *name = ky_arena_strdup(&sql->arena, from);

	for (char *at = name; at && *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return name;
}

/*
 * @name, or with a number behind it if others have it; NULL: out of memory. The value in @taken is the last number, so that thousands of names that
 * become the same one take no more time than others.
 */
static char *sql_tables_unique(struct ky_sql *sql, struct ky_names *taken, char *name)
{
	char *key = sql_tables_lower(sql, name), *own = name, *own_key = key;
	uintptr_t number = key ? (uintptr_t)ky_names_get(taken, key) : 0;

	if (number) {
		do {
			number++;
			own = ky_arena_printf(&sql->arena, "%s_%zu", name, (size_t)number);
			own_key = own ? sql_tables_lower(sql, own) : NULL;
		} while (own_key && ky_names_get(taken, own_key));
		if (!own_key || ky_names_set(taken, key, (void *)number) < 0)
			return NULL;
	}
	return own_key && ky_names_set(taken, own_key, TAKEN) == 0 ? own : NULL;
}

static char *sql_tables_free_name(struct ky_sql *sql, const char *from)
{
	char *name = sql_tables_name(sql, from);

	return name ? sql_tables_unique(sql, &sql->taken, name) : NULL;
}

static bool sql_tables_has(struct ky_sql_table *table, const char *name)
{
	char *key = sql_tables_lower(table->sql, name);

	return key && ky_names_get(&table->taken, key);
}

static struct ky_sql_table *sql_tables_new(struct ky_sql *sql, const char *name,
					   enum ky_sql_shape shape)
{
	struct ky_sql_table *table = ky_arena_new(&sql->arena, struct ky_sql_table);
	const char *key;

	if (!table)
		return NULL;
	table->sql = sql;
	table->shape = shape;
	table->name = sql_tables_free_name(sql, name);
	ky_map_init(&table->by_class);
	ky_names_init(&table->taken);
	if (!table->name || ky_vec_push(&sql->tables, table) < 0)
		return NULL;
	key = sql_tables_lower(sql, table->name);
	return key && ky_names_set(&sql->by_key, key, table) == 0 ? table : NULL;
}

/* ---- fields --------------------------------------------------------------------------- */

static const char *sql_tables_type(const struct ky_field_class *cls, bool *is_number)
{
	*is_number = false;
	switch (cls->kind) {
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
		*is_number = !cls->num.is_enum && cls->num.length_bits < 64;
		return cls->num.is_enum ? "TEXT" : "INTEGER";
	case KY_FIELD_BOOL:
	case KY_FIELD_BITS:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return "INTEGER";
	case KY_FIELD_FLOAT:
		return "REAL";
	default:
		return "TEXT";
	}
}

/* What a payload's field is called where the context, or a column of all tables, has its name. */
static const char *sql_tables_column_name(struct ky_sql_table *table, enum ky_scope scope,
					  const char *display)
{
	struct ky_sql *sql = table->sql;
	char *name = sql_tables_name(sql, display);
	const char *prefix = scope == KY_SCOPE_PAYLOAD ? "field" : "context";

	if (name && sql_tables_has(table, name))
		name = ky_arena_printf(&sql->arena, "%s_%s", prefix, name);
	return name ? sql_tables_unique(sql, &table->taken, name) : NULL;
}

static struct ky_sql_column *sql_tables_find(struct ky_sql_table *table, enum ky_scope scope,
					     const char *field)
{
	ky_vec_foreach(&table->columns, column)
		if (column->kind == KY_SQL_FIELD && column->scope == scope &&
		    strcmp(column->field, field) == 0)
			return column;
	return NULL;
}

/* A filter does not distinguish the contexts of stream and event: neither field of one name becomes a part of it. */
static bool sql_tables_is_of_both(struct ky_sql_table *table, const struct ky_sql_column *column)
{
	enum ky_scope other = column->scope == KY_SCOPE_STREAM_CONTEXT ? KY_SCOPE_EVENT_CONTEXT
								       : KY_SCOPE_STREAM_CONTEXT;
	struct ky_sql_column *of_other = NULL;

	if (column->scope != KY_SCOPE_PAYLOAD)
		of_other = sql_tables_find(table, other, column->field);
	if (of_other)
		of_other->is_filtered = false;
	return of_other != NULL;
}

static int sql_tables_add_scope(struct ky_sql_table *table, const struct ky_event_class *cls,
				enum ky_scope scope)
{
	const struct ky_field_class *root = ky_scope_root(cls, scope);

	for (size_t i = 0; root && i < root->st.n_members; i++) {
		const struct ky_member *member = &root->st.members[i];
		struct ky_sql_column column = {
			.kind = KY_SQL_FIELD, .scope = scope, .field = member->display};
		struct ky_sql_column *known = sql_tables_find(table, scope, member->display);
		const char *type = sql_tables_type(member->cls, &column.is_filtered);

		/* Other names have no place in a filter without quotes. */
		column.is_filtered &= strspn(column.field, LETTERS) == strlen(column.field) &&
				      !sql_tables_is_of_both(table, &column);
		if (known) {
			known->is_filtered &= column.is_filtered;
			continue;
		}
		if (table->columns.len == KY_SQL_COLUMNS_MAX) {
			table->is_cut = true;
			continue;
		}
		column.name = sql_tables_column_name(table, scope, member->display);
		column.type = type;
		column.about = scope == KY_SCOPE_PAYLOAD ? "field" : "context field";
		if (!column.name || ky_vec_push(&table->columns, column) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

/* Payload first: its fields have the plain names. */
static int sql_tables_add_class(struct ky_sql_table *table, const struct ky_event_class *cls)
{
	struct ky_sql_class one = {.cls = cls};
	int ret = sql_tables_add_scope(table, cls, KY_SCOPE_PAYLOAD);

	if (!ret)
		ret = sql_tables_add_scope(table, cls, KY_SCOPE_STREAM_CONTEXT);
	if (!ret)
		ret = sql_tables_add_scope(table, cls, KY_SCOPE_EVENT_CONTEXT);
	return ret ? ret : ky_vec_push(&table->classes, one);
}

static int sql_tables_bind(struct ky_sql_table *table)
{
	for (size_t i = 0; i < table->classes.len; i++) {
		struct ky_sql_class *one = &table->classes.data[i];

		one->handles = ky_arena_array(&table->sql->arena, table->columns.len + 1,
					      sizeof(*one->handles));
		if (!one->handles || ky_map_set(&table->by_class, (uintptr_t)one->cls,
						(void *)(uintptr_t)(i + 1)) < 0)
			return KYMO_E_MEMORY;
		for (size_t c = 0; c < table->columns.len; c++) {
			const struct ky_sql_column *column = &table->columns.data[c];

			if (column->kind == KY_SQL_FIELD)
				ky_handle_find(&one->handles[c], one->cls, column->scope,
					       column->field);
		}
	}
	return KYMO_OK;
}

/* The field of the thread in the context of events of a class. */
static int sql_tables_add_tid(struct ky_sql *sql, const struct ky_event_class *cls)
{
	static const char *const names[] = {"tid", "vtid", "perf_tid"};
	static const enum ky_scope scopes[] = {KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_EVENT_CONTEXT};
	struct ky_handle *handle = ky_arena_new(&sql->arena, struct ky_handle);

	if (!handle)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < 2 * LEN(names) && !handle->cls; i++)
		(void)ky_handle_find(handle, cls, scopes[i & 1], names[i >> 1]);
	return handle->cls ? ky_map_set(&sql->tids, (uintptr_t)cls, handle) : KYMO_OK;
}

/* Events whose tables would have the names of a store's own tables have others, in traces as well. */
static const char *sql_tables_event_name(struct ky_sql *sql, const char *name)
{
	const char *word = sql_tables_name(sql, name);

	if (word && (strncasecmp(word, "kymo_", 5) == 0 || strncasecmp(word, "report_", 7) == 0))
		return ky_arena_printf(&sql->arena, "event_%s", name);
	return word ? name : NULL;
}

static int sql_tables_reserve(struct ky_sql_table *table)
{
	for (size_t i = 0; i < LEN(store_columns); i++)
		if (ky_names_set(&table->taken, store_columns[i], TAKEN) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

/* ---- all ------------------------------------------------------------------------------ */

static int sql_tables_take(struct ky_sql *sql, const struct ky_event_class *cls)
{
	struct ky_sql_table *table = ky_names_get(&sql->by_name, cls->name);

	if (!table) {
		const char *name = sql_tables_event_name(sql, cls->name);

		table = name ? sql_tables_new(sql, name, KY_SQL_EVENTS) : NULL;
		if (!table || sql_tables_reserve(table) < 0 ||
		    sql_tables_add_columns(table, base_columns, LEN(base_columns)) < 0 ||
		    ky_names_set(&sql->by_name, cls->name, table) < 0)
			return KYMO_E_MEMORY;
		table->event = cls->name;
		table->about = ky_arena_printf(&sql->arena, "events \"%s\"", cls->name);
		if (!table->about)
			return KYMO_E_MEMORY;
	}
	if (sql_tables_add_tid(sql, cls) < 0)
		return KYMO_E_MEMORY;
	return sql_tables_add_class(table, cls);
}

static int sql_tables_fixed(struct ky_sql *sql)
{
	/* SQLite's own: statements use them beside those of traces. */
	static const char *const others[] = {
		"json_each",	   "json_tree",		 "sqlite_master",     "sqlite_schema",
		"sqlite_sequence", "sqlite_temp_master", "sqlite_temp_schema"};
	struct ky_sql_table *all = sql_tables_new(sql, "event", KY_SQL_ALL_EVENTS);

	for (size_t i = 0; i < LEN(others); i++)
		if (ky_names_set(&sql->taken, others[i], TAKEN) < 0)
			return KYMO_E_MEMORY;
	if (!all || sql_tables_add_columns(all, base_columns, LEN(base_columns)) < 0 ||
	    sql_tables_add_columns(all, all_columns, LEN(all_columns)) < 0)
		return KYMO_E_MEMORY;
	all->about = "all events, in the order of time";
	for (size_t i = 0; i < LEN(sources); i++) {
		const struct ky_sql_source *source = sources[i];
		struct ky_sql_table *table = sql_tables_new(sql, source->name, KY_SQL_PASS);

		if (!table || sql_tables_add_columns(table, source->columns, source->n_columns) < 0)
			return KYMO_E_MEMORY;
		table->about = source->about;
		table->source = source;
	}
	return KYMO_OK;
}

static int sql_tables_tell_cut(struct ky_sql_table *table)
{
	table->about = ky_arena_printf(&table->sql->arena,
				       "%s; the fields beyond %d are in the column fields of event",
				       table->about, KY_SQL_COLUMNS_MAX);
	return table->about ? KYMO_OK : KYMO_E_MEMORY;
}

int ky_sql_find_tables(struct ky_sql *sql)
{
	int ret = sql_tables_fixed(sql);

	ky_vec_foreach(&sql->set->traces, trace) {
		const struct ky_trace_class *cls = (*trace)->cls;
		const struct ky_env *host = ky_env_find(cls, "hostname");
		const char *name = host && host->is_text ? host->text : "";

		if (ret < 0 || ky_map_set(&sql->hosts, (uintptr_t)cls, (void *)(uintptr_t)name) < 0)
			return KYMO_E_MEMORY;
		ky_vec_foreach(&cls->events, event)
			if (!ret)
				ret = sql_tables_take(sql, *event);
	}
	ky_vec_foreach(&sql->tables, table) {
		if (!ret)
			ret = sql_tables_bind(*table);
		if (!ret && (*table)->is_cut)
			ret = sql_tables_tell_cut(*table);
	}
	return ret;
}

int ky_sql_add_table(struct ky_sql *sql, const struct ky_sql_source *source)
{
	struct ky_sql_table *table = sql_tables_new(sql, source->name, KY_SQL_PASS);

	if (!table || sql_tables_add_columns(table, source->columns, source->n_columns) < 0)
		return KYMO_E_MEMORY;
	table->about = source->about;
	table->source = source;
	return KYMO_OK;
}

/* ---- what SQLite knows ------------------------------------------------------------------ */

static int sql_tables_know(struct ky_sql *sql, const char *word, size_t len)
{
	char key[NAME_MAX_BYTES + 32];
	struct ky_sql_table *table;

	if (len >= sizeof(key))
		return KYMO_OK;
	for (size_t i = 0; i < len; i++)
		key[i] = (char)tolower((unsigned char)word[i]);
	key[len] = '\0';
	table = ky_names_get(&sql->by_key, key);
	if (!table || table->is_known)
		return KYMO_OK;
	table->is_known = true;
	return ky_sqlite.sqlite3_create_module_v2(sql->db, table->name,
						  table->source ? &ky_sql_pass_module
								: &ky_sql_event_module,
						  table, NULL) == SQLITE_OK
		       ? KYMO_OK
		       : KYMO_E_MEMORY;
}

int ky_sql_know_tables(struct ky_sql *sql, const char *text)
{
	int ret = KYMO_OK;

	/* Tables' names have only letters, with or without quotes around them. */
	while (*text && !ret) {
		size_t len = strspn(text, LETTERS);

		if (len)
			ret = sql_tables_know(sql, text, len);
		text += len ? len : strcspn(text, LETTERS);
	}
	return ret;
}

static const char *sql_tables_about(const struct ky_sql_column *columns, size_t n,
				    const char *column)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(columns[i].name, column) == 0)
			return columns[i].about;
	return NULL;
}

const char *ky_sql_about(const char *table, const char *column)
{
	const char *about;

	for (size_t i = 0; i < LEN(sources); i++)
		if (strcmp(sources[i]->name, table) == 0)
			return sql_tables_about(sources[i]->columns, sources[i]->n_columns, column);
	about = sql_tables_about(base_columns, LEN(base_columns), column);
	if (!about && strcmp(table, "event") == 0)
		return sql_tables_about(all_columns, LEN(all_columns), column);
	return about ? about : "field or context field of the event";
}

bool ky_sql_table(const struct ky_sql *sql, size_t i, const char **name, const char **about)
{
	if (i >= sql->tables.len)
		return false;
	*name = sql->tables.data[i]->name;
	*about = sql->tables.data[i]->about;
	return true;
}

bool ky_sql_column(const struct ky_sql *sql, size_t table, size_t i, const char **name,
		   const char **type, const char **about)
{
	const struct ky_sql_table *of = table < sql->tables.len ? sql->tables.data[table] : NULL;

	if (!of || i >= of->columns.len)
		return false;
	*name = of->columns.data[i].name;
	*type = of->columns.data[i].type;
	*about = of->columns.data[i].about;
	return true;
}
