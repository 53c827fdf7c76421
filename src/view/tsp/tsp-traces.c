/* SPDX-License-Identifier: MIT */
/* Traces of the Trace Server Protocol: paths that experiments are made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/range.h"
#include "flow/sinks/json-value.h"
#include "view/tsp/tsp-internal.h"

/* ---- one trace --------------------------------------------------------------------------- */

static void put_property(struct ky_strbuf *out, const char *name, const char *text)
{
	ky_strbuf_adds(out, out->len > 1 ? ", " : "");
	ky_view_put_text(out, name);
	ky_strbuf_adds(out, ": ");
	ky_view_put_text(out, text);
}

/* Of the first trace at the path: most often there is one, or all are of one machine. */
static char *properties_of(const struct ky_trace_set *set)
{
	static const char *const names[] = {"hostname",	   "domain",	     "procname",
					    "tracer_name", "kernel_release", "kernel_version"};
	const struct ky_trace *trace = set->traces.len ? set->traces.data[0] : NULL;
	struct ky_strbuf out = KY_STRBUF_INIT;
	char number[24];

	ky_strbuf_adds(&out, "{");
	for (size_t i = 0; trace && i < sizeof(names) / sizeof(*names); i++) {
		const struct ky_env *env = ky_env_find(trace->cls, names[i]);

		if (env && env->is_text)
			put_property(&out, names[i], env->text);
	}
	snprintf(number, sizeof(number), "%zu", set->traces.len);
	put_property(&out, "traces", number);
	snprintf(number, sizeof(number), "%zu", set->streams.len);
	put_property(&out, "data streams", number);
	ky_strbuf_adds(&out, "}");
	return ky_strbuf_take(&out);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Takes @path. NULL: memory is out. */
static struct ky_tsp_trace *tsp_traces_new_trace(char *path, const char *name,
						 const struct ky_trace_set *set)
{
	struct ky_tsp_trace *trace = calloc(1, sizeof(*trace));

	if (!trace || !path) {
		free(trace);
		free(path);
		return NULL;
	}
	trace->path = path;
	trace->name = strdup(name && *name ? name : last_part(path));
	trace->properties = properties_of(set);
	if (!trace->name || !trace->properties ||
	    ky_set_range(set, &trace->begin_ns, &trace->end_ns, NULL) < 0) {
		ky_tsp_free_trace(trace);
		return NULL;
	}
	if (trace->begin_ns == INT64_MIN)
		trace->begin_ns = trace->end_ns = 0;
	ky_tsp_make_uuid(trace->uuid, "trace", trace->path, trace->name);
	return trace;
}

/* An experiment of this trace alone knows how many events it has. The caller has the lock. NULL: no such one exists. */
static struct ky_tsp_engine *engine_alone(struct ky_tsp *tsp, const struct ky_tsp_trace *trace)
{
	struct ky_tsp_engine *alone = NULL;

	ky_vec_foreach(&tsp->experiments, one) {
		if ((*one)->traces.len == 1 && (*one)->traces.data[0] == trace)
			alone = (*one)->engine;
	}
	return alone;
}

/* @view: of the trace alone, or NULL. */
static void put_indexing(struct ky_view *view, struct ky_strbuf *out)
{
	struct ky_counts_state state = {0};
	struct ky_counts *counts;

	if (view && ky_view_take_counts(view, "", &counts, NULL) == KYMO_OK) {
		ky_counts_state(counts, &state);
		ky_view_put_counts(view, counts);
	}
	ky_strbuf_addf(out, ", \"nbEvents\": %llu, \"indexingStatus\": \"%s\"",
		       (unsigned long long)state.n,
		       !view					   ? "CLOSED"
		       : state.is_over && !ky_tsp_is_growing(view) ? "COMPLETED"
								   : "RUNNING");
}

/* "start", "end", "nbEvents", "indexingStatus", "properties". Those of a recording are what they are now. */
static void tsp_traces_put_content(struct ky_tsp *tsp, const struct ky_tsp_trace *trace,
				   struct ky_strbuf *out)
{
	struct ky_tsp_engine *alone = engine_alone(tsp, trace);
	struct ky_tsp_engine *engine = !alone && trace->is_given ? tsp->given : alone;
	struct ky_view *view = engine ? ky_tsp_take_view(engine) : NULL;
	int64_t begin_ns = trace->begin_ns, end_ns = trace->end_ns;
	char *properties = NULL;

	if (view && engine->live && view->begin_ns != INT64_MIN) {
		begin_ns = view->begin_ns;
		end_ns = view->end_ns;
		properties = properties_of(view->set);
	}
	ky_strbuf_adds(out, ", \"start\": ");
	ky_strbuf_addi(out, begin_ns);
	ky_strbuf_adds(out, ", \"end\": ");
	ky_strbuf_addi(out, end_ns);
	put_indexing(alone ? view : NULL, out);
	ky_strbuf_adds(out, ", \"properties\": ");
	ky_strbuf_adds(out, properties ? properties : trace->properties);
	free(properties);
	if (view)
		ky_tsp_put_view(engine, view);
}

/* The caller has the lock. */
static void tsp_traces_put_trace(struct ky_tsp *tsp, const struct ky_tsp_trace *trace,
				 struct ky_strbuf *out)
{
	ky_strbuf_addf(out, "{\"UUID\": \"%s\", \"name\": ", trace->uuid);
	ky_view_put_text(out, trace->name);
	ky_strbuf_adds(out, ", \"path\": ");
	ky_view_put_text(out, trace->path);
	tsp_traces_put_content(tsp, trace, out);
	ky_strbuf_adds(out, "}");
}

/* The client asks again only if it wants the other @trace. */
static void tsp_traces_put_clash(struct ky_tsp_answer *answer, const char *title,
				 const struct ky_tsp_trace *trace)
{
	ky_strbuf_addf(answer->out, "{\"title\": \"%s\", \"trace\": ", title);
	tsp_traces_put_trace(answer->tsp, trace, answer->out);
	ky_strbuf_adds(answer->out, "}\n");
	answer->status = 409;
}

void ky_tsp_put_traces(struct ky_tsp *tsp, struct ky_tsp_trace *const *traces, size_t n,
		       struct ky_strbuf *out)
{
	bool any = false;

	ky_strbuf_adds(out, "[");
	for (size_t i = 0; i < n; i++) {
		if (traces[i]->is_hidden)
			continue;
		ky_strbuf_adds(out, any ? ", " : "");
		tsp_traces_put_trace(tsp, traces[i], out);
		any = true;
	}
	ky_strbuf_adds(out, "]");
}

/* ---- opening ----------------------------------------------------------------------------- */

static struct ky_tsp_trace *of_path(struct ky_tsp *tsp, const char *path, const char *name)
{
	ky_vec_foreach(&tsp->traces, one) {
		if (!(*one)->is_hidden && strcmp((*one)->path, path) == 0 &&
		    (!name || strcmp((*one)->name, name) == 0))
			return *one;
	}
	return NULL;
}

static struct ky_tsp_trace *of_name(struct ky_tsp *tsp, const char *name)
{
	ky_vec_foreach(&tsp->traces, one) {
		if (!(*one)->is_hidden && strcmp((*one)->name, name) == 0)
			return *one;
	}
	return NULL;
}

/* Takes @trace. Another client may have been quicker. */
static int tsp_traces_insert(struct ky_tsp_answer *answer, struct ky_tsp_trace *trace,
			     struct kymo_error *err)
{
	struct ky_tsp *tsp = answer->tsp;
	struct ky_tsp_trace *same, *clash;
	int ret = KYMO_OK;

	pthread_mutex_lock(&tsp->lock);
	same = of_path(tsp, trace->path, trace->name);
	clash = same ? NULL : of_name(tsp, trace->name);
	if (clash) {
		tsp_traces_put_clash(answer, "another trace has this name", clash);
	} else if (!same && tsp->traces.len >= KY_TSP_TRACES_MAX) {
		ret = ky_error_set(err, KYMO_E_LIMIT, "too many traces are open");
	} else if (!same) {
		ret = ky_vec_push(&tsp->traces, trace) < 0 ? ky_error_nomem(err) : KYMO_OK;
	}
	if (ret == KYMO_OK && !clash)
		tsp_traces_put_trace(tsp, same ? same : trace, answer->out);
	pthread_mutex_unlock(&tsp->lock);
	if (same || clash || ret < 0)
		ky_tsp_free_trace(trace);
	return ret;
}

/* A trace of the command line that was removed comes back, with the name that the client wants. NULL: there is no such one. */
static struct ky_tsp_trace *come_back(struct ky_tsp *tsp, const char *path, const char *name)
{
	ky_vec_foreach(&tsp->traces, one) {
		struct ky_tsp_trace *trace = *one;
		char *own;

		if (!trace->is_hidden || strcmp(trace->path, path) != 0)
			continue;
		own = strdup(name ? name : trace->name);
		if (!own || of_name(tsp, own)) {
			free(own);
			return NULL;
		}
		free(trace->name);
		trace->name = own;
		trace->is_hidden = false;
		ky_tsp_make_uuid(trace->uuid, "trace", trace->path, trace->name);
		return trace;
	}
	return NULL;
}

/* The trace of the command line needs no second opening, and it may be no trace of CTF. */
static bool tsp_traces_is_there(struct ky_tsp_answer *answer, const char *path)
{
	struct ky_tsp_trace *same;

	pthread_mutex_lock(&answer->tsp->lock);
	same = of_path(answer->tsp, path, answer->request->name);
	if (!same)
		same = come_back(answer->tsp, path, answer->request->name);
	if (same)
		tsp_traces_put_trace(answer->tsp, same, answer->out);
	pthread_mutex_unlock(&answer->tsp->lock);
	return same != NULL;
}

static int tsp_traces_open_trace(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	char *path = ky_tsp_allowed_path(answer->tsp, request->uri, err);
	const char *const paths[] = {path};
	struct ky_tsp_trace *trace;
	struct ky_trace_set set;
	int ret;

	if (!path)
		return err->code;
	if (tsp_traces_is_there(answer, path)) {
		free(path);
		return KYMO_OK;
	}
	ret = ky_tsp_open(answer->tsp, paths, 1,
			  answer->tsp->is_recorded && answer->tsp->is_recorded(paths, 1), &set,
			  err);
	if (ret < 0) {
		free(path);
		answer->status = ret == KYMO_E_FORMAT ? 406 : 0; /* no trace that it can read */
		return ret;
	}
	trace = tsp_traces_new_trace(path, request->name, &set);
	ky_trace_set_close(&set);
	return trace ? tsp_traces_insert(answer, trace, err) : ky_error_nomem(err);
}

/* ---- the command line -------------------------------------------------------------------- */

/* The trace of @set that @path has: all, if it is the only one. */
static int give_trace(struct ky_tsp *tsp, const char *path, const struct ky_trace_set *set)
{
	char *real = realpath(path, NULL);
	struct ky_tsp_trace *trace = tsp_traces_new_trace(real ? real : strdup(path), NULL, set);

	if (!trace)
		return KYMO_E_MEMORY;
	trace->is_given = true;
	while (of_name(tsp, trace->name)) {
		char *name = NULL;

		if (asprintf(&name, "%s (%zu)", trace->name, tsp->traces.len + 1) < 0)
			name = NULL;
		free(trace->name);
		trace->name = name;
		if (!name)
			break;
		ky_tsp_make_uuid(trace->uuid, "trace", trace->path, trace->name);
	}
	if (trace->name && ky_vec_push(&tsp->traces, trace) == KYMO_OK)
		return KYMO_OK;
	ky_tsp_free_trace(trace);
	return KYMO_E_MEMORY;
}

int ky_tsp_give_list(struct ky_tsp *tsp, const char *const *paths, size_t n_paths,
		     const struct ky_trace_set *set)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_paths && ret == KYMO_OK; i++)
		ret = give_trace(tsp, paths[i], set);
	return ret;
}

