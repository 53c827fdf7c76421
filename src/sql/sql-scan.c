/* SPDX-License-Identifier: MIT */
#include "sql/sql-scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/select.h"
#include "sql/sql-sources.h"

/* A table of events, for events of one class. */
struct sql_scan_class {
	struct sql_scan_part *part;
	const struct ky_sql_class *cls; /* NULL: the table of all events */
	struct sql_scan_class *next;	/* of the same event class */
};

/* A table of the scan. */
struct sql_scan_part {
	const struct ky_sql_table *table;
	const struct ky_sql_scan_table *wanted;
	size_t number;		   /* in the scan */
	struct ky_sql_pass *pass;  /* NULL: a table of events */
	struct ky_sql_cell *cells; /* of a row of events */
};

struct sql_scan {
	struct ky_sql *sql;
	const struct ky_sql_scan_sink *sink;
	struct sql_scan_part *parts;
	size_t n_parts;
	struct ky_model *model; /* NULL: no table needs it */
	struct ky_sql_before before;
	bool wants_all;	       /* events of all kinds */
	struct ky_map classes; /* struct ky_event_class * -> struct sql_scan_class * */
	struct ky_arena arena;
	struct ky_sql_rows texts; /* of rows of events */
	struct ky_flow *flow;
};

/* ---- tables --------------------------------------------------------------------------- */

static bool sql_scan_wants(const struct ky_sql_scan_table *wanted, const char *name,
			   const struct ky_sql_table *table)
{
	for (size_t i = 0; i < wanted->n_columns; i++)
		if (strcmp(table->columns.data[wanted->columns[i]].name, name) == 0)
			return true;
	return false;
}

static int sql_scan_add_class(struct sql_scan *scan, struct sql_scan_part *part,
			      const struct ky_event_class *cls, const struct ky_sql_class *own)
{
	struct sql_scan_class *one = ky_arena_new(&scan->arena, struct sql_scan_class);

	if (!one)
		return KYMO_E_MEMORY;
	one->part = part;
	one->cls = own;
	one->next = ky_map_get(&scan->classes, (uintptr_t)cls);
	return ky_map_set(&scan->classes, (uintptr_t)cls, one);
}

static int sql_scan_add_events(struct sql_scan *scan, struct sql_scan_part *part)
{
	const struct ky_sql_table *table = part->table;
	int ret = KYMO_OK;

	part->cells = ky_arena_array(&scan->arena, table->columns.len + 1, sizeof(*part->cells));
	if (!part->cells)
		return KYMO_E_MEMORY;
	if (table->shape == KY_SQL_EVENTS) {
		ky_vec_foreach(&table->classes, cls)
			ret = ret ? ret : sql_scan_add_class(scan, part, cls->cls, cls);
		return ret;
	}
	scan->wants_all = true;
	ky_vec_foreach(&scan->sql->set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->events, event)
			ret = ret ? ret : sql_scan_add_class(scan, part, *event, NULL);
	return ret;
}

static int sql_scan_add_pass(struct sql_scan *scan, struct sql_scan_part *part)
{
	struct ky_sql_pass *pass = ky_arena_new(&scan->arena, struct ky_sql_pass);

	if (!pass)
		return KYMO_E_MEMORY;
	pass->table = part->table;
	pass->source = part->table->source;
	pass->is_fed = true;
	pass->end_ns = INT64_MAX;
	ky_sql_rows_init(&pass->rows, (uint32_t)part->table->columns.len);
	for (size_t i = 0; i < part->wanted->n_columns; i++)
		pass->rows.used |=
			UINT64_C(1)
			<< (part->wanted->columns[i] < 63 ? part->wanted->columns[i] : 63);
	ky_arena_init(&pass->arena);
	ky_focus_init(&pass->focus);
	part->pass = pass;
	return KYMO_OK;
}

/* One model for all, and one pass before. */
static int sql_scan_prepare_model(struct sql_scan *scan, struct kymo_error *err)
{
	bool causes = false, locks = false, model = false;

	for (size_t i = 0; i < scan->n_parts; i++) {
		const struct sql_scan_part *part = &scan->parts[i];

		model |= part->pass && !part->pass->source->open && !part->pass->source->next;
		causes |= part->pass && (sql_scan_wants(part->wanted, "cause", part->table) ||
					 sql_scan_wants(part->wanted, "who_tid", part->table));
		locks |= part->pass && sql_scan_wants(part->wanted, "is_lock", part->table);
	}
	if (!model)
		return KYMO_OK;
	scan->wants_all = true;
	scan->model = ky_model_new(scan->sql->set, err);
	if (!scan->model)
		return ky_error_nomem(err);
	return causes || locks
		       ? ky_sql_before_run(&scan->before, scan->sql, NULL, causes, locks, err)
		       : KYMO_OK;
}

