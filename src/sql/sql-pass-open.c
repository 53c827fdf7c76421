/* SPDX-License-Identifier: MIT */
/* The begin and the end of a pass: which events it reads, from where, and what the model is asked. */
#include <stdlib.h>
#include <string.h>

#include "analysis/history/history.h"
#include "base/error.h"
#include "flow/graph/select.h"
#include "sql/sql-pass.h"

const char *ky_sql_quote_name(struct ky_arena *arena, const char *name)
{
	char *quoted = ky_arena_alloc(arena, 2 * strlen(name) + 1), *at = quoted;

	for (; quoted && *name; *at++ = *name++)
		if (strchr("*?\\!", *name))
			*at++ = '\\';
	return quoted;
}

static int sql_pass_names(struct ky_sql_pass *pass, ky_sql_wants wanted)
{
	struct ky_names known;
	int ret = KYMO_OK;

	ky_names_init(&known);
	ky_vec_clear(&pass->names);
	ky_vec_foreach(&pass->table->sql->set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, event) {
			const char *name;

			if (ret < 0 || ky_names_get(&known, (*event)->name) ||
			    !wanted(pass, *event))
				continue;
			name = ky_sql_quote_name(&pass->arena, (*event)->name);
			if (!name || ky_names_set(&known, (*event)->name, &known) < 0 ||
			    ky_vec_push(&pass->names, name) < 0)
				ret = KYMO_E_MEMORY;
		}
	}
	ky_names_fini(&known);
	return ret;
}

/* An empty name cannot be chosen: then all events are read. */
static bool sql_pass_can_choose(const struct ky_sql_pass *pass)
{
	ky_vec_foreach(&pass->names, name)
		if (!**name)
			return false;
	return true;
}

int ky_sql_pass_flow(struct ky_sql_pass *pass, ky_sql_wants wanted, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret;

	pass->wants_events = true;
	pass->wanted = wanted;
	if (pass->is_fed)
		return 1;
	ky_selection_init(&selection);
	if (wanted && sql_pass_names(pass, wanted) < 0)
		return ky_error_nomem(err);
	if (wanted && !pass->names.len)
		return KYMO_OK;
	if (wanted && sql_pass_can_choose(pass)) {
		selection.events = pass->names.data;
		selection.n_events = pass->names.len;
	}
	selection.only = pass->only;
	selection.is_over = pass->table->sql->stop;
	selection.over_data = pass->table->sql->stop_data;
	ret = ky_flow_open_selected(pass->table->sql->set, &selection, &pass->flow, err);
	return ret < 0 ? ret : pass->flow != NULL;
}

int ky_sql_open_all(const struct ky_sql *sql, const bool *only, struct ky_flow **flow,
		    struct kymo_error *err)
{
	struct ky_selection selection;

	ky_selection_init(&selection);
	selection.only = only;
	selection.is_over = sql->stop;
	selection.over_data = sql->stop_data;
	return ky_flow_open_selected(sql->set, &selection, flow, err);
}

/* ---- the begin ------------------------------------------------------------------------ */

/* With an index of the states, the pass begins shortly before the first row that matters. */
static int sql_pass_resume(struct ky_sql_pass *pass, struct kymo_error *err)
{
	int64_t from =
		pass->begin_ns > pass->focus.begin_ns ? pass->begin_ns : pass->focus.begin_ns;
	const struct ky_trace_set *set = pass->table->sql->set;
	struct ky_history *history;
	int64_t ns;
	int ret;

	if (from == INT64_MIN || pass->only)
		return KYMO_OK;
	history = ky_history_find(set, set->traces.len ? set->traces.data[0]->log : NULL);
	if (!history)
		return KYMO_OK;
	ret = ky_history_resume(history, pass->model, from, &ns, err);
	ky_history_close(history);
	return ret > 0 ? ky_flow_seek(pass->flow, ns, err) : ret;
}

static int sql_pass_begin_model(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct ky_listener listener = {.data = pass};
	int ret = KYMO_OK;

	pass->model = ky_model_new(pass->table->sql->set, err);
	if (!pass->model)
		return ky_error_nomem(err);
	if (pass->source->listen)
		ret = pass->source->listen(pass, &listener, err);
	if (ret < 0)
		return ret;
	if (ky_model_listen(pass->model, &listener) < 0)
		return ky_error_nomem(err);
	ky_model_set_focus(pass->model, &pass->focus);
	ret = ky_sql_pass_flow(pass, NULL, err);
	return ret <= 0 ? ret : sql_pass_resume(pass, err);
}

int ky_sql_pass_begin(struct ky_sql_pass *pass, struct kymo_error *err)
{
	int ret;

	if (pass->source->open) {
		ret = pass->source->open(pass, err);
		pass->is_over = ret <= 0;
	} else {
		ret = sql_pass_begin_model(pass, err);
		pass->is_over = ret < 0;
		/* Without events, there is nothing but what the metadata tells. */
		if (!ret && !pass->flow) {
			pass->is_over = true;
			ret = pass->source->finish ? pass->source->finish(pass, err) : KYMO_OK;
		}
	}
	return ret < 0 ? ret : KYMO_OK;
}

void ky_sql_pass_end(struct ky_sql_pass *pass)
{
	if (pass->source->close)
		pass->source->close(pass);
	pass->own = NULL;
	ky_flow_close(pass->flow);
	pass->flow = NULL;
	if (!pass->is_fed)
		ky_model_free(pass->model);
	pass->model = NULL;
	ky_sql_before_fini(&pass->own_before);
	pass->before = NULL;
	pass->wants_events = false;
	ky_focus_fini(&pass->focus);
	ky_focus_init(&pass->focus);
	ky_vec_fini(&pass->names);
	ky_arena_fini(&pass->arena);
	ky_arena_init(&pass->arena);
	free(pass->only);
	pass->only = NULL;
	pass->is_over = pass->is_finishing = false;
	ky_error_clear(&pass->damage);
}
