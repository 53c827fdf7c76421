/* SPDX-License-Identifier: MIT */
/*
 * Raw recordings: the kernel's pages, which the recorder writes to disk without parsing them, and
 * the data to make a trace of them later, on any machine of the same byte order.
 *
 *	DIR/raw/recording	text: clock's ends, CPUs, threads at the start, formats of the events,
 *				values of the names in them
 *	DIR/raw/cpuN		pages (sub-buffers) of that CPU's ring, one after the other
 *	DIR/raw/state/		metadata.ctf: the trace's metadata; statedump_0: the state dump, as CTF
 *
 * All input is checked: a recording may come from anywhere. Threads: any, on different directories.
 */
#ifndef KY_RECORD_KERNEL_RAW_H
#define KY_RECORD_KERNEL_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "store/packets/packet-store.h"

struct ky_raw_stats {
	uint64_t events, lost, bad;
	/* Records that are not events of the trace, by cause; see struct ky_convert_cpu. */
	uint64_t own, hidden, filtered;
};

/* Whether @dir is a raw recording. */
bool ky_raw_is(const char *dir);

/*
 * Make a trace of raw recording @dir in @output, which the function creates; the trace is
 * OUTPUT/kernel. @log (may be NULL) gets a warning about each damage that the conversion skipped.
 * @stats may be NULL. Returns 0, KYMO_E_FORMAT (with the file and line), KYMO_E_IO, KYMO_E_MEMORY,
 * KYMO_E_INVALID (the output).
 */
int ky_raw_convert_to_directory(const char *dir, const char *output, const struct ky_log *log,
				struct ky_raw_stats *stats, struct kymo_error *err);
/* The same; the trace is "kernel" in @store. */
int ky_raw_convert(const char *dir, struct ky_packet_store *store, const struct ky_log *log,
		   struct ky_raw_stats *stats, struct kymo_error *err);

#endif
