/* SPDX-License-Identifier: MIT */
/* Traces that are put in one order although their clocks count from different moments. */
#ifndef KY_CLI_READING_TIMES_APART_H
#define KY_CLI_READING_TIMES_APART_H

#include "store/read/trace.h"

/*
 * Warn if the times of one trace of @set count from the start of a machine, and those of another from 1970. Both kinds of files give
 * no origin of their times (dmesg, syslog), or claim the Unix epoch (what perf data convert --to-ctf writes). Reads the header of each trace's first packet.
 */
void ky_cli_warn_of_times_apart(const struct ky_trace_set *set);

#endif
