/* SPDX-License-Identifier: MIT */
/*
 * The histograms of kymo latency for Prometheus and others: OpenMetrics 1.0, or its predecessor, the text format 0.0.4, over
 * HTTP on the loopback interface. One thread: the caller waits for descriptors.
 */
#ifndef KY_CLI_COMMANDS_LATENCY_METRICS_H
#define KY_CLI_COMMANDS_LATENCY_METRICS_H

#include <poll.h>

#include "base/strbuf.h"
#include "latency/layers/latency.h"

/* All histograms since the beginning. @open_metrics: else the format 0.0.4. */
void ky_metrics_put(struct ky_strbuf *out, struct ky_latency *latency, bool open_metrics);

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
