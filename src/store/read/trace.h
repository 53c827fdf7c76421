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
#include "store/live/live-file.h"

struct ky_scratch_trace;
struct ky_sync;
struct ky_feed;
struct ky_feed_trace;

/* One packet of a data stream file, from the index or from a scan. */
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

/* A data stream's file, mapped at its opening. An empty file is valid and has no packet. */
struct ky_stream_file {
	char *path;
	const uint8_t *data; /* NULL when empty */
	uint64_t size_bytes;
};

/*
 * One of the files of a stream. Rotated and size-limited traces, and snapshots, have several. Their
 * mappings follow each other; each begins at a page.
 */
struct ky_stream_part {
	char *path;
	uint64_t at_bytes; /* offset of the file's first byte in the stream */
	uint64_t size_bytes;
	uint64_t
		begin_bytes; /* offset in the stream: earlier packets are also in an earlier file */
	dev_t device;	     /* with the inode: the identity of the file at its mapping */
	ino_t inode;
	int64_t born_ns; /* of the file, by wall time; 0: unknown. Another file may get the inode of a removed one */
	int fd; /* of a scratch trace, which has it open: ->path has no file; else -1 */
	const uint8_t
		*memory; /* of a scratch trace: its bytes are here, and not all in the file; NULL */
	uint64_t memory_bytes; /* the first of those that have no file behind them */
};

/*
 * One data stream. Class, ids and CPU are those of its first packet. ->file has the whole stream:
 * the bytes of all its parts (with gaps between the parts), and the first part's path.
 */
struct ky_stream {
	struct ky_trace *trace;
	uint32_t
		index; /* over all streams of a struct ky_trace_set: it decides the order of equal times */
	const char *name; /* the file's name: "channel0_1" */
	struct ky_stream_file file;
	/*
	 * NULL when the file has no packet, or when the first one is damaged (reading returns the
	 * error)
	 */
	const struct ky_stream_class *cls;
	bool has_id, has_cpu_id;
	uint64_t id; /* instance */
	uint32_t cpu_id;
	KY_VEC(struct ky_stream_part) parts; /* one, or several in the order of their packets */
	uint64_t reserved_bytes; /* of a growing stream: the address range of ->file; else 0 */
	uint64_t *
		passed_bytes; /* gets the offset of the packet that is being read; NULL: nobody asks */
};

/* A trace that a reader follows during its recording (follow.h); zeros: it is complete. */
struct ky_trace_live {
	bool is_written;
	int64_t until_ns;  /* all future events are at this time or later; INT64_MIN: unknown */
	uint64_t moved_ns; /* CLOCK_MONOTONIC time of the last change of until_ns */
	bool is_late;	   /* no change for a long time: the merge does not wait for it */
	struct ky_live_state state;
};

struct ky_trace {
	char *path;	/* the directory of the trace */
	size_t name_at; /* offset in ->path of the part below the user's path; its end after joining */
	size_t given_bytes; /* the same, but where all joined places are below one such path, it stays */
	char *metadata_path; /* source of ->cls; of a joined trace maybe another directory */
	struct ky_trace_class *cls;
	KY_VEC(struct ky_stream *) streams;
	const struct ky_log *log;
	unsigned int quirks; /* errors of its tracer: enum ky_quirk, or-ed */
	bool recover;	     /* see struct ky_trace_options */
	bool is_edited;	     /* ->cls has other clock offsets than the metadata file */
	const struct ky_scratch_trace
		*scratch;	    /* the trace's source, instead of ->path; NULL: ->path */
	struct ky_feed_trace *feed; /* that ->scratch belongs to; NULL: none */
	struct ky_trace_live live;
	bool leaves_out_late; /* as the options say */
	struct ky_stored_stacks
		*stacks;      /* of ->cls, which has them once (trace-stacks.h), or NULL */
	struct ky_sync *sync; /* what corrects its clocks (sync-file.h), or NULL */
};

/* Whether @stream may get more packets. All future events are at ->live.until_ns or later. */
static inline bool ky_stream_may_grow(const struct ky_stream *stream)
{
	return stream->trace->live.is_written;
}

/*
 * The time up to which the events of a live trace are complete, as far as the merge must wait for
 * it.
 */
static inline int64_t ky_trace_live_until(const struct ky_trace *trace)
{
	return trace->live.is_late ? INT64_MAX : trace->live.until_ns;
}

/*
 * The place of @trace below the user's path: "kernel"; "" for the path itself, or for several
 * places.
 */
static inline const char *ky_trace_name(const struct ky_trace *trace)
{
	return trace->path ? trace->path + trace->name_at : "";
}

/* A scratch trace in the place of PATH/NAME, where PATH is one of the opened paths. */
struct ky_trace_at {
	const char *path, *name;
	const struct ky_scratch_trace *trace; /* must outlive the set */
};

