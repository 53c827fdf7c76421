/* SPDX-License-Identifier: MIT */
/*
 * Writes an index file: rows of intervals, in any order of the rows, each in its order of time. Knows nothing
 * of what rows and states mean, but that streams' intervals count events.
 *
 * Memory: some kilobytes for each row, and the names. The file only grows, but for its head.
 * Threads: one at a time.
 */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_WRITER_H
#define KY_ANALYSIS_HISTORY_HISTORY_WRITER_H

#include "analysis/history/history-format.h"
#include "base/arena.h"
#include "base/hash.h"

#define KY_ROW_SLOTS 512u

struct ky_open_node {
	uint32_t n;
	struct ky_entry entries[KY_NODE_ENTRIES];
};

/* A row that is being written. */
struct ky_open_row {
	enum ky_row_kind kind;
	uint32_t id, parent;
	int64_t number, origin;
	char *name; /* of the arena */
	/* The last interval: it may still grow. */
	bool has_last;
	int64_t last_begin_ns, last_end_ns;
	uint64_t last_state;
	/* The leaf. */
	int64_t leaf_begin_ns;
	uint32_t n, cap, n_states, states_cap;
	uint64_t *durations, *states;
	uint8_t *codes;
	uint8_t *slots; /* of a leaf with many states: their numbers + 1, by hash */
	struct ky_open_node *levels[KY_LEVELS];
	bool is_dirty;
	uint64_t record_at; /* its record in the file; 0: none yet */
};

struct ky_history_writer {
	int fd;
	struct ky_arena arena;
	KY_VEC(struct ky_open_row *) rows;
	KY_VEC(const char *) names; /* number 0 is "" */
	struct ky_names numbers;    /* name -> number */
	KY_VEC(struct ky_unnamed_object) objects;
	KY_VEC(struct ky_unnamed) unnamed;
	size_t n_names_written;
	uint64_t names_at;
	struct ky_strbuf out; /* not written yet */
	uint64_t written;     /* offset of out's first byte */
	uint64_t generation;
	uint64_t n_intervals;
	KY_VEC(struct ky_saved_state) states;
	uint64_t published_at, published_bytes; /* where the last publication ended, and its size */
	struct ky_strbuf scratch;
	struct kymo_error error; /* of writing; the first one stays */
};

int ky_history_writer_init(struct ky_history_writer *writer, int fd,
			   const struct ky_history_identity *identity);
void ky_history_writer_fini(struct ky_history_writer *writer);

/* A new row. NULL: out of memory, or too many rows. @name is copied; it may be NULL. */
struct ky_open_row *ky_history_writer_row(struct ky_history_writer *writer, enum ky_row_kind kind,
					  uint32_t parent, int64_t number, const char *name);
/* 0 or KYMO_E_MEMORY. */
int ky_open_row_name(struct ky_history_writer *writer, struct ky_open_row *row, const char *name);
static inline void ky_open_row_parent(struct ky_open_row *row, uint32_t parent)
{
	row->is_dirty |= row->parent != parent;
	row->parent = parent;
}

static inline void ky_open_row_origin(struct ky_open_row *row, int64_t origin)
{
	row->is_dirty |= row->origin != origin;
	row->origin = origin;
}

/* The number of a name; @name is copied. UINT64_MAX: out of memory. */
uint64_t ky_history_writer_name(struct ky_history_writer *writer, const char *name);

/* A program or library: its place in the list; UINT32_MAX: out of memory. Path and build ID are copied. */
uint32_t ky_history_writer_object(struct ky_history_writer *writer,
				  const struct ky_unnamed_object *object);
/* The number of a new name @text, which is that of the function at @address of @object until symbols tell more. UINT64_MAX: out of memory. */
uint64_t ky_history_writer_unnamed(struct ky_history_writer *writer, const char *text,
				   uint32_t object, uint64_t address);

/*
 * @row was in @state from @begin_ns to @end_ns. What is earlier than the row's last end is left out. 0 or a negative status.
 */
int ky_open_row_add(struct ky_history_writer *writer, struct ky_open_row *row, int64_t begin_ns,
		    int64_t end_ns, uint64_t state);

/*
 * history-leaf.c: @row's leaf gets an interval. 1: it is full, and must be written and cleared; 0; KYMO_E_MEMORY.
 */
int ky_open_leaf_push(struct ky_open_row *row, int64_t begin_ns, int64_t end_ns, uint64_t state);
/* The leaf begins without intervals and states. */
void ky_open_leaf_clear(struct ky_open_row *row);
/* Puts the leaf to @out, with the last interval, which stays apart. 0 or KYMO_E_MEMORY. */
int ky_open_leaf_put(struct ky_open_row *row, struct ky_strbuf *out);

/* history-entry.c: cells and count of the entry of a node or of the leaf, from afar; its times are set. */
void ky_open_node_entry(const struct ky_open_row *row, const struct ky_open_node *node,
			struct ky_entry *entry);
void ky_open_leaf_entry(const struct ky_open_row *row, struct ky_entry *entry);

/* The model's state before the events at and after @ns is in ->scratch, and becomes a record. 0 or a negative status. */
int ky_history_writer_state(struct ky_history_writer *writer, int64_t ns);

/* Facts of the whole index. */
struct ky_history_facts {
	int64_t begin_ns, end_ns;
	uint64_t n_events;
};

/* Make everything so far visible to readers. @complete: nothing more comes. 0 or a negative status. */
int ky_history_writer_publish(struct ky_history_writer *writer,
			      const struct ky_history_facts *facts, bool complete);

#endif
