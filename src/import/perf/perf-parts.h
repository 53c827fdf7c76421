/* SPDX-License-Identifier: MIT */
/*
 * A directory of `perf record --threads`: the file "data" has the header and the first records, and each of the files "data.0",
 * "data.1" ... has the records of some CPUs, without a header.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_IMPORT_PERF_PARTS_H
#define KY_IMPORT_PERF_PARTS_H

#include "base/log.h"
#include "import/perf/perf-file.h"

struct ky_perf_part {
	struct ky_foreign_file file;
	char *path; /* of the file */
	uint64_t at, end;
	struct ky_perf_unpack *unpack;
	uint64_t newest_ns, round_ns; /* the newest record so far, and of the round before */
	bool is_done;
};

struct ky_perf_parts {
	char *path; /* of "data"; NULL: no directory */
	const struct ky_log *log;
	KY_VEC(struct ky_perf_part) parts;
};

/* Is @path a directory with a file "data"? Then its path is in @data. False also where memory is out. */
bool ky_perf_parts_find(const char *path, char **data);
/*
 * Opens what is there beside "data", which @perf has read. All zeros are allowed. @broken or the log gets what is missing or cannot be
 * opened: ky_perf_parts_tell(). 0 or KYMO_E_MEMORY.
 */
int ky_perf_parts_open(struct ky_perf_parts *parts, const char *path,
		       const struct ky_perf_file *perf, struct kymo_error *broken,
		       struct kymo_error *err);
void ky_perf_parts_fini(struct ky_perf_parts *parts);

/* @why is an error of a file: the first is @broken, others become warnings. */
void ky_perf_parts_tell(const struct ky_perf_parts *parts, struct kymo_error *broken,
			const struct kymo_error *why);

/* @perf reads @part; and again: what it had read. */
void ky_perf_part_swap(struct ky_perf_part *part, struct ky_perf_file *perf);
/* Up to this time, no part has further records; UINT64_MAX: all are done. */
uint64_t ky_perf_parts_until(const struct ky_perf_parts *parts);

#endif
