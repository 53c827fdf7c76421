/* SPDX-License-Identifier: MIT */
/* kymo latency for programs: JSON and CSV. */
#include "cli/latency/latency-output.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/csv.h"
#include "base/error.h"
#include "cli/terminal/json-output.h"
#include "os/now.h"

const struct ky_latency_part ky_latency_parts[KY_LATENCY_PARTS] = {
	{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

const char *ky_latency_by_name(enum ky_latency_by by)
{
	static const char *const names[] = {"none", "process", "user", "cgroup"};

	return names[by];
}

int64_t ky_latency_wall_ns(uint64_t ns)
{
	return ky_os_time_ns(CLOCK_REALTIME) - ky_os_time_ns(CLOCK_MONOTONIC) + (int64_t)ns;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void latency_output_put_bucket(const struct ky_histogram *histogram, json_t *list,
				      uint32_t i)
{
	if (!histogram->buckets[i])
		return;
	json_array_append_new(
		list,
		json_pack("[I, I, I]", (json_int_t)ky_bucket_begin_ns(i),
			  i + 1 < KY_LATENCY_BUCKETS ? (json_int_t)ky_bucket_end_ns(i) : INT64_MAX,
			  (json_int_t)histogram->buckets[i]));
}

static json_t *make_buckets(const struct ky_histogram *histogram)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		latency_output_put_bucket(histogram, list, i);
	return list;
}

static json_t *make_histogram(const struct ky_histogram *histogram, uint64_t window_ns)
{
	double seconds = (double)window_ns / 1e9;
	json_t *object =
		json_pack("{s:I, s:f, s:I, s:I}", "count", (json_int_t)histogram->count, "rate",
			  seconds > 0 ? (double)histogram->count / seconds : 0.0, "sum_ns",
			  (json_int_t)histogram->sum_ns, "max_ns", (json_int_t)histogram->max_ns);
	char name[32];

	for (size_t i = 0; i < KY_LATENCY_PARTS; i++) {
		snprintf(name, sizeof(name), "%s_ns", ky_latency_parts[i].name);
		json_object_set_new(object, name,
				    json_integer((json_int_t)ky_histogram_percentile_ns(
					    histogram, ky_latency_parts[i].part)));
	}
	json_object_set_new(object, "buckets", make_buckets(histogram));
	return object;
}

static json_t *make_series(const struct ky_latency_view *view, const struct ky_series *series)
{
	json_t *object = json_object(), *windows = json_object();
	struct ky_histogram histogram;

	json_object_set_new(object, "layer", json_string(ky_latency_layer_name(series->key.layer)));
	json_object_set_new(object, "name", ky_jansson_text(series->name));
	if (series->owner) {
		json_object_set_new(object, "owner", ky_jansson_text(series->owner));
		json_object_set_new(object, "owner_id", json_integer((json_int_t)series->key.who));
	}
	for (int window = 0; window < KY_PASTS; window++) {
		ky_series_past(series, window, ky_latency_slot(view->latency), &histogram);
		json_object_set_new(
			windows, ky_past_name(window),
			make_histogram(&histogram, ky_latency_window_ns(view->latency, window)));
	}
	json_object_set_new(object, "windows", windows);
	return object;
}

static json_t *make_losses(const struct ky_latency_view *view)
{
	struct ky_latency_losses losses;
	json_t *absent = json_array();

	ky_latency_losses(view->latency, &losses);
	for (uint32_t i = 0; i < KY_LATENCY_LAYERS; i++)
		if (losses.absent_layers >> i & 1)
			json_array_append_new(absent, json_string(ky_latency_layer_name(i)));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "without_cell", (json_int_t)losses.cells,
			 "requests", (json_int_t)losses.requests, "members",
			 (json_int_t)losses.members, "skipped_runs", (json_int_t)losses.misses,
			 "programs", (json_int_t)losses.programs, "absent_layers", absent);
}

static json_t *make_trackers(const struct ky_latency_view *view)
{
	const struct ky_tracker *tracker;
	struct ky_tracker_state state;
	json_t *list = json_array();

	for (size_t i = 0; (tracker = ky_latency_tracker(view->latency, i)); i++) {
		ky_tracker_state(tracker, &state);
		json_array_append_new(
			list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
					ky_tracker_name(tracker), "open", (json_int_t)state.open,
					"worst_ns", (json_int_t)state.worst_ns, "without_room",
					(json_int_t)state.full, "begun_again",
					(json_int_t)state.again, "not_told", (json_int_t)state.lost,
					"skipped_runs", (json_int_t)state.missed, "unreadable",
					(json_int_t)state.unread));
	}
	return list;
}

