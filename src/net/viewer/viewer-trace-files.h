/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the traces that viewers watch. A trace that goes on keeps its directory open, since a rotation moves it. One
 * that is complete can give its descriptors back, and gets them again when a viewer asks for its files.
 *
 * Threads: one.
 */
#ifndef KY_NET_VIEWER_VIEWER_TRACE_FILES_H
#define KY_NET_VIEWER_VIEWER_TRACE_FILES_H

#include "net/viewer/viewer-recording.h"

/* Opens the directory of a new trace, which is @dir_fd. False: it cannot be; a later try may succeed. */
bool ky_viewer_trace_open(struct ky_viewer_trace *trace, int dir_fd);
/* What the directory @fd is; and whether that is the trace's. */
bool ky_viewer_trace_identify(int fd, struct ky_viewer_trace_id *id);
bool ky_viewer_trace_is(const struct ky_viewer_trace *trace, const struct ky_viewer_trace_id *id);
/* The descriptor of its directory (O_PATH); -1: it is gone. */
int ky_viewer_trace_fd(struct ky_viewer_trace *trace);
/* Keeps @fd, of its metadata, instead of the last one. */
void ky_viewer_trace_keep_metadata(struct ky_viewer_trace *trace, int fd);
/* Closes what is open. */
void ky_viewer_trace_close(struct ky_viewer_trace *trace);

/* Whether traces have so many descriptors that complete ones should give theirs back. */
bool ky_viewer_traces_are_many(void);
/* Whether they have so many that no further ones can be followed. */
bool ky_viewer_traces_are_too_many(void);

#endif
