/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernel/events/events.h"

uint32_t ky_rwbs_mask(const char *text, size_t len)
{
	uint32_t mask = 0;
	size_t i = 0;

	/* F first is a flush before the operation, unless it is the operation itself. */
	if (len > 1 && text[0] == 'F' && text[1] != '\0' && strchr("WDRFNZ", text[1])) {
		mask |= KY_RWBS_PREFLUSH;
		i++;
	}
	if (i < len) {
		switch (text[i++]) {
		case 'W':
			mask |= KY_RWBS_WRITE;
			break;
		case 'D':
			mask |= KY_RWBS_DISCARD;
			break;
		case 'R':
			mask |= KY_RWBS_READ;
			break;
		case 'F':
			mask |= KY_RWBS_FLUSH;
			break;
		case '\0':
			return mask;
		}
	}
	for (; i < len && text[i]; i++) {
		switch (text[i]) {
		case 'E':
			mask |= KY_RWBS_SECURE;
			break;
		case 'F':
			mask |= KY_RWBS_FUA;
			break;
		case 'A':
			mask |= KY_RWBS_RAHEAD;
			break;
		case 'S':
			mask |= KY_RWBS_SYNC;
			break;
		case 'M':
			mask |= KY_RWBS_META;
			break;
		}
	}
	return mask;
}
