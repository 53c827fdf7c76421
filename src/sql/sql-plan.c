/* SPDX-License-Identifier: MIT */
#include "sql/sql-plan.h"

#include <string.h>

#include "base/strbuf.h"

#define PLAN_BYTES 1024

static const char *sql_plan_operator(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return "==";
	case SQLITE_INDEX_CONSTRAINT_GT:
		return ">";
	case SQLITE_INDEX_CONSTRAINT_GE:
		return ">=";
	case SQLITE_INDEX_CONSTRAINT_LT:
		return "<";
	case SQLITE_INDEX_CONSTRAINT_LE:
		return "<=";
	default:
		return NULL;
	}
}

/* The arguments of a table that is called like a function: without their values there is no answer. */
static bool sql_plan_lacks_argument(const struct ky_sql_table *table,
				    const sqlite3_index_info *info)
{
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *one = &info->aConstraint[i];

		if (!one->usable && one->op == SQLITE_INDEX_CONSTRAINT_EQ && one->iColumn >= 0 &&
		    table->columns.data[one->iColumn].kind == KY_SQL_ARGUMENT)
			return true;
	}
	return false;
}

/* Texts are compared byte by byte here. */
static bool sql_plan_is_binary(const struct ky_sql_column *column, sqlite3_index_info *info, int i)
{
	const char *collation;

	if (strcmp(column->type, "TEXT") != 0)
		return true;
	collation = ky_sqlite.sqlite3_vtab_collation(info, i);
	return collation && strcmp(collation, "BINARY") == 0;
}

/* " reads name, tid": for people, behind the words. SQLite counts the columns from the 64th on as one. */
static void sql_plan_put_columns(const struct ky_sql_table *table, uint64_t used,
				 struct ky_strbuf *plan)
{
	const char *before = " reads ";

	for (size_t i = 0; i < table->columns.len; i++) {
		if (!(used >> (i < 63 ? i : 63) & 1))
			continue;
		if (plan->len > PLAN_BYTES || i >= 63) {
			ky_strbuf_adds(plan, i >= 63 ? ", and columns from the 64th on" : ", ...");
			break;
		}
		ky_strbuf_addf(plan, "%s%s", before, table->columns.data[i].name);
		before = ", ";
	}
	if (!used)
		ky_strbuf_adds(plan, " reads no columns");
}

int ky_sql_plan(const struct ky_sql_table *table, sqlite3_index_info *info, ky_sql_takes takes,
		double cost)
{
	struct ky_strbuf plan = KY_STRBUF_INIT;
	double rows = cost / 10;
	int n = 0;

	if (sql_plan_lacks_argument(table, info))
		return SQLITE_CONSTRAINT;
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *one = &info->aConstraint[i];
		const char *op = sql_plan_operator(one->op);
		const struct ky_sql_column *column;

		if (!one->usable || !op || one->iColumn < 0)
			continue;
		column = &table->columns.data[one->iColumn];
		if (!takes(table, column, op) || !sql_plan_is_binary(column, info, i) ||
		    plan.len > PLAN_BYTES)
			continue;
		ky_strbuf_addf(&plan, "%s%s;", column->name, op);
		/* SQLite compares again: the reader's words may mean less. */
		info->aConstraintUsage[i].argvIndex = ++n;
		info->aConstraintUsage[i].omit = column->kind == KY_SQL_ARGUMENT;
		cost /= column->kind == KY_SQL_TIME ? 4 : 10;
		rows /= 10;
	}
	sql_plan_put_columns(table, info->colUsed, &plan);
	info->idxStr = ky_strbuf_failed(&plan)
			       ? NULL
			       : ky_sqlite.sqlite3_mprintf("%s", ky_strbuf_text(&plan));
	ky_strbuf_fini(&plan);
	if (!info->idxStr)
		return SQLITE_NOMEM;
	info->needToFreeIdxStr = 1;
	info->estimatedCost = cost;
	info->estimatedRows = (sqlite3_int64)rows + 1;
	return SQLITE_OK;
}

const struct ky_sql_column *ky_sql_plan_next(const struct ky_sql_table *table, const char **plan,
					     const char **op)
{
	const char *word = *plan;
	size_t len;

	if (!word || !*word)
		return NULL;
	len = strcspn(word, "=<>");
	*op = word + len;
	/* Behind the words are the columns, for people. */
	*plan = strchr(word, ';');
	if (!*plan)
		return NULL;
	++*plan;
	ky_vec_foreach(&table->columns, column)
		if (strlen(column->name) == len && memcmp(column->name, word, len) == 0)
			return column;
	return NULL;
}
