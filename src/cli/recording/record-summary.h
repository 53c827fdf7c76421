/* SPDX-License-Identifier: MIT */
/* What kymo record says at the end. */
#ifndef KY_CLI_RECORDING_RECORD_SUMMARY_H
#define KY_CLI_RECORDING_RECORD_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "record/recording/recording.h"

/*
 * To stderr: events, losses and their causes, per CPU of the kernel and per program; and the commands to use next.
 * @has_calls: it has functions' calls (--calls). @is_whole: nothing failed; else the caller
 * has printed what did.
 */
void ky_record_summary(const char *output, const struct ky_recording_stats *stats, bool has_calls,
		       bool is_whole);

#endif
