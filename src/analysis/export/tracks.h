/* SPDX-License-Identifier: MIT */
/*
 * What happens on the tracks of a time line: for sinks of formats that have tracks (Chrome's, OpenTelemetry's, the Firefox
 * profiler's).
 *
 *	thread	  system calls, spans (NAME_begin and NAME_end), events of programs, events of the kernel that happened in it
 *	CPU	  which thread ran; its interrupts are a track of their own
 *	device	  requests of a disk; requests that overlap are on several tracks
 *	stream	  events that no thread is known of
 *
 * A format is a struct ky_tracks_form; its functions add text to ->out, which the sink writes.
 */
#ifndef KY_ANALYSIS_EXPORT_TRACKS_H
#define KY_ANALYSIS_EXPORT_TRACKS_H

#include "analysis/state/model.h"
#include "base/strbuf.h"
#include "flow/graph/sink.h"

#define KY_TRACK_NAME_SIZE 96

enum ky_track_kind {
	KY_TRACK_THREAD,
	KY_TRACK_CPU,
	KY_TRACK_INTERRUPTS,
	KY_TRACK_DEVICE,
	KY_TRACK_STREAM,
	KY_TRACK_KINDS,
};

struct ky_track {
	uint32_t index; /* dense */
	enum ky_track_kind kind;
	uint32_t machine;     /* traces of the same host name are of one machine; the first is 0 */
	const char *hostname; /* its name, or "" */
	int32_t pid;	      /* of a thread: its process; its own number where that is not known */
	int32_t tid; /* of a thread; else a number that is unique among tracks of this kind */
	char name[KY_TRACK_NAME_SIZE];	  /* as far as it is known now */
	char process[KY_TRACK_NAME_SIZE]; /* of a thread: its process' name, or "" */
	int64_t busy_until_ns;		  /* of a device */
	void *own;			  /* of the format */
};

enum ky_track_what {
	KY_TRACK_BEGIN, /* a slice; slices of a track are nested */
	KY_TRACK_END,
	KY_TRACK_INSTANT,
	KY_TRACK_WHOLE, /* a slice from ns to end_ns; may come after later ones */
};

struct ky_track_item {
	enum ky_track_what what;
	struct ky_track *track;
	const char *name;     /* of an end that of its begin */
	const char *category; /* "syscall", "user", "kernel", "sched", "irq", "block" */
	int64_t ns, end_ns;
	const struct ky_value *fields;	   /* the payload; NULL: none */
	const char *error;		   /* of a system call that failed: "ENOENT"; or NULL */
	const char *outcome;		   /* why a call has no duration; or NULL */
	const struct ky_thread *ran;	   /* on the CPU; or NULL */
	const struct ky_stack_seen *stack; /* of a sample; or NULL */
};

struct ky_tracks;

struct ky_tracks_form {
	const char *what;  /* in errors: "the Chrome trace" */
	bool wants_model;  /* CPUs, interrupts, devices, events of the kernel */
	bool wants_calls;  /* system calls */
	bool wants_stacks; /* samples */
	size_t own_bytes;  /* for ->own, which is zero at the begin */
	/* 0 or a negative status. @err may be set. */
	int (*begin)(struct ky_tracks *tracks, struct kymo_error *err);
	int (*item)(struct ky_tracks *tracks, const struct ky_track_item *item,
		    struct kymo_error *err);
	int (*end)(struct ky_tracks *tracks, struct kymo_error *err);
	void (*free)(struct ky_tracks *tracks); /* NULL: nothing */
};

struct ky_tracks_host;

struct ky_tracks {
	struct ky_sink sink;
	const struct ky_tracks_form *form;
	const void *options; /* of the format */
	const struct ky_trace_set *set;
	struct ky_model *model;
	struct ky_arena arena;
	struct ky_values values;
	struct ky_strbuf out;
	int fd;
	int64_t origin_ns; /* of the first event; INT64_MIN: there was none yet */
	KY_VEC(struct ky_track *) list;
	void *own; /* of the format */
	/* Of tracks.c. */
	struct ky_tracks_host *hosts; /* by ky_host.index */
	struct ky_map tracks;
	const struct ky_event *now; /* for the model's listener */
	struct kymo_error *err;
	uint64_t n_untimed;
};

/* @set must outlive it. @fd is the caller's. */
int ky_tracks_open(const struct ky_trace_set *set, int fd, const struct ky_tracks_form *form,
		   const void *options, struct ky_sink **sink, struct kymo_error *err);

/* The fields of @value, a payload, as members of a JSON object: "a": 1, "b": "x". Returns whether there were any. */
bool ky_tracks_json_fields(struct ky_strbuf *out, const struct ky_value *value);

/* The formats. */
extern const struct ky_tracks_form ky_tracks_chrome;

#endif
