/* SPDX-License-Identifier: MIT */
/* Experiments of the Trace Server Protocol: traces in one order of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

/* ---- one experiment ---------------------------------------------------------------------- */

/* The caller has the lock. */
static void put_experiment(struct ky_tsp *tsp, const struct ky_tsp_experiment *experiment,
			   struct ky_strbuf *out)
{
	struct ky_view *view = ky_tsp_take_view(experiment->engine);
	bool has_times = view->begin_ns != INT64_MIN;
	struct ky_counts_state state = {0};
	struct ky_counts *counts;

	if (ky_view_take_counts(view, "", &counts, NULL) == KYMO_OK) {
		ky_counts_state(counts, &state);
		ky_view_put_counts(view, counts);
	}
	ky_strbuf_addf(out, "{\"UUID\": \"%s\", \"name\": ", experiment->uuid);
	ky_view_put_text(out, experiment->name);
	ky_strbuf_adds(out, ", \"start\": ");
	ky_strbuf_addi(out, has_times ? view->begin_ns : 0);
	ky_strbuf_adds(out, ", \"end\": ");
	ky_strbuf_addi(out, has_times ? view->end_ns : 0);
	ky_strbuf_addf(out, ", \"nbEvents\": %llu, \"indexingStatus\": \"%s\", \"traces\": ",
		       (unsigned long long)state.n,
		       !ky_tsp_is_growing(view) && state.is_over &&
				       ky_tsp_history_is_over(experiment->engine, view)
			       ? "COMPLETED"
			       : "RUNNING");
	ky_tsp_put_view(experiment->engine, view);
	ky_tsp_put_traces(tsp, experiment->traces.data, experiment->traces.len, out);
	ky_strbuf_adds(out, "}");
}

static struct ky_tsp_experiment *new_experiment(const char *name)
{
	struct ky_tsp_experiment *experiment = calloc(1, sizeof(*experiment));

	if (!experiment)
		return NULL;
	experiment->n_users = 1;
	experiment->name = strdup(name);
	if (experiment->name)
		return experiment;
	free(experiment);
	return NULL;
}

/* An experiment's UUID comes from its name and its traces. */
static void name_it(struct ky_tsp_experiment *experiment)
{
	struct ky_strbuf traces = KY_STRBUF_INIT;

	ky_vec_foreach(&experiment->traces, trace)
		ky_strbuf_adds(&traces, (*trace)->uuid);
	ky_tsp_make_uuid(experiment->uuid, "experiment", experiment->name, ky_strbuf_text(&traces));
	ky_strbuf_fini(&traces);
}

static bool has_trace(const struct ky_tsp_experiment *experiment, const struct ky_tsp_trace *trace)
{
	ky_vec_foreach(&experiment->traces, one) {
		if (*one == trace)
			return true;
	}
	return false;
}

/* In any order. */
static bool has_same_traces(const struct ky_tsp_experiment *a, const struct ky_tsp_experiment *b)
{
	ky_vec_foreach(&a->traces, one) {
		if (!has_trace(b, *one))
			return false;
	}
	return a->traces.len == b->traces.len;
}

/* All traces of the command line, and no other ones: their engine is there. */
static bool is_given(const struct ky_tsp *tsp, const struct ky_tsp_experiment *experiment)
{
	ky_vec_foreach(&experiment->traces, one) {
		if (!(*one)->is_given)
			return false;
	}
	return tsp->given && experiment->traces.len == tsp->n_given;
}

/* ---- engines ----------------------------------------------------------------------------- */

/* For the traces at @paths. NULL: memory is out. */
static struct ky_tsp_engine *new_engine(const char *const *paths, size_t n,
					struct ky_view *borrowed)
{
	struct ky_tsp_engine *engine = calloc(1, sizeof(*engine));

	if (!engine || ky_view_notes_open(paths, n, &engine->notes, NULL) < 0) {
		free(engine);
		return NULL;
	}
	engine->n_users = 1;
	engine->view = borrowed;
	engine->is_borrowed = borrowed != NULL;
	return engine;
}

static int open_complete(const struct ky_tsp *tsp, const char *const *paths, size_t n,
			 struct ky_tsp_engine *engine, struct kymo_error *err)
{
	int ret = ky_tsp_open(tsp, paths, n, false, &engine->set, err);

	if (ret < 0)
		return ret;
	ret = ky_view_new(&engine->set, &engine->view, err);
	if (ret < 0)
		ky_trace_set_close(&engine->set);
	return ret;
}

