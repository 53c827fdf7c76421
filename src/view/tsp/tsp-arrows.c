/* SPDX-License-Identifier: MIT */
/* Arrows of threads: from the waker, at the waking, to the woken thread when it runs. */
#include <string.h>

#include "view/tsp/tsp-internal.h"
#include "view/answers/wakings.h"

#define THREADS	      "kymo.threads"
#define MAX_ARROWS    5000
#define USUAL_SAMPLES 1000

struct arrows {
	struct ky_strbuf *out;
	size_t n;
};

static void tsp_arrows_put(void *data, const struct ky_waking *waking)
{
	struct arrows *arrows = data;

	ky_strbuf_addf(arrows->out,
		       "%s{\"sourceId\": %u, \"targetId\": %u, \"start\": %lld, \"end\": %lld}",
		       arrows->n++ ? ",\n" : "", waking->from, waking->to,
		       (long long)waking->begin_ns, (long long)waking->end_ns);
}

static int tsp_arrows_put_all(struct ky_tsp_answer *answer, struct ky_history *history,
			      struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	struct arrows arrows = {.out = answer->out};
	const struct ky_wakings_query query = {
		.begin_ns = request->begin_ns,
		.end_ns = request->end_ns,
		.width_ns = ((uint64_t)request->end_ns - (uint64_t)request->begin_ns) /
			    (request->n_times ? request->n_times : USUAL_SAMPLES),
		.row = KY_HISTORY_NO_ROW,
		.max = MAX_ARROWS};
	int ret = ky_view_wakings(answer->view, history, &query, answer->stop, tsp_arrows_put,
				  &arrows, err);

	return ret > 0 ? KYMO_OK : ret;
}

int ky_tsp_put_arrows(struct ky_tsp_answer *answer, struct ky_history *history,
		      struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_tsp_put_head(answer->out, !history);
	ky_strbuf_adds(answer->out, "[");
	if (history && strcmp(answer->request->output, THREADS) == 0)
		ret = tsp_arrows_put_all(answer, history, err);
	ky_strbuf_adds(answer->out, "]}\n");
	return ret;
}
