/* SPDX-License-Identifier: MIT */
/*
 * Rings that survive a reboot: tracefs instances in reserved memory ("reserve_mem=20M:2M:trace
 * trace_instance=boot_map@trace" on the kernel's command line, Linux 6.12). They still have the
 * events of the boot before, which become a trace.
 *
 * The formats of events come from the present boot, so the same kernel must have recorded them.
 * Threads: one at a time per instance.
 */
#ifndef KY_RECORD_KERNEL_PERSISTENT_RING_H
#define KY_RECORD_KERNEL_PERSISTENT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"

struct ky_persistent_ring_stats {
	uint64_t events, lost, bad;
};

/* Whether @dir is a tracefs instance; whether it is one in reserved memory. */
bool ky_persistent_ring_is_instance(const char *dir);
bool ky_persistent_ring_is_mapped(const char *dir);

/*
 * Make a trace, OUTPUT/kernel, of the events from the boot before in instance @dir, and remove them
 * from the ring. The function first writes a raw recording to OUTPUT-raw, which stays when its
 * conversion fails. Returns 0; KYMO_E_STATE: the instance is recording, or has no events of the
 * boot before; KYMO_E_PERMISSION, KYMO_E_INVALID (the output), KYMO_E_IO, KYMO_E_FORMAT,
 * KYMO_E_MEMORY. @stats: set whenever the ring had events.
 */
int ky_persistent_ring_recover(const char *dir, const char *output, const struct ky_log *log,
			       struct ky_persistent_ring_stats *stats, struct kymo_error *err);

#endif