static int sql_scan_listen(struct sql_scan *scan, struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct ky_listener listener = {.data = pass};
	int ret = KYMO_OK;

	pass->model = scan->model;
	pass->before = &scan->before;
	if (pass->source->listen)
		ret = pass->source->listen(pass, &listener, err);
	if (ret < 0)
		return ret;
	return ky_model_listen(scan->model, &listener) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int sql_scan_begin(struct sql_scan *scan, struct kymo_error *err)
{
	int ret = sql_scan_prepare_model(scan, err);

	for (size_t i = 0; i < scan->n_parts && ret >= 0; i++) {
		struct ky_sql_pass *pass = scan->parts[i].pass;

		if (!pass)
			continue;
		ret = pass->source->open ? pass->source->open(pass, err)
					 : sql_scan_listen(scan, pass, err);
		if (ret >= 0 && pass->damage.code) {
			*err = pass->damage;
			ret = err->code;
		}
		scan->wants_all |= pass->wants_events && !pass->wanted;
	}
	return ret < 0 ? ret : KYMO_OK;
}

/* ---- events --------------------------------------------------------------------------- */

static bool sql_scan_needs(const struct sql_scan *scan, const struct ky_event_class *cls)
{
	if (ky_map_get(&scan->classes, (uintptr_t)cls))
		return true;
	for (size_t i = 0; i < scan->n_parts; i++) {
		const struct ky_sql_pass *pass = scan->parts[i].pass;

		if (pass && pass->wants_events && pass->wanted && pass->wanted(pass, cls))
			return true;
	}
	return false;
}

KY_VEC_TYPE(sql_scan_names, const char *);

static int sql_scan_find_names(struct sql_scan *scan, struct sql_scan_names *names)
{
	struct ky_names known;
	int ret = KYMO_OK;

	ky_names_init(&known);
	ky_vec_foreach(&scan->sql->set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, event) {
			const char *name;

			if (ret < 0 || ky_names_get(&known, (*event)->name) ||
			    !sql_scan_needs(scan, *event))
				continue;
			/* An empty name cannot be chosen. */
			scan->wants_all |= !*(*event)->name;
			name = ky_sql_quote_name(&scan->arena, (*event)->name);
			if (!name || ky_names_set(&known, (*event)->name, &known) < 0 ||
			    ky_vec_push(names, name) < 0)
				ret = KYMO_E_MEMORY;
		}
	}
	ky_names_fini(&known);
	return ret;
}

/* ->flow stays NULL, if no table needs events. */
static int sql_scan_open(struct sql_scan *scan, struct kymo_error *err)
{
	struct sql_scan_names names = KY_VEC_INIT;
	struct ky_selection selection;
	int ret = sql_scan_find_names(scan, &names) < 0 ? ky_error_nomem(err) : KYMO_OK;

	ky_selection_init(&selection);
	if (!scan->wants_all) {
		selection.events = names.data;
		selection.n_events = names.len;
	}
	if (!ret && (scan->wants_all || names.len))
		ret = ky_flow_open_selected(scan->sql->set, &selection, &scan->flow, err);
	ky_vec_fini(&names);
	return ret;
}

static int sql_scan_put_event(struct sql_scan *scan, const struct sql_scan_class *one,
			      const struct ky_event *event, struct kymo_error *err)
{
	const struct sql_scan_part *part = one->part;

	for (size_t i = 0; i < part->wanted->n_columns; i++)
		ky_sql_event_cell(part->table, one->cls, event, part->wanted->columns[i],
				  &scan->texts, &part->cells[part->wanted->columns[i]]);
	return scan->sink->row(scan->sink->data, part->number, part->cells, err);
}

static int sql_scan_put_events(struct sql_scan *scan, const struct ky_batch *batch,
			       struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!scan->classes.len)
		return KYMO_OK;
	for (size_t i = 0; i < batch->n_events && !ret; i++) {
		const struct ky_event *event = &batch->events[i];
		const struct sql_scan_class *one =
			ky_map_get(&scan->classes, (uintptr_t)event->cls);

		for (; one && !ret; one = one->next)
			ret = sql_scan_put_event(scan, one, event, err);
		if (scan->texts.has_texts)
			ky_sql_rows_drain(&scan->texts);
	}
	return ret;
}

/* ---- rows of passes ------------------------------------------------------------------- */

