/* SPDX-License-Identifier: MIT */
/*
 * The places of a source in its stream, for callers that read a stream in parts (slices.h). All
 * functions take a stage from ky_source_open().
 *
 * An entry is an event or a loss. With a limit, a source ends before the first entry at or after
 * it, selected or not, in the stream's order.
 */
#ifndef KY_FLOW_GRAPH_SOURCE_H
#define KY_FLOW_GRAPH_SOURCE_H

#include "flow/graph/flow.h"
#include "os/pages.h"

/* The place of a source. Two places are equal when the rest of the stream is the same. */
struct ky_source_place {
	uint64_t bits; /* from the stream's begin */
	uint64_t clock;
	uint64_t discarded, sequence; /* of the packet before, or the current one */
	bool in_packet, ended;
};

/* Ends before the first entry at or after @ns, for now; INT64_MAX: no limit. */
void ky_source_limit(struct ky_flow *source, int64_t ns);

/*
 * Go to the limit without delivering events. After a seek, the seek counts as done, which is right
 * when the limit lies after its time.
 *
 * @trust: skip packets whose header has an end before the limit. The place may be wrong then,
 *	because of errors of tracers.
 * Returns true: the source is before an entry at *ns. False: the stream has ended.
 */
bool ky_source_skim(struct ky_flow *source, bool trust, int64_t *ns);

/* Whether the source ended at the limit. *ns is then the time of the entry there. */
bool ky_source_at_limit(struct ky_flow *source, int64_t *ns);

/*
 * Continues at the place of @from, a source of the same stream or @source itself, as if no events
 * had come before.
 */
void ky_source_assume(struct ky_flow *source, struct ky_flow *from);

struct ky_source_place ky_source_place(struct ky_flow *source);
bool ky_source_ended(struct ky_flow *source);

static inline bool ky_source_same_place(const struct ky_source_place *a,
					const struct ky_source_place *b)
{
	return a->bits == b->bits && a->clock == b->clock && a->discarded == b->discarded &&
	       a->sequence == b->sequence && a->in_packet == b->in_packet && a->ended == b->ended;
}

/* The warnings since its opening, or since it took a place: a set of bits. */
unsigned int ky_source_warned(struct ky_flow *source);

/* Never gives memory back to the kernel; ky_source_passed() of another source does that. */
void ky_source_keep(struct ky_flow *source);
/* The part before @upto_bytes is no longer needed: collects it in @pages. */
void ky_source_passed(struct ky_flow *source, uint64_t upto_bytes, struct ky_pages *pages);

#endif
