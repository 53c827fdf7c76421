/* SPDX-License-Identifier: MIT */
/*
 * The end of a read graph: an object that takes batches and makes a file, text, or counts. An
 * output format is one table of operations.
 */
#ifndef KY_FLOW_GRAPH_SINK_H
#define KY_FLOW_GRAPH_SINK_H

#include "flow/graph/flow.h"

struct ky_sink;

#define KY_SINK_JOINT_BYTES 48

/* The state that a line may need from earlier lines. */
struct ky_sink_before {
	bool any; /* whether there was an event with a time; if so, the last one's: */
	int64_t ns;
	uint64_t cycles;
};

/* The contents of a sink, and the part before it that depends on earlier lines. */
struct ky_sink_held {
	const char *data;
	size_t len;
	size_t joint_at, joint_len;
	char joint[KY_SINK_JOINT_BYTES];
};

struct ky_sink_ops {
	/* Takes a batch with its loss. Returns 0 or negative; earlier events stay written. */
	int (*batch)(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err);
	/* Writes buffered whole lines; NULL: there never are any. */
	int (*flush)(struct ky_sink *sink, struct kymo_error *err);
	/* The end: writes everything. */
	int (*finish)(struct ky_sink *sink, struct kymo_error *err);
	void (*free)(struct ky_sink *sink);
	/*
	 * For sinks that support pieces (parallel-sink.h); NULL: not supported. hold: from now on
	 * only flush and finish write; the caller limits the memory by the number of events between
	 * two flushes. resume: continue as if the event before had been @before (NULL: no event).
	 */
	void (*hold)(struct ky_sink *sink);
	void (*resume)(struct ky_sink *sink, const struct ky_event *before);
	/*
	 * For sinks that support hold and feeding out of order (slices.h). begin: drop everything;
	 * the state before is unknown until take. held: the size of the contents in bytes. take:
	 * returns the contents, which are whole events, without writing them. @before is the state
	 * before them, and becomes the state after them. Valid until the next call of any kind.
	 */
	void (*begin)(struct ky_sink *sink);
	size_t (*held)(const struct ky_sink *sink);
	void (*take)(struct ky_sink *sink, struct ky_sink_before *before,
		     struct ky_sink_held *held);
	/*
	 * Batches may have events of several streams (ky_batch.stream is NULL then); false: only
	 * runs.
	 */
	bool any_stream;
};

struct ky_sink {
	const struct ky_sink_ops *ops;
};

/* Passes the batch to the sink run by run. */
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

struct ky_address_names;

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
 * With @names (or NULL), "symbols" has the names of addresses of code: {"ip": "main+0x1c shop.c:34",
 * "callstack_user": ["...", null]}; see flow/sinks/address-names.h.
 * NULL when out of memory.
 */
struct ky_sink *ky_json_sink_new(int fd, const struct ky_address_names *names);

struct ky_text_options;

/* The text of text.h, written to @fd (the caller's). NULL when memory is out. */
struct ky_sink *ky_text_sink_new(int fd, const struct ky_text_options *options);

/*
 * For sinks: when @err concerns values of an event of @stream, adds file and offset; otherwise
 * leaves it unchanged.
 */
static inline void ky_sink_place(const struct ky_stream *stream, struct kymo_error *err)
{
	if (err && !err->path[0] && err->offset != KYMO_NO_OFFSET &&
	    (err->code == KYMO_E_FORMAT || err->code == KYMO_E_LIMIT))
		ky_stream_place(stream, err);
}

#endif
