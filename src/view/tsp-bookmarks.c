/* SPDX-License-Identifier: MIT */
/* Bookmarks of experiments: in memory, as long as the server runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp-internal.h"

static void put_bookmark(const struct ky_tsp_bookmark *bookmark, struct ky_strbuf *out)
{
	ky_strbuf_addf(out, "{\"uuid\": \"%s\", \"name\": ", bookmark->uuid);
	ky_view_put_text(out, bookmark->name);
	ky_strbuf_adds(out, ", \"start\": ");
	ky_strbuf_addi(out, bookmark->begin_ns);
	ky_strbuf_adds(out, ", \"end\": ");
	ky_strbuf_addi(out, bookmark->end_ns);
	ky_strbuf_adds(out, "}");
}

static int change(struct ky_tsp_bookmark *bookmark, const struct ky_tsp_request *request,
		  struct kymo_error *err)
{
	char *name = strdup(request->name);

	if (!name)
		return ky_error_nomem(err);
	free(bookmark->name);
	bookmark->name = name;
	bookmark->begin_ns = request->begin_ns;
	bookmark->end_ns = request->end_ns;
	return KYMO_OK;
}

static int create(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_experiment *experiment = answer->experiment;
	struct ky_tsp_bookmark bookmark = {.name = NULL};
	char number[24];
	int ret;

	if (experiment->bookmarks.len >= KY_TSP_BOOKMARKS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the experiment has too many bookmarks");
	snprintf(number, sizeof(number), "%llu", (unsigned long long)answer->tsp->n_bookmarks++);
	ky_tsp_make_uuid(bookmark.uuid, "bookmark", experiment->uuid, number);
	ret = change(&bookmark, answer->request, err);
	if (ret == KYMO_OK && ky_vec_push(&experiment->bookmarks, bookmark) < 0) {
		free(bookmark.name);
		return ky_error_nomem(err);
	}
	if (ret == KYMO_OK)
		put_bookmark(&bookmark, answer->out);
	return ret;
}

static void put_all(const struct ky_tsp_experiment *experiment, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, "[");
	ky_vec_foreach(&experiment->bookmarks, bookmark) {
		ky_strbuf_adds(out, bookmark == experiment->bookmarks.data ? "" : ", ");
		put_bookmark(bookmark, out);
	}
	ky_strbuf_adds(out, "]");
}

static int answer_one(struct ky_tsp_answer *answer, struct ky_tsp_bookmark *bookmark,
		      struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (answer->request->what == KY_TSP_BOOKMARK_UPDATE)
		ret = change(bookmark, answer->request, err);
	if (ret < 0)
		return ret;
	put_bookmark(bookmark, answer->out);
	if (answer->request->what == KY_TSP_BOOKMARK_DELETE) {
		free(bookmark->name);
		*bookmark = *ky_vec_last(&answer->experiment->bookmarks);
		answer->experiment->bookmarks.len--;
	}
	return KYMO_OK;
}

static int answer_locked(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	if (answer->request->what == KY_TSP_BOOKMARK_CREATE)
		return create(answer, err);
	if (answer->request->what == KY_TSP_BOOKMARKS) {
		put_all(answer->experiment, answer->out);
		return KYMO_OK;
	}
	ky_vec_foreach(&answer->experiment->bookmarks, bookmark) {
		if (strcmp(bookmark->uuid, answer->request->uuid[1]) == 0)
			return answer_one(answer, bookmark, err);
	}
	return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such bookmark");
}

int ky_tsp_bookmarks(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	int ret;

	pthread_mutex_lock(&answer->tsp->lock);
	ret = answer_locked(answer, err);
	pthread_mutex_unlock(&answer->tsp->lock);
	return ret;
}