/* The traces of a feed, in the place of @path, which is no path of a file. */
struct ky_trace_at_feed {
	const char *path;
	struct ky_feed *feed; /* must outlive the set */
};

/* Options of reading traces; all zeros are the defaults. */
struct ky_trace_options {
	/* Continue after damage, with the next readable packet (ky_walk_recover()). */
	bool recover;
	/* Traces may still be incomplete: read their whole packets (follow.h). */
	bool follow;
	/* Leave out streams of buffers that overwrite (live-file.h), and traces that have no others but a state dump. */
	bool leaves_out_late;
	/* Leave the clocks as they are, whatever `kymo sync` found. */
	bool leaves_clocks;
	const char *const *clock_offsets; /* see ky_clocks_shift() */
	size_t n_clock_offsets;
	/*
	 * Read these instead of the contents of their paths, except the traces of programs
	 * (PATH/ust).
	 */
	const struct ky_trace_at *scratch;
	size_t n_scratch;
	/* Traces that come from elsewhere (feed.h). */
	const struct ky_trace_at_feed *feeds;
	size_t n_feeds;
};

/* All traces below the user's paths, in a fixed order. */
struct ky_trace_set {
	KY_VEC(struct ky_trace *) traces;
	KY_VEC(struct ky_stream *) streams; /* of all traces, by index */
};

/*
 * Open every trace at or below each of @paths: every directory with a file `metadata`. The search
 * skips hidden entries and a trace's index/, follows symbolic links, and visits each directory
 * once. Directories have the order of @paths, and below that the order of their names; a trace's
 * streams the order of (class id, instance id, file name). Parts of a trace in several places, and
 * of a stream in several files, are joined (join.h).
 *
 * @log: for warnings (may be NULL); must outlive the set.
 *
 * KYMO_E_NOT_FOUND: a path has no trace; KYMO_E_FORMAT or KYMO_E_IO, with the place: unreadable
 * metadata. After an error nothing stays open.
 */
int ky_trace_set_open(struct ky_trace_set *set, const char *const *paths, size_t n_paths,
		      const struct ky_log *log, struct kymo_error *err);
/* The same with options, which are borrowed during the call. */
int ky_trace_set_open_with(struct ky_trace_set *set, const char *const *paths, size_t n_paths,
			   const struct ky_trace_options *options, const struct ky_log *log,
			   struct kymo_error *err);
void ky_trace_set_close(struct ky_trace_set *set);

/* ->path without symbolic links; the caller frees it. Returns NULL with errno on failure. */
char *ky_trace_real_path(const struct ky_trace *trace);

/* Reads the source file of ->cls into @bytes. Returns 0, KYMO_E_IO with its path, ... */
int ky_trace_read_metadata(const struct ky_trace *trace, struct ky_strbuf *bytes,
			   struct kymo_error *err);

/*
 * List the packets of @stream, from its index file when that is right, else by scanning headers.
 * The caller frees the list with ky_vec_fini(). A damaged packet ends the list: it has the packets
 * before (and a truncated packet itself, since it has events), and the call returns KYMO_E_FORMAT.
 * With the option recover, the list continues after the damage, without an error.
 */
KY_VEC_TYPE(ky_packet_list, struct ky_packet_entry);
int ky_stream_packets(const struct ky_stream *stream, struct ky_packet_list *packets,
		      struct kymo_error *err);

/*
 * How many of the first bytes of @stream a scratch trace has in memory alone; a multiple of the page, or all. What is given back to the
 * kernel there is lost.
 */
static inline uint64_t ky_stream_memory_bytes(const struct ky_stream *stream)
{
	return stream->parts.len ? stream->parts.data[0].memory_bytes : 0;
}

/* Gives the pages from @from to @upto back to the kernel, which has them in the stream's file. */
void ky_stream_give_back(const struct ky_stream *stream, uint64_t from, uint64_t upto);

/*
 * Opens the file of @part, if it is still the same file; the caller closes it. Returns -1
 * otherwise. The file of a part with ->memory has not all of its bytes.
 */
int ky_stream_part_open(const struct ky_stream_part *part);

/* The part of @stream that contains byte @offset; NULL when none exists. */
const struct ky_stream_part *ky_stream_part_at(const struct ky_stream *stream, uint64_t offset);

/*
 * Check whether a file of @stream was truncated after its mapping. @ask_files: also ask the file
 * system, which finds truncation of parts that were not read yet. Returns 0, or KYMO_E_IO with the
 * file. Threads: any.
 */
int ky_stream_check(const struct ky_stream *stream, bool ask_files, struct kymo_error *err);
/*
 * The same for all streams, with the file system. Readers call it after they have read and used
 * everything.
 */
int ky_trace_set_check(const struct ky_trace_set *set, struct kymo_error *err);

/*
 * Changes an error whose offset counts from the stream's begin: it gets the path of the file and
 * the offset in that file.
 */
void ky_stream_place(const struct ky_stream *stream, struct kymo_error *err);

#endif
