/* SPDX-License-Identifier: MIT */
/*
 * Where a read graph ends: something that takes batches and makes a file, a stream of text,
 * or a count of them. An output format is one table of operations.
 */
#ifndef KY_FLOW_GRAPH_SINK_H
#define KY_FLOW_GRAPH_SINK_H

#include "flow/graph/flow.h"

struct ky_sink;

#define KY_SINK_JOINT_BYTES 48

/* What a line may need to know of those before. */
struct ky_sink_before {
	bool any; /* was there an event with a time? Then the last one's: */
	int64_t ns;
	uint64_t cycles;
};

/* What a sink holds, and what belongs in between because of what was before. */
struct ky_sink_held {
	const char *data;
	size_t len;
	size_t joint_at, joint_len;
	char joint[KY_SINK_JOINT_BYTES];
};

struct ky_sink_ops {
	/* Take a batch (its loss too). 0 or negative; what came before stays written. */
	int (*batch)(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err);
	/* Write out what is buffered and whole; NULL: there is never anything to do. */
	int (*flush)(struct ky_sink *sink, struct kymo_error *err);
	/* No more batches: write out everything. */
	int (*finish)(struct ky_sink *sink, struct kymo_error *err);
	void (*free)(struct ky_sink *sink);
	/*
	 * For sinks that may be fed in pieces (parallel-sink.h); NULL: this one may not.
	 * hold: from now on only flush and finish write; the memory it takes is the caller's to
	 *	bound, by the events between two flushes.
	 * resume: go on as if the event before had been @before (NULL: as if there was none).
	 */
	void (*hold)(struct ky_sink *sink);
	void (*resume)(struct ky_sink *sink, const struct ky_event *before);
	/*
	 * For sinks that hold and are fed out of turn (slices.h), with hold.
	 * begin: forget everything; what was before will be known when it is taken.
	 * held: how many bytes it holds.
	 * take: everything that is held, which is whole events only, without writing it. @before is what was
	 *	before, and becomes what is before the next. Valid until the next call of any kind.
	 */
	void (*begin)(struct ky_sink *sink);
	size_t (*held)(const struct ky_sink *sink);
	void (*take)(struct ky_sink *sink, struct ky_sink_before *before,
		     struct ky_sink_held *held);
	/* Batches may be of several streams (ky_batch.stream is NULL then); else there are only runs. */
	bool any_stream;
};

struct ky_sink {
	const struct ky_sink_ops *ops;
};

/* The batch, run by run. */
int ky_sink_runs(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err);

static inline int ky_sink_batch(struct ky_sink *sink, const struct ky_batch *batch,
				struct kymo_error *err)
{
	return sink->ops->any_stream ? sink->ops->batch(sink, batch, err)
				     : ky_sink_runs(sink, batch, err);
}

static inline int ky_sink_flush(struct ky_sink *sink, struct kymo_error *err)
{
	return sink->ops->flush ? sink->ops->flush(sink, err) : KYMO_OK;
}

static inline int ky_sink_finish(struct ky_sink *sink, struct kymo_error *err)
{
	return sink->ops->finish(sink, err);
}

static inline void ky_sink_free(struct ky_sink *sink)
{
	if (sink)
		sink->ops->free(sink);
}

/*
 * One JSON object per line and event, written to @fd (the caller's):
 *
 *	{"timestamp_ns": 1795239038865245630, "event": "sched_switch", "stream": "c_0",
 *	 "packet": {"cpu_id": 1}, "context": {"tid": 250}, "fields": {"prev_comm": "bash", ...}}
 *
 * "timestamp_ns" counts from the clock's origin (the Unix epoch where the clock says so) and is
 * missing without a clock; "event_context" is there for events that have one of their own.
 * Integers are exact, also beyond 2^53 (beyond 64 bits: text in hexadecimal); an enumeration is
 * {"value": N, "labels": [...]}, a bit map likewise with its active flags; a BLOB is text in hexadecimal;
 * an absent optional is null; text that is no UTF-8 has U+FFFD for what is wrong;
 * a float that JSON cannot hold is "NaN", "Infinity" or "-Infinity".
 * NULL when out of memory.
 */
struct ky_sink *ky_json_sink_new(int fd);

struct ky_text_options;

/* The text of text.h, written to @fd (the caller's). NULL when out of memory. */
struct ky_sink *ky_text_sink_new(int fd, const struct ky_text_options *options);

/*
 * For sinks: @err is about an event of @stream whose values cannot be had, or has another reason and is
 * left alone. Says which file it is in, and where.
 */
static inline void ky_sink_place(const struct ky_stream *stream, struct kymo_error *err)
{
	if (err && !err->path[0] && err->offset != KYMO_NO_OFFSET &&
	    (err->code == KYMO_E_FORMAT || err->code == KYMO_E_LIMIT))
		ky_stream_place(stream, err);
}

#endif
