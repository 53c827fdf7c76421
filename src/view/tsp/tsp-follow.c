/* SPDX-License-Identifier: MIT */
/* Recordings that go on, which a client of the Trace Server Protocol has opened. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

struct ky_tsp_following {
	struct ky_view_live_source source;
	const struct ky_tsp *tsp;
	char **paths;
	size_t n_paths;
};

static int tsp_follow_open(void *data, enum ky_view_live_how how, struct ky_trace_set *set,
			   struct kymo_error *err)
{
	const struct ky_tsp_following *own = data;

	return ky_tsp_open(own->tsp, (const char *const *)own->paths, own->n_paths,
			   how != KY_VIEW_LIVE_COMPLETE, set, err);
}

static bool tsp_follow_is_recorded(void *data)
{
	const struct ky_tsp_following *own = data;

	return own->tsp->is_recorded((const char *const *)own->paths, own->n_paths);
}

static void tsp_follow_free(struct ky_tsp_following *own)
{
	for (size_t i = 0; i < own->n_paths; i++)
		free(own->paths[i]);
	free(own->paths);
	free(own);
}

static struct ky_tsp_following *tsp_follow_new(const struct ky_tsp *tsp, const char *const *paths,
					       size_t n_paths)
{
	struct ky_tsp_following *own = calloc(1, sizeof(*own));

	if (!own)
		return NULL;
	own->tsp = tsp;
	own->paths = calloc(n_paths, sizeof(*own->paths));
	for (size_t i = 0; own->paths && i < n_paths; i++) {
		own->paths[i] = strdup(paths[i]);
		own->n_paths += own->paths[i] != NULL;
		if (!own->paths[i])
			break;
	}
	if (own->n_paths < n_paths) {
		tsp_follow_free(own);
		return NULL;
	}
	own->source = (struct ky_view_live_source){.open = tsp_follow_open,
						   .is_recorded = tsp_follow_is_recorded,
						   .data = own,
						   .paths = (const char *const *)own->paths,
						   .n_paths = n_paths};
	return own;
}

int ky_tsp_follow(const struct ky_tsp *tsp, const char *const *paths, size_t n_paths,
		  struct ky_tsp_engine *engine, struct kymo_error *err)
{
	struct ky_tsp_following *own = tsp_follow_new(tsp, paths, n_paths);
	int ret;

	if (!own)
		return ky_error_nomem(err);
	ret = ky_view_live_open(&own->source, &engine->live, err);
	if (ret < 0)
		tsp_follow_free(own);
	else
		engine->following = own;
	return ret;
}

void ky_tsp_unfollow(struct ky_tsp_engine *engine)
{
	if (!engine->following)
		return;
	ky_view_live_close(engine->live);
	tsp_follow_free(engine->following);
	engine->live = NULL;
	engine->following = NULL;
}