/* Opens the traces at @paths for an experiment. */
static int open_engine(const struct ky_tsp *tsp, const char *const *paths, size_t n,
		       struct ky_tsp_engine **made, struct kymo_error *err)
{
	struct ky_tsp_engine *engine = new_engine(paths, n, NULL);
	int ret;

	if (!engine)
		return ky_error_nomem(err);
	ret = tsp->is_recorded && tsp->is_recorded(paths, n)
		      ? ky_tsp_follow(tsp, paths, n, engine, err)
		      : open_complete(tsp, paths, n, engine, err);
	if (ret == KYMO_OK) {
		*made = engine;
		return KYMO_OK;
	}
	ky_view_notes_close(engine->notes);
	free(engine);
	return ret;
}

/* ---- creation ---------------------------------------------------------------------------- */

/* The traces that the request names. The caller has the lock. */
static int take_traces(struct ky_tsp_answer *answer, struct ky_tsp_experiment *experiment,
		       struct kymo_error *err)
{
	const struct ky_tsp_texts *uuids = &answer->request->traces;

	if (!uuids->len || uuids->len > KY_TSP_TRACES_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "an experiment has from 1 to %d traces",
				    KY_TSP_TRACES_MAX);
	for (size_t i = 0; i < uuids->len; i++) {
		struct ky_tsp_trace *trace = ky_tsp_find_trace(answer->tsp, uuids->data[i]);

		if (!trace)
			return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such trace");
		if (!has_trace(experiment, trace) && ky_vec_push(&experiment->traces, trace) < 0)
			return ky_error_nomem(err);
	}
	name_it(experiment);
	return KYMO_OK;
}

/* The name is taken: by the same experiment, or by another one, which is a clash. */
static void put_named(struct ky_tsp_answer *answer, const struct ky_tsp_experiment *experiment,
		      bool is_same)
{
	if (!is_same) {
		ky_strbuf_adds(answer->out, "{\"title\": \"another experiment has this name\", "
					    "\"experiment\": ");
		answer->status = 409;
	}
	put_experiment(answer->tsp, experiment, answer->out);
	ky_strbuf_adds(answer->out, is_same ? "" : "}\n");
}

/*
 * Answer with an experiment of the same name, or add @experiment if others have opened its traces. True: the
 * answer is there. The caller has the lock.
 */
static bool tsp_experiments_settle(struct ky_tsp_answer *answer,
				   struct ky_tsp_experiment *experiment, bool *is_added)
{
	struct ky_tsp *tsp = answer->tsp;

	ky_vec_foreach(&tsp->experiments, one) {
		bool is_same = has_same_traces(*one, experiment);

		if (strcmp((*one)->name, experiment->name) == 0) {
			put_named(answer, *one, is_same);
			return true;
		}
		if (is_same && !experiment->engine) {
			experiment->engine = (*one)->engine;
			experiment->engine->n_users++;
		}
	}
	if (!experiment->engine && is_given(tsp, experiment)) {
		experiment->engine = tsp->given;
		experiment->engine->n_users++;
	}
	*is_added = experiment->engine && tsp->experiments.len < KY_TSP_EXPERIMENTS_MAX &&
		    ky_vec_push(&tsp->experiments, experiment) == KYMO_OK;
	if (*is_added)
		put_experiment(tsp, experiment, answer->out);
	return *is_added;
}

/* Paths of the traces, as they outlive the lock. */
static const char *const *copy_paths(const struct ky_tsp_experiment *experiment,
				     struct ky_arena *arena)
{
	const char **paths = ky_arena_array(arena, experiment->traces.len + 1, sizeof(*paths));

	for (size_t i = 0; paths && i < experiment->traces.len; i++) {
		paths[i] = ky_arena_strdup(arena, experiment->traces.data[i]->path);
		if (!paths[i])
			return NULL;
	}
	return paths;
}

/* Opening takes time: no lock meanwhile. A trace may be gone then. */
static int open_and_settle(struct ky_tsp_answer *answer, struct ky_tsp_experiment *experiment,
			   const char *const *paths, bool *is_added, struct kymo_error *err)
{
	size_t n = experiment->traces.len;
	int ret = open_engine(answer->tsp, paths, n, &experiment->engine, err);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&answer->tsp->lock);
	ky_vec_clear(&experiment->traces);
	ret = take_traces(answer, experiment, err);
	if (ret == KYMO_OK && !tsp_experiments_settle(answer, experiment, is_added))
		ret = ky_error_set(err, KYMO_E_LIMIT, "too many experiments are open");
	pthread_mutex_unlock(&answer->tsp->lock);
	return ret;
}

