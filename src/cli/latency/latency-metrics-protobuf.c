/* SPDX-License-Identifier: MIT */
/*
 * Metrics as messages of io.prometheus.client.MetricFamily, each after its length, with native histograms: eight buckets per power
 * of two. Their bounds are powers of 2^(1/8) seconds, which those of kymo latency are not: what is in a bucket counts where
 * the bucket's middle is, which is less than a sixteenth away.
 */
#include <math.h>
#include <string.h>

#include "analysis/export/protobuf.h"
#include "base/foreign.h"
#include "cli/latency/latency-metrics.h"

/* Numbers of the messages' fields. */
enum {
	FAMILY_NAME = 1,
	FAMILY_HELP = 2,
	FAMILY_TYPE = 3,
	FAMILY_METRIC = 4,
	METRIC_LABEL = 1,
	METRIC_GAUGE = 2,
	METRIC_COUNTER = 3,
	METRIC_HISTOGRAM = 7,
	LABEL_NAME = 1,
	LABEL_VALUE = 2,
	NUMBER_VALUE = 1,
	HISTOGRAM_COUNT = 1,
	HISTOGRAM_SUM = 2,
	HISTOGRAM_BUCKET = 3,
	HISTOGRAM_SCHEMA = 5,
	HISTOGRAM_ZERO_THRESHOLD = 6,
	HISTOGRAM_ZERO_COUNT = 7,
	HISTOGRAM_SPAN = 12,
	HISTOGRAM_DELTA = 13,
	BUCKET_COUNT = 1,
	BUCKET_BOUND = 2,
	SPAN_OFFSET = 1,
	SPAN_LENGTH = 2,
};

#define LABEL_BYTES_MAX 4096

static void metrics_protobuf_text(struct ky_strbuf *out, uint32_t field, const char *text)
{
	ky_pb_text(out, field, text, strlen(text), LABEL_BYTES_MAX);
}

