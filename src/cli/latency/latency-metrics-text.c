/* SPDX-License-Identifier: MIT */
/* The text formats of metrics. */
#include <inttypes.h>
#include <string.h>

#include "base/foreign.h"
#include "cli/latency/latency-metrics.h"

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

/* The family's name with @suffix and the labels. They stay open for one more if @is_open. */
static void put_sample(struct ky_metrics_writer *writer, const char *suffix,
		       const struct ky_metrics_labels *labels, bool is_open)
{
	ky_strbuf_addf(writer->out, "%s%s", writer->name, suffix);
	for (size_t i = 0; i < labels->n; i++) {
		ky_strbuf_addc(writer->out, i ? ',' : '{');
		metrics_put_label(writer->out, labels->all[i].name, labels->all[i].value);
	}
	if (is_open)
		ky_strbuf_addc(writer->out, labels->n ? ',' : '{');
	else
		ky_strbuf_adds(writer->out, labels->n ? "} " : " ");
}

/* Of a counter, the family's name has no "_total" in OpenMetrics, and has it in the older format. */
void ky_metrics_family(struct ky_metrics_writer *writer, const char *name,
		       enum ky_metrics_type type, bool is_ns, const char *help)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	bool is_open = writer->format == KY_METRICS_OPEN;
	const char *total = type == KY_METRICS_COUNTER && !is_open ? "_total" : "";

	ky_metrics_pb_end(writer);
	writer->name = name;
	writer->type = type;
	writer->is_ns = is_ns;
	if (writer->format == KY_METRICS_PROTOBUF) {
		ky_metrics_pb_family(writer, help);
		return;
	}
	ky_strbuf_addf(writer->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name,
		       total, types[type]);
	if (is_open && is_ns)
		ky_strbuf_addf(writer->out, "# UNIT %s seconds\n", name);
}

static void put_seconds(struct ky_strbuf *out, uint64_t ns)
{
	ky_strbuf_addf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

void ky_metrics_number(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
		       uint64_t number)
{
	if (writer->format == KY_METRICS_PROTOBUF) {
		ky_metrics_pb_number(writer, labels, number);
		return;
	}
	put_sample(writer, writer->type == KY_METRICS_COUNTER ? "_total" : "", labels, false);
	if (writer->is_ns)
		put_seconds(writer->out, number);
	else
		ky_strbuf_addf(writer->out, "%" PRIu64, number);
	ky_strbuf_addc(writer->out, '\n');
}

/* A bucket for each power of two: what is less than that many ns is at most one ns less. */
static void put_buckets(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
			const struct ky_histogram *histogram)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		n += histogram->buckets[i];
		if ((i + 1) % KY_LATENCY_SUBS || i + 1 == KY_LATENCY_BUCKETS)
			continue;
		put_sample(writer, "_bucket", labels, true);
		ky_strbuf_adds(writer->out, "le=\"");
		put_seconds(writer->out, ky_bucket_end_ns(i) - 1);
		ky_strbuf_addf(writer->out, "\"} %" PRIu64 "\n", n);
	}
	put_sample(writer, "_bucket", labels, true);
	ky_strbuf_addf(writer->out, "le=\"+Inf\"} %" PRIu64 "\n", histogram->count);
}

void ky_metrics_histogram(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
			  const struct ky_histogram *histogram)
{
	if (writer->format == KY_METRICS_PROTOBUF) {
		ky_metrics_pb_histogram(writer, labels, histogram);
		return;
	}
	put_buckets(writer, labels, histogram);
	put_sample(writer, "_sum", labels, false);
	put_seconds(writer->out, histogram->sum_ns);
	ky_strbuf_addc(writer->out, '\n');
	put_sample(writer, "_count", labels, false);
	ky_strbuf_addf(writer->out, "%" PRIu64 "\n", histogram->count);
}
