/* SPDX-License-Identifier: MIT */
/*
 * Requests of the viewer's page: what a browser may ask, and which requests are not from the page.
 *
 * Everything here is untrusted: other programs of the machine, and pages of other sites in the same
 * browser, can send requests to a port of the loopback interface. A request counts only with the
 * server's own address as Host (which defeats DNS rebinding), with the secret token in its path,
 * and, when it has an Origin, with the server's own origin.
 *
 * Threads: any; the functions have no state.
 */
#ifndef KY_VIEW_REQUEST_H
#define KY_VIEW_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#define KY_VIEW_TOKEN_CHARS  32 /* 128 random bits in hexadecimal */
#define KY_VIEW_FILTER_BYTES 4096
#define KY_VIEW_NAME_BYTES   48
#define KY_VIEW_FIELD_BYTES  512
#define KY_VIEW_OF_BYTES     256
#define KY_VIEW_PERIOD_BYTES 4096
#define KY_VIEW_MAX_PIXELS   4096
#define KY_VIEW_MAX_ROWS     512
#define KY_VIEW_MAX_IDS	     256

enum ky_view_what {
	KY_VIEW_ASSET,	  /* /TOKEN/ or /TOKEN/NAME: a file of the page */
	KY_VIEW_INFO,	  /* api/info: traces, range, reports */
	KY_VIEW_DENSITY,  /* api/density: events and losses per pixel of a range */
	KY_VIEW_RANK,	  /* api/rank: the row of the first event at or after a time */
	KY_VIEW_ROWS,	  /* api/rows: consecutive events */
	KY_VIEW_EVENT,	  /* api/event: one event with all fields */
	KY_VIEW_TREE,	  /* api/tree: all rows of the state history */
	KY_VIEW_ACTIVITY, /* api/activity: how long each row was active in a range */
	KY_VIEW_TIMELINE, /* api/timeline: states of some rows per pixel of a range */
	KY_VIEW_CURVES,	  /* api/curves: the same rows as curves */
	KY_VIEW_FIELDS,	  /* api/fields: the numeric fields of all events */
	KY_VIEW_FIELD,	  /* api/field: the values of one of them as a curve */
	KY_VIEW_MARKS,	  /* api/marks: events as marks on rows */
	KY_VIEW_LOSSES,	  /* api/losses: lost events and damage, by rows */
	KY_VIEW_ARROWS,	  /* api/arrows: wake-ups of one thread, by rows */
	KY_VIEW_MOMENT,	  /* api/moment: the state of one row at a time */
	KY_VIEW_CAUSE, /* api/cause: what a thread waits or waited for at a time, and who woke it */
	KY_VIEW_LATENCY,   /* api/latency: durations in a range, as a map */
	KY_VIEW_MEMBERS,   /* api/members: those of them with certain durations */
	KY_VIEW_NOTES,	   /* api/notes: all notes */
	KY_VIEW_NOTE,	   /* api/note (POST): add or change a note */
	KY_VIEW_UNNOTE,	   /* api/unnote (POST): remove a note */
	KY_VIEW_AREA,	   /* api/area: statistics of a range */
	KY_VIEW_REPORT,	   /* api/report (POST): a report for a range */
	KY_VIEW_QUERY,	   /* api/query (POST): a statement of SQL */
	KY_VIEW_PROGRAMS,  /* api/programs: other programs with reports */
	KY_VIEW_PROGRAM,   /* api/program (POST): the report of one of them for a range */
	KY_VIEW_DROP,	   /* api/drop (POST): begin to drop a trace */
	KY_VIEW_DROP_FILE, /* api/drop-file (POST): a file of it, the only request with a body */
	KY_VIEW_DROP_END,  /* api/drop-end (POST): give it up */
	KY_VIEW_DROP_OPEN, /* api/drop-open (POST): open it */
};

struct ky_view_request {
	enum ky_view_what what;
	bool is_post;
	unsigned int
		side;  /* of two sets of traces beside each other: 1 or 2; 0: the path names none */
	uint64_t drop; /* the number of the dropped trace that the path names; 0: none */
	char name[KY_VIEW_NAME_BYTES]; /* of the asset or the report */
	int64_t begin_ns, end_ns;      /* from the clock's origin, both inclusive */
	int64_t ns;
	uint64_t least_ns, most_ns;    /* durations */
	uint64_t row, count;	       /* count: rows, or pixels */
	uint32_t ids[KY_VIEW_MAX_IDS]; /* of rows of the state history */
	size_t n_ids;
	char field[KY_VIEW_FIELD_BYTES];   /* "EVENT.FIELD" */
	char filter[KY_VIEW_FILTER_BYTES]; /* "": none; or the text of a note */
	/* Of reports; "": none. */
	char of[KY_VIEW_OF_BYTES];	    /* as --of */
	char comm[KY_VIEW_OF_BYTES];	    /* as --comm */
	char periods[KY_VIEW_PERIOD_BYTES]; /* as --period, a line for each */
	uint64_t cell_column, cell_row;	    /* as --cell; column 0: none */
	bool has_row, has_ns;		    /* ->row, ->ns were given */
};

/*
 * /TOKEN/a/ and /TOKEN/b/ are the sides of a page with two sets of traces, /TOKEN/d7/ is the seventh dropped trace.
 *
 * Parse @target, the path and query of a request as they are on the wire: "/TOKEN/api/rows?row=7".
 *
 * @token: KY_VIEW_TOKEN_CHARS characters; the comparison takes the same time for each wrong token.
 * Returns 0; KYMO_E_PERMISSION for a wrong token, or for a method that the resource does not have;
 * KYMO_E_NOT_FOUND for an unknown path; KYMO_E_INVALID for a malformed, unknown, repeated or missing
 * parameter.
 */
int ky_view_request_parse(const char *target, bool is_post, const char *token,
			  struct ky_view_request *request, struct kymo_error *err);

/*
 * Whether @host (of the header Host; NULL: missing) is this server: "127.0.0.1:PORT" or
 * "localhost:PORT".
 */
bool ky_view_is_host(const char *host, uint16_t port);

/* Whether @origin (of the header Origin) is this server's page: "http://" and the above. */
bool ky_view_is_origin(const char *origin, uint16_t port);

#endif
