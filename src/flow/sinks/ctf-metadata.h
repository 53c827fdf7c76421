/* SPDX-License-Identifier: MIT */
#ifndef KY_FLOW_SINKS_CTF_METADATA_H
#define KY_FLOW_SINKS_CTF_METADATA_H

#include "store/trace.h"

/*
 * The metadata of @trace in CTF version @major (1: 1.8, or 2) for the same bytes; in the version
 * that it has, the file as it is. Another version is read back and compared before it is
 * believed.
 * *as: NULL, or the model of that text when it describes other bytes for the same values: packets
 * must be written anew (ctf/encode/repack.h). The caller's.
 * *text is malloc()ed, the caller's. KYMO_E_UNSUPPORTED names what cannot be said.
 */
int ky_ctf_metadata(const struct ky_trace *trace, uint32_t major, char **text, size_t *len_bytes,
		    struct ky_trace_class **as, struct kymo_error *err);

#endif
