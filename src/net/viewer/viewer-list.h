/* SPDX-License-Identifier: MIT */
/*
 * The recordings that a relay shows to viewers. Below its directory DIR these are
 *
 *	DIR/HOST/NAME	of a relay
 *	DIR/NAME	of recorders on this machine, whose host name they get
 *	DIR		a recording itself, which may have hosts in it, too
 *
 * Each recording is one session, with all of its traces: those of programs may come at any time.
 *
 * Threads: one at a time per list.
 */
#ifndef KY_NET_VIEWER_VIEWER_LIST_H
#define KY_NET_VIEWER_VIEWER_LIST_H

#include "net/viewer/viewer-recording.h"

struct ky_viewer_entry {
	uint64_t id; /* of the session: the same for the same recording */
	char *host, *name;
	char *below; /* the recording's path below DIR; "" is DIR */
	uint32_t streams;
	bool is_ctf2;
};

struct ky_viewer_list {
	const char *dir;
	int64_t made_ns; /* CLOCK_MONOTONIC; 0: never */
	int64_t took_ns;
	KY_VEC(struct ky_viewer_entry) entries; /* sorted by host and name */
};

/* Whether the relay has a connection to the recorder of the recording @below DIR. */
typedef bool (*ky_viewer_is_connected)(void *data, const char *below);

/* Brings the list up to date, unless it is new. Recordings that cannot be read are left out. */
void ky_viewer_list_look(struct ky_viewer_list *list, int64_t now_ns,
			 ky_viewer_is_connected is_connected, void *data);
void ky_viewer_list_fini(struct ky_viewer_list *list);
/* NULL: there is no such session. */
const struct ky_viewer_entry *ky_viewer_list_find(const struct ky_viewer_list *list, uint64_t id);

#endif
