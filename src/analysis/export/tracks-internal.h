/* SPDX-License-Identifier: MIT */
/* What the files of the tracks share. */
#ifndef KY_ANALYSIS_EXPORT_TRACKS_INTERNAL_H
#define KY_ANALYSIS_EXPORT_TRACKS_INTERNAL_H

#include "analysis/export/event-kind.h"
#include "analysis/export/tracks.h"
#include "analysis/state/model-internal.h"

struct ky_tracks_class {
	enum ky_track_what what;
	const char *name; /* NULL: not shown by itself */
	const char *category;
	bool on_cpu; /* what does not sleep in between */
	struct ky_event_thread thread;
};

struct ky_tracks_host {
	uint32_t machine;
	bool is_kernel;
	struct ky_tracks_class *classes; /* by ky_event_class.index */
};

/* ---- tracks-rows.c: NULL when out of memory ------------------------------------------------------ */

struct ky_track *ky_tracks_of_thread(struct ky_tracks *tracks, const struct ky_thread *thread);
/* Of a program's event; NULL, too, when the event tells no thread. */
struct ky_track *ky_tracks_of_user(struct ky_tracks *tracks, const struct ky_host *host,
				   const struct ky_event *event, const struct ky_tracks_class *cls);
/* Of the process whose trace it is, as its first thread; NULL, too, when the trace does not tell it. */
struct ky_track *ky_tracks_of_process(struct ky_tracks *tracks, const struct ky_host *host);
struct ky_track *ky_tracks_of_cpu(struct ky_tracks *tracks, const struct ky_host *host,
				  enum ky_track_kind kind, uint32_t cpu_id);
/* For a request from @begin_ns to @end_ns: requests come in the order of their ends. */
struct ky_track *ky_tracks_of_disk(struct ky_tracks *tracks, const struct ky_disk *disk,
				   int64_t begin_ns, int64_t end_ns);
struct ky_track *ky_tracks_of_stream(struct ky_tracks *tracks, const struct ky_host *host,
				     const struct ky_stream *stream);

/* ---- tracks-model.c -------------------------------------------------------------------------------- */

/* What the form wants of the model. 0 or KYMO_E_MEMORY. */
int ky_tracks_listen(struct ky_tracks *tracks);

#endif