static void add_chain(json_t *root, const struct ky_latency_view *view)
{
	const struct ky_chain *chain = ky_latency_chain(view->latency);
	struct ky_chain_state state;

	if (!chain)
		return;
	ky_chain_state(chain, &state);
	json_object_set_new(root, "chain",
			    json_pack("{s:I, s:I, s:I, s:I}", "worst_ns",
				      (json_int_t)state.worst_ns, "slept_again",
				      (json_int_t)state.dropped, "not_told", (json_int_t)state.lost,
				      "skipped_runs", (json_int_t)state.missed));
}

int ky_latency_put_json(const struct ky_latency_view *view, bool indented, struct kymo_error *err)
{
	json_t *windows = json_object(), *list = json_array(), *root;
	struct ky_series *const *series;
	size_t n;

	for (int window = 0; window < KY_PASTS; window++)
		json_object_set_new(
			windows, ky_past_name(window),
			json_integer((json_int_t)ky_latency_window_ns(view->latency, window)));
	series = ky_latency_series(view->latency, &n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, make_series(view, series[i]));
	root = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "time_ns",
			 (json_int_t)ky_os_time_ns(CLOCK_REALTIME), "by",
			 ky_latency_by_name(view->by), "window_ns", windows, "lost",
			 make_losses(view), "trackers", make_trackers(view), "series", list);
	add_chain(root, view);
	return ky_cli_put_json(root, indented ? 1 : 0, err);
}

/* ---- CSV ---------------------------------------------------------------------------------- */

static void latency_output_text(struct ky_strbuf *out, const char *text)
{
	ky_strbuf_addc(out, ',');
	if (text)
		ky_csv_text(out, text, strlen(text), false);
}

static void put_line(struct ky_strbuf *out, const struct ky_latency_view *view, int64_t time_ns,
		     const struct ky_series *series, enum ky_past window)
{
	double seconds = (double)ky_latency_window_ns(view->latency, window) / 1e9;
	struct ky_histogram histogram;

	ky_series_past(series, window, ky_latency_slot(view->latency), &histogram);
	if (!histogram.count)
		return;
	ky_strbuf_addf(out, "%" PRId64 ",%s,%s", time_ns, ky_past_name(window),
		       ky_latency_layer_name(series->key.layer));
	latency_output_text(out, series->name);
	latency_output_text(out, series->owner);
	ky_strbuf_addf(out, ",%" PRIu64 ",%.3f,%" PRIu64, histogram.count,
		       seconds > 0 ? (double)histogram.count / seconds : 0.0, histogram.sum_ns);
	for (size_t i = 0; i < KY_LATENCY_PARTS; i++)
		ky_strbuf_addf(out, ",%" PRIu64,
			       ky_histogram_percentile_ns(&histogram, ky_latency_parts[i].part));
	ky_strbuf_addf(out, ",%" PRIu64 "\r\n", histogram.max_ns);
}

void ky_latency_put_csv(struct ky_strbuf *out, const struct ky_latency_view *view, bool with_head)
{
	int64_t time_ns = ky_os_time_ns(CLOCK_REALTIME);
	size_t n;
	struct ky_series *const *series = ky_latency_series(view->latency, &n);

	if (with_head)
		ky_strbuf_adds(out, "time_ns,window,layer,name,owner,count,rate,sum_ns,p50_ns,"
				    "p90_ns,p99_ns,p99.9_ns,max_ns\r\n");
	for (size_t i = 0; i < n; i++)
		for (int window = 0; window < KY_PASTS; window++)
			put_line(out, view, time_ns, series[i], window);
}
