/* SPDX-License-Identifier: MIT */
#ifndef KY_CTF_CTF2_CTF2_WRITE_H
#define KY_CTF_CTF2_CTF2_WRITE_H

#include "ctf/model/model.h"

/* What CTF 2 calls the root of @scope in field locations. */
const char *ky_ctf2_origin(enum ky_scope scope);

/*
 * Write a finished model, of either version, as a CTF 2 metadata stream that describes the same
 * bytes. KYMO_E_UNSUPPORTED for a reference that no CTF 2 field location can express.
 * *text is malloc()ed, NUL-terminated, the caller's.
 */
int ky_ctf2_write(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
		  struct kymo_error *err);

/* The offset of @clock as CTF 2 wants it: 0 <= *cycles < frequency. */
void ky_ctf2_offset(const struct ky_clock_class *clock, int64_t *seconds, uint64_t *cycles);

#endif
