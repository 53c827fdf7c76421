/* SPDX-License-Identifier: MIT */
/* The dispatch of the Trace Server Protocol, and what all answers share. */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <kymo/version.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

/* ---- about the server -------------------------------------------------------------------- */

static void put_identifier(struct ky_strbuf *out)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct utsname name;

	if (uname(&name) < 0)
		memset(&name, 0, sizeof(name));
	ky_strbuf_adds(out, "{\"version\": \"" KYMO_VERSION "\", \"productId\": \"kymo\", "
			    "\"tspVersion\": \"0.6.0\", \"launcherName\": \"kymo view --tsp\", "
			    "\"os\": ");
	ky_view_put_text(out, name.sysname);
	ky_strbuf_adds(out, ", \"osVersion\": ");
	ky_view_put_text(out, name.release);
	ky_strbuf_adds(out, ", \"osArch\": ");
	ky_view_put_text(out, name.machine);
	ky_strbuf_addf(out, ", \"cpuCount\": %ld}", cpus > 0 ? cpus : 1);
}

void ky_tsp_put_head(struct ky_strbuf *out, bool is_running)
{
	ky_strbuf_addf(out, "{\"status\": \"%s\", \"statusMessage\": \"%s\", \"model\": ",
		       is_running ? "RUNNING" : "COMPLETED", is_running ? "Running" : "Completed");
}

/* ---- errors ------------------------------------------------------------------------------ */

static unsigned int tsp_answer_status_of(int code)
{
	switch (code) {
	case KYMO_E_INVALID:
	case KYMO_E_LIMIT:
		return 400;
	case KYMO_E_PERMISSION:
		return 403;
	case KYMO_E_NOT_FOUND:
		return 404;
	case KYMO_E_UNSUPPORTED:
		return 405; /* of the protocol: the analysis cannot run */
	case KYMO_E_MEMORY:
	case KYMO_E_INTERRUPTED:
		return 503;
	default:
		return 500;
	}
}

unsigned int ky_tsp_put_error(struct ky_strbuf *out, const struct kymo_error *err)
{
	ky_strbuf_clear(out);
	ky_strbuf_adds(out, "{\"title\": ");
	ky_view_put_text(out, kymo_status_text(err->code));
	ky_strbuf_adds(out, ", \"detail\": ");
	ky_view_put_error(out, err);
	ky_strbuf_adds(out, "}\n");
	return tsp_answer_status_of(err->code);
}

/* ---- the engine of the page -------------------------------------------------------------- */

int ky_tsp_parse(const struct ky_strbuf *text, struct ky_arena *arena, const struct ky_json **root,
		 struct kymo_error *err)
{
	struct ky_json_reader reader = {.line = 1, .arena = arena, .err = err, .depth_left = 64};

	reader.at = reader.line_begin = ky_strbuf_text(text);
	reader.end = reader.at + text->len;
	*root = ky_json_read(&reader);
	if (*root)
		return KYMO_OK;
	return err && err->code ? err->code : KYMO_E_MEMORY;
}

int ky_tsp_ask(struct ky_tsp_answer *answer, const struct ky_view_request *request,
	       struct ky_arena *arena, const struct ky_json **root, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = ky_view_answer(answer->view, request, answer->stop, &text, err);

	if (ret == KYMO_OK)
		ret = ky_tsp_parse(&text, arena, root, err);
	ky_strbuf_fini(&text);
	return ret;
}

int ky_tsp_ask_rank(struct ky_tsp_answer *answer, struct ky_view_request *request, int64_t ns,
		    uint64_t *row, bool *is_exact, struct kymo_error *err)
{
	const struct ky_json *root, *number, *exact;
	struct ky_arena arena;
	int ret;

	request->what = KY_VIEW_RANK;
	request->ns = ns;
	ky_arena_init(&arena);
	ret = ky_tsp_ask(answer, request, &arena, &root, err);
	number = ret == KYMO_OK ? ky_json_get(root, "row") : NULL;
	exact = number ? ky_json_get(root, "exact") : NULL;
	*row = number && number->kind == KY_JSON_INTEGER ? number->integer.u : 0;
	*is_exact = exact && exact->kind == KY_JSON_BOOL && exact->boolean;
	ky_arena_fini(&arena);
	return ret;
}

/* ---- the state history ------------------------------------------------------------------- */

struct ky_history *ky_tsp_begin_history(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_engine *engine = answer->experiment->engine;
	struct ky_view *view = answer->view;
	struct ky_history *history;

	/* Clients keep what they got: so they get a complete history, or none. */
	if (ky_view_take_history(view, &history, err) == KYMO_OK && history &&
	    ky_view_history_is_over(view)) {
		if (!view->shared)
			atomic_store_explicit(&engine->has_history, true, memory_order_relaxed);
		return history;
	}
	ky_view_put_history(view);
	return NULL;
}

