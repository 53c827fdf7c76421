/* SPDX-License-Identifier: MIT */
/* A raw recording that becomes a trace. */
#ifndef KY_RECORD_KERNEL_RAW_REPLAY_H
#define KY_RECORD_KERNEL_RAW_REPLAY_H

#include "base/strbuf.h"
#include "record/trace/kernel-trace.h"

struct ky_raw_replay {
	struct ky_kernel_trace kernel;
	const char *dir;
	struct ky_strbuf text; /* the description */
	const char *at, *end;
	uint32_t line;
	uint64_t end_cycles;
	struct ky_strbuf header; /* of pages */
};

/*
 * raw-description.c: what the file raw/recording says goes to replay->kernel. 0, KYMO_E_FORMAT (it, or a line of it, makes no
 * sense), KYMO_E_NOT_FOUND, KYMO_E_IO, ...
 */
int ky_raw_read_description(struct ky_raw_replay *replay, struct kymo_error *err);

#endif
