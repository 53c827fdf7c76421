/* SPDX-License-Identifier: MIT */
/*
 * Rows of the state history by what they are about: the thread of an event, the CPU of a stream.
 *
 * An index stays valid without its history. Threads: one at a time.
 */
#ifndef KY_VIEW_ROW_INDEX_H
#define KY_VIEW_ROW_INDEX_H

#include "analysis/history/history.h"

struct ky_indexed_row {
	enum ky_row_kind kind;
	uint32_t machine; /* its row; or KY_HISTORY_NO_ROW */
	int64_t number;
	uint32_t id;
	int64_t begin_ns, end_ns; /* of its states */
};

struct ky_row_index {
	KY_VEC(struct ky_indexed_row)
	rows; /* CPUs, processes, threads and streams, in this order of the members */
	KY_VEC(uint32_t) machines; /* their rows */
};

/* 0 or KYMO_E_MEMORY; the caller calls ky_row_index_fini() in any case. */
int ky_row_index_init(struct ky_row_index *index, const struct ky_history *history);
void ky_row_index_fini(struct ky_row_index *index);
/*
 * The row of @kind with @number on @machine at @ns; of several with the same number, the one that has states then. KY_HISTORY_NO_ROW:
 * none.
 */
uint32_t ky_row_find(const struct ky_row_index *index, enum ky_row_kind kind, uint32_t machine,
		     int64_t number, int64_t ns);
/* The row of the machine that @trace is of, or KY_HISTORY_NO_ROW. */
uint32_t ky_row_machine(const struct ky_row_index *index, const struct ky_history *history,
			const struct ky_trace *trace);
/* Is it a trace of the kernel? */
bool ky_is_kernel_trace(const struct ky_trace *trace);

#endif
