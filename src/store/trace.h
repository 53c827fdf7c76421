/* SPDX-License-Identifier: MIT */
/*
 * Trace directories, for reading: finds traces below a path, reads metadata, maps data
 * streams, and knows their packets (from LTTng's index files, or by scanning).
 *
 * Threads: opening is single-threaded; an open trace is immutable and may be shared.
 */
#ifndef KY_STORE_TRACE_H
#define KY_STORE_TRACE_H

#include <sys/types.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "ctf/decode/decode.h"
#include "store/live-file.h"

struct ky_scratch_trace;

/* One packet of a data stream file, as the index or a scan says. */
struct ky_packet_entry {
	uint64_t offset_bytes;
	uint64_t packet_bits;
	uint64_t content_bits;
	uint64_t begin_cycles, end_cycles;
	int64_t begin_ns, end_ns; /* from the clock's origin */
	uint64_t discarded;	  /* cumulative */
	uint64_t sequence;
	bool has_times, has_discarded, has_sequence;
};

/* A data stream's file, mapped on opening; a zero-byte file is valid and has no packet. */
struct ky_stream_file {
	char *path;
	const uint8_t *data; /* NULL when empty */
	uint64_t size_bytes;
};

/*
 * One of the files that a stream lies in. Rotated and size-limited traces, and snapshots, have
 * several; they are mapped one behind the other, each from a page on.
 */
struct ky_stream_part {
	char *path;
	uint64_t at_bytes; /* of the file's first byte, in the stream */
	uint64_t size_bytes;
	uint64_t begin_bytes; /* in the stream: packets before are in an earlier file as well */
	dev_t device;	      /* with the inode: which file it was when it was mapped */
	ino_t inode;
	int fd; /* of a scratch trace, which has it open: there is nothing at ->path; else -1 */
};

/*
 * One data stream. Class, ids and CPU are those of its first packet. ->file is all of it: its bytes
 * are those of its parts (with gaps between the parts), its path is the first part's.
 */
struct ky_stream {
	struct ky_trace *trace;
	uint32_t index;	  /* over all streams of a struct ky_trace_set: the merge's tie-breaker */
	const char *name; /* the file's name: "channel0_1" */
	struct ky_stream_file file;
	/* NULL when the file has no packet, or the first one is damaged (reading tells which) */
	const struct ky_stream_class *cls;
	bool has_id, has_cpu_id;
	uint64_t id; /* instance */
	uint32_t cpu_id;
	KY_VEC(struct ky_stream_part) parts; /* one, or several in the order of their packets */
	uint64_t
		reserved_bytes; /* of a stream that grows: addresses that ->file may take; else 0 */
};

/* Of a trace that is read while it is written (follow.h); zeros: it is complete. */
struct ky_trace_live {
	bool is_written;
	int64_t until_ns;  /* no event that is yet to come is earlier; INT64_MIN: not known */
	uint64_t moved_ns; /* when that moved last; CLOCK_MONOTONIC */
	bool is_late;	   /* it has not moved for long: nobody waits for it */
	struct ky_live_state state;
};

struct ky_trace {
	char *path;	/* the directory that holds it */
	size_t name_at; /* in ->path: what lies below the path that was given; its end when joined */
	char *metadata_path; /* what ->cls was read from; of a joined trace perhaps elsewhere */
	struct ky_trace_class *cls;
	KY_VEC(struct ky_stream *) streams;
	const struct ky_log *log;
	unsigned int quirks; /* what its tracer does wrong: enum ky_quirk, or-ed */
	bool recover;	     /* see struct ky_trace_options */
	bool is_edited;	     /* ->cls has other clock offsets than the metadata file */
	const struct ky_scratch_trace *scratch; /* where it is, and not at ->path; NULL: there */
	struct ky_trace_live live;
};

/* May more come of @stream? Then nothing that comes is earlier than ->live.until_ns. */
static inline bool ky_stream_may_grow(const struct ky_stream *stream)
{
	return stream->trace->live.is_written;
}

/* Up to when the events of a trace that is being written are complete, as far as others are to wait for it. */
static inline int64_t ky_trace_live_until(const struct ky_trace *trace)
{
	return trace->live.is_late ? INT64_MAX : trace->live.until_ns;
}

