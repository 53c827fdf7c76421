/* SPDX-License-Identifier: MIT */
/* What the metrics of kymo latency are. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/latency/latency-metrics.h"

/* Of more histograms, an answer would be tens of megabytes. */
#define METRICS_SERIES_MAX 1000

/* @id: room for a number. */
static struct ky_metrics_labels labels_of(const struct ky_series *series, char id[24])
{
	struct ky_metrics_labels labels = {
		{{"layer", ky_latency_layer_name(series->key.layer)}, {"name", series->name}}, 2};

	if (!series->owner)
		return labels;
	/* Names come again: of a service's control group, for one. */
	snprintf(id, 24, "%" PRIu64, (uint64_t)series->key.who);
	labels.all[labels.n].name = "owner";
	labels.all[labels.n++].value = series->owner;
	labels.all[labels.n].name = "owner_id";
	labels.all[labels.n++].value = id;
	return labels;
}

static void metrics_put_histograms(struct ky_metrics_writer *writer,
				   struct ky_series *const *series, size_t n)
{
	char id[24];

	ky_metrics_family(writer, "kymo_latency_seconds", KY_METRICS_HISTOGRAM, true,
			  "Durations by layer of the kernel, since kymo latency was started.");
	for (size_t i = 0; i < n; i++) {
		struct ky_metrics_labels labels = labels_of(series[i], id);

		ky_metrics_histogram(writer, &labels, &series[i]->total);
	}
}

static void metrics_put_longest(struct ky_metrics_writer *writer, struct ky_latency *latency,
				struct ky_series *const *series, size_t n)
{
	char id[24];

	ky_metrics_family(writer, "kymo_latency_longest_seconds", KY_METRICS_GAUGE, true,
			  "The longest duration of the last minute.");
	for (size_t i = 0; i < n; i++) {
		struct ky_metrics_labels labels = labels_of(series[i], id);
		struct ky_histogram minute;

		ky_series_past(series[i], KY_PAST_1_MIN, ky_latency_slot(latency), &minute);
		ky_metrics_number(writer, &labels, minute.max_ns);
	}
}

static void metrics_put_series(struct ky_metrics_writer *writer, struct ky_latency *latency)
{
	static const struct ky_metrics_labels none;
	size_t n;
	struct ky_series *const *series = ky_latency_series(latency, &n);
	size_t left_out = n > METRICS_SERIES_MAX ? n - METRICS_SERIES_MAX : 0;

	metrics_put_histograms(writer, series, n - left_out);
	metrics_put_longest(writer, latency, series, n - left_out);
	ky_metrics_family(writer, "kymo_latency_series_left_out", KY_METRICS_GAUGE, false,
			  "Histograms beyond the most that an answer has.");
	ky_metrics_number(writer, &none, left_out);
}

static void metrics_put_losses(struct ky_metrics_writer *writer, struct ky_latency *latency)
{
	struct ky_latency_losses losses;
	const struct {
		const char *what;
		uint64_t n;
	} rows[] = {{"without_cell", (ky_latency_losses(latency, &losses), losses.cells)},
		    {"requests", losses.requests},
		    {"programs", losses.programs},
		    {"skipped_runs", losses.misses}};

	ky_metrics_family(
		writer, "kymo_latency_lost", KY_METRICS_COUNTER, false,
		"Durations that are in no histogram: no room for a histogram, no room for a block "
		"request, skipped by the kernel.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ky_metrics_labels labels = {{{"what", rows[i].what}}, 1};

		ky_metrics_number(writer, &labels, rows[i].n);
	}
}

static void put_trackers(struct ky_metrics_writer *writer, const struct ky_latency *latency,
			 bool lost)
{
	const struct ky_tracker *tracker;
	struct ky_tracker_state state;

	for (size_t i = 0; (tracker = ky_latency_tracker(latency, i)); i++) {
		struct ky_metrics_labels labels = {{{"tracker", ky_tracker_name(tracker)}}, 1};

		ky_tracker_state(tracker, &state);
		ky_metrics_number(writer, &labels, lost ? state.full : state.open);
	}
}

void ky_metrics_put(struct ky_strbuf *out, struct ky_latency *latency,
		    enum ky_metrics_format format)
{
	struct ky_metrics_writer writer = {.out = out, .format = format, .message = KY_STRBUF_INIT};

	metrics_put_series(&writer, latency);
	metrics_put_losses(&writer, latency);
	if (ky_latency_tracker(latency, 0)) {
		ky_metrics_family(&writer, "kymo_latency_tracker_open", KY_METRICS_GAUGE, false,
				  "Pairs of events that have begun and not ended.");
		put_trackers(&writer, latency, false);
		ky_metrics_family(&writer, "kymo_latency_tracker_lost", KY_METRICS_COUNTER, false,
				  "Pairs of events for which the table of open pairs had no room.");
		put_trackers(&writer, latency, true);
	}
	if (format == KY_METRICS_OPEN)
		ky_strbuf_adds(out, "# EOF\n");
	ky_metrics_pb_end(&writer);
	ky_strbuf_fini(&writer.message);
}
