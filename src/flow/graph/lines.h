/* SPDX-License-Identifier: MIT */
/*
 * The shared part of sinks whose lines do not depend on earlier lines: the sink collects lines and
 * writes many at a time, or holds them when it is fed out of order (sink.h).
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
	const char *what; /* in errors: "the table" */
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
 * Sinks call this after they put the lines of an event of @stream, from byte @from of ->out on.
 * @ret: the result of that; after a failure the function removes the incomplete lines. Returns
 * @ret, or the error of writing ->out.
 */
static inline int ky_lines_put(struct ky_lines_sink *lines, size_t from, int ret,
			       const struct ky_stream *stream, struct kymo_error *err)
{
	if (ret < 0) {
		lines->out.len = from; /* no incomplete lines */
		ky_sink_place(stream, err);
		return ret;
	}
	return lines->out.len >= KY_LINES_WRITE_BYTES && !lines->held
		       ? ky_lines_flush(&lines->sink, err)
		       : KYMO_OK;
}

#endif
