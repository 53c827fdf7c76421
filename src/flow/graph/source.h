/* SPDX-License-Identifier: MIT */
/*
 * A source's places in its stream: for those who read a stream in parts (slices.h). All of these are
 * for what ky_source_open() gave.
 *
 * An entry is an event, or a loss. What a source yields up to a limit ends before the first entry at
 * or after it, whatever is wanted of the stream; that is found in the stream's order.
 */
#ifndef KY_FLOW_GRAPH_SOURCE_H
#define KY_FLOW_GRAPH_SOURCE_H

#include "flow/graph/flow.h"
#include "os/pages.h"

/* Where a source stands: places are the same when what follows is. */
struct ky_source_place {
	uint64_t bits; /* from the stream's begin */
	uint64_t clock;
	uint64_t discarded, sequence; /* of the packet before, or the current one */
	bool in_packet, ended;
};

/* End before the first entry at or after @ns, for now; INT64_MAX: no limit. */
void ky_source_limit(struct ky_flow *source, int64_t ns);

/*
 * Go to the limit without delivering anything. After a seek it counts as done then, which is right
 * when the limit lies behind it.
 *
 * @trust: pass over packets that say that they end before the limit. The place may be
 *	wrong then: tracers make mistakes.
 * True: it stands there, before an entry at *ns. False: the stream has ended.
 */
bool ky_source_skim(struct ky_flow *source, bool trust, int64_t *ns);

/* Did it end at the limit? Then *ns is the time of the entry there. */
bool ky_source_at_limit(struct ky_flow *source, int64_t *ns);

/* Go on where @from stands, a source of the same stream or @source, as if nothing had come before. */
void ky_source_assume(struct ky_flow *source, struct ky_flow *from);

struct ky_source_place ky_source_place(struct ky_flow *source);
bool ky_source_ended(struct ky_flow *source);

static inline bool ky_source_same_place(const struct ky_source_place *a,
					const struct ky_source_place *b)
{
	return a->bits == b->bits && a->clock == b->clock && a->discarded == b->discarded &&
	       a->sequence == b->sequence && a->in_packet == b->in_packet && a->ended == b->ended;
}

/* What it has warned of since it was opened, or took a place: a set of bits. */
unsigned int ky_source_warned(struct ky_flow *source);

/* Never give memory back to the kernel; ky_source_passed() of another source does. */
void ky_source_keep(struct ky_flow *source);
/* Nobody needs what lies before @upto_bytes: gather it in @pages. */
void ky_source_passed(struct ky_flow *source, uint64_t upto_bytes, struct ky_pages *pages);

#endif
