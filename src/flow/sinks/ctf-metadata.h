/* SPDX-License-Identifier: MIT */
#ifndef KY_FLOW_SINKS_CTF_METADATA_H
#define KY_FLOW_SINKS_CTF_METADATA_H

#include "store/read/trace.h"

/*
 * The metadata of @trace in CTF version @major (1: 1.8, or 2) for the same bytes. When the trace
 * has that version, it is the file unchanged. Another version is parsed again and compared with the
 * original as a check.
 *
 * *as: NULL, or the trace model of that text when it describes other bytes for the same values: the
 * packets must then be rewritten (ctf/encode/repack.h). The caller frees it, and frees *text with
 * free(). KYMO_E_UNSUPPORTED names the feature that the version lacks.
 */
int ky_ctf_metadata(const struct ky_trace *trace, uint32_t major, char **text, size_t *len_bytes,
		    struct ky_trace_class **as, struct kymo_error *err);

#endif
