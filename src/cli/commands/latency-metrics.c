/* SPDX-License-Identifier: MIT */
#include "cli/commands/latency-metrics.h"

#include <inttypes.h>
#include <string.h>

#include "base/foreign.h"

/* Of more histograms, an answer would be tens of megabytes. */
#define METRICS_SERIES_MAX 1000

struct writer {
	struct ky_strbuf *out;
	bool open_metrics;
};

/* A label's value: foreign text that nothing can leave. */
static void metrics_put_label(struct ky_strbuf *out, const char *name, const char *text)
{
	struct ky_strbuf safe = KY_STRBUF_INIT;

	ky_foreign_adds(&safe, text);
	ky_strbuf_addf(out, "%s=\"", name);
	for (const char *at = ky_strbuf_text(&safe); *at; at++) {
		if (*at == '\\' || *at == '"')
			ky_strbuf_addc(out, '\\');
		ky_strbuf_addc(out, *at);
	}
	ky_strbuf_addc(out, '"');
	ky_strbuf_fini(&safe);
}

static void put_labels(struct ky_strbuf *out, const struct ky_series *series)
{
	metrics_put_label(out, "layer", ky_latency_layer_name(series->key.layer));
	ky_strbuf_addc(out, ',');
	metrics_put_label(out, "name", series->name);
	if (series->owner) {
		ky_strbuf_addc(out, ',');
		metrics_put_label(out, "owner", series->owner);
		/* Names come again: of a service's control group, for one. */
		ky_strbuf_addf(out, ",owner_id=\"%" PRIu64 "\"", (uint64_t)series->key.who);
	}
}

/* Of a counter, the family's name has no "_total" in OpenMetrics, and has it in the older format. */
static void put_family(const struct writer *writer, const char *name, const char *type,
		       const char *unit, const char *help)
{
	const char *total = strcmp(type, "counter") == 0 && !writer->open_metrics ? "_total" : "";

	ky_strbuf_addf(writer->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name,
		       total, type);
	if (writer->open_metrics && *unit)
		ky_strbuf_addf(writer->out, "# UNIT %s %s\n", name, unit);
}

static void put_seconds(struct ky_strbuf *out, uint64_t ns)
{
	ky_strbuf_addf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

/* A bucket for each power of two: what is less than that many ns is at most one ns less. */
static void put_buckets(struct ky_strbuf *out, const struct ky_series *series)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		n += series->total.buckets[i];
		if ((i + 1) % KY_LATENCY_SUBS || i + 1 == KY_LATENCY_BUCKETS)
			continue;
		ky_strbuf_adds(out, "kymo_latency_seconds_bucket{");
		put_labels(out, series);
		ky_strbuf_adds(out, ",le=\"");
		put_seconds(out, ky_bucket_end_ns(i) - 1);
		ky_strbuf_addf(out, "\"} %" PRIu64 "\n", n);
	}
	ky_strbuf_adds(out, "kymo_latency_seconds_bucket{");
	put_labels(out, series);
	ky_strbuf_addf(out, ",le=\"+Inf\"} %" PRIu64 "\n", series->total.count);
}

static void metrics_put_histogram(struct ky_strbuf *out, const struct ky_series *series)
{
	put_buckets(out, series);
	ky_strbuf_adds(out, "kymo_latency_seconds_sum{");
	put_labels(out, series);
	ky_strbuf_adds(out, "} ");
	put_seconds(out, series->total.sum_ns);
	ky_strbuf_adds(out, "\nkymo_latency_seconds_count{");
	put_labels(out, series);
	ky_strbuf_addf(out, "} %" PRIu64 "\n", series->total.count);
}

static void metrics_put_series(const struct writer *writer, struct ky_latency *latency)
{
	size_t n;
	struct ky_series *const *series = ky_latency_series(latency, &n);
	size_t left_out = n > METRICS_SERIES_MAX ? n - METRICS_SERIES_MAX : 0;

	n -= left_out;
	put_family(writer, "kymo_latency_seconds", "histogram", "seconds",
		   "Durations by layer of the kernel, since kymo latency was started.");
	for (size_t i = 0; i < n; i++)
		metrics_put_histogram(writer->out, series[i]);
	put_family(writer, "kymo_latency_longest_seconds", "gauge", "seconds",
		   "The longest duration of the last minute.");
	for (size_t i = 0; i < n; i++) {
		struct ky_histogram minute;

		ky_series_past(series[i], KY_PAST_1_MIN, ky_latency_slot(latency), &minute);
		ky_strbuf_adds(writer->out, "kymo_latency_longest_seconds{");
		put_labels(writer->out, series[i]);
		ky_strbuf_adds(writer->out, "} ");
		put_seconds(writer->out, minute.max_ns);
		ky_strbuf_addc(writer->out, '\n');
	}
	put_family(writer, "kymo_latency_series_left_out", "gauge", "",
		   "Histograms beyond the most that an answer has.");
	ky_strbuf_addf(writer->out, "kymo_latency_series_left_out %zu\n", left_out);
}

static void metrics_put_losses(const struct writer *writer, struct ky_latency *latency)
{
	struct ky_latency_losses losses;
	const struct {
		const char *what;
		uint64_t n;
	} rows[] = {{"without_cell", (ky_latency_losses(latency, &losses), losses.cells)},
		    {"requests", losses.requests},
		    {"programs", losses.programs},
		    {"skipped_runs", losses.misses}};

	put_family(
		writer, "kymo_latency_lost", "counter", "",
		"Durations that are in no histogram: no room for a histogram, no room for a block "
		"request, skipped by the kernel.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ky_strbuf_addf(writer->out, "kymo_latency_lost_total{what=\"%s\"} %" PRIu64 "\n",
			       rows[i].what, rows[i].n);
}

static void put_trackers(const struct writer *writer, const struct ky_latency *latency)
{
	struct ky_tracker_state state;

	if (!ky_latency_tracker(latency, 0))
		return;
	put_family(writer, "kymo_latency_tracker_open", "gauge", "",
		   "Pairs of events that have begun and not ended.");
	for (size_t i = 0; ky_latency_tracker(latency, i); i++) {
		const struct ky_tracker *tracker = ky_latency_tracker(latency, i);

		ky_tracker_state(tracker, &state);
		ky_strbuf_addf(writer->out,
			       "kymo_latency_tracker_open{tracker=\"%s\"} %" PRIu64 "\n",
			       ky_tracker_name(tracker), state.open);
	}
	put_family(writer, "kymo_latency_tracker_lost", "counter", "",
		   "Pairs of events for which the table of open pairs had no room.");
	for (size_t i = 0; ky_latency_tracker(latency, i); i++) {
		const struct ky_tracker *tracker = ky_latency_tracker(latency, i);

		ky_tracker_state(tracker, &state);
		ky_strbuf_addf(writer->out,
			       "kymo_latency_tracker_lost_total{tracker=\"%s\"} %" PRIu64 "\n",
			       ky_tracker_name(tracker), state.full);
	}
}

void ky_metrics_put(struct ky_strbuf *out, struct ky_latency *latency, bool open_metrics)
{
	struct writer writer = {out, open_metrics};

	metrics_put_series(&writer, latency);
	metrics_put_losses(&writer, latency);
	put_trackers(&writer, latency);
	if (open_metrics)
		ky_strbuf_adds(out, "# EOF\n");
}
