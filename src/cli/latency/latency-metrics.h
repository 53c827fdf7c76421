/* SPDX-License-Identifier: MIT */
/*
 * The histograms of kymo latency for Prometheus and others: OpenMetrics 1.0, its predecessor, the text format 0.0.4, or
 * Prometheus' messages of protocol buffers, which alone have native histograms, over HTTP on the loopback interface. One thread: the
 * caller waits for descriptors.
 */
#ifndef KY_CLI_LATENCY_LATENCY_METRICS_H
#define KY_CLI_LATENCY_LATENCY_METRICS_H

#include <poll.h>

#include "base/strbuf.h"
#include "latency/layers/latency.h"
#include "latency/series/histogram.h"

enum ky_metrics_format {
	KY_METRICS_TEXT, /* 0.0.4 */
	KY_METRICS_OPEN,
	KY_METRICS_PROTOBUF,
};

/* All histograms since the beginning. */
void ky_metrics_put(struct ky_strbuf *out, struct ky_latency *latency,
		    enum ky_metrics_format format);

/* ---- the formats ---------------------------------------------------------------------------- */

enum ky_metrics_type { KY_METRICS_COUNTER, KY_METRICS_GAUGE, KY_METRICS_HISTOGRAM };

#define KY_METRICS_LABELS_MAX 4

struct ky_metrics_labels {
	struct {
		const char *name, *value; /* a value may be foreign text */
	} all[KY_METRICS_LABELS_MAX];
	size_t n;
};

struct ky_metrics_writer {
	struct ky_strbuf *out;
	enum ky_metrics_format format;
	/* The family at hand. */
	const char *name;
	enum ky_metrics_type type;
	bool is_ns;
	struct ky_strbuf message; /* of protobuf: what it has so far */
};

/* A family begins, after what the last one has. A name without "_total". @is_ns: its numbers are ns, which readers get as seconds. */
void ky_metrics_family(struct ky_metrics_writer *writer, const char *name,
		       enum ky_metrics_type type, bool is_ns, const char *help);
void ky_metrics_number(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
		       uint64_t number);
void ky_metrics_histogram(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
			  const struct ky_histogram *histogram);

/* latency-metrics-protobuf.c: the same in messages of protocol buffers. */
void ky_metrics_pb_family(struct ky_metrics_writer *writer, const char *help);
void ky_metrics_pb_number(struct ky_metrics_writer *writer, const struct ky_metrics_labels *labels,
			  uint64_t number);
void ky_metrics_pb_histogram(struct ky_metrics_writer *writer,
			     const struct ky_metrics_labels *labels,
			     const struct ky_histogram *histogram);
/* The family at hand, if any, goes to the output. */
void ky_metrics_pb_end(struct ky_metrics_writer *writer);

/* ---- latency-listen.c ----------------------------------------------------------------------- */

#define KY_METRICS_CLIENTS_MAX 16

struct ky_metrics_server;

/*
 * Listen at @address, "127.0.0.1:9435", "[::1]:0". 0, KYMO_E_INVALID: not an address of the loopback interface;
 * KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_metrics_listen(const char *address, struct ky_metrics_server **server,
		      struct kymo_error *err);
void ky_metrics_close(struct ky_metrics_server *server); /* NULL is allowed */
/* "http://127.0.0.1:9435/metrics" */
const char *ky_metrics_url(const struct ky_metrics_server *server);

/* What to wait for, into @fds, which has room for 1 + KY_METRICS_CLIENTS_MAX. Returns how many. */
size_t ky_metrics_wait_for(const struct ky_metrics_server *server, struct pollfd *fds);
/* Whatever is possible without waiting. */
void ky_metrics_step(struct ky_metrics_server *server, struct ky_latency *latency);

#endif
