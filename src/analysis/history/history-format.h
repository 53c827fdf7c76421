/* SPDX-License-Identifier: MIT */
/* The records of an index file: encoding and decoding. docs/design/history.md describes them byte by byte. */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_FORMAT_H
#define KY_ANALYSIS_HISTORY_HISTORY_FORMAT_H

#include "analysis/history/history.h"
#include "base/strbuf.h"

#define KY_HISTORY_MAGIC   UINT64_C(0x315349484f4d594b) /* "KYMOHIS1" */
#define KY_HISTORY_VERSION 13u

#define KY_LEAF_INTERVALS 512u /* of a leaf, at most */
#define KY_LEAF_STATES	  255u /* different ones of a leaf, at most */
#define KY_NODE_ENTRIES	  8u
#define KY_CELLS	  64u
#define KY_LEVELS	  16u /* of entries; 8^16 leaves are more than fit into a file */
#define KY_ROW_NAME_BYTES 255u
/* Shares and heights of entries are parts of this. */
#define KY_SHARE_FULL 255u
#define KY_ROWS_MAX   (1u << 24)

/* ---- the head of the file ---------------------------------------------------------------- */

struct ky_history_head {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes; /* of this struct */
	struct ky_history_identity identity;
	uint64_t checksum; /* of what is above */
};

/* Two of them, used in turn: a reader takes the valid one with the greater generation. */
struct ky_history_slot {
	uint64_t generation; /* 0: unused */
	uint64_t root_bytes; /* offset of the root record */
	uint64_t end_bytes;  /* everything below is written */
	uint64_t is_complete;
	uint64_t checksum; /* of what is above */
};

#define KY_HISTORY_SLOT_AT(i) ((uint64_t)64 + 64 * (uint64_t)(i))
#define KY_HISTORY_RECORDS_AT UINT64_C(192)

enum ky_record_kind {
	KY_RECORD_LEAF = 1,
	KY_RECORD_NODE = 2,
	KY_RECORD_ROW = 3,
	KY_RECORD_NAMES = 4,
	KY_RECORD_ROOT = 5,
	KY_RECORD_STATE = 6, /* history-save.h */
};

struct ky_record_head {
	uint32_t kind;
	uint32_t bytes; /* of the payload */
	uint32_t row;	/* or 0 */
	uint32_t level; /* of nodes: 1 where its entries are leaves; else 0 */
	uint64_t checksum;
};

/* A state of the model that the file has. */
struct ky_saved_state {
	int64_t ns;
	uint64_t offset;
};

/* Of @len bytes at @data; @seed makes the place a part of it. */
uint64_t ky_history_checksum(uint64_t seed, const void *data, size_t len);
/* Of a record that stands at @offset. */
uint64_t ky_record_checksum(const struct ky_record_head *head, uint64_t offset,
			    const void *payload);

/* ---- reading bytes ------------------------------------------------------------------------- */

/* Once @bad, all reads give 0. */
struct ky_bytes {
	const uint8_t *at, *end;
	bool bad;
};

uint64_t ky_bytes_long(struct ky_bytes *bytes); /* ky_bytes_varint() of any length */

