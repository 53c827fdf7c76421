/* SPDX-License-Identifier: MIT */
/*
 * The text sink: one event per line, in babeltrace2's default layout, byte for byte.
 *
 *	[08:30:00.123456789] (+0.000001234) host sched_waking: { cpu_id = 0 }, { tid = 7 }, { ... }
 *
 * Time, difference to the line before, what the environment says of the origin (hostname,
 * procname, vpid), event name; then packet context, stream context, event context and payload,
 * as far as they exist. Differences from babeltrace2 2.0.4, each where its line is wrong: an empty
 * string is shown empty (it shows what an earlier event of that type held), negative times are all
 * written as seconds, and time that goes back shows as (-0.000000001).
 */
#ifndef KY_FLOW_TEXT_H
#define KY_FLOW_TEXT_H

#include "flow/flow.h"

struct ky_text_options {
	bool clock_date;    /* the day before the time of day */
	bool clock_gmt;	    /* UTC instead of the local time zone (TZ) */
	bool clock_seconds; /* seconds since the clock's origin instead of the time of day */
	bool clock_cycles;  /* the clock's raw value; wins over the others */
	bool no_delta;	    /* leave out the difference to the event before */
};

/*
 * A time (ns from the clock's origin) as the sink shows it, without brackets: "08:30:00.123456789".
 * @out has at least 64 bytes. Returns @out.
 */
char *ky_text_time(char *out, int64_t ns, const struct ky_text_options *options);

struct ky_text;

/*
 * A sink that writes to @fd, which stays the caller's. NULL when out of memory.
 * Threads: one at a time per sink.
 */
struct ky_text *ky_text_new(int fd, const struct ky_text_options *options);
/* Free without writing what ky_text_flush() has not written. NULL is fine. */
void ky_text_free(struct ky_text *text);

/*
 * Write the events of @batch. Most of the time this only fills a buffer.
 * Returns 0, KYMO_E_MEMORY, KYMO_E_LIMIT, KYMO_E_FORMAT or what writing gave (KYMO_E_IO ...).
 */
int ky_text_batch(struct ky_text *text, const struct ky_batch *batch, struct kymo_error *err);

/* From now on keep everything until ky_text_flush(). */
void ky_text_hold(struct ky_text *text);
/* Go on as if the event before had been @before, one with a time; NULL: as if none had. */
void ky_text_resume(struct ky_text *text, const struct ky_event *before);

/* Write out what is buffered. Lines that were complete before an error are written too. */
int ky_text_flush(struct ky_text *text, struct kymo_error *err);

#endif