static void add_sint(struct ky_strbuf *out, uint32_t field, int64_t value)
{
	ky_pb_uint(out, field, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void ky_metrics_pb_family(struct ky_metrics_writer *writer, const char *help)
{
	static const uint64_t types[] = {
		[KY_METRICS_COUNTER] = 0, [KY_METRICS_GAUGE] = 1, [KY_METRICS_HISTOGRAM] = 4};
	struct ky_strbuf name = KY_STRBUF_INIT;

	ky_strbuf_addf(&name, "%s%s", writer->name,
		       writer->type == KY_METRICS_COUNTER ? "_total" : "");
	metrics_protobuf_text(&writer->message, FAMILY_NAME, ky_strbuf_text(&name));
	metrics_protobuf_text(&writer->message, FAMILY_HELP, help);
	ky_pb_uint(&writer->message, FAMILY_TYPE, types[writer->type]);
	ky_strbuf_fini(&name);
}

void ky_metrics_pb_end(struct ky_metrics_writer *writer)
{
	size_t len = writer->message.len;

	if (!len)
		return;
	for (; len >= 0x80; len >>= 7)
		ky_strbuf_addc(writer->out, (char)(len | 0x80));
	ky_strbuf_addc(writer->out, (char)len);
	ky_strbuf_add(writer->out, writer->message.data, writer->message.len);
	if (writer->message.failed)
		writer->out->failed = true;
	ky_strbuf_clear(&writer->message);
}

static void metrics_protobuf_labels(struct ky_strbuf *out, const struct ky_metrics_labels *labels)
{
	for (size_t i = 0; i < labels->n; i++) {
		struct ky_strbuf safe = KY_STRBUF_INIT;
		size_t label = ky_pb_begin(out, METRIC_LABEL);

		ky_foreign_adds(&safe, labels->all[i].value);
		metrics_protobuf_text(out, LABEL_NAME, labels->all[i].name);
		metrics_protobuf_text(out, LABEL_VALUE, ky_strbuf_text(&safe));
		ky_pb_end(out, label);
		ky_strbuf_fini(&safe);
	}
}

void ky_metrics_pb_number(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
			  uint64_t number)
{
	struct ky_strbuf *out = &writer->message;
	size_t metric = ky_pb_begin(out, FAMILY_METRIC), value;

	metrics_protobuf_labels(out, labels);
	value = ky_pb_begin(out,
			    writer->type == KY_METRICS_COUNTER ? METRIC_COUNTER : METRIC_GAUGE);
	ky_pb_double(out, NUMBER_VALUE, writer->is_ns ? (double)number / 1e9 : (double)number);
	ky_pb_end(out, value);
	ky_pb_end(out, metric);
}

/* ---- histograms ----------------------------------------------------------------------------- */

/* Bucket I has what is above 2^((I - 1) / 8) s and not above 2^(I / 8) s. What is below 8 ns is as good as nothing. */
#define SCHEMA	       3
#define PER_OCTAVE     8
#define ZERO_NS	       8
#define NATIVE_FIRST   (-27 * PER_OCTAVE)
#define NATIVE_LAST    (12 * PER_OCTAVE)
#define NATIVE_BUCKETS (NATIVE_LAST - NATIVE_FIRST + 1)

static uint32_t native_at(uint32_t bucket)
{
	double begin = (double)ky_bucket_begin_ns(bucket);
	double end = bucket + 1 < KY_LATENCY_BUCKETS ? (double)ky_bucket_end_ns(bucket) : 2 * begin;

	return (uint32_t)(ceil(log2((begin + end) / 2e9) * PER_OCTAVE) - NATIVE_FIRST);
}

/* What is in the native buckets; returns what is below them. */
static uint64_t native_fill(const struct ky_histogram *histogram, uint64_t native[NATIVE_BUCKETS])
{
	uint64_t n_zero = 0;

	memset(native, 0, NATIVE_BUCKETS * sizeof(*native));
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		if (ky_bucket_end_ns(i) <= ZERO_NS)
			n_zero += histogram->buckets[i];
		else if (histogram->buckets[i])
			native[native_at(i)] += histogram->buckets[i];
	}
	return n_zero;
}

static uint32_t run_end(const uint64_t native[NATIVE_BUCKETS], uint32_t at)
{
	while (at < NATIVE_BUCKETS && native[at])
		at++;
	return at;
}

/* Each run of buckets with something is a span, told by its distance from the last one. */
static void add_spans(struct ky_strbuf *out, const uint64_t native[NATIVE_BUCKETS])
{
	int64_t last_end = -(int64_t)NATIVE_FIRST;

	for (uint32_t at = 0; at < NATIVE_BUCKETS; at++) {
		uint32_t end = run_end(native, at);
		size_t span;

		if (end == at)
			continue;
		span = ky_pb_begin(out, HISTOGRAM_SPAN);
		add_sint(out, SPAN_OFFSET, (int64_t)at - last_end);
		ky_pb_uint(out, SPAN_LENGTH, end - at);
		ky_pb_end(out, span);
		last_end = end;
		at = end;
	}
}

static void add_native(struct ky_strbuf *out, const struct ky_histogram *histogram)
{
	uint64_t native[NATIVE_BUCKETS], n_zero = native_fill(histogram, native), last = 0;

	add_sint(out, HISTOGRAM_SCHEMA, SCHEMA);
	ky_pb_double(out, HISTOGRAM_ZERO_THRESHOLD, ZERO_NS / 1e9);
	ky_pb_uint(out, HISTOGRAM_ZERO_COUNT, n_zero);
	add_spans(out, native);
	for (uint32_t i = 0; i < NATIVE_BUCKETS; i++) {
		if (!native[i])
			continue;
		add_sint(out, HISTOGRAM_DELTA, (int64_t)(native[i] - last));
		last = native[i];
	}
}

/* For readers that know no native buckets: the same as in text. */
static void add_classic(struct ky_strbuf *out, const struct ky_histogram *histogram)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i + 1 < KY_LATENCY_BUCKETS; i++) {
		size_t bucket;

		n += histogram->buckets[i];
		if ((i + 1) % KY_LATENCY_SUBS)
			continue;
		bucket = ky_pb_begin(out, HISTOGRAM_BUCKET);
		ky_pb_uint(out, BUCKET_COUNT, n);
		ky_pb_double(out, BUCKET_BOUND, (double)(ky_bucket_end_ns(i) - 1) / 1e9);
		ky_pb_end(out, bucket);
	}
}

void ky_metrics_pb_histogram(struct ky_metrics_writer *writer,
			     const struct ky_metrics_labels *labels,
			     const struct ky_histogram *histogram)
{
	struct ky_strbuf *out = &writer->message;
	size_t metric = ky_pb_begin(out, FAMILY_METRIC), value;

	metrics_protobuf_labels(out, labels);
	value = ky_pb_begin(out, METRIC_HISTOGRAM);
	ky_pb_uint(out, HISTOGRAM_COUNT, histogram->count);
	ky_pb_double(out, HISTOGRAM_SUM, (double)histogram->sum_ns / 1e9);
	add_classic(out, histogram);
	add_native(out, histogram);
	ky_pb_end(out, value);
	ky_pb_end(out, metric);
}
