/* SPDX-License-Identifier: MIT */
/*
 * One record of the ring on its way into the trace: between convert.c, which goes through the records, and
 * the files that write its context and its fields and learn from it.
 */
#ifndef KY_KERNEL_CONVERT_CONVERT_RECORD_H
#define KY_KERNEL_CONVERT_CONVERT_RECORD_H

#include <string.h>

#include "kernel/convert/convert-plan.h"

struct ky_convert_record {
	const uint8_t *data;
	uint32_t len;
	uint32_t tid;
	const struct ky_content_record *content;
	const uint64_t *counters;
	bool is_foreign; /* of no page: no call stack is its */
};

static inline uint8_t *ky_put_bytes(uint8_t *out, const void *data, size_t len)
{
	memcpy(out, data, len);
	return out + len;
}

/*
 * A few dozen bytes: cheaper inline than a call of memcpy(). What is no multiple of a word ends with
 * a word that overlaps the one before.
 */
static inline uint8_t *ky_copy_bytes(uint8_t *out, const uint8_t *from, uint32_t len)
{
	if (len >= 16) {
		for (uint32_t at = 0; at < len - 16; at += 16)
			memcpy(out + at, from + at, 16);
		memcpy(out + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(out, from, 8);
		memcpy(out + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(out, from, 4);
		memcpy(out + len - 4, from + len - 4, 4);
	} else {
		for (uint32_t at = 0; at < len; at++)
			out[at] = from[at];
	}
	return out + len;
}

/*
 * convert-context.c: the bytes of thread @tid's part of the context are put into cpu->context, where they stay
 * until something is learnt.
 */
void ky_convert_refresh_context(struct ky_convert_cpu *cpu, uint32_t tid);

/*
 * convert-fields.c: the bytes that dynamic fields add to @plan->out_bytes; their lengths are kept in @lens, of
 * KY_PLAN_MAX_DYNAMIC, for the writing pass. Then the fields; returns where they end.
 */
uint32_t ky_convert_measure(const struct ky_convert_plan *plan,
			    const struct ky_convert_record *record, uint32_t *lens);
uint8_t *ky_convert_put_fields(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			       const struct ky_convert_record *record, const uint32_t *lens,
			       uint8_t *out);

/* convert-learn.c: keep the threads up to date; after the event itself, whose context is from before it. */
void ky_convert_learn(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		      const struct ky_convert_record *record);
/* Ids, of a call that succeeded. Without BPF, /proc tells how they are by now. */
void ky_convert_learn_ids(const struct ky_convert_cpu *cpu, const struct ky_convert_record *record);

#endif