/* Most numbers have up to three bytes. */
static inline uint64_t ky_bytes_varint(struct ky_bytes *bytes)
{
	const uint8_t *at = bytes->at;

	if (__builtin_expect(bytes->end - at < 3, 0))
		return ky_bytes_long(bytes);
	if (at[0] < 0x80) {
		bytes->at = at + 1;
		return at[0];
	}
	if (at[1] < 0x80) {
		bytes->at = at + 2;
		return (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
	}
	if (at[2] < 0x80) {
		bytes->at = at + 3;
		return (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7 | (uint64_t)at[2] << 14;
	}
	return ky_bytes_long(bytes);
}

int64_t ky_bytes_signed(struct ky_bytes *bytes);
void ky_put_varint(struct ky_strbuf *out, uint64_t value);
void ky_put_signed(struct ky_strbuf *out, int64_t value);

/* ---- leaves and entries --------------------------------------------------------------------- */

/* Contiguous intervals of one row; unknown times are intervals, too. */
struct ky_leaf {
	int64_t begin_ns, end_ns;
	uint32_t n, n_states;
	uint64_t states[KY_LEAF_STATES];
	uint64_t durations[KY_LEAF_INTERVALS];
	uint8_t codes[KY_LEAF_INTERVALS]; /* numbers of states */
};

/* A leaf or node, as its parent has it. Cell i is from begin + i/64 to begin + (i+1)/64 of the time. */
struct ky_entry {
	uint64_t offset; /* of its record */
	int64_t begin_ns, end_ns;
	uint64_t count; /* intervals, or events */
	uint64_t states[KY_CELLS];
	uint8_t shares
		[KY_CELLS]; /* of KY_ROW_STREAM: events, relative to the fullest cell; else see ky_history_pixel */
	uint64_t more; /* a bit for each cell */
	/*
	 * The curve (ky_history_heights()): how much of the time is active, of 255. Rows that hold values have their
	 * greatest value in states, and the mean and the least one in shares and curve, both relative to it.
	 */
	uint8_t curve[KY_CELLS];
};

void ky_leaf_put(struct ky_strbuf *out, int64_t begin_ns, uint32_t n, const uint64_t *durations,
		 const uint8_t *codes, uint32_t n_states, const uint64_t *states);
/* False: malformed. */
bool ky_leaf_get(struct ky_bytes *bytes, struct ky_leaf *leaf);

/* Entries that follow each other in time; there may be none. */
void ky_entries_put(struct ky_strbuf *out, const struct ky_entry *entries, uint32_t n);
/* Which cells a reader needs. */
struct ky_wanted {
	int64_t begin_ns, end_ns; /* entries that are all outside do without cells */
	bool curves;
};

/* @entries has room for KY_NODE_ENTRIES. @wanted: NULL: no cells, only places and times. False: malformed. */
bool ky_entries_get(struct ky_bytes *bytes, const struct ky_wanted *wanted,
		    struct ky_entry *entries, uint32_t *n);

/* ---- functions without a name ---------------------------------------------------------------------- */

/* A program or library, whose symbols may come later. */
struct ky_unnamed_object {
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
};

/* A function in it: the name has the number @name, and is the address until symbols tell more. */
struct ky_unnamed {
	uint64_t name, address;
	uint32_t object; /* its place in the list of objects */
};

/* ---- painting ------------------------------------------------------------------------------------ */

#define KY_PAINT_STATES 24u /* of a pixel */
#define KY_PAINT_SLOTS	64u

/*
 * Parts of a row, in the order of time, become @n pixels. A pixel gets the state with the most time; of equal ones the first.
 */
struct ky_paint {
	int64_t begin_ns;
	uint64_t step_ns, rest_ns, carry_ns; /* the whole time is step * n + rest */
	size_t n, at;
	int64_t from_ns, to_ns; /* of pixel @at */
	uint64_t covered_ns;
	/* States of the pixel by hash. A slot is in use if its stamp is the pixel's. */
	uint32_t n_states, stamp;
	uint8_t used[KY_PAINT_STATES + 1]; /* slots, in the order of the first parts */
	uint32_t stamps[KY_PAINT_SLOTS];
	uint64_t states[KY_PAINT_SLOTS], weights[KY_PAINT_SLOTS];
	bool more;
	struct ky_history_pixel *pixels;
};

/* @end_ns is not before @begin_ns. */
void ky_paint_begin(struct ky_paint *paint, int64_t begin_ns, int64_t end_ns, size_t n,
		    struct ky_history_pixel *pixels);
/* @state fills @share of 255 of the time between them. */
void ky_paint_add(struct ky_paint *paint, int64_t begin_ns, int64_t end_ns, uint64_t state,
		  uint8_t share, bool more);
/* All intervals of a leaf. */
void ky_paint_leaf(struct ky_paint *paint, const struct ky_leaf *leaf);
/* @holds_values: see ky_row_holds_values(). Then its cells have their greatest values. */
void ky_paint_entry(struct ky_paint *paint, const struct ky_entry *entry, bool holds_values);
void ky_paint_end(struct ky_paint *paint);

/* The same for numbers of events, which are spread evenly over the time of each part. */
struct ky_spread {
	int64_t begin_ns, end_ns;
	size_t n;
	double per_ns; /* pixels */
	double *pixels;
};

void ky_spread_begin(struct ky_spread *spread, int64_t begin_ns, int64_t end_ns, size_t n,
		     double *pixels);
void ky_spread_add(struct ky_spread *spread, int64_t begin_ns, int64_t end_ns, double count);
void ky_spread_entry(struct ky_spread *spread, const struct ky_entry *entry);

/* The curve of a cell with one state. */
uint8_t ky_whole_curve(uint64_t state);

/* The same for curves. */
struct ky_curve {
	int64_t begin_ns, end_ns;
	size_t n;
	double pixel_ns;
	struct ky_history_height *pixels;
};

/* @end_ns is after @begin_ns. */
void ky_curve_begin(struct ky_curve *curve, int64_t begin_ns, int64_t end_ns, size_t n,
		    struct ky_history_height *pixels);
/* An interval in @state. */
void ky_curve_add(struct ky_curve *curve, int64_t begin_ns, int64_t end_ns, uint64_t state);
/* @holds_values: see ky_row_holds_values(). */
void ky_curve_entry(struct ky_curve *curve, const struct ky_entry *entry, bool holds_values);
/* The cells of @entry from a curve of KY_CELLS pixels. */
void ky_curve_cells(const struct ky_curve *curve, struct ky_entry *entry, bool holds_values);

/* The events that an interval of a stream's row stands for. */
static inline uint64_t ky_state_events(uint64_t state)
{
	if (ky_state_kind(state) != KY_STATE_EVENTS)
		return 0;
	return ky_state_value(state) ? ky_state_value(state) : KY_HISTORY_EVENTS;
}

/* Where cell @i of @entry begins. */
static inline int64_t ky_cell_ns(const struct ky_entry *entry, uint32_t i)
{
	uint64_t span = (uint64_t)entry->end_ns - (uint64_t)entry->begin_ns;

	return (int64_t)((uint64_t)entry->begin_ns + span / KY_CELLS * i +
			 span % KY_CELLS * i / KY_CELLS);
}

#endif
