/* SPDX-License-Identifier: MIT */
/* Outputs of type DATA_TREE: reports, a table each as a branch of the tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reports/report.h"
#include "base/error.h"
#include "view/tsp/tsp-internal.h"

struct tree {
	struct ky_strbuf *out;
	const struct ky_json *tables; /* an array */
	size_t n_columns;	      /* of the widest table */
	bool is_single;		      /* one table, which has the titles in the heads of columns */
	uint64_t n_entries;
};

/* ---- cells ------------------------------------------------------------------------------- */

static void tsp_data_tree_add_text(struct ky_strbuf *text, const struct ky_json *value)
{
	if (value && value->kind == KY_JSON_STRING)
		ky_strbuf_add(text, value->string.data, value->string.len);
}

static void tsp_data_tree_add_number(struct ky_strbuf *text, const struct ky_json *value)
{
	if (value->kind == KY_JSON_INTEGER && value->integer.negative)
		ky_strbuf_addi(text, (int64_t)value->integer.u);
	else if (value->kind == KY_JSON_INTEGER)
		ky_strbuf_addu(text, value->integer.u);
	else
		ky_strbuf_adds(text, value->number);
}

/* A process: "name (tid)"; an interrupt: "irq 24 eth0"; a tally: "EAGAIN 2, EINTR 1". */
static void add_object(struct ky_strbuf *text, const struct ky_json *value)
{
	const struct ky_json *tid = ky_json_get(value, "tid");
	bool is_irq = ky_json_get(value, "nr") != NULL;

	if (tid) {
		tsp_data_tree_add_text(text, ky_json_get(value, "name"));
		if (tid->kind == KY_JSON_INTEGER)
			ky_strbuf_addf(text, " (%lld)", (long long)tid->integer.u);
		return;
	}
	for (const struct ky_json *one = value->list.first; one; one = one->next) {
		ky_strbuf_adds(text, one == value->list.first ? "" : is_irq ? " " : ", ");
		if (!is_irq)
			ky_strbuf_addf(text, "%s ", one->key);
		if (one->kind == KY_JSON_INTEGER || one->kind == KY_JSON_REAL)
			tsp_data_tree_add_number(text, one);
		else
			tsp_data_tree_add_text(text, one);
	}
}

static void tsp_data_tree_put_cell(struct ky_strbuf *out, const struct ky_json *value)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (value && (value->kind == KY_JSON_INTEGER || value->kind == KY_JSON_BIG ||
		      value->kind == KY_JSON_REAL))
		tsp_data_tree_add_number(&text, value);
	else if (value && value->kind == KY_JSON_OBJECT)
		add_object(&text, value);
	else
		tsp_data_tree_add_text(&text, value);
	ky_view_put_text(out, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

/* ---- heads ------------------------------------------------------------------------------- */

static const char *tsp_data_tree_text_of(const struct ky_json *object, const char *name)
{
	const struct ky_json *value = object ? ky_json_get(object, name) : NULL;

	return value && value->kind == KY_JSON_STRING ? value->string.data : "";
}

static const char *type_of(const struct ky_json *column)
{
	static const char *const types[][2] = {
		{"count", "NUMBER"}, {"number", "NUMBER"},	 {"duration", "NUMBER"},
		{"ratio", "NUMBER"}, {"timestamp", "TIMESTAMP"}, {"size", "BINARY_NUMBER"},
		{"rate", "NUMBER"},
	};
	const char *class = tsp_data_tree_text_of(column, "class");

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strcmp(types[i][0], class) == 0)
			return types[i][1];
	}
	return "STRING";
}

static const struct ky_json *columns_of(const struct ky_json *table)
{
	const struct ky_json *columns = ky_json_get(table, "columns");

	return columns && columns->kind == KY_JSON_ARRAY ? columns->list.first : NULL;
}