/* Where @trace lies below the path that was given: "kernel"; "" right there, or in several places. */
static inline const char *ky_trace_name(const struct ky_trace *trace)
{
	return trace->path ? trace->path + trace->name_at : "";
}

/* A scratch trace that is read as PATH/NAME, where PATH is one of those that are opened. */
struct ky_trace_at {
	const char *path, *name;
	const struct ky_scratch_trace *trace; /* must outlive the set */
};

/* How to read traces; all zero is the usual way. */
struct ky_trace_options {
	/* Go on behind damage, with the next packet that can be read (ky_walk_recover()). */
	bool recover;
	/* Traces may still be written: read what is whole of them (follow.h). */
	bool follow;
	const char *const *clock_offsets; /* see ky_clocks_shift() */
	size_t n_clock_offsets;
	/* What is read instead of what these paths have, but for the traces of programs (PATH/ust). */
	const struct ky_trace_at *scratch;
	size_t n_scratch;
};

/* All traces below the paths that the user gave, in a fixed order. */
struct ky_trace_set {
	KY_VEC(struct ky_trace *) traces;
	KY_VEC(struct ky_stream *) streams; /* of all traces, by index */
};

/*
 * Open every trace at or below each path of @paths: every directory that holds a file `metadata`.
 * Hidden entries and a trace's index/ are skipped, symbolic links followed, and each directory is
 * visited once however many ways lead to it. Directories are in the order of @paths, below
 * that sorted by name; a trace's streams by (class id, instance id, file name). What is one trace in
 * several places, or one stream in several files, is joined (join.h).
 *
 * @log: for warnings (may be NULL); must outlive the set.
 *
 * A path that holds no trace is KYMO_E_NOT_FOUND; unreadable metadata is KYMO_E_FORMAT or
 * KYMO_E_IO with the place. On error nothing stays open.
 */
int ky_trace_set_open(struct ky_trace_set *set, const char *const *paths, size_t n_paths,
		      const struct ky_log *log, struct kymo_error *err);
/* The same, in another way than the usual one. @options is borrowed until it returns. */
int ky_trace_set_open_with(struct ky_trace_set *set, const char *const *paths, size_t n_paths,
			   const struct ky_trace_options *options, const struct ky_log *log,
			   struct kymo_error *err);
void ky_trace_set_close(struct ky_trace_set *set);

/* ->path without links; the caller frees it. NULL: errno says why. */
char *ky_trace_real_path(const struct ky_trace *trace);

/* Read the file that ->cls was read from into @bytes. 0, KYMO_E_IO with its path, ... */
int ky_trace_read_metadata(const struct ky_trace *trace, struct ky_strbuf *bytes,
			   struct kymo_error *err);

/*
 * The packets of @stream, from its index file when that is right, else by scanning headers.
 * The list is the caller's: ky_vec_fini(). A damaged packet ends it: the entries before are there
 * (and a truncated packet's own, since it has events), and the call returns KYMO_E_FORMAT; in a
 * trace that is to be recovered the list goes on behind it, without a word.
 */
KY_VEC_TYPE(ky_packet_list, struct ky_packet_entry);
int ky_stream_packets(const struct ky_stream *stream, struct ky_packet_list *packets,
		      struct kymo_error *err);

/* Open the file that @part was mapped from, if it is still that; the caller closes it. -1: it is not there any more. */
int ky_stream_part_open(const struct ky_stream_part *part);

/* The part of @stream in which byte @offset of it lies; NULL when it has none. */
const struct ky_stream_part *ky_stream_part_at(const struct ky_stream *stream, uint64_t offset);

/*
 * Has somebody made a file of @stream shorter since it was mapped? @ask_files: ask the file system
 * too, which finds what nobody read yet. 0, or KYMO_E_IO with the file. Threads: any.
 */
int ky_stream_check(const struct ky_stream *stream, bool ask_files, struct kymo_error *err);
/* The same for all streams, asking: to be done when everything was read and used. */
int ky_trace_set_check(const struct ky_trace_set *set, struct kymo_error *err);

/*
 * An error whose offset counts from the stream's begin: make it the offset in the file where that
 * lies, and name the file.
 */
void ky_stream_place(const struct ky_stream *stream, struct kymo_error *err);

#endif