/* ---- answers ----------------------------------------------------------------------------- */

/* The trace's files stay: the server never deletes any. The caller has the lock. */
static int delete_trace(struct ky_tsp_answer *answer, struct ky_tsp_trace *trace)
{
	struct ky_tsp *tsp = answer->tsp;
	bool is_used = false;

	ky_vec_foreach(&tsp->experiments, experiment) {
		ky_vec_foreach(&(*experiment)->traces, one)
			is_used |= *one == trace;
	}
	if (is_used) {
		tsp_traces_put_clash(answer, "an experiment uses the trace", trace);
		return KYMO_OK;
	}
	tsp_traces_put_trace(tsp, trace, answer->out);
	trace->is_hidden = trace->is_given;
	if (trace->is_hidden)
		return KYMO_OK;
	for (size_t i = 0; i < tsp->traces.len; i++) {
		if (tsp->traces.data[i] == trace)
			tsp->traces.data[i] = *ky_vec_last(&tsp->traces);
	}
	tsp->traces.len--;
	ky_tsp_free_trace(trace);
	return KYMO_OK;
}

int ky_tsp_traces(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp *tsp = answer->tsp;
	struct ky_tsp_trace *trace;
	int ret = KYMO_OK;

	if (answer->request->what == KY_TSP_TRACE_OPEN)
		return tsp_traces_open_trace(answer, err);
	pthread_mutex_lock(&tsp->lock);
	trace = ky_tsp_find_trace(tsp, answer->request->uuid[0]);
	if (answer->request->what == KY_TSP_TRACES)
		ky_tsp_put_traces(tsp, tsp->traces.data, tsp->traces.len, answer->out);
	else if (!trace)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such trace");
	else if (answer->request->what == KY_TSP_TRACE_DELETE)
		ret = delete_trace(answer, trace);
	else
		tsp_traces_put_trace(tsp, trace, answer->out);
	pthread_mutex_unlock(&tsp->lock);
	return ret;
}
