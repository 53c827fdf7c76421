/* SPDX-License-Identifier: MIT */
/* kymo view --perfetto: traces in ui.perfetto.dev, which reads them from a server on this machine. */
#ifndef KY_CLI_COMMANDS_VIEW_PERFETTO_H
#define KY_CLI_COMMANDS_VIEW_PERFETTO_H

#include "cli/terminal/command.h"
#include "store/trace.h"

/* Until a signal ends it. Damage in a trace is told at the end: what is good is shown. */
int view_serve_perfetto(const struct ky_trace_set *set, bool opens_browser, struct kymo_error *err);

#endif