static int sql_scan_drain(struct sql_scan *scan, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < scan->n_parts && !ret; i++) {
		const struct sql_scan_part *part = &scan->parts[i];
		struct ky_sql_rows *rows = part->pass ? &part->pass->rows : NULL;

		for (size_t row = 0; rows && row < rows->n && !ret; row++)
			ret = scan->sink->row(scan->sink->data, part->number,
					      rows->cells.data + row * rows->n_columns, err);
		if (rows && rows->n)
			ky_sql_rows_drain(rows);
	}
	return ret;
}

static int sql_scan_take(struct sql_scan *scan, const struct ky_batch *batch,
			 struct kymo_error *err)
{
	int ret = scan->model ? ky_model_feed(scan->model, batch, err) : KYMO_OK;

	for (size_t i = 0; i < scan->n_parts && ret >= 0; i++) {
		struct ky_sql_pass *pass = scan->parts[i].pass;

		if (pass && pass->source->take && pass->wants_events)
			ret = pass->source->take(pass, batch, err);
	}
	if (ret >= 0)
		ret = sql_scan_put_events(scan, batch, err);
	return ret < 0 ? ret : sql_scan_drain(scan, err);
}

static int sql_scan_finish(struct sql_scan *scan, struct kymo_error *err)
{
	int ret = scan->model && scan->flow ? ky_model_end(scan->model, err) : KYMO_OK;

	for (size_t i = 0; i < scan->n_parts && ret >= 0; i++) {
		struct ky_sql_pass *pass = scan->parts[i].pass;
		int more = pass && pass->source->finish;

		while (more > 0 && ret >= 0) {
			more = pass->source->finish(pass, err);
			ret = more < 0 ? more : sql_scan_drain(scan, err);
		}
	}
	return ret < 0 ? ret : sql_scan_drain(scan, err);
}

static int sql_scan_run(struct sql_scan *scan, struct kymo_error *err)
{
	struct ky_batch batch;
	struct kymo_error damage = {0};
	int ret = sql_scan_drain(scan, err), more = scan->flow ? 1 : 0;

	while (!ret && more > 0) {
		if (ky_sql_is_stopped(scan->sql, err))
			return KYMO_E_INTERRUPTED;
		more = ky_flow_next(scan->flow, &batch, &damage);
		if (more > 0)
			ret = sql_scan_take(scan, &batch, err);
	}
	if (!ret)
		ret = sql_scan_finish(scan, err);
	/* A trace that is still being written: that is what there is of it. */
	if (!ret && more < 0 && more != KYMO_E_AGAIN) {
		*err = damage;
		ret = more;
	}
	return ret;
}

/* ---- begin and end -------------------------------------------------------------------- */

static int sql_scan_add(struct sql_scan *scan, const struct ky_sql_scan_table *tables, size_t n)
{
	int ret = KYMO_OK;

	scan->parts = ky_arena_array(&scan->arena, n + 1, sizeof(*scan->parts));
	if (!scan->parts)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n && !ret; i++) {
		struct sql_scan_part *part = &scan->parts[i];

		scan->n_parts = i + 1;
		part->table = scan->sql->tables.data[tables[i].number];
		part->wanted = &tables[i];
		part->number = i;
		ret = part->table->shape == KY_SQL_PASS ? sql_scan_add_pass(scan, part)
							: sql_scan_add_events(scan, part);
	}
	return ret;
}

static void sql_scan_fini(struct sql_scan *scan)
{
	for (size_t i = 0; i < scan->n_parts; i++) {
		struct ky_sql_pass *pass = scan->parts[i].pass;

		if (!pass)
			continue;
		ky_sql_pass_end(pass);
		ky_focus_fini(&pass->focus);
		ky_arena_fini(&pass->arena);
		ky_sql_rows_fini(&pass->rows);
	}
	ky_flow_close(scan->flow);
	ky_sql_before_fini(&scan->before);
	ky_model_free(scan->model);
	ky_map_fini(&scan->classes);
	ky_sql_rows_fini(&scan->texts);
	ky_arena_fini(&scan->arena);
}

int ky_sql_scan(struct ky_sql *sql, const struct ky_sql_scan_table *tables, size_t n,
		const struct ky_sql_scan_sink *sink, struct kymo_error *err)
{
	struct sql_scan scan = {.sql = sql, .sink = sink};
	int ret;

	ky_arena_init(&scan.arena);
	ky_map_init(&scan.classes);
	ky_sql_rows_init(&scan.texts, 0);
	ret = sql_scan_add(&scan, tables, n) < 0 ? ky_error_nomem(err) : KYMO_OK;
	if (!ret)
		ret = sql_scan_begin(&scan, err);
	if (!ret)
		ret = sql_scan_open(&scan, err);
	if (!ret)
		ret = sql_scan_run(&scan, err);
	sql_scan_fini(&scan);
	return ret;
}
