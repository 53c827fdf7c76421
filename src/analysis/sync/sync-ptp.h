/* SPDX-License-Identifier: MIT */
/*
 * What linuxptp's programs write into logs: how far a machine's clock is from the grandmaster's. ptp4l tells of the clock that stamps packets, which
 * is the system's clock or that of a network card; phc2sys tells how far the system's clock is from that one.
 *
 * The text is not trusted. Threads: any, on different objects.
 */
#ifndef KY_ANALYSIS_SYNC_SYNC_PTP_H
#define KY_ANALYSIS_SYNC_SYNC_PTP_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/sync/sync-facts.h"

/* All statements together. */
struct ky_ptp_said {
	bool has;
	int64_t least, most;
};

struct ky_sync_ptp {
	struct ky_ptp_said port, system; /* by ptp4l, by phc2sys */
	bool is_of_card;		 /* ptp4l's clock is not the system's */
	bool is_master;			 /* it is the grandmaster's clock */
	char grandmaster[KY_GRANDMASTER_BYTES];
	bool has_times;
	int64_t begin_ns, end_ns;
};

/* A line of a log, at @ns. Other lines say nothing. */
void ky_sync_ptp_see(struct ky_sync_ptp *ptp, const char *message, size_t len, int64_t ns);
/* The grandmaster's time minus the trace's, if the machine's clock is known to be steered or compared. */
void ky_sync_ptp_finish(const struct ky_sync_ptp *ptp, struct ky_sync_facts *facts);

#endif
