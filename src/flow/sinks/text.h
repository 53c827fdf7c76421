/* SPDX-License-Identifier: MIT */
/*
 * The text sink: one event per line, in babeltrace2's default layout, byte for byte.
 *
 *	[08:30:00.123456789] (+0.000001234) host sched_waking: { cpu_id = 0 }, { tid = 7 }, { ... }
 *
 * A line has the time, the difference to the line before, the origin from the environment
 * (hostname, procname, vpid), and the event's name; then packet context, stream context, event
 * context and payload, as far as they exist. Names, parts of the origin and colours are options,
 * like those of babeltrace2. The sink differs from babeltrace2 2.0.4 where that is wrong: an empty
 * string is empty (babeltrace2 shows the string of an earlier event of that type), all negative
 * times are seconds, and time that goes back shows as (-0.000000001). Buffers of system calls that
 * Kymo recorded have the form of flow/sinks/buffer.h instead of lists of numbers.
 */
#ifndef KY_FLOW_SINKS_TEXT_H
#define KY_FLOW_SINKS_TEXT_H

#include "flow/graph/flow.h"

/* The names in a line. */
enum ky_text_names {
	KY_TEXT_NAME_PAYLOAD = 1, /* of the payload's fields */
	KY_TEXT_NAME_CONTEXT = 2, /* of the contexts' fields */
	KY_TEXT_NAME_SCOPE = 4,	  /* "event.fields = " */
	KY_TEXT_NAME_HEADER = 8,  /* "timestamp = ", "name = ", instead of brackets */
	KY_TEXT_NAMES_ALL = 15,
	KY_TEXT_NAMES_DEFAULT = KY_TEXT_NAME_PAYLOAD | KY_TEXT_NAME_CONTEXT,
	KY_TEXT_NAMES_CHOSEN = 16, /* without it: the default */
};

/* Further parts of a line beside time, name and fields. */
enum ky_text_fields {
	KY_TEXT_FIELD_TRACE = 1, /* the trace's name */
	KY_TEXT_FIELD_HOSTNAME = 2,
	KY_TEXT_FIELD_DOMAIN = 4,
	KY_TEXT_FIELD_PROCNAME = 8,
	KY_TEXT_FIELD_VPID = 16,
	KY_TEXT_FIELD_LOGLEVEL = 32,
	KY_TEXT_FIELD_EMF = 64, /* URI of its model */
	KY_TEXT_FIELDS_ALL = 127,
	KY_TEXT_FIELDS_DEFAULT =
		KY_TEXT_FIELD_HOSTNAME | KY_TEXT_FIELD_PROCNAME | KY_TEXT_FIELD_VPID,
	KY_TEXT_FIELDS_CHOSEN = 128, /* without it: the default */
};

enum ky_text_colours {
	KY_TEXT_PLAIN,
	KY_TEXT_COLOURS,
	KY_TEXT_COLOURS_BRIGHT, /* bright colours by codes 90 to 97, instead of bold and 30 to 37 */
};

struct ky_address_names;

/* All zero is babeltrace2's default layout, without colours. */
struct ky_text_options {
	bool clock_date;    /* date before the time of day */
	bool clock_gmt;	    /* UTC instead of the local time zone (TZ) */
	bool clock_seconds; /* seconds since the clock's origin instead of the time of day */
	bool clock_cycles;  /* the clock's raw value; takes precedence over the others */
	bool decode;	    /* add what the numbers of some fields mean */
	bool uncertain;	    /* mark events whose order is uncertain: see text-order.c */
	bool no_delta;	    /* omit the difference to the event before */
	uint8_t names;	    /* of enum ky_text_names */
	uint8_t fields;	    /* of enum ky_text_fields */
	uint8_t colours;    /* enum ky_text_colours */
	/* Add names to addresses of code: borrowed; NULL: not. */
	const struct ky_address_names *addresses;
};

/*
 * A time (ns from the clock's origin) in the sink's form, without brackets: "08:30:00.123456789".
 * @out must have at least 64 bytes. Returns @out.
 */
char *ky_text_time(char *out, int64_t ns, const struct ky_text_options *options);

struct ky_text;

/*
 * A sink that writes to @fd, which stays the caller's. NULL when memory is out. Threads: one at a
 * time per sink.
 */
struct ky_text *ky_text_new(int fd, const struct ky_text_options *options);
/* Frees the sink without writing the rest after ky_text_flush(). NULL is allowed. */
void ky_text_free(struct ky_text *text);

/*
 * Writes the events of @batch; mostly this only fills a buffer. Returns 0, KYMO_E_MEMORY,
 * KYMO_E_LIMIT, KYMO_E_FORMAT or an error of writing (KYMO_E_IO ...).
 */
int ky_text_batch(struct ky_text *text, const struct ky_batch *batch, struct kymo_error *err);

/* From now on, keeps everything until ky_text_flush(). */
void ky_text_hold(struct ky_text *text);
/* Continues as if the event before had been @before, one with a time; NULL: none. */
void ky_text_resume(struct ky_text *text, const struct ky_event *before);

/* See struct ky_sink_ops: begin, held, take. */
struct ky_sink_before;
struct ky_sink_held;
void ky_text_begin(struct ky_text *text);
size_t ky_text_held(const struct ky_text *text);
void ky_text_take(struct ky_text *text, struct ky_sink_before *before, struct ky_sink_held *held);

/* Writes the buffer. Complete lines before an error are written, too. */
int ky_text_flush(struct ky_text *text, struct kymo_error *err);

#endif
