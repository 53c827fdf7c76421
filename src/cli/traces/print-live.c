/* SPDX-License-Identifier: MIT */
/* A set of traces has a sink of its own, which continues where the last one ended. */
#include "cli/traces/print-live.h"

#include "base/error.h"
#include "cli/reading/run-flow.h"

struct printer {
	const struct ky_print_live *live;
	struct ky_sink *sink; /* of the set that is open */
	bool has_begun;	      /* what comes before the lines is written */
	struct ky_event last; /* its times only: the next line's difference counts from them */
	bool any;
};

static int end_sink(struct printer *p, int ret, struct kymo_error *err)
{
	if (!p->sink)
		return ret;
	ret = ky_cli_finish_flow(p->sink, ret, err);
	ky_sink_free(p->sink);
	p->sink = NULL;
	return ret;
}

static int open_sink(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	struct printer *p = data;
	int ret = end_sink(p, KYMO_OK, err);

	if (!ret && !p->has_begun && p->live->begin)
		ret = p->live->begin(p->live->data, set, err);
	if (!ret && p->live->open)
		ret = p->live->open(p->live->data, set, err);
	if (ret < 0)
		return ret;
	p->has_begun = true;
	p->sink = p->live->make(p->live->data);
	if (!p->sink)
		return ky_error_nomem(err);
	if (p->any && p->sink->ops->resume)
		p->sink->ops->resume(p->sink, &p->last);
	return KYMO_OK;
}

static int put_batch(void *data, const struct ky_batch *batch, struct kymo_error *err)
{
	struct printer *p = data;

	if (batch->n_events) {
		p->last.ns = batch->events[batch->n_events - 1].ns;
		p->last.cycles = batch->events[batch->n_events - 1].cycles;
		p->any = true;
	}
	return ky_sink_batch(p->sink, batch, err);
}

static int print_live_flush(void *data, int64_t until_ns, struct kymo_error *err)
{
	(void)until_ns;
	return ky_sink_flush(((struct printer *)data)->sink, err);
}

static int print_live_end(void *data, int ret, struct kymo_error *err)
{
	return end_sink(data, ret, err);
}

int ky_print_live(const struct ky_print_live *live, struct kymo_error *err)
{
	struct printer printer = {.live = live};
	struct ky_follow_run run = live->run;

	run.open = open_sink;
	run.batch = put_batch;
	run.flush = print_live_flush;
	run.close = print_live_end;
	run.data = &printer;
	return ky_cli_follow(&run, err);
}
