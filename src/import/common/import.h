/* SPDX-License-Identifier: MIT */
/*
 * Recordings in other formats than CTF, in places where commands expect traces. Each becomes a
 * temporary trace while a command reads it.
 *
 *	struct ky_import imports = KY_IMPORT_INIT;
 *	ret = ky_import_paths(&imports, paths, n, &log, says, err);
 *	options.scratch = imports.places.data; options.n_scratch = imports.places.len;
 *	... ky_trace_set_open_with(), read, ky_trace_set_close() ...
 *	ky_import_fini(&imports);
 *
 * A format has a file of its own and one line in formats[] of import.c.
 * Threads: one at a time per struct ky_import.
 */
#ifndef KY_IMPORT_IMPORT_H
#define KY_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/vec.h"
#include "store/packets/packet-store.h"
#include "store/packets/scratch-trace.h"
#include "store/read/trace.h"

struct ky_import;

struct ky_import_format {
	const char *name; /* "raw" */
	/* Whether @path has this format. A cheap check; false for an unreadable file. */
	bool (*probe)(const char *path);
	/*
	 * Writes the trace to @store, as "kernel" in it. @log (may be NULL) gets warnings about
	 * damage; with @says, also notices about omitted data. Returns 0, KYMO_E_FORMAT with file
	 * and place, or the failure of reading or writing.
	 */
	int (*convert)(const char *path, struct ky_packet_store *store, const struct ky_log *log,
		       bool says, struct kymo_error *err);
	/*
	 * Instead of convert: adds any number of traces (import-internal.h). KYMO_E_FORMAT, KYMO_E_LIMIT;
	 * the failure of reading or writing.
	 */
	int (*open)(struct ky_import *imports, const char *path, const struct ky_log *log,
		    struct kymo_error *err);
};

struct ky_import {
	KY_VEC(struct ky_scratch_trace *) traces;
	KY_VEC(char *) names;
	KY_VEC(struct ky_trace_at) places; /* for struct ky_trace_options; ->names has the texts */
	/*
	 * The first damage of a file whose events before the damage are in the traces: the caller reports it after it has
	 * read them. code 0: no damage.
	 */
	struct kymo_error broken;
	const struct ky_import_options *options; /* during ky_import_paths() */
	const char *member; /* while a file of an archive is converted: its name there; else NULL */
	int unpacked_fd;    /* while a compressed file is converted: its content; else -1 */
};

#define KY_IMPORT_INIT                                                              \
	{                                                                           \
		.traces = KY_VEC_INIT, .names = KY_VEC_INIT, .places = KY_VEC_INIT, \
		.unpacked_fd = -1                                                   \
	}

/* How to read some formats. */
struct ky_import_options {
	/*
	 * The name of a format, or a regular expression with named groups: regular files that have no other format are such logs.
	 * NULL: those of a format that is plain.
	 */
	const char *format;
	const char *time_format; /* of strftime(), for times in it; NULL: usual ones */
	bool packet_data;	 /* events of packets have the packets' bytes, too */
};

/*
 * Converts those of @paths that have a known format; @logs may be NULL; skips traces and unknown files. @says: the log
 * also gets notices about omitted data. Returns 0, KYMO_E_MEMORY, or the format's error; the caller
 * must call ky_import_fini() in any case.
 */
int ky_import_paths(struct ky_import *imports, char **paths, size_t n_paths,
		    const struct ky_import_options *logs, const struct ky_log *log, bool says,
		    struct kymo_error *err);
void ky_import_fini(struct ky_import *imports);

/* import-raw.c */
extern const struct ky_import_format ky_import_raw;
/* import-archive.c */
extern const struct ky_import_format ky_import_archive;
/* import-log.c */
extern const struct ky_import_format ky_import_logs;
/* As ky_import_format.open, by the user's format. KYMO_E_INVALID: the format makes no sense. */
int ky_import_log(struct ky_import *imports, const char *path,
		  const struct ky_import_options *options, const struct ky_log *log,
		  struct kymo_error *err);
/* import-dat.c */
extern const struct ky_import_format ky_import_dat;
/* import-perfetto.c */
extern const struct ky_import_format ky_import_perfetto;
/* import-uftrace.c */
extern const struct ky_import_format ky_import_uftrace;
/* import-crash.c */
extern const struct ky_import_format ky_import_crash;
/* import-pcap.c */
extern const struct ky_import_format ky_import_pcap;
/* import-perf.c */
extern const struct ky_import_format ky_import_perf;

#endif
