/* SPDX-License-Identifier: MIT */
/* The conversion of a raw recording into a trace. */
#ifndef KY_RECORD_KERNEL_RAW_REPLAY_H
#define KY_RECORD_KERNEL_RAW_REPLAY_H

#include "base/strbuf.h"
#include "record/trace/kernel-trace.h"

struct ky_raw_replay {
	struct ky_kernel_trace kernel;
	const char *dir;
	struct ky_strbuf text; /* contents of the description file */
	const char *at, *end;
	uint32_t line;
	uint64_t end_cycles;
	struct ky_strbuf header; /* the format of pages */
};

/*
 * raw-description.c: parse the file raw/recording into replay->kernel. Returns 0, KYMO_E_FORMAT
 * (the file, or a line of it, is malformed), KYMO_E_NOT_FOUND, KYMO_E_IO, ...
 */
int ky_raw_read_description(struct ky_raw_replay *replay, struct kymo_error *err);

#endif
