/* SPDX-License-Identifier: MIT */
/*
 * Values of one trace model as values of another that describes the same with other bits: what
 * ky_downgrade_to_ctf1() has made of a trace, read back.
 *
 * Integers of variable length become ones of 64 bits, longer ones structures of words, text in UTF-16
 * and UTF-32 a string in UTF-8 (U+FFFD stands for what is malformed), bits in reverse order plain
 * ones, and one field of several roles as many fields. What there are copies of before the fields
 * that need them is written into these.
 */
#ifndef KY_CTF_ENCODE_TRANSCODE_H
#define KY_CTF_ENCODE_TRANSCODE_H

#include "base/hash.h"
#include "ctf/decode/decode.h"

struct ky_transcode {
	struct ky_values in;  /* decode into this */
	struct ky_map copies; /* field class of a copy -> the struct ky_field_ref it is for */
	char *text;	      /* what strings, and long floats, were made of */
	size_t text_bytes;
	/* The whole of a time, of which a number of variable length tells the low bits only. */
	uint64_t begin_cycles, end_cycles;
};

/*
 * @trace, @as: as ky_repacker_new(); NULL: nothing will be transcode. Borrowed.
 * 0 or KYMO_E_MEMORY; ky_transcode_fini() in both cases.
 */
int ky_transcode_init(struct ky_transcode *transcode, const struct ky_trace_class *trace,
		      const struct ky_trace_class *as);
void ky_transcode_fini(struct ky_transcode *transcode);

/*
 * Make @out the values of transcode->in, which are one scope's, in the classes of @root (NULL: no
 * values). Texts in @out are valid until the next call, or as long as those in transcode->in.
 * 0, KYMO_E_MEMORY, or KYMO_E_LIMIT (too many values).
 */
int ky_transcode_scope(struct ky_transcode *transcode, const struct ky_field_class *root,
		       struct ky_values *out, struct kymo_error *err);

#endif
