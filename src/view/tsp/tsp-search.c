/* SPDX-License-Identifier: MIT */
#include "view/tsp/tsp-search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

#define WAIT_US 5000

/* ---- the filter of names ----------------------------------------------------------------- */

/* A name that needs no quoting in a filter. */
static bool tsp_search_is_plain(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_:.-");

	return len && !name[len];
}

/* Add all names that @names finds, each once. False: one is not plain, or memory is out. */
static bool tsp_search_add_names(const struct ky_view *view, struct ky_tsp_pattern *names,
				 struct ky_strbuf *out)
{
	struct ky_names seen;
	bool good = true;

	ky_names_init(&seen);
	ky_vec_foreach(&view->set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, event) {
			const char *name = (*event)->name;

			if (!good || ky_names_get(&seen, name) ||
			    !ky_tsp_pattern_finds(names, name, strlen(name)))
				continue;
			good = tsp_search_is_plain(name) &&
			       ky_names_set(&seen, name, &seen) == KYMO_OK;
			ky_strbuf_addf(out, "%s\"%s\"", out->len ? ", " : "", name);
		}
	}
	ky_names_fini(&seen);
	return good;
}

/* In the language of --filter: "": no event has such a name. False: it would be too long, or cannot be written. */
static bool make_filter(const struct ky_view *view, const char *filter,
			struct ky_tsp_pattern *names, char *out)
{
	struct ky_strbuf list = KY_STRBUF_INIT;
	bool good = tsp_search_add_names(view, names, &list);
	int n = 0;

	*out = '\0';
	if (good && list.len && *filter)
		n = snprintf(out, KY_VIEW_FILTER_BYTES, "(%s) && $event in (%s)", filter,
			     ky_strbuf_text(&list));
	else if (good && list.len)
		n = snprintf(out, KY_VIEW_FILTER_BYTES, "$event in (%s)", ky_strbuf_text(&list));
	good = good && !ky_strbuf_failed(&list) && n >= 0 && n < KY_VIEW_FILTER_BYTES;
	ky_strbuf_fini(&list);
	return good;
}

/* ---- questions --------------------------------------------------------------------------- */

struct jump {
	struct ky_tsp_answer *answer;
	struct ky_view_request *ask;
	const char *filter; /* of the table */
	char *names;	    /* of the names, too */
	bool is_known;	    /* the last answer is exact */
};

/* The number of the first event at @ns or later. */
static int tsp_search_rank_of(struct jump *jump, const char *filter, int64_t ns, uint64_t *row,
			      struct kymo_error *err)
{
	snprintf(jump->ask->filter, sizeof(jump->ask->filter), "%s", filter);
	return ky_tsp_ask_rank(jump->answer, jump->ask, ns, row, &jump->is_known, err);
}

/* The same, once it is counted. */
static int wait_for_rank(struct jump *jump, const char *filter, int64_t ns, uint64_t *row,
			 struct kymo_error *err)
{
	const struct ky_view_stop *stop = jump->answer->stop;
	int ret;

	while ((ret = tsp_search_rank_of(jump, filter, ns, row, err)) == KYMO_OK &&
	       !jump->is_known) {
		if (stop->is_over(stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		usleep(WAIT_US);
	}
	return ret;
}

/* The time of event @row; *@is_there: false: there are not so many. */
static int tsp_search_time_of(struct jump *jump, const char *filter, uint64_t row, int64_t *ns,
			      bool *is_there, struct kymo_error *err)
{
	struct ky_tsp_rows rows;
	struct ky_arena arena;
	int ret;

	jump->ask->row = row;
	jump->ask->count = 1;
	snprintf(jump->ask->filter, sizeof(jump->ask->filter), "%s", filter);
	ky_arena_init(&arena);
	ret = ky_tsp_ask_rows(jump->answer, jump->ask, &arena, &rows, err);
	jump->is_known = ret == KYMO_OK && ky_tsp_flag(&rows.columns, "exact");
	*is_there = ret == KYMO_OK && rows.n;
	if (*is_there && rows.times[0] != INT64_MIN)
		*ns = rows.times[0];
	else
		jump->is_known &= !*is_there;
	ky_arena_fini(&arena);
	return ret;
}

/* ---- the jump ---------------------------------------------------------------------------- */

static int go(struct jump *jump, bool is_backward, uint64_t *index, bool *is_there,
	      struct kymo_error *err)
{
	int64_t ns = INT64_MIN;
	uint64_t row = 0;
	int ret = tsp_search_time_of(jump, jump->filter, *index, &ns, is_there, err);

	if (ret < 0 || !jump->is_known || !*is_there)
		return ret;
	ret = wait_for_rank(jump, jump->names, is_backward ? ns + 1 : ns, &row, err);
	if (ret < 0)
		return ret;
	*is_there = !is_backward || row;
	if (*is_there)
		ret = tsp_search_time_of(jump, jump->names, is_backward ? row - 1 : row, &ns,
					 is_there, err);
	if (ret < 0 || !jump->is_known || !*is_there)
		return ret;
	ret = tsp_search_rank_of(jump, jump->filter, is_backward ? ns + 1 : ns, &row, err);
	if (ret < 0 || !jump->is_known)
		return ret;
	if (is_backward ? row && row - 1 < *index : row > *index)
		*index = is_backward ? row - 1 : row;
	return KYMO_OK;
}

int ky_tsp_search_jump(struct ky_tsp_answer *answer, const char *filter,
		       struct ky_tsp_pattern *names, bool is_backward, uint64_t *index,
		       bool *is_there, struct kymo_error *err)
{
	struct jump jump = {.answer = answer, .filter = filter};
	int ret = KYMO_OK;

	*is_there = true;
	jump.ask = calloc(1, sizeof(*jump.ask));
	jump.names = malloc(KY_VIEW_FILTER_BYTES);
	if (!jump.ask || !jump.names) {
		ret = ky_error_nomem(err);
	} else if (make_filter(answer->view, filter, names, jump.names)) {
		*is_there = jump.names[0] != '\0';
		if (*is_there)
			ret = go(&jump, is_backward, index, is_there, err);
	}
	/* Other clients' filters have all places: then the search looks at each event. */
	if (ret == KYMO_E_LIMIT) {
		ky_error_clear(err);
		ret = KYMO_OK;
		*is_there = true;
	}
	if (ret == KYMO_OK && !jump.is_known && jump.names && jump.names[0])
		*is_there = true;
	free(jump.ask);
	free(jump.names);
	return ret;
}
