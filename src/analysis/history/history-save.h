/* SPDX-License-Identifier: MIT */
/* The state history: states of the model, from which reports of a range begin. */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_SAVE_H
#define KY_ANALYSIS_HISTORY_HISTORY_SAVE_H

#include "analysis/history/history-format.h"
#include "analysis/state/model-internal.h"

struct ky_history_saving {
	const struct ky_model *model;
	int64_t ns;
	struct ky_strbuf *out;
	uint32_t *numbers; /* of threads, from 1 on, by ky_thread.index; 0: left out */
	uint32_t n_threads;
	int64_t since_ns; /* the begin of the first wait: runs that ended before it do not matter */
};

/*
 * @out gets the state of @model, which has all events before @ns and no other one. 0 or KYMO_E_MEMORY.
 */
int ky_history_save(const struct ky_model *model, int64_t ns, struct ky_strbuf *out);

/*
 * The other way: @model is new, and of the same traces. 0, KYMO_E_FORMAT, KYMO_E_MEMORY: then @model is of no use any more.
 * *@ns: the state's time.
 */
int ky_history_restore(struct ky_model *model, struct ky_bytes *bytes, int64_t *ns);

#endif
