/* SPDX-License-Identifier: MIT */
/*
 * Rings that outlive a reboot: tracefs instances that lie in reserved memory ("reserve_mem=20M:2M:trace
 * trace_instance=boot_map@trace" on the kernel's command line, Linux 6.12). What the boot before
 * recorded is in them still, and becomes a trace.
 *
 * The events' formats are this boot's: it must be the same kernel that recorded.
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

/* Is @dir a tracefs instance? And one that lies in reserved memory? */
bool ky_persistent_ring_is_instance(const char *dir);
bool ky_persistent_ring_is_mapped(const char *dir);

/*
 * Make a trace, OUTPUT/kernel, of what the boot before left in instance @dir. It is taken out of the ring: on
 * its way it is in OUTPUT-raw, a raw recording, which stays when that cannot become a trace.
 * 0; KYMO_E_STATE: the instance is recording, or has nothing of the boot before; KYMO_E_PERMISSION,
 * KYMO_E_INVALID (the output), KYMO_E_IO, KYMO_E_FORMAT, KYMO_E_MEMORY. @stats: whenever there was something.
 */
int ky_persistent_ring_recover(const char *dir, const char *output, const struct ky_log *log,
			       struct ky_persistent_ring_stats *stats, struct kymo_error *err);

#endif
