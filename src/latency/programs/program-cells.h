/* SPDX-License-Identifier: MIT */
/*
 * What programs' own trackers have added to their histograms, since they were read last. All that a file says is copied
 * and checked: a program can lie about its own durations, but no number makes another one wrong or too large.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_LATENCY_PROGRAM_CELLS_H
#define KY_LATENCY_PROGRAM_CELLS_H

#include "latency/series/histogram.h"
#include "latency/programs/program-files.h"

/* @tracker: its name, letters, digits and '_'. 0 or KYMO_E_MEMORY. */
typedef int (*ky_program_take)(void *data, const struct ky_program_file *file, const char *tracker,
			       const struct ky_histogram *added);

/* Read all files; @take is called for each tracker to which something was added. 0 or KYMO_E_MEMORY. */
int ky_program_cells_read(struct ky_program_files *files, ky_program_take take, void *data,
			  struct kymo_error *err);

/* Begins without room in programs' tables, and call sites of trackers without room in their files. */
uint64_t ky_program_cells_lost(const struct ky_program_files *files);

#endif
