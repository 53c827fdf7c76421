/* SPDX-License-Identifier: MIT */
/*
 * A recording as viewers see it: its traces and their streams, read from the directory while a
 * recorder or a relay writes it, and afterwards. Several viewers share one object.
 *
 * The list of streams only grows, so that a viewer needs one number to know which of them it has
 * been told. A trace keeps its place in the list when a rotation moves its directory.
 *
 * What files say is not trusted: an index entry counts only when its packet is in the stream's file.
 *
 * Threads: one at a time per recording.
 */
#ifndef KY_NET_VIEWER_VIEWER_RECORDING_H
#define KY_NET_VIEWER_VIEWER_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "base/vec.h"
#include "store/directory/index-record.h"
#include "store/live/live-file.h"

#define KY_VIEWER_UNTILS 16

/* Of a directory. */
struct ky_viewer_trace_id {
	uint32_t device_major, device_minor;
	uint64_t inode;
	int64_t born_s; /* zeros: the file system does not know */
	uint32_t born_ns;
};

struct ky_viewer_trace {
	int fd; /* of its directory (O_PATH); use ky_viewer_trace_fd() */
	struct ky_viewer_trace_id id;
	char *place;			       /* of the directory, when fd was closed */
	struct ky_viewer_trace *newer, *older; /* of those that were opened again */
	char *path;			       /* below the relay's directory, when it was found */
	bool is_written, is_complete;
	bool is_late;  /* a group's trace that overwrites: its events would come too late */
	bool is_tardy; /* its first bound came when viewers waited for it no more */
	int64_t found_ns, looked_ns,
		ended_ns; /* CLOCK_MONOTONIC; ended_ns 0: it was complete when found */
	struct ky_live_state state;
	/* The last bounds, and when they came. */
	struct ky_viewer_until {
		uint64_t cycles;
		int64_t seen_ns;
	} untils[KY_VIEWER_UNTILS];
	unsigned int n_untils;
	struct ky_names names; /* of its streams */
	size_t metadata; /* number of its metadata among the streams; SIZE_MAX: no stream yet */
	int metadata_fd; /* as it was last; -1: none, or given back */
	uint8_t uuid[16];
	bool has_uuid;
};

struct ky_viewer_track {
	struct ky_viewer_trace *trace;
	char *name; /* of the stream; NULL: this is the trace's metadata */
	uint64_t class_id;
	uint64_t base_cycles; /* its events are later; 0: unknown */
};

struct ky_viewer_recording {
	uint32_t serial;
	unsigned int users;
	char *path; /* of the directory */
	char *name; /* the same below the relay's directory */
	struct ky_follow *follow;
	uint32_t delay_ms; /* that its viewers want */
	KY_VEC(struct ky_viewer_trace *) traces;
	KY_VEC(struct ky_viewer_track) tracks;
	int64_t scanned_ns, scan_took_ns;
	int64_t known_ns;   /* when all traces were known */
	bool has_news;	    /* something has appeared since, which is not looked at yet */
	bool is_unreadable; /* the last look has failed */
	bool lacks_traces;  /* it has found some for which there was no descriptor */
	/* For the owner: a recorder is connected, or was until a moment ago. */
	bool is_connected, is_away;
};

typedef void (*ky_viewer_found)(void *data, int dir_fd, const char *path);
/*
 * Calls @found for each trace below the directory @dir_fd, with its directory (borrowed) and its path
 * below @dir_fd. Does not follow links.
 */
void ky_viewer_scan(int dir_fd, ky_viewer_found found, void *data);

/*
 * Opens the recording in directory @path. Writers see from now on that there is a live reader, which wants events
 * within @delay_ms.
 * KYMO_E_NOT_FOUND, KYMO_E_IO, KYMO_E_LIMIT, KYMO_E_MEMORY.
 */
int ky_viewer_recording_open(const char *path, const char *name, uint32_t delay_ms, int64_t now_ns,
			     struct ky_viewer_recording **recording, struct kymo_error *err);
void ky_viewer_recording_close(struct ky_viewer_recording *recording); /* NULL is allowed */

/* Writers learn at the next look that readers want events within @delay_ms. */
void ky_viewer_recording_want(struct ky_viewer_recording *recording, uint32_t delay_ms);

/* Looks for new traces, when it is time. KYMO_E_MEMORY, KYMO_E_LIMIT, KYMO_E_IO. */
int ky_viewer_recording_look(struct ky_viewer_recording *recording, int64_t now_ns,
			     struct kymo_error *err);
/* Looks how far the trace is, when it is time; this may add streams to the list. */
void ky_viewer_trace_look(struct ky_viewer_recording *recording, struct ky_viewer_trace *trace,
			  int64_t now_ns);
/* The same for all traces. */
void ky_viewer_recording_look_at_all(struct ky_viewer_recording *recording, int64_t now_ns);
/* Adds the streams of a trace that its recorder has not told of yet. */
void ky_viewer_trace_list(struct ky_viewer_recording *recording, struct ky_viewer_trace *trace);
/* Whether recorders have told of each trace that is written now how far it is, since the recording was opened here. */
bool ky_viewer_recording_is_told(const struct ky_viewer_recording *recording);
/* Whether nothing can come any more. */
bool ky_viewer_recording_is_over(const struct ky_viewer_recording *recording, int64_t now_ns);

/*
 * Up to when all events of the trace are readable, as it was known @hold_ns ago. UINT64_MAX: it is
 * complete; 0: unknown. @now_ns: the present, or ky_viewer_recording_settled_ns().
 */
uint64_t ky_viewer_trace_horizon(const struct ky_viewer_trace *trace, int64_t now_ns,
				 int64_t hold_ns);
/*
 * The time up to which all traces are known, with a bound of each: the present, or earlier, where
 * something new has appeared.
 */
int64_t ky_viewer_recording_settled_ns(const struct ky_viewer_recording *recording, int64_t now_ns);

/*
 * The trace's metadata, also of a trace that was removed: a viewer that knows its streams waits for it. Returns a
 * descriptor, which the caller closes, or -1.
 */
int ky_viewer_trace_metadata(struct ky_viewer_trace *trace);
/* How many bytes of the stream can be read. */
uint64_t ky_viewer_track_bytes(const struct ky_viewer_track *track);
/* Reads entry @number of the stream's index, as it is in the file. False: the file has no such entry (yet). */
bool ky_viewer_track_entry(const struct ky_viewer_track *track, uint64_t number,
			   struct ky_index_record *entry);
/* The number of entries in the file, also of packets that cannot be read yet. */
uint64_t ky_viewer_track_entries(const struct ky_viewer_track *track);

#endif
