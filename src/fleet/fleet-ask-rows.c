/* SPDX-License-Identifier: MIT */
/* The store's answer, row by row: cells of a report's table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/fleet-ask-table.h"

#define TALLY_MAX      4096 /* kinds of errors, CPUs */
#define ROWS_MAX_BYTES (UINT64_C(256) << 20)

/* The values of one cell. */
struct ask_parts {
	const struct ky_sql_value *of[KY_FLEET_NR + 1];
};

static int32_t ask_id(const struct ky_sql_value *value)
{
	return value && value->type == KY_SQL_INTEGER && value->integer >= 0 &&
			       value->integer <= INT32_MAX
		       ? (int32_t)value->integer
		       : -1;
}

/* A copy, which the caller frees; NULL: none, or out of memory. */
static char *ask_text(struct ky_table *to, const struct ky_sql_value *value)
{
	char *text;

	if (!value || value->type != KY_SQL_TEXT || !value->text)
		return NULL;
	text = strndup(value->text, value->len);
	to->failed |= !text;
	return text;
}

static void ask_put_thread(struct ky_table *to, struct ky_cell *cell, const struct ask_parts *parts)
{
	char *comm = ask_text(to, parts->of[KY_FLEET_COMM]);
	int32_t tid = ask_id(parts->of[KY_FLEET_TID]);

	if (comm || tid >= 0)
		ky_cell_process(to, cell, tid, ask_id(parts->of[KY_FLEET_PID]), comm ? comm : "",
				NULL);
	free(comm);
}

static void ask_put_irq(struct ky_table *to, struct ky_cell *cell, const struct ask_parts *parts)
{
	static const char *const kinds[] = {"hard", "soft", "vector"};
	char *name = ask_text(to, parts->of[KY_FLEET_VALUE]);
	char *kind = ask_text(to, parts->of[KY_FLEET_KIND]);
	const char *known = "";

	for (size_t i = 0; kind && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kind, kinds[i]) == 0)
			known = kinds[i];
	if (name || kind)
		ky_cell_irq(to, cell, known, ask_id(parts->of[KY_FLEET_NR]), name ? name : "");
	free(name);
	free(kind);
}

KY_VEC_TYPE(ask_tally, struct ky_tally_item);

/* Adds @count to the item that is called @name, a text of the caller's. */
static int ask_add_item(struct ask_tally *items, const char *name, uint64_t count)
{
	ky_vec_foreach(items, item)
		if (strcmp(item->name, name) == 0) {
			item->count += count;
			return KYMO_OK;
		}
	return ky_vec_push(items, (struct ky_tally_item){name, count});
}

static int ask_compare_items(const void *a, const void *b)
{
	const struct ky_tally_item *one = a, *other = b;

	if (one->count != other->count)
		return one->count < other->count ? 1 : -1;
	return strcmp(one->name, other->name);
}

/* "EAGAIN=2, EINTR=1, EAGAIN=3": those of one trace after the other. */
static void ask_put_tally(struct ky_table *to, struct ky_cell *cell,
			  const struct ky_sql_value *value)
{
	char *text = ask_text(to, value), *rest = text, *name;
	struct ask_tally items = KY_VEC_INIT;

	while (rest && (name = strsep(&rest, ","))) {
		char *equals = strrchr(name, '=');

		name += *name == ' ';
		if (!equals || items.len >= TALLY_MAX)
			continue;
		*equals = '\0';
		to->failed |= ask_add_item(&items, name, strtoull(equals + 1, NULL, 10)) < 0;
	}
	if (items.len) {
		qsort(items.data, items.len, sizeof(*items.data), ask_compare_items);
		ky_cell_tally(to, cell, items.data, items.len);
	}
	ky_vec_fini(&items);
	free(text);
}

static void ask_put_number(struct ky_cell *cell, enum ky_cell_class cls,
			   const struct ky_sql_value *value)
{
	bool is_part = cls == KY_CELL_RATIO || cls == KY_CELL_RATE;
	double real = value->type == KY_SQL_INTEGER ? (double)value->integer : value->real;

	if (value->type == KY_SQL_TEXT)
		real = strtod(value->text, NULL);
	if (isnan(real) || isinf(real))
		return;
	if (is_part || value->type != KY_SQL_INTEGER)
		ky_cell_f64(cell, is_part ? real / KY_FLEET_MILLION : real);
	else if (value->integer < 0 || cls == KY_CELL_TIMESTAMP)
		ky_cell_i64(cell, value->integer);
	else
		ky_cell_u64(cell, (uint64_t)value->integer);
}

static bool ask_is_text(enum ky_cell_class cls)
{
	return cls == KY_CELL_TEXT || cls == KY_CELL_PATH || cls == KY_CELL_SYSCALL ||
	       cls == KY_CELL_DISK || cls == KY_CELL_NETIF;
}

static void ask_put(struct ky_table *to, struct ky_cell *cell, enum ky_cell_class cls,
		    const struct ask_parts *parts)
{
	const struct ky_sql_value *value = parts->of[KY_FLEET_VALUE];
	char *text;

	if (cls == KY_CELL_TALLY) {
		ask_put_tally(to, cell, value);
	} else if (cls == KY_CELL_PROCESS) {
		ask_put_thread(to, cell, parts);
	} else if (cls == KY_CELL_IRQ) {
		ask_put_irq(to, cell, parts);
	} else if (ask_is_text(cls)) {
		text = ask_text(to, value);
		if (text)
			ky_cell_text(to, cell, text);
		free(text);
	} else if (value && value->type != KY_SQL_NULL && value->type != KY_SQL_BLOB) {
		ask_put_number(cell, cls, value);
	}
}

static bool ask_lacks(const struct ky_fleet_ask_table *table)
{
	ky_vec_foreach(&table->selects, select)
		if (select->merge == KY_FLEET_ONLY && table->adds_up)
			return true;
	return false;
}

int ky_fleet_ask_on_row(void *data, const struct ky_sql_value *values, size_t n,
			struct kymo_error *err)
{
	struct ky_fleet_ask_run *run = data;
	struct ky_fleet_ask_table *table = run->table;
	struct ky_cell *row = ky_table_row(run->to);

	if (n != table->selects.len + 1)
		return ky_error_set(err, KYMO_E_FORMAT, "the store's answer has %zu columns", n);
	for (size_t i = 0; i < table->selects.len;) {
		size_t column = table->selects.data[i].column;
		struct ask_parts parts = {{NULL}};

		for (; i < table->selects.len && table->selects.data[i].column == column; i++) {
			parts.of[table->selects.data[i].part] = &values[i + 1];
			run->bytes += values[i + 1].len;
		}
		ask_put(run->to, &row[column], table->shown->columns[column].cls, &parts);
	}
	run->bytes += table->shown->n_columns * sizeof(*row);
	table->n_merged += values[0].integer > 1 && ask_lacks(table);
	if (run->to->failed)
		return ky_error_nomem(err);
	if (run->bytes > ROWS_MAX_BYTES) {
		ky_error_set(err, KYMO_E_LIMIT, "the rows of table %s have more than 256 MiB",
			     table->shown->name);
		ky_error_hint(err, "ask for fewer rows, for fewer hosts, or for a shorter time");
		return KYMO_E_LIMIT;
	}
	return KYMO_OK;
}
