/* SPDX-License-Identifier: MIT */
/*
 * A temporary trace: its streams are files without a name, which the file system frees at their
 * close, however the process ends. A packet store writes it; readers find it at a path of their
 * choice (struct ky_trace_options). Where the owner allows it, the first bytes stay in memory.
 *
 * Threads: one at a time per trace.
 */
#ifndef KY_STORE_SCRATCH_TRACE_H
#define KY_STORE_SCRATCH_TRACE_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "store/packets/packet-store.h"

struct ky_scratch_stream {
	char *name; /* "channel0_1" */
	int fd;
	uint8_t *memory;       /* its first bytes, and its addresses; NULL: the file has it all */
	uint64_t memory_bytes; /* of addresses */
	uint64_t
		kept_bytes; /* the first so many are in memory; the file has the rest, at its place */
	bool is_over;	    /* the memory is used up: packets go to the file */
	bool is_mapped;	    /* the file's part is mapped behind the memory's */
	uint64_t size_bytes;
	uint64_t first_bytes;  /* where its first packet is; what lies before it is gone */
	uint64_t passed_bytes; /* the packet that its reader is in; UINT64_MAX: it has none */
};

struct ky_scratch_trace {
	struct ky_strbuf metadata;
	KY_VEC(struct ky_scratch_stream *) streams;
	bool uses_memory; /* the owner sets it: streams that a packet store writes begin in memory */
};

#define KY_SCRATCH_TRACE_INIT                                      \
	{                                                          \
		.metadata = KY_STRBUF_INIT, .streams = KY_VEC_INIT \
	}

/* Adds a stream with an empty file: @in_memory, or in a directory as below. KYMO_E_MEMORY, KYMO_E_IO. */
int ky_scratch_trace_add(struct ky_scratch_trace *trace, const char *name, bool in_memory,
			 struct kymo_error *err);

/* All of a stream that has memory at ->memory: maps what the file has. 0 or an errno. Nothing is written any more. */
int ky_scratch_stream_map(struct ky_scratch_stream *stream);

/* Closes the files, and frees the streams in memory. Mappings of files stay valid until they are unmapped. */
void ky_scratch_trace_fini(struct ky_scratch_trace *trace);

/*
 * A store for one trace, at any path: its packets become @trace's, which must outlive the store.
 * The files are in the directory of TMPDIR, else in /var/tmp (or /tmp). Returns 0 or KYMO_E_MEMORY.
 * On a full disk, the packet that does not fit gets the error.
 */
int ky_scratch_store_open(struct ky_scratch_trace *trace, struct ky_packet_store **store,
			  struct kymo_error *err);

#endif
