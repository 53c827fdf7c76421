/* SPDX-License-Identifier: MIT */
/*
 * The text sink: one event per line, in babeltrace2's default layout, byte for byte.
 *
 *	[08:30:00.123456789] (+0.000001234) host sched_waking: { cpu_id = 0 }, { tid = 7 }, { ... }
 *
 * Time, difference to the line before, what the environment says of the origin (hostname,
 * procname, vpid), event name; then packet context, stream context, event context and payload,
 * as far as they exist. Names, parts of the origin and colours are options, as babeltrace2 has them.
 * Differences from babeltrace2 2.0.4, each where its line is wrong: an empty
 * string is shown empty (it shows what an earlier event of that type held), negative times are all
 * written as seconds, and time that goes back shows as (-0.000000001). Buffers of system calls that
 * Kymo recorded are shown as flow/sinks/buffer.h says, not as lists of numbers.
 */
#ifndef KY_FLOW_SINKS_TEXT_H
#define KY_FLOW_SINKS_TEXT_H

#include "flow/graph/flow.h"

/* What names are written. */
enum ky_text_names {
	KY_TEXT_NAME_PAYLOAD = 1, /* of the payload's fields */
	KY_TEXT_NAME_CONTEXT = 2, /* of the contexts' fields */
	KY_TEXT_NAME_SCOPE = 4,	  /* "event.fields = " */
	KY_TEXT_NAME_HEADER = 8,  /* "timestamp = ", "name = ", instead of brackets */
	KY_TEXT_NAMES_ALL = 15,
	KY_TEXT_NAMES_DEFAULT = KY_TEXT_NAME_PAYLOAD | KY_TEXT_NAME_CONTEXT,
	KY_TEXT_NAMES_CHOSEN = 16, /* without it: the default */
};

/* What is told of an event beside its time, name and fields. */
enum ky_text_fields {
	KY_TEXT_FIELD_TRACE = 1, /* the trace's name */
	KY_TEXT_FIELD_HOSTNAME = 2,
	KY_TEXT_FIELD_DOMAIN = 4,
	KY_TEXT_FIELD_PROCNAME = 8,
	KY_TEXT_FIELD_VPID = 16,
	KY_TEXT_FIELD_LOGLEVEL = 32,
	KY_TEXT_FIELD_EMF = 64, /* where its model is described */
	KY_TEXT_FIELDS_ALL = 127,
	KY_TEXT_FIELDS_DEFAULT =
		KY_TEXT_FIELD_HOSTNAME | KY_TEXT_FIELD_PROCNAME | KY_TEXT_FIELD_VPID,
	KY_TEXT_FIELDS_CHOSEN = 128, /* without it: the default */
};

enum ky_text_colours {
	KY_TEXT_PLAIN,
	KY_TEXT_COLOURS,
	KY_TEXT_COLOURS_BRIGHT, /* bright colours by codes 90 to 97, not by bold and 30 to 37 */
};

/* All zero is babeltrace2's default layout, without colours. */
struct ky_text_options {
	bool clock_date;    /* the day before the time of day */
	bool clock_gmt;	    /* UTC instead of the local time zone (TZ) */
	bool clock_seconds; /* seconds since the clock's origin instead of the time of day */
	bool clock_cycles;  /* the clock's raw value; wins over the others */
	bool no_delta;	    /* leave out the difference to the event before */
	uint8_t names;	    /* of enum ky_text_names */
	uint8_t fields;	    /* of enum ky_text_fields */
	uint8_t colours;    /* enum ky_text_colours */
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

/* See struct ky_sink_ops: begin, held, take. */
struct ky_sink_before;
struct ky_sink_held;
void ky_text_begin(struct ky_text *text);
size_t ky_text_held(const struct ky_text *text);
void ky_text_take(struct ky_text *text, struct ky_sink_before *before, struct ky_sink_held *held);

/* Write out what is buffered. Lines that were complete before an error are written too. */
int ky_text_flush(struct ky_text *text, struct kymo_error *err);

#endif
