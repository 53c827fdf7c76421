/* SPDX-License-Identifier: MIT */
/*
 * The log of a relay. Clients that nobody knows cause its lines, so there are only so many per second: a log on a disk does
 * not fill it, and a reader that is slow does not hold up the relay for long.
 *
 * Threads: any.
 */
#ifndef KY_CLI_SESSION_RELAY_LOG_H
#define KY_CLI_SESSION_RELAY_LOG_H

#include "base/log.h"

/* So many lines at once, and so many per second in the long run. */
#define KY_RELAY_LOG_BURST 2000
#define KY_RELAY_LOG_RATE  20

/* Passes lines on to ky_cli_log. There is one relay in a process. */
extern const struct ky_log ky_relay_log;
/* At the end: tells how many lines were left out. */
void ky_relay_log_end(void);

#endif
