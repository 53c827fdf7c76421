/* SPDX-License-Identifier: MIT */
/*
 * One clock for all traces of a recording. The recorder knows its clock better from chunk to chunk, so the metadata of a
 * later trace can have other values. A viewer of LTTng's protocol would convert the same time of two traces to two wall
 * times, and end at an event that seems to be older than what it has shown. So it gets the values that it has got first.
 *
 * Threads: any.
 */
#ifndef KY_NET_VIEWER_VIEWER_CLOCK_H
#define KY_NET_VIEWER_VIEWER_CLOCK_H

#include <stddef.h>

#include "net/viewer/viewer-reply.h"

/* Longer texts are left as they are. */
#define KY_VIEWER_CLOCK_NAME_BYTES 160

struct ky_viewer_clock {
	size_t name_bytes, values_bytes;       /* 0: no viewer has metadata yet */
	char name[KY_VIEWER_CLOCK_NAME_BYTES]; /* the lines with name and UUID */
	char values[KY_VIEWER_PATCH_BYTES];    /* frequency, precision, offset */
};

/*
 * @text: the begin of metadata that goes into @reply, whose file has it at 0. Remembers its clock, or makes
 * @reply change the values of the same clock, in the same number of bytes.
 */
void ky_viewer_clock_apply(struct ky_viewer_clock *clock, const char *text, size_t bytes,
			   struct ky_viewer_reply *reply);

#endif
