/* SPDX-License-Identifier: MIT */
/*
 * What sinks share that write lines which know nothing of the ones before: they are collected, and written
 * many at a time; or held, for sinks that are fed out of turn (sink.h).
 *
 * It is the first member of the sink, whose operations these are.
 */
#ifndef KY_FLOW_GRAPH_LINES_H
#define KY_FLOW_GRAPH_LINES_H

#include "base/strbuf.h"
#include "flow/graph/sink.h"

#define KY_LINES_WRITE_BYTES ((size_t)256 << 10)

struct ky_lines_sink {
	struct ky_sink sink;
	const char *what; /* of errors: "the table" */
	int fd;
	bool held; /* only flush writes */
	struct ky_strbuf out;
};

int ky_lines_flush(struct ky_sink *sink, struct kymo_error *err);
void ky_lines_hold(struct ky_sink *sink);
void ky_lines_resume(struct ky_sink *sink, const struct ky_event *before);
void ky_lines_begin(struct ky_sink *sink);
size_t ky_lines_held(const struct ky_sink *sink);
void ky_lines_take(struct ky_sink *sink, struct ky_sink_before *before, struct ky_sink_held *held);

/*
 * To be called when the lines of an event of @stream were put, from byte @from of ->out on, with how that went:
 * what went wrong leaves nothing behind. Returns @ret, or why ->out cannot be written.
 */
static inline int ky_lines_put(struct ky_lines_sink *lines, size_t from, int ret,
			       const struct ky_stream *stream, struct kymo_error *err)
{
	if (ret < 0) {
		lines->out.len = from; /* no half lines */
		ky_sink_place(stream, err);
		return ret;
	}
	return lines->out.len >= KY_LINES_WRITE_BYTES && !lines->held
		       ? ky_lines_flush(&lines->sink, err)
		       : KYMO_OK;
}

#endif
