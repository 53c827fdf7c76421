/* SPDX-License-Identifier: MIT */
/*
 * TSDL, the metadata language of CTF 1.8: text -> trace model, and back.
 */
#ifndef KY_CTF_TSDL_TSDL_H
#define KY_CTF_TSDL_TSDL_H

#include "base/strbuf.h"
#include "ctf/model/model.h"

/*
 * Read the contents of a `metadata` file of CTF 1.8 or 2: plain text, or packetized in either
 * byte order. CTF 2 (recognised by its first byte, 0x1E, or by the packets' version) is handed to
 * its own reader, ctf2-read.h.
 *
 * @data, @size_bytes: the whole file; not kept.
 * On success *trace is a finished model (ky_trace_class_finish() was called), the caller's to free.
 *
 * Returns 0, KYMO_E_FORMAT (line and column of the text, or the byte offset of a packet),
 * KYMO_E_UNSUPPORTED (another version, encrypted or compressed packets), KYMO_E_LIMIT (too many
 * fields, or too deep) or KYMO_E_MEMORY. err->path is left empty.
 */
int ky_metadata_read(const void *data, size_t size_bytes, struct ky_trace_class **trace,
		     struct kymo_error *err);

/* Only the text of @data: unwraps packets; *text is malloc()ed and NUL-terminated. */
int ky_metadata_text(const void *data, size_t size_bytes, char **text, size_t *len_bytes,
		     struct kymo_error *err);

/*
 * Write a trace model as TSDL text, in the layout that LTTng's readers know: type aliases, trace, env,
 * clock, streams, events. Reading it back gives an equal model. KYMO_E_UNSUPPORTED for
 * what TSDL cannot say (CTF 2 field classes).
 * *text is malloc()ed, NUL-terminated, the caller's.
 */
int ky_tsdl_write(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
		  struct kymo_error *err);

/* As it writes the clock's values, which may be known better later: lines from "\tfreq = " to offset's. */
void ky_tsdl_put_clock_values(struct ky_strbuf *out, const struct ky_clock_class *clock);

#endif