static int tsp_experiments_create(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_experiment *experiment = new_experiment(answer->request->name);
	const char *const *paths = NULL;
	bool is_added = false, is_settled = false;
	struct ky_arena arena;
	int ret;

	if (!experiment)
		return ky_error_nomem(err);
	ky_arena_init(&arena);
	pthread_mutex_lock(&answer->tsp->lock);
	ret = take_traces(answer, experiment, err);
	if (ret == KYMO_OK)
		is_settled = tsp_experiments_settle(answer, experiment, &is_added);
	if (ret == KYMO_OK && !is_settled) {
		paths = copy_paths(experiment, &arena);
		ret = paths ? KYMO_OK : ky_error_nomem(err);
	}
	pthread_mutex_unlock(&answer->tsp->lock);
	if (ret == KYMO_OK && !is_settled && experiment->engine)
		ret = ky_error_set(err, KYMO_E_LIMIT, "too many experiments are open");
	else if (ret == KYMO_OK && !is_settled)
		ret = open_and_settle(answer, experiment, paths, &is_added, err);
	if (!is_added)
		ky_tsp_free_experiment(answer->tsp, experiment);
	ky_arena_fini(&arena);
	return ret;
}

/* Of the traces of the command line. */
static struct ky_tsp_engine *give_engine(const struct ky_tsp_source *source)
{
	struct ky_tsp_engine *engine = new_engine(source->paths, source->n_paths, source->view);

	if (engine)
		engine->live = source->live;
	return engine;
}

int ky_tsp_give_traces(struct ky_tsp *tsp, const struct ky_tsp_source *source,
		       struct kymo_error *err)
{
	struct ky_view *view = source->live ? ky_view_live_take(source->live) : source->view;
	struct ky_tsp_experiment *experiment;
	int ret = ky_tsp_give_list(tsp, source->paths, source->n_paths, view->set);

	if (source->live)
		ky_view_live_put(source->live, view);
	if (ret < 0)
		return ky_error_nomem(err);
	experiment = new_experiment(tsp->traces.data[0]->name);
	if (!experiment)
		return ky_error_nomem(err);
	ky_vec_foreach(&tsp->traces, trace) {
		if (ret == KYMO_OK)
			ret = ky_vec_push(&experiment->traces, *trace);
	}
	experiment->engine = tsp->given = give_engine(source);
	tsp->n_given = source->n_paths;
	if (tsp->given)
		tsp->given->n_users++;
	name_it(experiment);
	if (ret == KYMO_OK && experiment->engine &&
	    ky_vec_push(&tsp->experiments, experiment) == KYMO_OK)
		return KYMO_OK;
	ky_tsp_free_experiment(tsp, experiment);
	return ky_error_nomem(err);
}

/* ---- answers ----------------------------------------------------------------------------- */

static void tsp_experiments_put_all(struct ky_tsp *tsp, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, "[");
	ky_vec_foreach(&tsp->experiments, experiment) {
		ky_strbuf_adds(out, experiment == tsp->experiments.data ? "" : ", ");
		put_experiment(tsp, *experiment, out);
	}
	ky_strbuf_adds(out, "]");
}

static struct ky_tsp_experiment *tsp_experiments_remove_one(struct ky_tsp *tsp,
							    struct ky_tsp_experiment *experiment)
{
	for (size_t i = 0; i < tsp->experiments.len; i++) {
		if (tsp->experiments.data[i] == experiment)
			tsp->experiments.data[i] = *ky_vec_last(&tsp->experiments);
	}
	tsp->experiments.len--;
	return ky_tsp_put_experiment(experiment);
}

int ky_tsp_experiments(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_experiment *experiment, *unused = NULL;
	struct ky_tsp *tsp = answer->tsp;
	int ret = KYMO_OK;

	if (answer->request->what == KY_TSP_EXPERIMENT_CREATE)
		return tsp_experiments_create(answer, err);
	pthread_mutex_lock(&tsp->lock);
	experiment = ky_tsp_find_experiment(tsp, answer->request->uuid[0]);
	if (answer->request->what == KY_TSP_EXPERIMENTS)
		tsp_experiments_put_all(tsp, answer->out);
	else if (!experiment)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such experiment");
	else
		put_experiment(tsp, experiment, answer->out);
	if (experiment && answer->request->what == KY_TSP_EXPERIMENT_DELETE)
		unused = tsp_experiments_remove_one(tsp, experiment);
	pthread_mutex_unlock(&tsp->lock);
	ky_tsp_free_experiment(tsp, unused);
	return ret;
}
