/* SPDX-License-Identifier: MIT */
/* Critical paths as time graphs: a row for each thread that a path goes over. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "view/tsp/tsp-path.h"

#define USUAL_SAMPLES 1000
#define ROOT	      0 /* the entry above all rows */

static void path_graph_put_name(struct ky_strbuf *out, const struct ky_tsp_path_row *row)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (row->tid < 0)
		ky_strbuf_adds(&text, "(unknown)");
	else
		ky_strbuf_addf(&text, "%s (%lld)", *row->name ? row->name : "?",
			       (long long)row->tid);
	ky_view_put_text(out, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void path_graph_put_tree(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
				bool is_running)
{
	struct ky_strbuf *out = answer->out;

	ky_tsp_put_head(out, is_running);
	ky_strbuf_adds(out,
		       "{\"headers\": [{\"name\": \"Thread\", \"tooltip\": \"\", \"dataType\": "
		       "\"STRING\"}], \"autoExpandLevel\": -1, \"entries\": [");
	if (path->is_made) {
		ky_strbuf_addf(out, "{\"id\": %d, \"parentId\": -1, \"labels\": [", ROOT);
		ky_view_put_text(out, path->name);
		ky_strbuf_addf(out, "], \"start\": %lld, \"end\": %lld, \"hasData\": false}",
			       (long long)path->made_begin_ns, (long long)path->made_end_ns);
	}
	for (size_t i = 0; path->is_made && i < path->rows.len; i++) {
		const struct ky_tsp_path_row *row = &path->rows.data[i];

		ky_strbuf_addf(out, ",\n{\"id\": %zu, \"parentId\": %d, \"labels\": [", i + 1,
			       ROOT);
		path_graph_put_name(out, row);
		ky_strbuf_addf(out, "], \"start\": %lld, \"end\": %lld, \"hasData\": true",
			       (long long)row->begin_ns, (long long)row->end_ns);
		ky_strbuf_adds(out, ", \"style\": {\"parentKey\": \"unknown\", \"values\": {}}");
		if (row->tid >= 0)
			ky_strbuf_addf(out, ", \"metadata\": {\"tid\": [%lld]}",
				       (long long)row->tid);
		ky_strbuf_adds(out, "}");
	}
	ky_strbuf_adds(out, "]}}\n");
}

/* ---- states ---------------------------------------------------------------------------------- */

static void path_graph_put_part(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
				const struct ky_tsp_part *part, size_t n_before)
{
	const struct ky_tsp_request *request = answer->request;
	const char *const texts[] = {part->label, ky_tsp_style(part->kind),
				     path->rows.data[part->row].name};
	uint64_t duration_ns = (uint64_t)part->end_ns - (uint64_t)part->begin_ns;
	struct ky_strbuf *out = answer->out;
	bool is_dim = !ky_tsp_matches(&request->dim, texts, 3, duration_ns);

	ky_strbuf_addf(out, "%s{\"start\": %lld, \"end\": %lld, \"label\": ", n_before ? "," : "",
		       (long long)part->begin_ns, (long long)part->end_ns);
	ky_view_put_text(out, part->label);
	ky_strbuf_addf(out, ", \"tags\": %d, \"style\": {\"parentKey\": \"%s\", \"values\": {}}}",
		       is_dim, ky_tsp_style(part->kind));
}

static bool path_graph_is_wanted(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
				 const struct ky_tsp_part *part)
{
	const char *const texts[] = {part->label, ky_tsp_style(part->kind),
				     path->rows.data[part->row].name};

	return ky_tsp_matches(&answer->request->exclude, texts, 3,
			      (uint64_t)part->end_ns - (uint64_t)part->begin_ns);
}

/* A part has a sample of its own: what is within that of the part before it cannot be seen. */
static void path_graph_put_row(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
			       uint32_t row)
{
	const struct ky_tsp_request *request = answer->request;
	uint64_t width_ns = ((uint64_t)request->end_ns - (uint64_t)request->begin_ns) /
			    (request->n_times ? request->n_times : USUAL_SAMPLES);
	int64_t seen_ns = INT64_MIN; /* the end of the last sample that shows something */
	size_t n = 0;

	for (size_t i = 0; i < path->parts.len; i++) {
		const struct ky_tsp_part *part = &path->parts.data[i];

		if (part->begin_ns > request->end_ns)
			break;
		if (part->row != row || part->end_ns <= request->begin_ns ||
		    part->end_ns <= seen_ns || !path_graph_is_wanted(answer, path, part))
			continue;
		path_graph_put_part(answer, path, part, n++);
		seen_ns = (uint64_t)INT64_MAX - (uint64_t)part->begin_ns > width_ns
				  ? part->begin_ns + (int64_t)width_ns
				  : INT64_MAX;
	}
}

static void path_graph_put_states(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
				  bool is_running)
{
	const struct ky_tsp_request *request = answer->request;
	size_t n = 0;

	ky_tsp_put_head(answer->out, is_running);
	ky_strbuf_adds(answer->out, "{\"rows\": [");
	/* A client that asks for a row again and again gets it a few times at most. */
	for (size_t i = 0; path->is_made && i < request->n_items && i < 2 * path->rows.len; i++) {
		int64_t id = request->items[i];

		if (id <= ROOT || (uint64_t)id > path->rows.len ||
		    answer->out->len > KY_TSP_ANSWER_BYTES)
			continue;
		ky_strbuf_addf(answer->out, "%s{\"entryId\": %lld, \"states\": [", n++ ? ",\n" : "",
			       (long long)id);
		path_graph_put_row(answer, path, (uint32_t)id - 1);
		ky_strbuf_adds(answer->out, "]}");
	}
	ky_strbuf_adds(answer->out, "]}}\n");
}

/* ---- arrows and tooltips --------------------------------------------------------------------- */

static void path_graph_put_arrows(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
				  bool is_running)
{
	const struct ky_tsp_request *request = answer->request;
	size_t n = 0;

	ky_tsp_put_head(answer->out, is_running);
	ky_strbuf_adds(answer->out, "[");
	ky_vec_foreach(&path->arrows, arrow) {
		if (arrow->ns < request->begin_ns || arrow->ns > request->end_ns ||
		    arrow->from == arrow->to)
			continue;
		ky_strbuf_addf(
			answer->out,
			"%s{\"sourceId\": %u, \"targetId\": %u, \"start\": %lld, \"end\": %lld}",
			n++ ? ",\n" : "", arrow->from + 1, arrow->to + 1, (long long)arrow->ns,
			(long long)arrow->ns);
	}
	ky_strbuf_adds(answer->out, "]}\n");
}

static void path_graph_put_pair(struct ky_strbuf *out, const char *name, const char *text)
{
	ky_strbuf_addf(out, ", \"%s\": ", name);
	ky_view_put_text(out, text);
}

static void path_graph_put_tip(struct ky_strbuf *out, const struct ky_tsp_path_row *row,
			       const struct ky_tsp_part *part)
{
	struct ky_strbuf begin = KY_STRBUF_INIT, end = KY_STRBUF_INIT;
	char duration[32];

	ky_tsp_time(&begin, part->begin_ns);
	ky_tsp_time(&end, part->end_ns);
	ky_strbuf_adds(out, "\"thread\": ");
	path_graph_put_name(out, row);
	path_graph_put_pair(out, "part", part->label);
	path_graph_put_pair(out, "begin", ky_strbuf_text(&begin));
	path_graph_put_pair(out, "end", ky_strbuf_text(&end));
	path_graph_put_pair(
		out, "duration",
		ky_format_duration(duration, (uint64_t)part->end_ns - (uint64_t)part->begin_ns));
	ky_strbuf_fini(&begin);
	ky_strbuf_fini(&end);
}

static void path_graph_put_tooltip(struct ky_tsp_answer *answer, const struct ky_tsp_path *path,
				   bool is_running)
{
	const struct ky_tsp_request *request = answer->request;
	int64_t ns = request->element == KY_TSP_STATE ? request->time_ns : request->element_ns;

	ky_tsp_put_head(answer->out, is_running);
	ky_strbuf_adds(answer->out, "{");
	for (size_t i = 0; i < path->parts.len; i++) {
		const struct ky_tsp_part *part = &path->parts.data[i];

		if (part->begin_ns > ns)
			break;
		if (part->end_ns <= ns || request->n_items != 1 ||
		    request->items[0] != (int64_t)part->row + 1)
			continue;
		path_graph_put_tip(answer->out, &path->rows.data[part->row], part);
		break;
	}
	ky_strbuf_adds(answer->out, "}}\n");
}

/* ---- the answer ------------------------------------------------------------------------------ */

int ky_tsp_path_graph(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_path *path = ky_tsp_path_take(answer);
	bool is_running;
	int ret;

	if (!path)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such output");
	pthread_mutex_lock(&path->lock);
	ret = ky_tsp_path_make(answer, path, &is_running, err);
	if (ret < 0)
		;
	else if (answer->request->what == KY_TSP_GRAPH_TREE)
		path_graph_put_tree(answer, path, is_running);
	else if (answer->request->what == KY_TSP_GRAPH_STATES)
		path_graph_put_states(answer, path, is_running);
	else if (answer->request->what == KY_TSP_GRAPH_ARROWS)
		path_graph_put_arrows(answer, path, is_running);
	else
		path_graph_put_tooltip(answer, path, is_running);
	pthread_mutex_unlock(&path->lock);
	ky_tsp_path_put(answer, path);
	return ret;
}
