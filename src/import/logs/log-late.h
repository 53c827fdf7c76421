/* SPDX-License-Identifier: MIT */
/*
 * Events that are earlier than those before them. A trace has few streams, and in each of them times only go on; so such events are
 * kept until they are many, and go to the trace in the order of time.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_IMPORT_LOG_LATE_H
#define KY_IMPORT_LOG_LATE_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "import/common/trace-maker.h"

struct ky_log_late_event {
	uint64_t ns;
	size_t at;  /* in `values` */
	int number; /* of its class */
};

/* All zeros are allowed. */
struct ky_log_late {
	struct ky_strbuf values;
	KY_VEC(struct ky_log_late_event) events;
};

void ky_log_late_fini(struct ky_log_late *late);

/* An event of class @number at @ns; its values follow, as for ky_maker_begin(). 0 or KYMO_E_MEMORY. */
int ky_log_late_begin(struct ky_log_late *late, int number, uint64_t ns, struct kymo_error *err);
void ky_log_late_number(struct ky_log_late *late, uint64_t value);
void ky_log_late_double(struct ky_log_late *late, double value);
void ky_log_late_text(struct ky_log_late *late, const char *text, size_t len);
/* The event has its values. If there are many events, they go to @maker. 0, KYMO_E_MEMORY, or the maker's error. */
int ky_log_late_commit(struct ky_log_late *late, struct ky_maker *maker, struct kymo_error *err);
/* All events go to @maker. Likewise. */
int ky_log_late_flush(struct ky_log_late *late, struct ky_maker *maker, struct kymo_error *err);

#endif
