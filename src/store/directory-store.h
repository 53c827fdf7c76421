/* SPDX-License-Identifier: MIT */
/*
 * A packet store that is a directory, with LTTng's layout of traces: metadata, one file per stream, index/NAME.idx.
 * Directories have mode 0700, files 0600.
 */
#ifndef KY_STORE_DIRECTORY_STORE_H
#define KY_STORE_DIRECTORY_STORE_H

#include "store/packet-store.h"

/*
 * The store at @path. Its traces create the directories on their way below @path; @path itself is created only by a
 * trace at "", and must exist for others. A trace may use an empty directory that exists; another one is refused:
 * KYMO_E_INVALID with a hint.
 *
 * Traces of this store can do all that a store can do. A trace needs the store only while it is opened or rotated.
 *
 * 0 or KYMO_E_MEMORY.
 */
int ky_directory_store_open(const char *path, struct ky_packet_store **store,
			    struct kymo_error *err);

/* A trace at @path, in a store of its own, which ends with it. */
int ky_directory_trace_open(const char *path, bool is_atomic, struct ky_store_trace **trace,
			    struct kymo_error *err);

#endif
