/* SPDX-License-Identifier: MIT */
/* The call stacks that a trace has once (ctf/decode/stored-stacks.h), found where the trace's files are. */
#ifndef KY_STORE_READ_TRACE_STACKS_H
#define KY_STORE_READ_TRACE_STACKS_H

#include "store/read/trace.h"

/*
 * Give the events of @trace a table of its stacks, where it has such. @grows: the trace is still being written. The trace's streams
 * are complete, and stay. 0 or KYMO_E_MEMORY.
 */
int ky_trace_stacks_attach(struct ky_trace *trace, bool grows);

#endif
