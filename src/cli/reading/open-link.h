/* SPDX-License-Identifier: MIT */
/*
 * Opening a secret link in the user's browser.
 *
 * All users of a machine can see the arguments of its processes. So the browser does not get the
 * link, but a file that only this user can read, which leads to the link.
 */
#ifndef KY_CLI_READING_OPEN_LINK_H
#define KY_CLI_READING_OPEN_LINK_H

#include <sys/types.h>

struct ky_open_link {
	char *path; /* of the file; NULL: none */
	pid_t pid;  /* of the opener; 0: none */
};

#define KY_OPEN_LINK_INIT \
	{                 \
		NULL, 0   \
	}

/* Start xdg-open, if there is a display. Tells of failures on the standard error. */
void ky_open_link(struct ky_open_link *opened, const char *link);
/* Removes the file. */
void ky_open_link_end(struct ky_open_link *opened);

#endif