static void tsp_data_tree_put_title(struct ky_strbuf *out, const struct ky_json *column)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_adds(&text, tsp_data_tree_text_of(column, "title"));
	if (strcmp(tsp_data_tree_text_of(column, "class"), "duration") == 0)
		ky_strbuf_adds(&text, " (ns)");
	ky_view_put_text(out, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

/* Several tables have different columns: then each table's entry has their titles. */
static void put_heads(struct tree *tree)
{
	const struct ky_json *column =
		tree->is_single ? columns_of(tree->tables->list.first) : NULL;

	for (size_t i = 0; i < tree->n_columns; i++) {
		ky_strbuf_adds(tree->out, i ? ", {\"name\": " : "{\"name\": ");
		if (column)
			tsp_data_tree_put_title(tree->out, column);
		else
			ky_view_put_text(tree->out, i ? "" : "Report");
		ky_strbuf_addf(tree->out, ", \"tooltip\": \"\", \"dataType\": \"%s\"}",
			       column ? type_of(column) : "STRING");
		column = column ? column->next : NULL;
	}
}

/* ---- entries ----------------------------------------------------------------------------- */

static uint64_t begin_entry(struct tree *tree, int64_t parent)
{
	uint64_t id = tree->n_entries++;

	ky_strbuf_addf(tree->out, "%s{\"id\": %llu, \"parentId\": %lld, \"labels\": [",
		       id ? ",\n" : "", (unsigned long long)id, (long long)parent);
	return id;
}

static void end_entry(struct tree *tree, size_t n_labels)
{
	for (; n_labels < tree->n_columns; n_labels++)
		ky_strbuf_adds(tree->out, n_labels ? ", \"\"" : "\"\"");
	ky_strbuf_adds(tree->out, "]}");
}

/* "CPU time by thread: Thread", and the other titles. */
static uint64_t put_table_entry(struct tree *tree, const struct ky_json *table)
{
	uint64_t id = begin_entry(tree, -1);
	size_t n = 0;

	for (const struct ky_json *column = columns_of(table); column; column = column->next, n++) {
		struct ky_strbuf text = KY_STRBUF_INIT;

		if (!n)
			ky_strbuf_addf(&text, "%s: ", tsp_data_tree_text_of(table, "title"));
		ky_strbuf_adds(&text, tsp_data_tree_text_of(column, "title"));
		if (strcmp(tsp_data_tree_text_of(column, "class"), "duration") == 0)
			ky_strbuf_adds(&text, " (ns)");
		ky_strbuf_adds(tree->out, n ? ", " : "");
		ky_view_put_text(tree->out, ky_strbuf_text(&text));
		ky_strbuf_fini(&text);
	}
	end_entry(tree, n);
	return id;
}

/* Rows of call stacks are a tree: each is below the last one before it with a smaller depth. */
#define DEPTH_MAX 1024u

struct parents {
	int64_t ids[DEPTH_MAX + 1]; /* by depth */
	size_t n;
};

static int64_t tsp_data_tree_parent(struct parents *parents, const struct ky_json *row)
{
	const struct ky_json *depth = ky_json_get(row, "depth");

	if (depth && depth->kind == KY_JSON_INTEGER && depth->integer.u + 1 < parents->n)
		parents->n = (size_t)depth->integer.u + 1;
	else if (!depth)
		parents->n = 1;
	return parents->ids[parents->n - 1];
}

static void tsp_data_tree_opened(struct parents *parents, uint64_t id)
{
	if (parents->n <= DEPTH_MAX)
		parents->ids[parents->n++] = (int64_t)id;
}

static void put_table(struct tree *tree, const struct ky_json *table)
{
	struct parents parents = {.n = 1};
	const struct ky_json *rows = ky_json_get(table, "rows");

	parents.ids[0] = tree->is_single ? -1 : (int64_t)put_table_entry(tree, table);

	for (const struct ky_json *row = rows ? rows->list.first : NULL; row; row = row->next) {
		size_t n = 0;

		tsp_data_tree_opened(&parents,
				     begin_entry(tree, tsp_data_tree_parent(&parents, row)));
		for (const struct ky_json *column = columns_of(table); column;
		     column = column->next, n++) {
			ky_strbuf_adds(tree->out, n ? ", " : "");
			tsp_data_tree_put_cell(
				tree->out, ky_json_get(row, tsp_data_tree_text_of(column, "name")));
		}
		end_entry(tree, n);
	}
}

/* ---- the answer -------------------------------------------------------------------------- */

static void tsp_data_tree_put_tree(struct tree *tree)
{
	size_t n_tables = 0;

	for (const struct ky_json *table = tree->tables->list.first; table; table = table->next) {
		size_t n = 0;

		for (const struct ky_json *one = columns_of(table); one; one = one->next)
			n++;
		tree->n_columns = n > tree->n_columns ? n : tree->n_columns;
		n_tables++;
	}
	tree->is_single = n_tables == 1;
	ky_tsp_put_head(tree->out, false);
	ky_strbuf_adds(tree->out, "{\"headers\": [");
	put_heads(tree);
	ky_strbuf_adds(tree->out, "], \"autoExpandLevel\": -1, \"entries\": [");
	for (const struct ky_json *table = tree->tables->list.first; table; table = table->next)
		put_table(tree, table);
	ky_strbuf_adds(tree->out, "]}}\n");
}

static const struct ky_json *tables_of(const struct ky_json *root)
{
	const struct ky_json *reports = ky_json_get(root, "reports"), *tables;

	if (!reports || reports->kind != KY_JSON_ARRAY || !reports->list.first)
		return NULL;
	tables = ky_json_get(reports->list.first, "tables");
	return tables && tables->kind == KY_JSON_ARRAY ? tables : NULL;
}

int ky_tsp_data_tree(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const char *of;
	const struct ky_report *report = ky_tsp_report(answer->request->output, &of);
	struct ky_view_request *request = calloc(1, sizeof(*request));
	struct tree tree = {.out = answer->out};
	const struct ky_json *root = NULL;
	struct ky_arena arena;
	int ret = ky_tsp_check_output(answer->request->output, "DATA_TREE", err);

	ky_arena_init(&arena);
	if (ret == KYMO_OK && !request)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK) {
		bool has_range = answer->request->has_range;

		request->what = KY_VIEW_REPORT;
		request->begin_ns = has_range ? answer->request->begin_ns : answer->view->begin_ns;
		request->end_ns = has_range ? answer->request->end_ns : answer->view->end_ns;
		snprintf(request->name, sizeof(request->name), "%s", report->name);
		snprintf(request->of, sizeof(request->of), "%s", of);
		ret = ky_tsp_ask(answer, request, &arena, &root, err);
	}
	tree.tables = ret == KYMO_OK ? tables_of(root) : NULL;
	if (tree.tables)
		tsp_data_tree_put_tree(&tree);
	else if (ret == KYMO_OK)
		ret = ky_error_set(err, KYMO_E_STATE, "the report has no tables");
	ky_arena_fini(&arena);
	free(request);
	return ret;
}
