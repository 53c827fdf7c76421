/* SPDX-License-Identifier: MIT */
/*
 * Recordings that are no CTF trace yet, where traces are expected: each becomes a trace for as long as somebody reads it.
 *
 *	struct ky_import imports = KY_IMPORT_INIT;
 *	ret = ky_import_paths(&imports, paths, n, &log, says, err);
 *	options.scratch = imports.places.data; options.n_scratch = imports.places.len;
 *	... ky_trace_set_open_with(), read, ky_trace_set_close() ...
 *	ky_import_fini(&imports);
 *
 * A format is a file of its own and one line in formats[] of import.c.
 * Threads: one at a time per struct ky_import.
 */
#ifndef KY_IMPORT_IMPORT_H
#define KY_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/vec.h"
#include "store/packet-store.h"
#include "store/scratch-trace.h"
#include "store/trace.h"

struct ky_import_format {
	const char *name; /* "raw" */
	/* Is @path of this format? Cheap; an unreadable file is not. */
	bool (*probe)(const char *path);
	/*
	 * Write the trace to @store, as "kernel" in it. @log (may be NULL) has warnings of damage; @says: also what was left
	 * out. 0, KYMO_E_FORMAT with file and place, or what reading and writing fail with.
	 */
	int (*convert)(const char *path, struct ky_packet_store *store, const struct ky_log *log,
		       bool says, struct kymo_error *err);
};

struct ky_import {
	KY_VEC(struct ky_scratch_trace *) traces;
	KY_VEC(struct ky_trace_at) places; /* for struct ky_trace_options; they borrow the paths */
};

#define KY_IMPORT_INIT                                       \
	{                                                    \
		.traces = KY_VEC_INIT, .places = KY_VEC_INIT \
	}

/*
 * Convert those of @paths that are of a known format; traces and unknown files are left alone. @says: the log has what each
 * conversion left out. 0, KYMO_E_MEMORY, or the format's error; ky_import_fini() is due in any case.
 */
int ky_import_paths(struct ky_import *imports, char **paths, size_t n_paths,
		    const struct ky_log *log, bool says, struct kymo_error *err);
void ky_import_fini(struct ky_import *imports);

/* import-raw.c */
extern const struct ky_import_format ky_import_raw;

#endif
