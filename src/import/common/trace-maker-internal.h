/* SPDX-License-Identifier: MIT */
/* What the files of trace-maker.h share: trace-maker.c has events and packets, trace-maker-metadata.c their descriptions. */
#ifndef KY_IMPORT_TRACE_MAKER_INTERNAL_H
#define KY_IMPORT_TRACE_MAKER_INTERNAL_H

#include "base/vec.h"
#include "ctf/encode/packet-writer.h"
#include "import/common/trace-maker.h"

#define KY_MAKER_COMM_BYTES 16u

struct ky_maker_stream {
	struct ky_packet_writer writer;
	int number; /* of the store; -1: no packet yet */
	uint64_t lost;
};

struct ky_maker_event {
	enum ky_maker_kind *kinds; /* of the context's fields, too */
	size_t n;
};

struct ky_maker {
	struct ky_trace_class *trace;
	struct ky_stream_class *stream;
	struct ky_store_trace *to;
	uint8_t uuid[16];
	KY_VEC(struct ky_maker_stream *) streams; /* by number; NULL: none yet */
	KY_VEC(struct ky_maker_event) events;
	enum ky_maker_kind *context_kinds;
	size_t n_context;
	/* The event in the making. */
	const struct ky_maker_event *event;
	uint32_t event_id, event_stream;
	uint64_t event_ns;
	size_t field; /* the next one */
	uint32_t body_bytes;
	uint8_t *body; /* BODY_MAX_BYTES */
	uint64_t n_events, n_moved;
	bool reorders, has_cpus;
};

/* The classes of the trace and of its only kind of streams. 0 or KYMO_E_MEMORY. */
int ky_maker_build(struct ky_maker *maker, const struct ky_maker_about *about);

#endif
