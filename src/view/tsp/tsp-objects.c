/* SPDX-License-Identifier: MIT */
/* Traces and experiments of the Trace Server Protocol, and who uses them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "view/tsp/tsp-internal.h"

/* ---- ids and lists ----------------------------------------------------------------------- */

void ky_tsp_make_uuid(char out[KY_TSP_UUID_BYTES], const char *kind, const char *a, const char *b)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint8_t uuid[16];
	uint64_t hash[2];

	/* Texts of paths and names have no NUL. */
	ky_strbuf_adds(&text, kind);
	ky_strbuf_addc(&text, '\0');
	ky_strbuf_adds(&text, a);
	ky_strbuf_addc(&text, '\0');
	ky_strbuf_adds(&text, b);
	hash[0] = ky_hash_bytes(ky_strbuf_text(&text), text.len);
	ky_strbuf_addc(&text, '\1');
	hash[1] = ky_hash_bytes(ky_strbuf_text(&text), text.len);
	ky_strbuf_fini(&text);
	memcpy(uuid, hash, sizeof(uuid));
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80); /* version 8: of one's own making */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	ky_format_uuid(out, uuid);
}

struct ky_tsp_trace *ky_tsp_find_trace(struct ky_tsp *tsp, const char *uuid)
{
	ky_vec_foreach(&tsp->traces, trace) {
		if (!(*trace)->is_hidden && strcmp((*trace)->uuid, uuid) == 0)
			return *trace;
	}
	return NULL;
}

struct ky_tsp_experiment *ky_tsp_find_experiment(struct ky_tsp *tsp, const char *uuid)
{
	ky_vec_foreach(&tsp->experiments, experiment) {
		if (strcmp((*experiment)->uuid, uuid) == 0)
			return *experiment;
	}
	return NULL;
}

struct ky_tsp_experiment *ky_tsp_take_experiment(struct ky_tsp *tsp, const char *uuid)
{
	struct ky_tsp_experiment *experiment;

	pthread_mutex_lock(&tsp->lock);
	experiment = ky_tsp_find_experiment(tsp, uuid);
	if (experiment)
		experiment->n_users++;
	pthread_mutex_unlock(&tsp->lock);
	return experiment;
}

struct ky_tsp_experiment *ky_tsp_put_experiment(struct ky_tsp_experiment *experiment)
{
	return --experiment->n_users ? NULL : experiment;
}

/* ---- freeing ----------------------------------------------------------------------------- */

void ky_tsp_free_trace(struct ky_tsp_trace *trace)
{
	if (!trace)
		return;
	free(trace->name);
	free(trace->path);
	free(trace->properties);
	free(trace);
}

struct ky_view *ky_tsp_take_view(struct ky_tsp_engine *engine)
{
	return engine->live ? ky_view_live_take(engine->live) : engine->view;
}

void ky_tsp_put_view(struct ky_tsp_engine *engine, struct ky_view *view)
{
	if (engine->live)
		ky_view_live_put(engine->live, view);
}

void ky_tsp_put_engine(struct ky_tsp *tsp, struct ky_tsp_engine *engine)
{
	bool is_last;

	if (!engine)
		return;
	pthread_mutex_lock(&tsp->lock);
	is_last = --engine->n_users == 0;
	pthread_mutex_unlock(&tsp->lock);
	if (!is_last)
		return;
	ky_tsp_unfollow(engine);
	if (!engine->is_borrowed) {
		ky_view_free(engine->view);
		ky_trace_set_close(&engine->set);
	}
	ky_view_notes_close(engine->notes);
	free(engine);
}

void ky_tsp_free_experiment(struct ky_tsp *tsp, struct ky_tsp_experiment *experiment)
{
	if (!experiment)
		return;
	ky_tsp_put_engine(tsp, experiment->engine);
	ky_vec_foreach(&experiment->paths, path)
		ky_tsp_path_free(*path);
	ky_vec_fini(&experiment->paths);
	ky_vec_fini(&experiment->traces);
	free(experiment->name);
	free(experiment);
}

void ky_tsp_free(struct ky_tsp *tsp)
{
	if (!tsp)
		return;
	ky_vec_foreach(&tsp->experiments, experiment)
		ky_tsp_free_experiment(tsp, *experiment);
	ky_vec_fini(&tsp->experiments);
	ky_tsp_put_engine(tsp, tsp->given);
	ky_vec_foreach(&tsp->traces, trace)
		ky_tsp_free_trace(*trace);
	ky_vec_fini(&tsp->traces);
	for (size_t i = 0; i < tsp->n_roots; i++)
		free(tsp->roots[i]);
	free(tsp->roots);
	pthread_mutex_destroy(&tsp->lock);
	free(tsp);
}

/* ---- making ------------------------------------------------------------------------------ */

static int add_roots(struct ky_tsp *tsp, const char *const *paths, size_t n_paths)
{
	tsp->is_limited = n_paths > 0;
	tsp->roots = calloc(n_paths + 1, sizeof(*tsp->roots));
	for (size_t i = 0; tsp->roots && i < n_paths; i++) {
		/* A recording at a relay has no path. */
		tsp->roots[tsp->n_roots] = realpath(paths[i], NULL);
		tsp->n_roots += tsp->roots[tsp->n_roots] != NULL;
	}
	return tsp->roots ? KYMO_OK : KYMO_E_MEMORY;
}

int ky_tsp_new(const struct ky_tsp_source *source, struct ky_tsp **made, struct kymo_error *err)
{
	struct ky_tsp *tsp = calloc(1, sizeof(*tsp));
	int ret;

	if (!tsp)
		return ky_error_nomem(err);
	pthread_mutex_init(&tsp->lock, NULL);
	tsp->is_recorded = source->is_recorded;
	ret = add_roots(tsp, source->paths, source->n_paths);
	if (ret < 0)
		ky_error_nomem(err);
	else if (source->n_paths)
		ret = ky_tsp_give_traces(tsp, source, err);
	if (ret < 0)
		ky_tsp_free(tsp);
	else
		*made = tsp;
	return ret;
}