/* An answer may have the lock for seconds, but not before the history is there. */
bool ky_tsp_history_is_over(struct ky_tsp_engine *engine, struct ky_view *view)
{
	struct ky_history *history;
	struct kymo_error err;
	bool is_over;

	if (atomic_load_explicit(&engine->has_history, memory_order_relaxed))
		return true;
	ky_error_clear(&err);
	is_over = ky_view_take_history(view, &history, &err) < 0 ||
		  (history && ky_view_history_is_over(view));
	if (is_over && !view->shared)
		atomic_store_explicit(&engine->has_history, true, memory_order_relaxed);
	ky_view_put_history(view);
	return is_over;
}

/* ---- dispatch ---------------------------------------------------------------------------- */

static int answer_simple(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	switch (answer->request->what) {
	case KY_TSP_HEALTH:
		ky_strbuf_adds(answer->out, "{\"status\": \"UP\"}");
		return KYMO_OK;
	case KY_TSP_IDENTIFIER:
		put_identifier(answer->out);
		return KYMO_OK;
	case KY_TSP_CONFIG_TYPES: /* there is nothing to configure */
		ky_strbuf_adds(answer->out, "[]");
		return KYMO_OK;
	case KY_TSP_TRACES:
	case KY_TSP_TRACE_OPEN:
	case KY_TSP_TRACE:
	case KY_TSP_TRACE_DELETE:
		return ky_tsp_traces(answer, err);
	default:
		return ky_tsp_experiments(answer, err);
	}
}

static int answer_output(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	switch (answer->request->what) {
	case KY_TSP_BOOKMARKS:
	case KY_TSP_BOOKMARK_CREATE:
	case KY_TSP_BOOKMARK:
	case KY_TSP_BOOKMARK_UPDATE:
	case KY_TSP_BOOKMARK_DELETE:
		return ky_tsp_bookmarks(answer, err);
	case KY_TSP_GRAPH_TREE:
	case KY_TSP_GRAPH_STATES:
	case KY_TSP_GRAPH_ARROWS:
	case KY_TSP_GRAPH_TOOLTIP:
		return ky_tsp_graph(answer, err);
	case KY_TSP_XY_TREE:
	case KY_TSP_XY:
		return ky_tsp_xy(answer, err);
	case KY_TSP_GENERIC_TREE:
	case KY_TSP_GENERIC_XY:
		return ky_tsp_generic(answer, err);
	case KY_TSP_TABLE_COLUMNS:
	case KY_TSP_TABLE_LINES:
		return ky_tsp_table(answer, err);
	case KY_TSP_DATA_TREE:
		return ky_tsp_data_tree(answer, err);
	case KY_TSP_OUTPUT_CONFIG_TYPES:
	case KY_TSP_OUTPUT_CONFIG_TYPE:
	case KY_TSP_OUTPUT_DERIVE:
	case KY_TSP_OUTPUT_REMOVE:
		return ky_tsp_derive(answer, err);
	case KY_TSP_STYLES:
		return ky_tsp_styles(answer, err);
	case KY_TSP_MARKER_SETS:
	case KY_TSP_CATEGORIES:
	case KY_TSP_ANNOTATIONS:
		return ky_tsp_annotations(answer, err);
	default:
		return ky_tsp_outputs(answer, err);
	}
}

static bool needs_experiment(enum ky_tsp_what what)
{
	return what >= KY_TSP_OUTPUTS && what != KY_TSP_CONFIG_TYPES;
}

static int answer_of_experiment(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp *tsp = answer->tsp;
	struct ky_tsp_experiment *unused;
	int ret;

	answer->experiment = ky_tsp_take_experiment(tsp, answer->request->uuid[0]);
	if (!answer->experiment)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such experiment");
	answer->view = ky_tsp_take_view(answer->experiment->engine);
	ret = answer_output(answer, err);
	ky_tsp_put_view(answer->experiment->engine, answer->view);
	pthread_mutex_lock(&tsp->lock);
	unused = ky_tsp_put_experiment(answer->experiment);
	pthread_mutex_unlock(&tsp->lock);
	ky_tsp_free_experiment(tsp, unused);
	return ret;
}

unsigned int ky_tsp_answer(struct ky_tsp *tsp, const struct ky_tsp_request *request,
			   const struct ky_view_stop *stop, struct ky_strbuf *out)
{
	struct ky_tsp_answer answer = {.tsp = tsp, .request = request, .stop = stop, .out = out};
	struct kymo_error err;
	unsigned int status;
	int ret;

	ky_error_clear(&err);
	if (needs_experiment(request->what))
		ret = answer_of_experiment(&answer, &err);
	else
		ret = answer_simple(&answer, &err);
	if (ret == KYMO_OK && ky_strbuf_failed(out))
		ret = ky_error_nomem(&err);
	if (ret == KYMO_OK && out->len > KY_TSP_ANSWER_BYTES)
		ret = ky_error_set(&err, KYMO_E_LIMIT,
				   "the answer is too large; ask for fewer items or samples");
	if (ret == KYMO_OK)
		return answer.status ? answer.status : 200;
	status = ky_tsp_put_error(out, &err);
	return answer.status ? answer.status : status;
}
