/* SPDX-License-Identifier: MIT */
/*
 * The text of a CTF 2 metadata stream, worked on as text: whatever a producer wrote there that no
 * model knows (attributes, what programs make of them) stays.
 */
#ifndef KY_CTF_CTF2_CTF2_EDIT_H
#define KY_CTF_CTF2_CTF2_EDIT_H

#include "base/strbuf.h"
#include "ctf/model/model.h"

/*
 * @text again, but with the offsets of the clocks of @trace, which was read from it; everything
 * else stays as it is written. Appended to @out. 0, KYMO_E_FORMAT or KYMO_E_MEMORY.
 */
int ky_ctf2_set_offsets(const struct ky_trace_class *trace, const char *text, size_t len_bytes,
			struct ky_strbuf *out, struct kymo_error *err);

/*
 * Append to @out what is said in @text that has no place in CTF 1.8: "attributes (2), the name of a
 * stream (1)"; nothing when there is nothing. No event's fields depend on any of it.
 * 0, KYMO_E_FORMAT or KYMO_E_MEMORY.
 */
int ky_ctf2_left_out(const char *text, size_t len_bytes, struct ky_strbuf *out,
		     struct kymo_error *err);

#endif
