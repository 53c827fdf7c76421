/* SPDX-License-Identifier: MIT */
/* What the files of the reader share. */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_INTERNAL_H
#define KY_ANALYSIS_HISTORY_HISTORY_INTERNAL_H

#include <stdatomic.h>

#include "analysis/history/history-format.h"
#include "base/arena.h"

/* What a picture will ask for: see ky_history_expect(). */
struct ky_expected {
	const uint32_t *rows;
	size_t n_rows; /* 0: nothing is expected */
	int64_t begin_ns, end_ns;
	uint64_t pixel_ns;
	bool is_missed;		 /* the kernel's cache lacks some of it */
	bool is_brought;	 /* it has been asked for all of it */
	atomic_bool *is_claimed; /* of several readers, one asks; NULL: there is one */
};

struct ky_history {
	int fd;
	uint64_t file_bytes;
	bool is_kept;		  /* in the directory of indexes */
	bool is_damaged;	  /* says a question */
	const struct ky_log *log; /* gets a warning about it; may be NULL */
	KY_VEC(uint8_t) buffer;	  /* the record that was read last */
	struct ky_history_head head;
	struct ky_history_slot slot;
	int64_t begin_ns, end_ns;
	uint64_t n_events;
	struct ky_arena arena; /* of names */
	KY_VEC(struct ky_history_row) rows;
	KY_VEC(uint64_t) records; /* of rows: offsets */
	KY_VEC(const char *) names;
	KY_VEC(struct ky_unnamed_object) objects;
	KY_VEC(struct ky_unnamed) unnamed;
	KY_VEC(struct ky_saved_state) states; /* in the order of time */
	struct ky_expected expected;
	struct ky_thread_pool *pool; /* of readers; NULL until many rows are asked for */
	uint64_t leaf_at;	     /* the record of ->leaf; 0: none */
	uint32_t leaf_row;	     /* its row + 1, if ->leaf is one; 0: it is not */
	struct ky_leaf leaf;
};

/* history-later.c: names of functions that symbols of @set tell by now. 0 or KYMO_E_MEMORY. */
int ky_history_name_functions(struct ky_history *history, const struct ky_trace_set *set,
			      struct kymo_error *err);

/* history-prefetch.c: the kernel's cache gets what is expected, unless another reader sees to it. */
void ky_history_prefetch(struct ky_history *history);

#define KY_HISTORY_NAME_BYTES 64 /* of an index file, or the part of one */

/*
 * Remove indexes of the directory @dir while all together have more than a tenth of the file system: those first whose last use
 * is longest ago, never the one that is called @keep.
 */
void ky_history_evict(int dir, const char *keep);

/*
 * The payload of the record at @offset, until the next one is read, if it is a @kind of @row at @level and its checksum is right. 0 or KYMO_E_FORMAT.
 */
int ky_history_record(struct ky_history *history, uint64_t offset, enum ky_record_kind kind,
		      uint32_t row, uint32_t level, struct ky_bytes *bytes, struct kymo_error *err);
/* The index is in the directory of indexes no longer, unless another file has its name now. */
void ky_history_discard(const struct ky_history *history);
/* The file says something that cannot be: ->is_damaged. KYMO_E_FORMAT. */
int ky_history_damaged(struct ky_history *history, uint64_t offset, const char *what,
		       struct kymo_error *err);

/* The top of a row: entries of its levels, and the last intervals. */
struct ky_row_top {
	struct ky_history_row row;
	uint64_t offset;
	uint32_t n_levels;
	struct {
		uint32_t n;
		struct ky_entry entries[KY_NODE_ENTRIES];
	} levels[KY_LEVELS]; /* [0] has leaves */
	struct ky_leaf leaf;
};

/*
 * Read the record at @offset. @wanted: as of ky_entries_get(). ->row.name is not set: @name and @name_len are. 0 or KYMO_E_FORMAT.
 */
int ky_history_top(struct ky_history *history, uint64_t offset, uint32_t row,
		   const struct ky_wanted *wanted, struct ky_row_top *top, const char **name,
		   size_t *name_len, struct kymo_error *err);

/* history-query.c: the top of @row; the caller frees it, also after an error. */
int ky_history_read_top(struct ky_history *history, uint32_t row, const struct ky_wanted *wanted,
			struct ky_row_top **top, struct kymo_error *err);
/* The entries of the node of @entry, which stands at @level of its row. @entries has room for KY_NODE_ENTRIES. */
int ky_history_read_node(struct ky_history *history, uint32_t row, uint32_t level,
			 const struct ky_wanted *wanted, const struct ky_entry *entry,
			 struct ky_entry *entries, uint32_t *n, struct kymo_error *err);

#endif
