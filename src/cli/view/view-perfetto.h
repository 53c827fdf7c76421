/* SPDX-License-Identifier: MIT */
/* kymo view --perfetto: traces in ui.perfetto.dev, which reads them from a server on this machine. */
#ifndef KY_CLI_VIEW_VIEW_PERFETTO_H
#define KY_CLI_VIEW_VIEW_PERFETTO_H

#include "cli/terminal/command.h"
#include "store/read/trace.h"

/* Until a signal ends it. The page shows what is good of a damaged trace; the error comes at the end. */
int view_serve_perfetto(const struct ky_trace_set *set, bool opens_browser, struct kymo_error *err);

#endif
