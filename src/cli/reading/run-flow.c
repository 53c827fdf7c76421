/* SPDX-License-Identifier: MIT */
#include "cli/reading/run-flow.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "cli/reading/damage.h"

/* Atomic for other threads; lock-free, for the handler. */
static atomic_int interrupted;

static void on_signal(int number)
{
	(void)number;
	atomic_store_explicit(&interrupted, 1, memory_order_relaxed);
}

void ky_cli_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	struct sigaction before;

	atomic_store_explicit(&interrupted, 0, memory_order_relaxed);
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* nohup has it ignored. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

bool ky_cli_interrupted(void)
{
	return atomic_load_explicit(&interrupted, memory_order_relaxed);
}

/* ---- losses ------------------------------------------------------------------------------- */

/* Where losses lie in time, for the warning: " between A and B", or nothing. */
static void describe_range(char out[160], const struct ky_loss *loss,
			   const struct ky_text_options *options)
{
	char begin[64], end[64];

	out[0] = '\0';
	if (loss->begin_ns != INT64_MIN && loss->end_ns != INT64_MIN)
		snprintf(out, 160, " between %s and %s",
			 ky_text_time(begin, loss->begin_ns, options),
			 ky_text_time(end, loss->end_ns, options));
}

void ky_cli_warn_loss(const struct ky_loss *loss, const struct ky_text_options *times)
{
	const char *path = loss->stream->file.path;
	char range[160];

	if (loss->damage)
		ky_cli_damage(loss);
	describe_range(range, loss, times);
	if (loss->events)
		ky_log_warning(&ky_cli_log, "%s: %llu event%s lost by the tracer%s", path,
			       (unsigned long long)loss->events, loss->events == 1 ? "" : "s",
			       range);
	if (loss->packets)
		ky_log_warning(&ky_cli_log, "%s: %llu packet%s missing%s", path,
			       (unsigned long long)loss->packets,
			       loss->packets == 1 ? " is" : "s are", range);
}

/* ---- progress ----------------------------------------------------------------------------- */

struct progress {
	const char *what;
	uint64_t *at_bytes; /* by stream */
	uint64_t done_bytes, total_bytes;
};

static void progress_init(struct progress *p, const struct ky_flow_run *run)
{
	*p = (struct progress){.what = run->progress};
	if (!p->what)
		return;
	p->at_bytes = calloc(run->set->streams.len + 1, sizeof(*p->at_bytes));
	ky_vec_foreach(&run->set->streams, stream)
		p->total_bytes += (*stream)->file.size_bytes;
}

static void progress_step(struct progress *p, const struct ky_batch *batch)
{
	struct ky_batch rest = *batch, run;
	uint64_t *at, offset_bytes;

	while (p->at_bytes && ky_batch_run(&rest, &run)) {
		if (!run.n_events)
			continue;
		at = &p->at_bytes[run.stream->index];
		offset_bytes = run.events->packet->file_offset_bytes;
		if (offset_bytes == *at)
			continue;
		p->done_bytes += offset_bytes - *at;
		*at = offset_bytes;
		ky_cli_progress(p->what, p->done_bytes, p->total_bytes);
	}
}

static void progress_fini(struct progress *p)
{
	free(p->at_bytes);
	if (p->what)
		ky_cli_progress_end();
}

/* ---- the loop ----------------------------------------------------------------------------- */

static int run_flow_take_batch(struct ky_flow_run *run, struct ky_sink *sink,
			       const struct ky_batch *batch, struct kymo_error *err)
{
	int ret;

	if (batch->loss) {
		/* So that the warning stands where the events are missing. */
		ret = sink ? ky_sink_flush(sink, err) : KYMO_OK;
		if (ret < 0)
			return ret;
		ky_cli_warn_loss(batch->loss, run->times);
	}
	if (ky_cli_interrupted())
		return ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
	ret = sink ? ky_sink_batch(sink, batch, err) : KYMO_OK;
	if (ret == KYMO_OK)
		run->n_events += batch->n_events;
	return ret;
}

static bool run_flow_is_damage(int code)
{
	return code == KYMO_E_FORMAT || code == KYMO_E_LIMIT;
}

/* A sink that works behind may tell only now of an event that came before error @ret. */
int ky_cli_finish_flow(struct ky_sink *sink, int ret, struct kymo_error *err)
{
	struct kymo_error own;
	int finished;

	if (ret == KYMO_E_INTERRUPTED)
		return ret;
	ky_error_clear(&own);
	finished = ky_sink_finish(sink, &own);
	if (finished >= 0 || (ret < 0 && !run_flow_is_damage(ret)))
		return ret;
	/* Behind damage too: what could not be written is not an output that ends at the damage. */
	if (err)
		*err = own;
	return finished;
}

int ky_cli_run_flow(struct ky_flow_run *run, struct ky_flow *flow, struct ky_sink *sink,
		    struct kymo_error *err)
{
	struct progress progress;
	struct ky_batch batch;
	int ret;

	progress_init(&progress, run);
	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		progress_step(&progress, &batch);
		ret = run_flow_take_batch(run, sink, &batch, err);
		if (ret < 0)
			break;
	}
	progress_fini(&progress);
	return sink ? ky_cli_finish_flow(sink, ret, err) : ret;
}
