/* SPDX-License-Identifier: MIT */
/* Traces that grow, slice by slice. */
#include "base/error.h"
#include "fleet/fleet-load.h"
#include "store/read/follow.h"

static int slice_number(struct ky_fleet_load *load, const char *what, const char *of,
			int64_t *number, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	/* lint: own text */
	ky_strbuf_addf(&text, "SELECT max(%s) FROM kymo_batch WHERE trace = '%s' AND of = '%s'",
		       what, load->trace, of);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_number(load->store, ky_strbuf_text(&text), number, err);
	ky_strbuf_fini(&text);
	return ret;
}

/* The last slice of the store. */
static int find_slice(struct ky_fleet_load *load, struct ky_fleet_slice *slice,
		      struct kymo_error *err)
{
	int64_t done = 0;
	int ret = slice_number(load, "number", KY_FLEET_SLICE, &slice->number, err);

	/* Ends grow with the numbers. */
	if (!ret)
		ret = slice_number(load, "n_rows", KY_FLEET_SLICE, &slice->until_ns, err);
	if (!ret)
		ret = slice_number(load, "number", KY_FLEET_SLICE_DONE, &done, err);
	if (!ret && done && done < slice->number)
		ret = slice_number(load, "n_rows", KY_FLEET_SLICE_DONE, &slice->after_ns, err);
	else
		slice->after_ns = INT64_MIN;
	if (!slice->number)
		slice->until_ns = INT64_MIN;
	slice->is_done = done == slice->number;
	return ret;
}

/* The end of the next one. Intervals that are open end with the last event for now: they wait. */
static int64_t slice_end(struct ky_fleet_load *load, int64_t until_ns)
{
	int64_t last_ns = until_ns == INT64_MAX
				  ? INT64_MAX
				  : ky_fleet_load_time(load, "SELECT max(time) FROM event") - 1;

	return last_ns < until_ns ? last_ns : until_ns;
}

static int load_slice(struct ky_fleet_load *load, struct ky_fleet_slice *slice,
		      struct kymo_error *err)
{
	int ret;

	load->slice = slice;
	ret = ky_fleet_load_tables(load, err);
	/* Reports are of a whole trace. */
	if (!ret && slice->until_ns == INT64_MAX && load->options->n_reports)
		ret = ky_fleet_load_reports(load, err);
	if (!ret)
		ret = load->store->ops->note(load->store, load->trace, KY_FLEET_SLICE_DONE,
					     (uint64_t)slice->number, slice->until_ns, err);
	return ret;
}

/* Does the store have batches of the whole trace? */
static int fleet_load_is_loaded(struct ky_fleet_load *load, bool *is_loaded, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t n = 0;
	int ret;

	ky_strbuf_addf(&text,
		       "SELECT count(*) FROM kymo_batch WHERE trace = '%s' AND number < %lld AND "
		       "of NOT LIKE 'kymo%%' AND of NOT LIKE 'report%%'",
		       load->trace, 1LL << KY_FLEET_SLICE_SHIFT);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_number(load->store, ky_strbuf_text(&text), &n, err);
	ky_strbuf_fini(&text);
	*is_loaded = n > 0;
	return ret;
}

static int64_t growing_until(const struct ky_trace_set *set)
{
	int64_t until_ns = INT64_MAX;

	ky_vec_foreach(&set->traces, trace)
		if ((*trace)->live.state.is_told && ky_follow_told_ns(*trace) < until_ns)
			until_ns = ky_follow_told_ns(*trace);
	return until_ns;
}

/* The next one. Not before the first event: without it, the trace has no name yet. */
static int growing_next(struct ky_fleet_load *load, struct ky_fleet_slice *slice, int64_t until_ns,
			struct kymo_error *err)
{
	int ret;

	*slice = (struct ky_fleet_slice){slice->number + 1, slice->until_ns,
					 slice_end(load, until_ns), false};
	if (slice->until_ns <= slice->after_ns ||
	    (until_ns < INT64_MAX &&
	     ky_fleet_load_time(load, "SELECT time FROM event LIMIT 1") >= until_ns))
		return KYMO_OK;
	ret = load->store->ops->note(load->store, load->trace, KY_FLEET_SLICE,
				     (uint64_t)slice->number, slice->until_ns, err);
	return ret ? ret : load_slice(load, slice, err);
}

static int grow(struct ky_fleet_load *load, bool is_complete, bool *is_whole,
		struct kymo_error *err)
{
	struct ky_fleet_slice slice = {0};
	int ret;

	*is_whole = !load->has_events && is_complete;
	if (!load->has_events)
		return KYMO_OK;
	ret = fleet_load_is_loaded(load, is_whole, err);
	if (!ret && !*is_whole)
		ret = find_slice(load, &slice, err);
	if (!ret && !*is_whole && slice.is_done && slice.until_ns == INT64_MAX)
		*is_whole = true;
	if (ret < 0 || *is_whole)
		return ret;
	ret = ky_fleet_clocks_keep(load, err);
	if (!ret)
		ret = ky_fleet_load_open(load, err);
	if (!ret && slice.number && !slice.is_done)
		ret = load_slice(load, &slice, err);
	if (!ret && slice.until_ns < INT64_MAX)
		ret = growing_next(load, &slice, is_complete ? INT64_MAX : growing_until(load->set),
				   err);
	*is_whole = !ret && slice.until_ns == INT64_MAX;
	return ret;
}

int ky_fleet_load_rest(struct ky_fleet_load *load, struct kymo_error *err)
{
	int64_t number = 0;
	bool is_whole;
	int ret = slice_number(load, "number", KY_FLEET_SLICE, &number, err);

	if (!ret && number)
		ret = grow(load, true, &is_whole, err);
	load->slice = NULL;
	return ret;
}

int ky_fleet_load_growing(struct ky_fleet *store, const struct ky_trace_set *set,
			  const struct ky_fleet_options *options, bool is_complete, bool *is_whole,
			  struct ky_fleet_result *result, struct kymo_error *err)
{
	struct ky_fleet_load load = {
		.store = store, .set = set, .options = options, .result = result};
	int ret = ky_fleet_key_find(&load, err);

	*is_whole = false;
	if (!ret)
		ret = grow(&load, is_complete, is_whole, err);
	ky_sql_close(load.sql);
	return ret;
}
