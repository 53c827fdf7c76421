/* SPDX-License-Identifier: MIT */
/*
 * A sink that writes a Perfetto trace, which ui.perfetto.dev and trace_processor open.
 * docs/perfetto.md says what becomes what.
 *
 * It stands in this folder and not among flow's sinks because it asks the Linux state model which
 * thread an event happened in, and which entry of a system call an exit belongs to.
 */
#ifndef KY_ANALYSIS_EXPORT_PERFETTO_H
#define KY_ANALYSIS_EXPORT_PERFETTO_H

#include "flow/graph/sink.h"

/*
 * A sink that writes the events of @set, which must outlive it, to @fd (the caller's).
 *
 * It reads the state dumps of @set once beforehand: the processes of threads must be
 * known before their first event. Memory: in proportion to the numbers of threads and of
 * event classes, not of events.
 *
 * finish fails with KYMO_E_UNSUPPORTED when there were events but none had a time.
 * Returns 0; KYMO_E_MEMORY; or what writing failed with. Threads: one at a time.
 */
int ky_perfetto_sink_open(const struct ky_trace_set *set, int fd, struct ky_sink **sink,
			  struct kymo_error *err);

#endif
