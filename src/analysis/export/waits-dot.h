/* SPDX-License-Identifier: MIT */
/*
 * Waits of threads, as a graph for Graphviz: threads and interrupts, and an arrow from each that woke a thread to that thread, with
 * the number of wake-ups and the time that the thread had waited. An arrow's width tells its part of all waits.
 */
#ifndef KY_ANALYSIS_EXPORT_WAITS_DOT_H
#define KY_ANALYSIS_EXPORT_WAITS_DOT_H

#include "flow/graph/sink.h"

/* @set must outlive it. @fd is the caller's. finish fails with KYMO_E_UNSUPPORTED without wake-ups and switches. */
int ky_waits_dot_open(const struct ky_trace_set *set, int fd, struct ky_sink **sink,
		      struct kymo_error *err);

#endif
