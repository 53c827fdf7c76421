/* SPDX-License-Identifier: MIT */
/*
 * What `kymo sync` found out about the clock of a trace, in a small JSON file beside it (docs/clocks.md). Opening a trace applies it. Its
 * content is not trusted.
 */
#ifndef KY_STORE_SYNC_FILE_H
#define KY_STORE_SYNC_FILE_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "store/read/trace.h"

#define KY_SYNC_FILE_NAME ".kymo-sync.json"
/* Drifts are in 10^-18: ns in 10^18 ns. At most 1 %. */
#define KY_SYNC_DRIFT_ONE INT64_C(1000000000000000000)
#define KY_SYNC_DRIFT_MAX (KY_SYNC_DRIFT_ONE / 100)
/* So many other machines a file names. */
#define KY_SYNC_PAIRS_MAX 10000

enum ky_sync_quality {
	KY_SYNC_ABSENT,	     /* nothing was seen on both machines */
	KY_SYNC_INCOMPLETE,  /* in one direction only */
	KY_SYNC_APPROXIMATE, /* the drift is a guess, or no straight line fits all that was seen */
	KY_SYNC_ACCURATE,    /* bounds of offset and drift hold */
	KY_SYNC_QUALITIES,
};

/* "ABSENT" ... */
const char *ky_sync_quality_name(enum ky_sync_quality quality);

/* The trace's machine and another one. */
struct ky_sync_with {
	const char *machine;
	enum ky_sync_quality quality;
	uint64_t n_to, n_from; /* messages, to the other and from it */
	uint64_t bound_ns; /* of the difference of the clocks; 0 unless APPROXIMATE or ACCURATE */
	bool is_chosen;	   /* a part of the tree */
};

/*
 * A clock against the reference's: t + shift_ns + (t - at_ns) * drift is the reference's time. The error is within a bound between begin
 * and end, and grows before and after.
 */
struct ky_sync {
	struct ky_arena arena;
	uint64_t trace; /* ky_sync_identity() */
	uint64_t group; /* of the run: traces of one group can be compared */
	const char *machine, *reference;
	enum ky_sync_quality quality;
	int64_t at_ns, shift_ns, drift;
	int64_t begin_ns, end_ns;
	uint64_t begin_bound_ns, end_bound_ns, drift_bound;
	KY_VEC(struct ky_sync_with) pairs;
};

/* What tells the trace from others: a hash of its UUID and clocks; of a file of another program, of its first bytes. */
uint64_t ky_sync_identity(const struct ky_trace *trace);

/* For who writes a trace with metadata @text and the times of @sync: writes the file into its directory @dir. */
int ky_sync_copy(const struct ky_sync *sync, const char *dir, const char *text, size_t len,
		 struct kymo_error *err);

/* The error of the trace's times at @ns (before the correction). */
uint64_t ky_sync_bound(const struct ky_sync *sync, int64_t ns);

/* The same at @ns after the correction; 0 for NULL. */
uint64_t ky_sync_bound_after(const struct ky_sync *sync, int64_t ns);

/* Reads @bytes. KYMO_E_FORMAT: with the place. The caller frees *sync. */
int ky_sync_parse(const char *bytes, size_t len, struct ky_sync **sync, struct kymo_error *err);
void ky_sync_put(struct ky_strbuf *out, const struct ky_sync *sync);
void ky_sync_free(struct ky_sync *sync); /* NULL is allowed */
struct ky_sync *ky_sync_new(void);	 /* NULL: memory is out */

/*
 * The files of @trace, each with a NUL: several for a trace of several directories; none for one at a relay. KYMO_E_MEMORY.
 */
int ky_sync_paths(const struct ky_trace *trace, struct ky_strbuf *paths);
/* Writes the files of @trace. 0, KYMO_E_IO, ... */
int ky_sync_save(const struct ky_trace *trace, const struct ky_sync *sync, struct kymo_error *err);
/* Removes them; *n: how many there were. */
int ky_sync_remove(const struct ky_trace *trace, unsigned int *n, struct kymo_error *err);

/*
 * Reads the file of each trace of @set, and corrects its clocks. A file that cannot be used causes a warning in the set's log. KYMO_E_MEMORY.
 */
int ky_sync_apply(struct ky_trace_set *set, struct kymo_error *err);

#endif
