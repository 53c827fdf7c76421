/* SPDX-License-Identifier: MIT */
/* Outputs that clients make from others, and what they must say for it. */
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-path.h"

#define THREAD_TYPE "kymo.thread"

/* ---- lists ----------------------------------------------------------------------------------- */

/* The place of output @id in the experiment's list; its length: none. The caller has the lock. */
static size_t derive_find(const struct ky_tsp_experiment *experiment, const char *id)
{
	size_t i = 0;

	while (i < experiment->paths.len && strcmp(experiment->paths.data[i]->id, id) != 0)
		i++;
	return i;
}

struct ky_tsp_path *ky_tsp_path_take(struct ky_tsp_answer *answer)
{
	struct ky_tsp_experiment *experiment = answer->experiment;
	struct ky_tsp_path *path = NULL;
	size_t i;

	pthread_mutex_lock(&answer->tsp->lock);
	i = derive_find(experiment, answer->request->output);
	if (i < experiment->paths.len) {
		path = experiment->paths.data[i];
		path->n_users++;
	}
	pthread_mutex_unlock(&answer->tsp->lock);
	return path;
}

void ky_tsp_path_put(struct ky_tsp_answer *answer, struct ky_tsp_path *path)
{
	bool is_unused;

	pthread_mutex_lock(&answer->tsp->lock);
	is_unused = !--path->n_users;
	pthread_mutex_unlock(&answer->tsp->lock);
	if (is_unused)
		ky_tsp_path_free(path);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

void ky_tsp_path_put_output(struct ky_strbuf *out, const struct ky_tsp_path *path)
{
	ky_strbuf_addf(out,
		       "{\"id\": \"%s\", \"parentId\": \"" KY_TSP_PATH
		       "\", \"type\": \"TIME_GRAPH\", \"name\": ",
		       path->id);
	ky_view_put_text(out, path->name);
	ky_strbuf_addf(
		out,
		", \"description\": \"Over which threads the time of thread %lld went\", "
		"\"capabilities\": {\"canDelete\": true}, \"configuration\": {\"id\": \"%s\", "
		"\"sourceTypeId\": \"" THREAD_TYPE "\", \"name\": ",
		(long long)path->tid, path->id);
	ky_view_put_text(out, path->name);
	ky_strbuf_addf(out, ", \"parameters\": {\"tid\": %lld", (long long)path->tid);
	if (path->has_range)
		ky_strbuf_addf(out, ", \"start\": %lld, \"end\": %lld", (long long)path->begin_ns,
			       (long long)path->end_ns);
	ky_strbuf_adds(out, "}}}");
}

void ky_tsp_path_put_outputs(struct ky_tsp_answer *answer)
{
	pthread_mutex_lock(&answer->tsp->lock);
	ky_vec_foreach(&answer->experiment->paths, path) {
		ky_strbuf_adds(answer->out, ", ");
		ky_tsp_path_put_output(answer->out, *path);
	}
	pthread_mutex_unlock(&answer->tsp->lock);
}

/* ---- types of configurations ----------------------------------------------------------------- */

static void derive_put_type(struct ky_strbuf *out)
{
	ky_strbuf_adds(
		out,
		"{\"id\": \"" THREAD_TYPE
		"\", \"name\": \"Critical path of a thread\", \"description\": \"The thread, and the "
		"range that its path is about\", \"schema\": {\"type\": \"object\", \"properties\": "
		"{\"tid\": {\"type\": \"integer\", \"minimum\": 0, \"title\": \"Thread ID\"}, "
		"\"start\": {\"type\": \"integer\", \"title\": \"Begin, ns from the clock's origin; the "
		"whole trace without it\"}, \"end\": {\"type\": \"integer\", \"title\": \"End\"}}, "
		"\"required\": [\"tid\"]}}");
}

static int derive_put_types(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	bool is_path = strcmp(request->output, KY_TSP_PATH) == 0;

	if (request->what == KY_TSP_OUTPUT_CONFIG_TYPE) {
		if (!is_path || strcmp(request->derived, THREAD_TYPE) != 0)
			return ky_error_set(err, KYMO_E_NOT_FOUND,
					    "the output has no such type of configuration");
		derive_put_type(answer->out);
		return KYMO_OK;
	}
	ky_strbuf_adds(answer->out, "[");
	if (is_path)
		derive_put_type(answer->out);
	ky_strbuf_adds(answer->out, "]");
	return KYMO_OK;
}

/* ---- making and removing --------------------------------------------------------------------- */

static int derive_check(const struct ky_tsp_request *request, struct kymo_error *err)
{
	if (strcmp(request->output, KY_TSP_PATH) != 0)
		return ky_error_set(err, KYMO_E_INVALID, "no outputs can be made from this one");
	if (request->source_type && strcmp(request->source_type, THREAD_TYPE) != 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND,
				    "the output has no such type of configuration");
	if (request->tid < 0 || request->has_start != request->has_end ||
	    request->end_ns < request->begin_ns)
		return ky_error_set(
			err, KYMO_E_INVALID,
			"a critical path needs a thread, and both ends of a range or none");
	return KYMO_OK;
}

static int derive_make(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_experiment *experiment = answer->experiment;
	struct ky_tsp_path *path;
	int ret = derive_check(answer->request, err);
	size_t i;

	if (ret < 0)
		return ret;
	path = ky_tsp_path_new(answer->request);
	if (!path)
		return ky_error_nomem(err);
	pthread_mutex_lock(&answer->tsp->lock);
	i = derive_find(experiment, path->id);
	if (i == experiment->paths.len && i < KY_TSP_PATHS_MAX) {
		ret = ky_vec_push(&experiment->paths, path) < 0 ? ky_error_nomem(err) : KYMO_OK;
		path = ret == KYMO_OK ? NULL : path;
	} else if (i == experiment->paths.len) {
		ret = ky_error_set(err, KYMO_E_LIMIT, "the experiment has %d paths; delete one",
				   KY_TSP_PATHS_MAX);
	}
	if (ret == KYMO_OK)
		ky_tsp_path_put_output(answer->out, experiment->paths.data[i]);
	pthread_mutex_unlock(&answer->tsp->lock);
	ky_tsp_path_free(path); /* there is one already */
	return ret;
}

static int derive_remove(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_experiment *experiment = answer->experiment;
	struct ky_tsp_path *path = NULL;
	size_t i;

	pthread_mutex_lock(&answer->tsp->lock);
	i = derive_find(experiment, answer->request->derived);
	if (i < experiment->paths.len && strcmp(answer->request->output, KY_TSP_PATH) == 0) {
		path = experiment->paths.data[i];
		experiment->paths.data[i] = experiment->paths.data[--experiment->paths.len];
		ky_tsp_path_put_output(answer->out, path);
	}
	pthread_mutex_unlock(&answer->tsp->lock);
	if (!path)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such output");
	ky_tsp_path_put(answer, path);
	return KYMO_OK;
}

int ky_tsp_derive(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	int ret = ky_tsp_check_output(answer->request->output, NULL, err);

	if (ret < 0)
		return ret;
	if (answer->request->what == KY_TSP_OUTPUT_DERIVE)
		return derive_make(answer, err);
	if (answer->request->what == KY_TSP_OUTPUT_REMOVE)
		return derive_remove(answer, err);
	return derive_put_types(answer, err);
}
