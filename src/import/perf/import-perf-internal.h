/* SPDX-License-Identifier: MIT */
/*
 * What the files of a perf.data import share: import-perf.c reads the file, import-perf-row.c rows of plain records in it, and
 * import-perf-hand.c hands records on in the order of time.
 *
 * A recording of whole CPUs has a ring for each CPU, so that the CPU's records come in order, but for a few that interrupts wrote
 * within others. There a record is handed on as soon as some hundred later ones of its CPU are read, while its bytes are still in the
 * processor's cache. A record that comes too late for that shows that the file is not such a recording: the import begins again, and
 * records wait until their round has ended.
 */
#ifndef KY_IMPORT_IMPORT_PERF_INTERNAL_H
#define KY_IMPORT_IMPORT_PERF_INTERNAL_H

#include "import/perf/import-perf.h"
#include "import/perf/perf-parts.h"
#include "import/perf/perf-queue.h"

/* A file without rounds: so much waits. */
#define KY_PERF_WAITING_MAX_BYTES ((size_t)256 << 20)

/* Bytes of the file from @at on. */
struct ky_perf_row {
	uint8_t *bytes;
	uint64_t at;
	size_t len;
};

struct ky_perf_import {
	struct ky_perf_file perf;
	struct ky_import_perf_trace trace;
	struct ky_perf_parts parts;
	bool round_is_over; /* of a part */
	bool waits;	    /* for the ends of rounds: set before a second try */
	bool is_early;	    /* records do not wait for the ends of rounds */
	bool is_late;	    /* one came too late for that */
	struct ky_perf_queues queues;
	struct ky_perf_row row; /* while is_early */
	uint64_t round_ns;	/* the newest record of the last round */
	uint64_t last_ns;	/* of all */
	uint64_t n_short;
	struct kymo_error beyond;     /* the first sample of a CPU above the limit; code 0: none */
	uint8_t copy[UINT16_MAX + 1]; /* of the record that is handed on */
	uint16_t at_id; /* where the counter's id stands in samples; 0: take all records singly */
	const struct ky_log *log;
};

/* import-perf.c: a record came too late: ends this try. KYMO_E_FORMAT. */
int ky_perf_import_late(struct ky_perf_import *import, struct kymo_error *err);
/* import-perf.c: the sample at byte @at is of a CPU above the limit: it is left out. */
void ky_perf_import_beyond(struct ky_perf_import *import, uint32_t cpu, uint64_t at);
/* import-perf.c: a record of the kernel, or the end of a round. */
int ky_perf_import_take(struct ky_perf_import *import, const struct ky_perf_head *head,
			struct kymo_error *err);

/*
 * import-perf-row.c: takes records in a row from perf->at on, of a file in this machine's byte order, without compressed ones: most of
 * all records. Those that are not taken here, and errors, are found in the usual way.
 */
int ky_perf_import_row(struct ky_perf_import *import, struct kymo_error *err);

/* import-perf-hand.c: hands on what waits, up to @until_ns. */
int ky_perf_import_flush(struct ky_perf_import *import, uint64_t until_ns, struct kymo_error *err);
/* The first of many records that wait in a queue. */
int ky_perf_import_hand(struct ky_perf_import *import, struct ky_perf_queue *queue,
			struct kymo_error *err);

#endif
